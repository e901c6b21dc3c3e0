"""The C header of an exported model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from string import Template
from typing import Final

from ansorlite.errors import ArgumentError
from ansorlite.export.description import Description, Parameter

#: dtype → C's type of an element. The narrow floats are their bits.
_TYPES: Final = {
    "bool": "uint8_t",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
    "float32": "float",
    "float64": "double",
}

_TEXT: Final = Template("""/* $name, compiled by ansorlite $version for: $target */
#ifndef ${guard}_H
#define ${guard}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An instance holds the temporaries of one call: use one for each thread that calls at the same time. */
typedef struct $name $name;

/* $created */
$name *${name}_create($creation);

void ${name}_run(
    $name *$instance,
$parameters);

void ${name}_destroy($name *$instance);

#ifdef __cplusplus
}
#endif

#endif
""")

_GPU_TEXT: Final = Template("""/* $name, compiled by ansorlite $version for: $target */
#ifndef ${guard}_H
#define ${guard}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An instance holds kernels, weights, and the temporaries of one call: use one for each thread that calls at the same time.
   The only library that is needed beside this one is the driver's, libcuda.so.1. */
typedef struct $name $name;

/* On the GPU with that number, counted from 0.$created NULL: ${name}_error() says why. */
$name *${name}_create(int device$creation);

/* Runs it, and waits. Each array is on the host, and is copied, or on that GPU, and is used where it is if it begins at a
   multiple of 16 bytes. Arrays do not overlap. 0, or the driver's number of an error: ${name}_error() says which. */
int ${name}_run(
    $name *$instance,
$parameters);

/* The same on a stream (a CUstream or cudaStream_t of that GPU's primary context), not waited for: calls with one instance go to
   one stream, and arrays on the host stay until it is done. */
int ${name}_enqueue(
    $name *$instance,
    void *$stream,
$parameters);

/* When all its calls are done. */
void ${name}_destroy($name *$instance);

/* One sentence about what went wrong last in this thread. */
const char *${name}_error(void);

#ifdef __cplusplus
}
#endif

#endif
""")

#: The first parameters' names.
_INSTANCE: Final = "instance"
_STREAM: Final = "stream"

#: Words of C and C++.
_TAKEN: Final = re.compile(
    "auto|bool|break|case|catch|char|class|const|continue|default|delete|do|double|else|enum|extern|float|for|goto|if|inline|int"
    "|long|namespace|new|operator|private|protected|public|register|restrict|return|short|signed|sizeof|static|struct"
    "|switch|template|this|throw|try|typedef|union|unsigned|using|virtual|void|volatile|while"
)


def check_name(name: str) -> str:
    """``name`` if C takes it for the beginning of a function's name.

    Raises:
        ArgumentError: it does not.
    """
    if name != identifier(name):
        raise ArgumentError(f"{name!r} is no name that C functions can begin with; give another with name=")
    return name


def identifier(text: str) -> str:
    """``text`` with everything else than letters, digits and underscores replaced, not beginning with a digit."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", text, flags=re.ASCII) or "_"
    return f"_{plain}" if plain[0].isdigit() or _TAKEN.fullmatch(plain) else plain


def text(description: Description) -> str:
    """The header of the model that ``description`` is of."""
    name = description.name
    inside = description.weights is None
    on_gpu = description.kind == "cuda"
    known = (_INSTANCE, _STREAM) if on_gpu else (_INSTANCE,)
    parameters = list(_parameters(description.inputs, description.outputs, known))
    if on_gpu:
        return _GPU_TEXT.substitute(
            name=name,
            instance=_INSTANCE,
            stream=_STREAM,
            guard=name.upper(),
            version=description.version,
            target=description.target,
            created="" if inside else f" The weights are the file {description.weights}.",
            creation="" if inside else ", const char *weights",
            parameters=",\n".join(parameters),
        )
    return _TEXT.substitute(
        name=name,
        instance=_INSTANCE,
        guard=name.upper(),
        version=description.version,
        target=description.target,
        created=_created(description),
        creation="void" if inside else "const char *weights",
        parameters=",\n".join(parameters),
    )


def _created(description: Description) -> str:
    other = "" if description.sve_bytes is None else f", if SVE's registers have not {description.sve_bytes} bytes"
    if description.weights is None:
        return f"NULL if the weights are damaged{other}, or there is no memory."
    return f"From the file {description.weights}; NULL if that is another or damaged{other}, or there is no memory."


def _parameters(inputs: Sequence[Parameter], outputs: Sequence[Parameter], known: Sequence[str]) -> Iterable[str]:
    names = unique([parameter.name for parameter in (*inputs, *outputs)], known)
    for name, (parameter, qualifier) in zip(names, [*((p, "const ") for p in inputs), *((p, "") for p in outputs)], strict=True):
        shape = "x".join(map(str, parameter.shape)) or "one element"
        yield f"    /* {shape} {parameter.dtype} */ {qualifier}{_TYPES[parameter.dtype]} *{name}"


def unique(names: Sequence[str], known: Sequence[str] = (_INSTANCE,)) -> list[str]:
    """Identifiers for parameters beside those that are known, no two alike."""
    taken: dict[str, None] = dict.fromkeys(known)
    for name in names:
        plain = identifier(name)
        candidate, number = plain, 2
        while candidate in taken:
            candidate, number = f"{plain}_{number}", number + 1
        taken[candidate] = None
    return list(taken)[len(known) :]

"""What an exported model says about itself: written into the library, read by :func:`ansorlite.load`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final

from ansorlite.errors import ModelError

#: The symbol that Python looks for: the addresses of the description, the entry, its profiled twin, the weights, and so on.
MODEL: Final = "ansorlite_model"

#: Changes when a library of the one version cannot be loaded by the other.
FORMAT: Final = 7


@dataclass(frozen=True)
class Parameter:
    """An input or output."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class StepFacts:
    """A step of the model, for people and profiles.

    Attributes:
        name: the operators that it computes, and the shape of the result.
        task: the task's key; empty for a copy.
        candidate: the program; empty for a copy, or where that is not known.
        flops: operations.
        bytes: of its inputs and output together.
        latency: seconds that were measured when it was tuned, if it was.
    """

    name: str
    task: str
    candidate: str
    flops: int
    bytes: int
    latency: float | None


@dataclass(frozen=True)
class Description:
    """Everything that a caller must know.

    Attributes:
        name: what the C functions' names begin with.
        version: of the ansorlite that made it.
        target: key of the machine that it was compiled for.
        features: what the processor must have, in LLVM's words.
        sve_bytes: what its registers of SVE must be long, if it matters.
        inputs, outputs: in the order of the C function's parameters.
        temporaries: bytes that one call needs.
        weight_bytes: of the block of weights.
        checksum: of the block of weights (``codegen/checksum.py``), in hexadecimal.
        weights: name of the file beside the library that they are in; ``None``: inside.
        steps: in order.
        object_head: bytes that every Python object begins with, in the Python that made it: it can be called directly from such.
        kind: of the target: what the symbol ``ansorlite_model`` is depends on that.
    """

    name: str
    version: str
    target: str
    features: tuple[str, ...]
    sve_bytes: int | None
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    temporaries: int
    weight_bytes: int
    checksum: str
    weights: str | None
    steps: tuple[StepFacts, ...]
    object_head: int
    kind: str

    def text(self) -> str:
        """As JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)})


def parse(text: str) -> Description:
    """The inverse of :meth:`Description.text`.

    Raises:
        ModelError: another format, or no such text.
    """
    try:
        fields: dict[str, Any] = json.loads(text)
        found = fields.pop("format")
        if found != FORMAT:
            raise ModelError(f"the model was exported in format {found}, but this version loads format {FORMAT}; export it again")
        fields["features"] = tuple(fields["features"])
        fields["steps"] = tuple(StepFacts(**step) for step in fields["steps"])
        for kind in ("inputs", "outputs"):
            fields[kind] = tuple(Parameter(p["name"], tuple(p["shape"]), p["dtype"]) for p in fields[kind])
        return Description(**fields)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError("the library's description of its model is damaged; export it again") from error

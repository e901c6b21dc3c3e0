"""LLVM's names for dtypes, and literals.

A dtype has two LLVM types: the one of a *value* being computed with, and the one of an element in *memory*. They differ
for bool (``i1``, stored as a byte) and for the storage floats: float16 and bfloat16 values are ``float`` values that
were rounded to the narrow format, which is exactly how numpy computes with them.
"""

import struct
from typing import Final, NamedTuple

from ansorlite.te import dtypes

#: dtype -> type of a value.
VALUE: Final[dict[str, str]] = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "i8",
    "uint16": "i16",
    "uint32": "i32",
    "uint64": "i64",
    "float16": "float",
    "bfloat16": "float",
    "float32": "float",
    "float64": "double",
}

#: dtype -> type of an element in memory. Integers stand for the narrow floats, since LLVM masks those natively.
MEMORY: Final[dict[str, str]] = VALUE | {"bool": "i8", "float16": "i16", "bfloat16": "i16"}

#: The dtypes that are rounded after each operation.
STORAGE_FLOATS: Final = dtypes.STORAGE_FLOATS


class Operand(NamedTuple):
    """An LLVM operand.

    Attributes:
        text: an SSA name or a literal, without its type.
        lanes: 1 when it is the same in every lane of the enclosing vectorized loop (a scalar), else the vector length.
        depth: of a load, or of a scalar made of loads, the layer throughout which it is defined.
    """

    text: str
    lanes: int = 1
    depth: int | None = None

    @property
    def literal(self) -> bool:
        """Whether it is a scalar literal."""
        return self.lanes == 1 and self.text[0] != "%"


def vector(element: str, lanes: int) -> str:
    """The type of ``lanes`` elements; one lane is a scalar."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def value_type(dtype: str, lanes: int = 1) -> str:
    return vector(VALUE[dtype], lanes)


def memory_type(dtype: str, lanes: int = 1) -> str:
    return vector(MEMORY[dtype], lanes)


def bits(dtype: str) -> int:
    """Width of an integer dtype."""
    return dtypes.size(dtype) * 8


def float_literal(value: float, dtype: str) -> str:
    """``value`` rounded to the value type of ``dtype``, in LLVM's hexadecimal form (the bits of a double)."""
    rounded = value if dtype == "float64" else float(dtypes.NUMPY["float32"].type(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"


def number_of(text: str) -> float | None:
    """The value of a float literal, or of a splat of one; ``None`` of anything else."""
    if text[0] == "%":
        return None
    value: float = struct.unpack("<d", int(text.removeprefix("splat (").split("0x")[1].rstrip(")"), 16).to_bytes(8, "little"))[0]
    return value


def literal(value: bool | int | float, dtype: str) -> str:
    """A scalar literal of ``dtype``."""
    if dtypes.is_float(dtype):
        return float_literal(float(value), dtype)
    if dtype == "bool":
        return "true" if value else "false"
    return str(int(value))


def splat(text: str, element: str, lanes: int) -> str:
    """A scalar literal in every lane."""
    return text if lanes == 1 else f"splat ({element} {text})"


def iota(lanes: int, step: int = 1, element: str = "i64") -> str:
    """The literal vector 0, step, 2 step, ..."""
    return "<" + ", ".join(f"{element} {lane * step}" for lane in range(lanes)) + ">"


def first_lanes(active: int, lanes: int) -> str:
    """The literal mask whose first ``active`` lanes are on."""
    return "<" + ", ".join(f"i1 {int(lane < active)}" for lane in range(lanes)) + ">"


def suffix(element: str, lanes: int) -> str:
    """How LLVM mangles a type into the name of an intrinsic."""
    name = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}.get(element, element)
    return name if lanes == 1 else f"v{lanes}{name}"

"""What a whole model does on an NVIDIA GPU, as tables of constants that its functions walk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from ansorlite.alignment import aligned
from ansorlite.codegen.driver_calls import PREFIX, DriverFunction, DriverModule
from ansorlite.codegen.entry import Address, Call, EntryStep, Move
from ansorlite.codegen.object import DeviceObject
from ansorlite.loops.kernel_module import When

#: An entry of the table of functions: the number of its image, shared memory to ask for, its name.
FUNCTION: Final = "{ i64, i64, ptr }"
#: Of that of steps: function, grid, threads, shared memory, how many of the model's steps begin with it; its first slot, how many
#: it has, and bytes to copy.
STEP: Final = "{ i64, i32, i32, i32, i32, i64, i64, i64 }"
#: Of those of slots (a block of memory, and where in it) and of values (bytes, and where in the room its place is).
SLOT: Final = "{ i64, i64 }"
#: Shared memory of a block beyond this must be asked for.
_COMMON_SHARED: Final = 48 << 10


@dataclass(frozen=True, eq=False)
class GpuModel:
    """A whole model as launches and copies.

    Attributes:
        steps: in order; blocks of memory by number: temporaries, weights, each input, each output.
        kernels: by the names that the steps call them by.
        values: bytes of each input and output.
        inputs: how many of them are inputs.
        temporaries, weights: bytes.
        processor: LLVM's name of the GPU's kind: ``"sm_90a"``.
    """

    steps: Sequence[EntryStep]
    kernels: Mapping[str, DeviceObject]
    values: Sequence[int]
    inputs: int
    temporaries: int
    weights: int
    processor: str


@dataclass(frozen=True)
class _Step:
    """A launch of the function with that number; or a copy of ``nbytes``, without one, from the first slot to the second.

    ``begins``: how many of the model's steps begin with it: the last one, and those before that do nothing.
    """

    begins: int
    function: int
    grid: int
    threads: int
    shared: int
    slots: tuple[Address, ...]
    nbytes: int


@dataclass(frozen=True)
class Sizes:
    """How many there are; of slots in one step, at most; and the bytes of the room."""

    images: int
    functions: int
    steps: int
    slots: int
    room: int


def write(into: DriverModule, model: GpuModel) -> Sizes:
    """Add the tables to a module."""
    images = {name: number for number, name in enumerate(model.kernels)}
    for name, number in images.items():
        # PTX is C's string.
        into.data(f"{PREFIX}image{number}", model.kernels[name].code + b"\0")
    into.table("images", "ptr", [f"@{PREFIX}image{number}" for number in images.values()])
    functions = _functions(model)
    into.table(
        "functions",
        FUNCTION,
        [
            f"{{ i64 {images[kernel]}, i64 {shared}, ptr {into.string(symbol)} }}"
            for (kernel, symbol), shared in functions.items()
        ],
    )
    steps = list(_steps(model, list(functions)))
    first = accumulate((len(step.slots) for step in steps), initial=0)
    into.table(
        "steps",
        STEP,
        [
            f"{{ i64 {step.function}, i32 {step.grid}, i32 {step.threads}, i32 {step.shared}, i32 {step.begins}, i64 {begin}, "
            f"i64 {len(step.slots)}, i64 {step.nbytes} }}"
            for step, begin in zip(steps, first, strict=False)
        ],
    )
    into.table("slots", SLOT, [f"{{ i64 {slot.base}, i64 {slot.offset} }}" for step in steps for slot in step.slots])
    places = list(accumulate(map(aligned, model.values), initial=aligned(model.temporaries)))
    into.table("values", SLOT, [f"{{ i64 {size}, i64 {place} }}" for size, place in zip(model.values, places, strict=False)])
    slots = max((len(step.slots) for step in steps), default=0)
    return Sizes(len(images), len(functions), len(steps), slots, places[-1])


def fields(f: DriverFunction, kind: str, table: str, number: str, *types: str) -> list[str]:
    """The first fields of an entry of a table."""
    entry = f.op(f"getelementptr {kind}, ptr @{PREFIX}{table}, i64 {number}")
    places = [f.op(f"getelementptr {kind}, ptr {entry}, i32 0, i32 {position}") for position in range(len(types))]
    return [
        f.op(f"load {each}, ptr {place}, align {8 if each in ('i64', 'ptr') else 4}")
        for each, place in zip(types, places, strict=True)
    ]


def _functions(model: GpuModel) -> dict[tuple[str, str], int]:
    """Kernel and symbol of each function that is launched in a call → bytes of shared memory that it must ask for."""
    return {
        (name, launch.symbol): launch.shared if launch.shared > _COMMON_SHARED else 0
        for name, kernel in model.kernels.items()
        for launch in kernel.at(When.CALL)
    }


def _steps(model: GpuModel, functions: Sequence[tuple[str, str]]) -> Iterator[_Step]:
    begins = 0
    for step in model.steps:
        begins += 1
        if isinstance(step, Move):
            yield _Step(begins, -1, 0, 0, 0, (step.source, step.target), step.nbytes)
            begins = 0
            continue
        for launch in model.kernels[step.entry].at(When.CALL):
            slots = tuple(_at(step, slot.base, slot.offset) for slot in launch.arguments)
            number = functions.index((step.entry, launch.symbol))
            yield _Step(begins, number, launch.grid, launch.threads, launch.shared, slots, 0)
            begins = 0


def _at(call: Call, position: int, offset: int) -> Address:
    given = call.arguments[position]
    return Address(given.base, given.offset + offset)

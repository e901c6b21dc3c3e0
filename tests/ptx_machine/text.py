"""PTX as text -> kernels of decoded instructions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.ptx_machine.errors import PtxError

#: Bytes of a value of a type; of a predicate, one of numpy's.
BYTES: Final = {"pred": 1} | {f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (8, 16, 32, 64)} | {
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "f16x2": 4, "bf16x2": 4, "tf32": 4, "b128": 16,
}  # fmt: skip


#: Registers of 16 bits that no program has: for halves of others.
PAIRS: Final = ("%half0", "%half1", "%half2", "%half3")


@dataclass(frozen=True)
class Instruction:
    """``@guard operation operands``.

    Attributes:
        operation: split at its dots.
        operands: as written; those in braces or brackets are one.
        guard: a predicate's name, perhaps after a ``!``.
    """

    operation: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str | None
    text: str

    def has(self, modifier: str) -> bool:
        return modifier in self.operation

    @property
    def type(self) -> str:
        return self.operation[-1]


@dataclass(frozen=True)
class Variable:
    """What lies in shared, global or local memory under a name.

    Attributes:
        nbytes: ``None``: as much as the launch says.
    """

    name: str
    space: str
    alignment: int
    nbytes: int | None
    content: bytes | None = None


@dataclass(frozen=True)
class Parameter:
    name: str
    nbytes: int


@dataclass(frozen=True)
class Kernel:
    """
    Attributes:
        targets: where a jump may go.
        widths: bytes of the registers, by name.
        threads: of a block, as the kernel demands; ``None``: it does not say.
        local: offsets of its variables in each thread's local memory.
    """

    name: str
    parameters: tuple[Parameter, ...]
    variables: tuple[Variable, ...]
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    targets: frozenset[int]
    widths: Mapping[str, int]
    threads: tuple[int, int, int] | None


_ENTRY: Final = re.compile(r"\.entry\s+([\w$]+)\s*(?:\((.*?)\))?([^{]*)\{", re.S)
_VARIABLE: Final = re.compile(
    r"\.(shared|global|local|const)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?(?:\s*=\s*([^;]+))?"
)
_OPERAND: Final = re.compile(r"\s*(\{[^}]*\}|\[[^\]]*\]|[^,]+)\s*(?:,|$)")


def kernels(ptx: str) -> dict[str, Kernel]:
    """The kernels of a module, by name."""
    ptx = re.sub(r"//[^\n]*|/\*.*?\*/", "", ptx, flags=re.S)
    entries = list(_ENTRY.finditer(ptx))
    outside = ptx[: entries[0].start()] if entries else ptx
    if ".func" in outside:
        raise PtxError("calls of functions are not known here")
    shared = [_variable(found) for found in _VARIABLE.finditer(outside)]
    return {entry.group(1): _kernel(entry, _body(ptx, entry.end()), shared) for entry in entries}


def _body(ptx: str, begin: int) -> str:
    depth, at = 1, begin
    while depth:
        depth += {"{": 1, "}": -1}.get(ptx[at], 0)
        at += 1
    return ptx[begin : at - 1]


def _variable(found: re.Match[str]) -> Variable:
    space, alignment, kind, name, count, content = found.groups()
    size = BYTES[kind]
    values = None
    if content is not None:
        numbers = [int(part.strip(), 0) for part in content.strip().strip("{}").split(",")]
        values = b"".join((number % (1 << 8 * size)).to_bytes(size, "little") for number in numbers)
    nbytes = None if count == "" else size * int(count or 1)
    return Variable(name, space, int(alignment or size), nbytes, values)


def _kernel(entry: re.Match[str], body: str, outside: list[Variable]) -> Kernel:
    name, parameters, directives = entry.group(1), entry.group(2) or "", entry.group(3)
    widths = dict.fromkeys(PAIRS, 2)
    variables = list(outside)
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    body = re.sub(r"(?m)([\w$]+):(?=\s)", r"\1:;", body)
    for statement in body.split(";"):
        statement = " ".join(statement.split())
        # A scope of inline assembly: its names are its own, which its writer sees to.
        while re.match(r"[{}](?!\s*%)", statement):
            statement = statement[1:].strip()
        if not statement or statement.startswith((".pragma ", ".loc ", ".file ")):
            continue
        if statement.startswith(".reg"):
            _registers(statement, widths)
        elif statement[0] == ".":
            found = _VARIABLE.match(statement)
            if found is None:
                raise PtxError(f"unknown directive: {statement}")
            variables.append(_variable(found))
        elif statement.endswith(":"):
            labels[statement[:-1]] = len(instructions)
        else:
            instructions.append(_instruction(statement))
    demanded = re.search(r"\.reqntid\s+([\d, ]+)", directives)
    threads = None
    if demanded:
        x, y, z = ([int(part) for part in demanded.group(1).split(",")] + [1, 1])[:3]
        threads = x, y, z
    return Kernel(
        name,
        tuple(_parameter(part) for part in parameters.split(",") if part.strip()),
        tuple(variables),
        tuple(instructions),
        labels,
        frozenset(labels.values()),
        widths,
        threads,
    )


def _parameter(text: str) -> Parameter:
    found = re.match(r".*\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s.*?([\w$]+)(?:\[(\d+)\])?\s*$", " ".join(text.split()))
    if found is None:
        raise PtxError(f"unknown parameter: {text.strip()}")
    return Parameter(found.group(2), BYTES[found.group(1)] * int(found.group(3) or 1))


def _registers(statement: str, widths: dict[str, int]) -> None:
    kind, names = re.match(r"\.reg \.(\w+) (.*)", statement).groups()  # type: ignore[union-attr]
    for each in names.split(","):
        stem, count = re.match(r"\s*([%\w$]+)(?:<(\d+)>)?", each).groups()  # type: ignore[union-attr]
        widths.update({stem: BYTES[kind]} if count is None else {f"{stem}{n}": BYTES[kind] for n in range(int(count))})


def _instruction(statement: str) -> Instruction:
    guard, rest = None, statement
    if rest[0] == "@":
        guard, rest = rest[1:].split(" ", 1)
    operation, _, operands = rest.partition(" ")
    return Instruction(tuple(operation.split(".")), tuple(_split(operands)), guard, statement)


def _split(operands: str) -> list[str]:
    parts = [part.strip() for part in _OPERAND.findall(operands)] if operands.strip() else []
    return ["".join(part.split()) for part in parts]

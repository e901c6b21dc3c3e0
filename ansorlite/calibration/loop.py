"""Loops to be timed, as LLVM IR: ``void name(i64 turns, ptr data)``.

LLVM must neither drop what a loop computes nor see what it computes with. What goes from turn to turn is stored after the loop,
every constant is loaded from ``data``, and each turn ends with a barrier to loads.
"""

from __future__ import annotations

from ansorlite.codegen.builder import Builder, Module
from ansorlite.target import Target

#: Bytes at the beginning of ``data``: what constants come from in the first half, and what results go to in the second.
HEAD = 8192


class Loop:
    """The body of one loop, written instruction by instruction.

    Attributes:
        target: the machine.
        lanes: float32 elements of a vector.
        vector: the LLVM type of that many floats.
        b: the writer of the body.
    """

    def __init__(self, module: Module, name: str) -> None:
        self.target: Target = module.target
        self.lanes = self.target.lanes("float32")
        self.vector = f"<{self.lanes} x float>"
        self.name = name
        self._module = module
        self.b = Builder(module, f"void @{name}(i64 %turns, ptr %data) #0")
        self._carried: list[tuple[str, str, str]] = []  # name, type, first value
        self._after: dict[str, str] = {}
        self._constants = 0
        self._end: list[str] = []

    def constant(self, kind: str) -> str:
        """A value that LLVM knows nothing of, not even that it equals another: 1.0 in each lane of floats, some integer."""
        place = self.b.at_entry(f"getelementptr i8, ptr %data, i64 {self._place(self._constants)}")
        self._constants += 1
        return self.b.at_entry(f"load {kind}, ptr {place}, align 4")

    def _place(self, number: int) -> int:
        """An offset in half a head."""
        return number * self.target.vector_bytes % (HEAD // 2)

    def carried(self, kind: str) -> str:
        """A value that each turn takes from the one before; :meth:`then` says which."""
        name = f"%c{len(self._carried)}"
        self._carried.append((name, kind, self.constant(kind)))
        return name

    def then(self, carried: str, value: str) -> None:
        """What ``carried`` is in the next turn."""
        self._after[carried] = value

    def chains(self, kind: str, count: int) -> list[str]:
        """So many carried values."""
        return [self.carried(kind) for _ in range(count)]

    def at(self, offset: int | str) -> str:
        """The address of a byte of ``data`` behind its head."""
        if isinstance(offset, int):
            return self.b.op(f"getelementptr i8, ptr %data, i64 {HEAD + offset}")
        return self.b.op(f"getelementptr i8, ptr %data, i64 {offset}")

    def load(self, kind: str, offset: int | str) -> str:
        """A value at a byte of ``data``."""
        return self.b.op(f"load {kind}, ptr {self.at(offset)}, align 4")

    def store(self, kind: str, value: str, offset: int | str) -> None:
        self.b.do(f"store {kind} {value}, ptr {self.at(offset)}, align 4")

    def fma(self, x: str, y: str, z: str, lanes: int | None = None) -> str:
        """``x * y + z`` of vectors of so many floats; of whole ones where nothing is said."""
        return self.b.intrinsic("fma", "float", lanes or self.lanes, x, y, z)

    def depend(self, carried: str, value: str, kind: str | None = None) -> None:
        """Let ``carried`` depend on ``value`` by an exclusive or, the cheapest of operations."""
        words = f"<{self.lanes} x i32>"
        if kind is None:
            value = self.b.op(f"bitcast {self.vector} {value} to {words}")
        self.then(carried, self.b.op(f"xor {kind or words} {self._after.get(carried, carried)}, {value}"))

    def at_end(self, text: str) -> None:
        """An instruction that runs once, after the loop."""
        self._end.append(f"  {text}")

    def define(self) -> None:
        """Put the loop into its module."""
        body = self.b.text().split("\n")
        head, end = body.index("start:"), len(body) - 1
        phis = [
            f"  {name} = phi {kind} [ {first}, %entry ], [ {self._after.get(name, name)}, %last ]"
            for name, kind, first in self._carried
        ]
        stores = []
        for number, (name, kind, _) in enumerate(self._carried):
            stores += [
                f"  %sink{number} = getelementptr i8, ptr %data, i64 {HEAD // 2 + self._place(number)}",
                f"  store {kind} {self._after.get(name, name)}, ptr %sink{number}, align 4",
            ]
        text = [
            *body[: head + 1],
            "  %turn = phi i64 [ 0, %entry ], [ %turned, %last ]",
            *phis,
            *body[head + 1 : end],
            "  br label %last",
            "last:",
            '  call void asm sideeffect "", "~{memory}"()',
            "  %turned = add i64 %turn, 1",
            "  %again = icmp slt i64 %turned, %turns",
            "  br i1 %again, label %start, label %end",
            "end:",
            *stores,
            *self._end,
            "  ret void",
            "}",
        ]
        self._module.define(self.name, "\n".join(text))

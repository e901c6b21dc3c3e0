"""Writers of LLVM IR as text: a module, and one function of it.

Text is several times faster to make than ``llvmlite.ir`` objects, and is what a person reads in the end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Final, TypeAlias

from ansorlite.codegen import types
from ansorlite.codegen.types import Operand
from ansorlite.errors import ProgramSizeError
from ansorlite.target import Target

#: A place in a function where instructions may still be added: right before a loop or a branch.
Slot: TypeAlias = list[str]

#: Numbers of other metadata nodes start here, above those of alias scopes.
_FIRST_NODE: Final = 1 << 20

_HERE: Final = nullcontext()


class Module:
    """The text of one LLVM module: declarations, definitions and alias metadata, each written once.

    Args:
        most_values: so many may one function compute; any number where it is not given.
    """

    def __init__(self, target: Target, most_values: int | None = None) -> None:
        self.target = target
        self.most_values = sys.maxsize if most_values is None else most_values
        self._declarations: dict[str, None] = {}
        self._definitions: dict[str, str] = {}
        self._scopes = 0
        self._nodes: dict[str, int] = {}
        self._functions = 0
        self._named: dict[str, list[str]] = {}
        #: How many values all functions compute.
        self.values = 0

    def need(self, feature: str) -> None:
        """Make the code for a machine that has one more of LLVM's features: ``"+ptx86"``."""
        self.target = replace(self.target, features=f"{self.target.features},{feature}")

    def declare(self, signature: str) -> None:
        """Make an external function known: ``"float @expf(float)"``."""
        self._declarations[f"declare {signature}"] = None

    def has(self, name: str) -> bool:
        return name in self._definitions

    def define(self, name: str, text: str) -> None:
        self._definitions[name] = text

    def fresh(self, hint: str) -> str:
        """A name that no other function has."""
        self._functions += 1
        return f"{hint}{self._functions}"

    def new_scope(self) -> int:
        """A new alias scope: accesses of one buffer."""
        self._scopes += 1
        return self._scopes - 1

    def node(self, text: str) -> str:
        """A metadata node, shared by all who ask for the same."""
        return f"!{_FIRST_NODE + self._nodes.setdefault(text, len(self._nodes))}"

    def loop(self, *properties: str) -> str:
        """A node that a loop's last branch names as ``!llvm.loop``: itself, which makes it the only one, and ``properties``."""
        number = _FIRST_NODE + len(self._nodes)
        return self.node(f"distinct !{{!{number}, {', '.join(properties)}}}")

    def annotate(self, name: str, text: str) -> None:
        """Add a node to the named metadata ``!name``."""
        self._named.setdefault(name, []).append(self.node(text))

    def _metadata(self) -> Iterable[str]:
        # !0 is the domain; buffer b has scope node !(3b+1), the list of just it !(3b+2), and all others !(3b+3).
        yield '!0 = distinct !{!0, !"buffers"}'
        scopes = [3 * b + 1 for b in range(self._scopes)]
        for scope in scopes:
            others = ", ".join(f"!{other}" for other in scopes if other != scope)
            yield f"!{scope} = distinct !{{!{scope}, !0}}"
            yield f"!{scope + 1} = !{{!{scope}}}"
            yield f"!{scope + 2} = !{{{others}}}"
        for text, number in self._nodes.items():
            yield f"!{_FIRST_NODE + number} = {text}"
        for name, nodes in self._named.items():
            yield f"!{name} = !{{{', '.join(nodes)}}}"

    def text(self) -> str:
        target = self.target
        width = f' "prefer-vector-width"="{8 * target.vector_bytes}"' if target.vector_bytes >= 16 else ""
        # SVE's registers are then as long as LLVM's vectors; else it would take these apart into NEON's.
        scale = "" if target.sve_bytes is None else f" vscale_range({target.sve_bytes // 16},{target.sve_bytes // 16})"
        # A stack is aligned to 16 bytes. LLVM aligns it to more where it is told so before it gives registers out: what is
        # spilled of wider ones would else lie across cache lines, where no load gets what was just stored.
        aligned = '"stackrealign" ' if target.vector_bytes > 16 and target.sve_bytes is None else ""
        names = f'{aligned}"target-cpu"="{target.cpu}" "target-features"="{target.features}"{width}'
        attributes = f"attributes #0 = {{ nounwind{scale} {names} }}"
        # Functions that every back end but a CPU's wants inlined.
        inlined = attributes.replace("#0 = { nounwind", "#1 = { alwaysinline nounwind")
        definitions = list(self._definitions.values())
        parts = [
            f'target triple = "{target.triple}"',
            *definitions,
            *self._declarations,
            attributes,
            *([inlined] if any(") #1 {" in definition for definition in definitions) else []),
            *self._metadata(),
        ]
        return "\n".join(parts) + "\n"


def alias(scope: int | None) -> str:
    """The metadata of an access to the buffer of ``scope``: it touches no other buffer's memory."""
    return "" if scope is None else f", !alias.scope !{3 * scope + 2}, !noalias !{3 * scope + 3}"


class Builder:
    """The text of one function, written from its entry block on."""

    def __init__(self, module: Module, signature: str) -> None:
        self.module = module
        self._signature = signature
        self._entry: list[str] = []
        self._body: list[str | Slot] = []
        #: Where instructions go: the end of the body, or a slot.
        self._lines: list[str | Slot] | Slot = self._body
        self._names = 0
        self._labels = 0
        self.block = "start"

    # Instructions -------------------------------------------------------------------------------------------------
    def op(self, text: str, slot: Slot | None = None) -> str:
        """Append an instruction that has a result, to ``slot`` if one is given; its name.

        Raises:
            ProgramSizeError: there are too many by now.
        """
        self._names += 1
        self.module.values += 1
        if self._names > self.module.most_values:
            raise ProgramSizeError(
                f"the program unrolls to more than {self.module.most_values} instructions in one function, which LLVM would "
                "compile for too long; take one that unrolls less"
            )
        name = f"%t{self._names}"
        (self._lines if slot is None else slot).append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self._lines.append(f"  {text}")

    def at_entry(self, text: str) -> str:
        """An instruction that runs once, when the function is entered; its name."""
        self._names += 1
        name = f"%t{self._names}"
        self.do_at_entry(f"{name} = {text}")
        return name

    def do_at_entry(self, text: str) -> None:
        """As :meth:`at_entry`, of an instruction without a result."""
        self._entry.append(f"  {text}")

    def slot(self) -> Slot:
        """Keep a place here, at the end of the body so far, for instructions that are found to belong here later."""
        slot: Slot = []
        self._body.append(slot)
        return slot

    def add(self, slot: Slot) -> None:
        """What is written to ``slot`` comes here, at the end of the body so far."""
        self._body.append(slot)

    def name(self) -> str:
        """A name for a value."""
        self._names += 1
        return f"%t{self._names}"

    def at(self, slot: Slot | None) -> AbstractContextManager[object]:
        """Instructions go to the end of ``slot`` for the time of a ``with``; ``None`` changes nothing. No blocks may begin."""
        return _HERE if slot is None else _Elsewhere(self, slot)

    def call(self, result: str, name: str, *arguments: tuple[str, str]) -> str:
        """Call an external function or intrinsic, declaring it; arguments are (type, text). The result's name, if any."""
        self.module.declare(f"{result} @{name}({', '.join(kind for kind, _ in arguments)})")
        text = f"call {result} @{name}({', '.join(f'{kind} {operand}' for kind, operand in arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.op(text)

    def intrinsic(self, name: str, element: str, lanes: int, *operands: str) -> str:
        """Call ``llvm.<name>`` whose operands and result are all of one type."""
        kind = types.vector(element, lanes)
        full = f"llvm.{name}.{types.suffix(element, lanes)}"
        self.module.declare(f"{kind} @{full}({', '.join(kind for _ in operands)})")
        return self.op(f"call {kind} @{full}({', '.join(f'{kind} {operand}' for operand in operands)})")

    def select(self, kind: str, lanes: int, condition: str, then: str, otherwise: str) -> str:
        """``condition`` has ``lanes`` lanes; ``kind`` is the type of the arms."""
        return self.op(f"select {types.vector('i1', lanes)} {condition}, {kind} {then}, {kind} {otherwise}")

    def splat(self, value: Operand, element: str, lanes: int) -> str:
        """``value`` as a vector of ``lanes`` (as itself when it is one, or when ``lanes`` is 1)."""
        if value.lanes == lanes:
            return value.text
        assert value.lanes == 1, "a vector of another length"
        if value.literal:
            return types.splat(value.text, element, lanes)
        kind = types.vector(element, lanes)
        first = self.op(f"insertelement {kind} poison, {element} {value.text}, i64 0")
        return self.op(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer")

    def shuffle(self, kind: str, x: str, y: str, picks: Iterable[int]) -> str:
        """The elements ``picks`` of ``x`` and ``y``, vectors of one ``kind``, in a row."""
        indices = [f"i32 {pick}" for pick in picks]
        return self.op(f"shufflevector {kind} {x}, {kind} {y}, <{len(indices)} x i32> <{', '.join(indices)}>")

    # Control flow -------------------------------------------------------------------------------------------------
    def label(self, hint: str) -> str:
        """A fresh name for a block."""
        self._labels += 1
        return f"{hint}{self._labels}"

    def start(self, label: str) -> None:
        """Begin the block ``label``."""
        self._lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def text(self) -> str:
        """The whole function."""
        lines = [f"define {self._signature} {{", "entry:", *self._entry, "  br label %start", "start:"]
        for line in self._body:
            if isinstance(line, str):
                lines.append(line)
            else:
                lines += line
        return "\n".join([*lines, "}"])


class _Elsewhere:
    """What :meth:`Builder.at` returns: a class of its own, being entered thousands of times a program."""

    __slots__ = ("_b", "_lines")

    def __init__(self, b: Builder, slot: Slot) -> None:
        self._b = b
        self._lines: list[str | Slot] | Slot = slot

    def __enter__(self) -> None:
        self._swap()

    def __exit__(self, *_: object) -> None:
        self._swap()

    def _swap(self) -> None:
        self._b._lines, self._lines = self._lines, self._b._lines

"""A function as text: one line per statement, indented, with the stage and role of each store behind it.

Equal loop nests have equal text, whatever their variables were called, as long as the names were given in one order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ansorlite.loops.kernel_module import KernelModule
from ansorlite.loops.nodes import (
    Alloc,
    Await,
    Block,
    Buffer,
    FetchGroup,
    Fold,
    For,
    Function,
    If,
    Intrinsic,
    Load,
    LoopKind,
    Multiply,
    Prefetch,
    Role,
    Scope,
    Stmt,
    Store,
)
from ansorlite.te.expr import Expr, Var
from ansorlite.te.printer import Names, expression
from ansorlite.te.tensor import Tensor

_INDENT = "    "

#: Hex digits of a digest: enough that no two programs of one task ever meet.
_DIGITS: Final = 32


def text(what: Function | Stmt) -> str:
    """A function, or one statement with what is below it.

    An ``alloc`` that ends with a colon holds the lines indented below it; one without lasts until the end of the block
    that it is in.
    """
    printer = _Printer()
    if isinstance(what, Function):
        return "\n".join(printer.function(what))
    return "\n".join(printer.statement(what, 0, last=True))


def digest(printed: str) -> str:
    """Hex, of what was printed: equal for equal loop nests."""
    return hashlib.sha256(printed.encode()).hexdigest()[:_DIGITS]


def module_text(module: KernelModule) -> str:
    """The functions of a kernel, in the order in which they are launched."""
    return "\n\n".join(text(launch.function) for launch in module.launches)


@dataclass
class _Names(Names):
    """Distinct names for buffers too: each has a tensor that stands in for it."""

    stand_ins: dict[Buffer, Tensor] = field(default_factory=dict)

    def buffer(self, buffer: Buffer) -> str:
        if buffer not in self.stand_ins:
            self.stand_ins[buffer] = Tensor(buffer.name, buffer.shape, buffer.dtype)
            self.name_tensor(self.stand_ins[buffer])
        return self.tensors[self.stand_ins[buffer]]

    def array(self, node: Expr) -> str:
        return self.buffer(node.buffer) if isinstance(node, Load) else super().array(node)


@dataclass
class _Printer:
    """Gives buffers and variables distinct names as it meets them."""

    names: _Names = field(default_factory=_Names)

    def function(self, function: Function) -> Iterator[str]:
        inputs = len(function.params) - function.outputs
        params = [self.declaration(buffer) for buffer in function.params]
        yield f"def {function.name}({', '.join(params[:inputs])}) -> {', '.join(params[inputs:])}:"
        yield from self.statement(function.body, 1, last=True)

    def statement(self, stmt: Stmt, depth: int, *, last: bool) -> Iterator[str]:
        """The lines of ``stmt``; ``last`` if nothing follows it in its block."""
        indent = _INDENT * depth
        match stmt:
            case Block(body):
                for child in body:
                    yield from self.statement(child, depth, last=last and child is body[-1])
                if not body:
                    yield f"{indent}pass"
            case For():
                yield f"{indent}{self.head(stmt)}:"
                yield from self.statement(stmt.body, depth + 1, last=True)
            case If(cond, body):
                yield f"{indent}if {self.expression(cond)}{' (else no-op)' if stmt.no_op else ''}:"
                yield from self.statement(body, depth + 1, last=True)
            case Store(buffer, indices, value):
                line = f"{indent}{self.element(buffer, indices)} = {self.expression(value)}"
                label = _label(stmt)
                yield f"{line}  # {label}" if label else line
            case Alloc(buffer, body):
                yield f"{indent}alloc {self.declaration(buffer)} in {buffer.scope.name}{'' if last else ':'}"
                yield from self.statement(body, depth if last else depth + 1, last=True)
            case Prefetch(load):
                yield f"{indent}prefetch {self.expression(load)}" + (f"  # {stmt.stage}" if stmt.stage else "")
            case Intrinsic(Multiply(unit), body):
                yield f"{indent}{unit.name}, which does:"
                yield from self.statement(body, depth + 1, last=True)
            case Intrinsic(Fold() as does, body):
                result, source = self.names.buffer(does.result), self.names.buffer(does.source)
                yield f"{indent}{result} = fold {does.op.value} of {source} over {does.width} threads, which does:"
                yield from self.statement(body, depth + 1, last=True)
            case FetchGroup(body):
                yield f"{indent}group:"
                yield from self.statement(body, depth + 1, last=True)
            case Await(pending):
                yield f"{indent}await all groups" + (f" but {pending}" if pending else "")
            case _:
                raise TypeError(f"not a statement of the loop IR: {stmt!r}")

    def head(self, loop: For) -> str:
        extent = self.expression(loop.extent)
        lanes = f"({loop.lanes})" if loop.kind is LoopKind.VECTORIZED else ""
        return f"{loop.kind.value}{lanes} {self.variable(loop.var)} in 0..{extent}"

    def declaration(self, buffer: Buffer) -> str:
        constant = "constant " if buffer.scope is Scope.CONSTANT else ""
        strides = f" strides [{', '.join(map(str, buffer.strides))}]" if any(buffer.pads) else ""
        swizzled = f" swizzled by {buffer.swizzle}" if buffer.swizzle > 1 else ""
        return f"{self.names.buffer(buffer)}: {constant}{buffer.dtype}[{', '.join(map(str, buffer.shape))}]{strides}{swizzled}"

    def variable(self, var: Var) -> str:
        if var not in self.names.axes:
            self.names.name_axis(var)
        return self.names.axes[var]

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        return f"{self.names.buffer(buffer)}[{', '.join(self.expression(index) for index in indices)}]"

    def expression(self, expr: Expr) -> str:
        return expression(expr, self.names)


def _label(store: Store) -> str:
    role = "" if store.role is Role.COMPUTE else store.role.name.lower()
    label = ".".join(part for part in (store.stage, role) if part)
    return f"{label}, streamed" if store.streamed else label

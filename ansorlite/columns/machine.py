"""The native code that runs a program of columns: a machine whose registers hold 128 numbers. Compiled once a process.

An instruction reads and writes whole registers, so that finding out which instruction it is costs little beside doing it, and
all that a program computes for 128 rows stays in the first two caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from math import log
from typing import Any, Final

from llvmlite import ir

from ansorlite.columns.tape import Op
from ansorlite.native import F64, I64, PTR, compiled, declare, gather, load, loop, splat

#: Rows that a register holds numbers of.
BLOCK: Final = 128
#: An instruction: (op, destination, three operands). A gather's operands are its hole and where its table begins, a select's
#: its index and where in the code the register of choice 0 is, or would be; a call's, which has no destination, are the address
#: of a function, where in the code the registers of its arguments and results are, and how many items it folds.
FIELDS: Final = 5
#: Numbers that are computed at once.
LANES: Final = 8
VECTOR: Final = ir.VectorType(F64, LANES)
_BITS: Final = ir.VectorType(I64, LANES)
_CALLEE: Final = ir.FunctionType(ir.VoidType(), [PTR, PTR, I64])
_ARGUMENTS: Final = (
    ("rows", PTR),  # (n, holes) int64
    ("holes", I64),
    ("n", I64),
    ("tables", PTR),  # float64, one after the other
    ("code", PTR),  # (instructions, FIELDS) int64, then lists of registers
    ("instructions", I64),
    ("registers", PTR),  # (registers, BLOCK) float64; constants are in the last of them
    ("results", PTR),  # (outputs,) int64, the register of each
    ("outputs", I64),
    ("out", PTR),  # (outputs, stride) float64
    ("stride", I64),  # n rounded up to whole blocks
)


@cache
def machine() -> tuple[Any, Callable[..., None]]:
    """The engine that owns the code, and the function in it."""
    return compiled(_function())


def _function() -> ir.Function:
    function, a = declare("run", _ARGUMENTS)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    with loop(b, I64(0), a["n"], BLOCK) as base:
        with loop(b, I64(0), a["instructions"]) as number:
            _instruction(b, a, base, b.mul(number, I64(FIELDS)))
        with loop(b, I64(0), a["outputs"]) as output:
            source = register(b, a["registers"], load(b, a["results"], output, I64))
            place = b.gep(a["out"], [b.add(b.mul(output, a["stride"]), base)], source_etype=F64)
            with loop(b, I64(0), I64(BLOCK), LANES) as lane:
                b.store(read(b, source, lane), b.gep(place, [lane], source_etype=F64), align=8)
    b.ret_void()
    return function


def _instruction(b: ir.IRBuilder, a: dict[str, ir.Value], base: ir.Value, start: ir.Value) -> None:
    """One instruction for the 128 rows from ``base`` on."""
    op, *fields = (load(b, a["code"], b.add(start, I64(field)), I64) for field in range(FIELDS))
    target = register(b, a["registers"], fields[0])
    done = b.function.append_basic_block("done")
    unknown = b.function.append_basic_block("unknown")
    switch = b.switch(op, unknown)
    b.position_at_end(unknown)
    b.unreachable()
    for each, (operands, emit) in EMIT.items():
        with _case(b, switch, each, done):
            sources = [register(b, a["registers"], field) for field in fields[1 : 1 + operands]]
            with loop(b, I64(0), I64(BLOCK), LANES) as lane:
                value = emit(b, *(read(b, source, lane) for source in sources))
                b.store(value, b.gep(target, [lane], source_etype=F64), align=8)
    with _case(b, switch, Op.GATHER, done):
        hole, table = fields[1], b.gep(a["tables"], [fields[2]], source_etype=F64)
        with loop(b, I64(0), I64(BLOCK), LANES) as lane:
            last = splat(b, b.sub(a["n"], I64(1)), LANES)
            here = _lanes(b, b.add(base, lane))
            rows = b.select(b.icmp_signed("<", here, last), here, last)  # what is past the end repeats the last row
            places = b.add(b.mul(rows, splat(b, a["holes"], LANES)), splat(b, hole, LANES))
            values = gather(b, table, gather(b, a["rows"], places, I64), F64)
            b.store(values, b.gep(target, [lane], source_etype=F64), align=8)
    with _case(b, switch, Op.SELECT, done):
        which, choices = register(b, a["registers"], fields[1]), b.gep(a["code"], [fields[2]], source_etype=I64)
        with loop(b, I64(0), I64(BLOCK), LANES) as lane:
            chosen = gather(b, choices, b.fptosi(read(b, which, lane), _BITS), I64)
            places = b.add(b.mul(chosen, splat(b, I64(BLOCK), LANES)), _lanes(b, lane))
            b.store(gather(b, a["registers"], places, F64), b.gep(target, [lane], source_etype=F64), align=8)
    with _case(b, switch, Op.CALL, done):
        callee = b.inttoptr(fields[1], _CALLEE.as_pointer())
        b.call(callee, [a["registers"], b.gep(a["code"], [fields[2]], source_etype=I64), fields[3]])
    b.position_at_end(done)


@contextmanager
def _case(b: ir.IRBuilder, switch: ir.SwitchInstr, op: Op, done: ir.Block) -> Iterator[None]:
    """What is emitted inside is done for ``op``."""
    block = b.function.append_basic_block(op.name.lower())
    switch.add_case(I64(op), block)
    b.position_at_end(block)
    yield
    b.branch(done)


def _lanes(b: ir.IRBuilder, first: ir.Value) -> ir.Value:
    return b.add(splat(b, first, LANES), ir.Constant(_BITS, list(range(LANES))))


def register(b: ir.IRBuilder, registers: ir.Value, number: ir.Value) -> ir.Value:
    """Where a register begins."""
    return b.gep(registers, [b.mul(number, I64(BLOCK))], source_etype=F64)


def read(b: ir.IRBuilder, source: ir.Value, lane: ir.Value) -> ir.Value:
    """The numbers of a register from ``lane`` on."""
    return b.load(b.gep(source, [lane], source_etype=F64), typ=VECTOR, align=8)


def constant(value: float) -> ir.Constant:
    """One number in all lanes."""
    return ir.Constant(VECTOR, [value] * LANES)


def _call(b: ir.IRBuilder, name: str, x: ir.Value) -> ir.Value:
    full = f"{name}.v{LANES}f64"
    known = b.module.globals.get(full)
    return b.call(known or ir.Function(b.module, ir.FunctionType(x.type, [x.type]), full), [x])


def _flag(predicate: str) -> Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]:
    return lambda b, x, y: b.select(b.fcmp_ordered(predicate, x, y), constant(1.0), constant(0.0))


def _log2(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """Of positive normal numbers: ``x = 2^e m`` with m near 1, and the series of ``atanh((m - 1) / (m + 1))``, to 1e-14."""
    bits = b.bitcast(x, _BITS)
    root = ir.Constant(_BITS, [0x3FE6A09E667F3BCD] * LANES)  # sqrt(1/2): m lies between it and sqrt(2)
    shifted = b.sub(bits, root)
    exponent = b.ashr(shifted, ir.Constant(_BITS, [52] * LANES))
    m = b.bitcast(b.sub(bits, b.shl(exponent, ir.Constant(_BITS, [52] * LANES))), VECTOR)
    s = b.fdiv(b.fsub(m, constant(1.0)), b.fadd(m, constant(1.0)))
    square = b.fmul(s, s)
    series: ir.Value = constant(0.0)
    for power in reversed(range(1, 18, 2)):
        series = b.fadd(b.fmul(series, square), constant(2.0 / (power * log(2.0))))
    return b.fadd(b.sitofp(exponent, VECTOR), b.fmul(series, s))


def _low_bit(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    whole = b.fptosi(x, _BITS)
    return b.sitofp(b.and_(whole, b.neg(whole)), VECTOR)


#: How many operands an instruction has, and what it does to vectors of them.
EMIT: Final[dict[Op, tuple[int, Callable[..., ir.Value]]]] = {
    Op.ADD: (2, lambda b, x, y: b.fadd(x, y)),
    Op.SUB: (2, lambda b, x, y: b.fsub(x, y)),
    Op.MUL: (2, lambda b, x, y: b.fmul(x, y)),
    Op.DIV: (2, lambda b, x, y: b.fdiv(x, y)),
    Op.MIN: (2, lambda b, x, y: b.select(b.fcmp_ordered("<", x, y), x, y)),
    Op.MAX: (2, lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, y)),
    Op.LESS: (2, _flag("<")),
    Op.AT_MOST: (2, _flag("<=")),
    Op.EQUAL: (2, _flag("==")),
    Op.WHERE: (3, lambda b, flag, x, y: b.select(b.fcmp_ordered("!=", flag, constant(0.0)), x, y)),
    Op.FLOOR: (1, lambda b, x: _call(b, "llvm.floor", x)),
    Op.CEIL: (1, lambda b, x: _call(b, "llvm.ceil", x)),
    Op.LOG2: (1, _log2),
    Op.LOW_BIT: (1, _low_bit),
}

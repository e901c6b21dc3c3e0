"""From expression nodes to LLVM operands.

Within a vectorized loop an expression is a vector only if it depends on the loop's variable; everything else stays
scalar and is spread over the lanes where it meets a vector. Index arithmetic goes through linear forms, so that an
address is a base, a known stride per lane, and rarely more.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from ansorlite.codegen import addresses, casts, dots, integer, memory, operators, prefetch, types
from ansorlite.codegen.addresses import Term
from ansorlite.codegen.architecture import architecture_of
from ansorlite.codegen.builder import Builder
from ansorlite.codegen.context import Context, Lanes
from ansorlite.codegen.factors import hold
from ansorlite.codegen.scope import dependence
from ansorlite.codegen.types import Operand
from ansorlite.loops.nodes import Load
from ansorlite.once import once_for_each
from ansorlite.target import masks
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Const, Expr, Select, Unary, Var
from ansorlite.te.float_range import ANYTHING, float_range
from ansorlite.te.index import ranges
from ansorlite.te.index.divisor import divisor
from ansorlite.te.index.form import Affine, flat, form_of
from ansorlite.te.index.ranges import bounds
from ansorlite.te.ops import DOTS, INDEX_ARITHMETIC, BinaryOp, UnaryOp
from ansorlite.te.traversal import walk
from ansorlite.te.words import WORD

#: Exact arithmetic on index literals, and what it gives.
_FOLD: Final[dict[BinaryOp, Callable[[Any, Any], Any]]] = {
    **INDEX_ARITHMETIC,
    BinaryOp.EQ: operator.eq,
    BinaryOp.NE: operator.ne,
    BinaryOp.LT: operator.lt,
    BinaryOp.LE: operator.le,
    BinaryOp.GT: operator.gt,
    BinaryOp.GE: operator.ge,
}
_COMPARISONS: Final = frozenset(_FOLD) - frozenset(INDEX_ARITHMETIC)


class Spread(NamedTuple):
    """An index over the lanes: ``constant + terms + stride * lane + offsets[lane]``.

    Attributes:
        offsets: SSA name of an int64 vector, for what is not evenly spaced.
    """

    constant: int
    terms: list[Term]
    stride: int
    offsets: str | None

    @property
    def uniform(self) -> bool:
        return self.stride == 0 and self.offsets is None


def spread(c: Context, form: Affine) -> Spread:
    """A linear form with everything known put in."""
    constant, terms, stride, offsets = form.constant, [], 0, None
    lane, variables = None if c.lanes is None else c.lanes.var, c.scope.variables
    for atom, coefficient in form.terms:
        if isinstance(atom, Var):
            if atom is lane:
                stride += coefficient
            text, depth, literal = variables[atom]
            if literal is not None:
                constant += coefficient * literal
            else:
                terms.append(Term(text, coefficient, depth))
            continue
        value = evaluate(c, atom)
        if value.lanes > 1:
            kind = types.vector("i64", value.lanes)
            part = value.text
            if coefficient != 1:
                part = c.b.op(f"mul {kind} {part}, {types.splat(str(coefficient), 'i64', value.lanes)}")
            offsets = part if offsets is None else c.b.op(f"add {kind} {offsets}, {part}")
        elif value.literal:
            constant += coefficient * int(value.text)
        else:
            # As far out as the value is defined: who asks may be there.
            facts = dependence(atom)
            depth = c.scope.depth_of(facts) if facts.memory else c.scope.home_depth(facts)
            terms.append(Term(value.text, coefficient, depth, divisor(atom)))
    return Spread(constant, terms, stride, offsets)


def _index(c: Context, form: Affine) -> Operand:
    """The value of a linear form."""
    s = spread(c, form)
    scalar = Operand(addresses.total(c, s.constant, s.terms))
    if s.uniform or c.lanes is None:
        return scalar
    n = c.lanes.count
    kind = types.vector("i64", n)
    result = s.offsets
    if s.stride:
        steps = types.iota(n, s.stride)
        result = steps if result is None else c.b.op(f"add {kind} {result}, {steps}")
    return Operand(c.b.op(f"add {kind} {c.b.splat(scalar, 'i64', n)}, {result}"), n)


def evaluate(c: Context, expr: Expr) -> Operand:
    """The operand that holds ``expr`` at this point of the function."""
    if isinstance(expr, Const):
        return Operand(types.literal(expr.value, expr.dtype))
    found: Operand | None = c.scope.get(expr)
    if found is None:
        facts = dependence(expr)
        home = None if facts.memory else c.scope.home(facts)
        if home is None:
            found = _compute(c, expr)
        else:
            with c.b.at(home):
                found = _compute(c, expr)
        c.scope.keep(expr, found, c.scope.depth_of(facts))
    return found


def _compute(c: Context, expr: Expr) -> Operand:
    match expr:
        case Var():
            return _index(c, Affine(((expr, 1),), 0))
        case Load():
            return _load(c, expr)
        case Select():
            return _select(c, expr)
        case Cast():
            return _cast(c, expr)
        case Unary():
            return _unary(c, expr)
        case Binary():
            if expr.dtype == dtypes.INDEX:
                form = form_of(expr)
                if len(form.terms) != 1 or form.terms[0][0] is not expr:
                    return _index(c, form)
            return _binary(c, expr)
        case _:
            raise TypeError(f"{type(expr).__name__} is not part of the loop IR")


def spread_over(c: Context, value: Operand, dtype: str, lanes: int) -> str:
    """``value`` in ``lanes`` lanes."""
    if value.lanes == lanes or value.literal:
        return c.b.splat(value, types.VALUE[dtype], lanes)
    key = value.text, lanes
    found: str | None = c.scope.get(key)
    if found is None:
        depth = c.scope.barrier if value.depth is None else value.depth
        with c.b.at(c.scope.slot(depth)):
            found = c.b.splat(value, types.VALUE[dtype], lanes)
        c.scope.keep(key, found, depth)
    return found


def _cast(c: Context, expr: Cast) -> Operand:
    value = expr.a
    known = float_range(value) if dtypes.is_float(value.dtype) else ANYTHING
    # A processor may round and convert by one instruction.
    nearest = isinstance(value, Unary) and value.op is UnaryOp.ROUND and dtypes.is_integer(expr.dtype)
    operand = value.a if isinstance(value, Unary) and nearest else value
    x = evaluate(c, operand)

    def converted() -> str:
        return casts.cast(c.b, value.dtype, expr.dtype, x.lanes, x.text, known, nearest=nearest)

    depth = _settled(c, expr, (operand, x))
    if depth is not None:
        return _once(c, depth, (Cast, nearest, value.dtype, expr.dtype, x.text), converted)
    return Operand(converted(), x.lanes)


def _unary(c: Context, expr: Unary) -> Operand:
    x = evaluate(c, expr.a)
    if expr.op is UnaryOp.NOT and x.literal:
        return Operand("false" if x.text == "true" else "true")
    depth = _settled(c, expr, (expr.a, x))
    if depth is not None:
        return _once(c, depth, (expr.op, expr.a.dtype, x.text), lambda: operators.unary(c.b, expr.op, expr.a.dtype, 1, x.text))
    return Operand(operators.unary(c.b, expr.op, expr.a.dtype, x.lanes, x.text), x.lanes)


def _settled(c: Context, expr: Unary | Binary | Cast, *operands: tuple[Expr, Operand]) -> int | None:
    """The layer throughout which an operation on floats that were loaded, or a conversion, has one value for all lanes.

    ``None`` where it is another operation, or where the layer is not known. These may be done in vain, before a loop that
    possibly never runs.
    """
    if not dependence(expr).memory or not (isinstance(expr, Cast) or dtypes.is_float(expr.a.dtype)):
        return None
    depth = 0
    for operand, value in operands:
        if value.literal:
            continue
        facts = dependence(operand)
        own = value.depth if facts.memory else c.scope.depth_of(facts)
        if own is None or value.lanes > 1:
            return None
        depth = max(depth, own)
    return depth


def _once(c: Context, depth: int, operation: tuple[Hashable, ...], write: Callable[[], str]) -> Operand:
    """The scalar that ``operation`` gives throughout layer ``depth``: computed once, outside of the loops inside of it."""
    found: Operand | None = c.scope.get(operation)
    if found is None:
        with c.b.at(c.scope.slot(depth)):
            found = Operand(write(), 1, depth)
        c.scope.keep(operation, found, depth)
    return found


def _literal(value: Any, dtype: str) -> Operand:
    return Operand(types.literal(value, dtype))


def _binary(c: Context, expr: Binary) -> Operand:
    if expr.op in _COMPARISONS and expr.a.dtype == dtypes.INDEX:
        known = _compared(c, expr)
        if known is not None:
            return known
    x = evaluate(c, expr.a)
    if expr.op in (BinaryOp.AND, BinaryOp.OR):
        return _logic(c, expr, x)
    if expr.op is BinaryOp.ADD and isinstance(expr.b, Binary) and expr.b.op in DOTS and (expr.dtype == WORD or _adds_up(c, expr)):
        return _dot_add(c, x, expr.b)
    product = _next_product(c, expr)
    if product is not None:
        return _multiply_add(c, x, product)
    y = evaluate(c, expr.b)
    dtype = expr.a.dtype
    if dtype == dtypes.INDEX and x.literal and y.literal and expr.op in _FOLD:
        a, b = int(x.text), int(y.text)
        if b == 0 and expr.op in (BinaryOp.FLOORDIV, BinaryOp.MOD):
            return Operand("0")
        return _literal(_FOLD[expr.op](a, b), expr.dtype)
    if expr.op in (BinaryOp.FLOORDIV, BinaryOp.MOD) and y.literal and not dtypes.is_float(dtype) and int(y.text) > 0:
        low, high = bounds(expr.a, c.ranges)
        emit = integer.divide_by_constant if expr.op is BinaryOp.FLOORDIV else integer.modulo_constant
        positive = low >= 0
        if x.lanes > 1 and dtype == dtypes.INDEX and positive and max(high, int(y.text)) < 1 << 31:
            return _divided_in_32_bits(c, x, int(y.text), emit)
        return Operand(emit(c.b, dtype, x.lanes, x.text, int(y.text), positive), x.lanes)
    depth = _settled(c, expr, (expr.a, x), (expr.b, y))
    if depth is not None:
        operation = (expr.op, dtype, x.text, y.text)
        return _once(c, depth, operation, lambda: operators.binary(c.b, expr.op, dtype, 1, x.text, y.text))
    lanes = max(x.lanes, y.lanes)
    a_text, b_text = spread_over(c, x, dtype, lanes), spread_over(c, y, dtype, lanes)
    if expr.op in operators.EXTREMA and dtypes.is_float(dtype):
        for operand, number, other in ((expr.a, a_text, b_text), (expr.b, b_text, a_text)):
            if not float_range(operand).nan:
                return Operand(operators.extremum_with_number(c.b, expr.op, dtype, lanes, number, other), lanes)
    return Operand(operators.binary(c.b, expr.op, dtype, lanes, a_text, b_text), lanes)


def _compared(c: Context, expr: Binary) -> Operand | None:
    """A comparison of indices that their ranges decide, or that is made of words; ``None`` of another one."""
    sides = bounds(expr.a, c.ranges), bounds(expr.b, c.ranges)
    low, high = ranges.binary(expr.op, *sides, expr.dtype)
    if low == high:
        return _literal(bool(low), "bool")
    reach = max(abs(end) for side in sides for end in side)
    return None if c.lanes is None else _compared_in_32_bits(c, expr, reach, c.lanes.count)


def _compared_in_32_bits(c: Context, expr: Binary, reach: float, lanes: int) -> Operand | None:
    """A comparison of indices that are short and evenly spaced over the lanes, of which a register holds twice as many.

    ``None`` where they are not, or where no lane differs.

    Args:
        reach: how far from 0 they are, at most.
    """
    sides = [spread(c, form_of(side)) for side in (expr.a, expr.b)]
    if all(side.uniform for side in sides) or any(side.offsets for side in sides) or reach >= 1 << 31:
        return None
    return Operand(operators.binary(c.b, expr.op, "int32", lanes, *(_in_32_bits(c, side, lanes) for side in sides)), lanes)


def _in_32_bits(c: Context, side: Spread, lanes: int) -> str:
    scalar = addresses.total(c, side.constant, side.terms)
    if scalar[0] == "%":
        scalar = c.b.op(f"trunc i64 {scalar} to i32")
    text = c.b.splat(Operand(scalar), "i32", lanes)
    if not side.stride:
        return text
    return c.b.op(f"add {types.vector('i32', lanes)} {text}, {types.iota(lanes, side.stride, 'i32')}")


def _divided_in_32_bits(
    c: Context, x: Operand, divisor: int, emit: Callable[[Builder, str, int, str, int, bool], str]
) -> Operand:
    """A quotient or remainder of indices that are short: vectors have no division of 64 bits, which LLVM does lane by lane."""
    wide, narrow = types.vector("i64", x.lanes), types.vector("i32", x.lanes)
    short = c.b.op(f"trunc {wide} {x.text} to {narrow}")
    result = emit(c.b, "int32", x.lanes, short, divisor, True)
    return Operand(c.b.op(f"zext {narrow} {result} to {wide}"), x.lanes)


def _dot_add(c: Context, total: Operand, dot: Binary) -> Operand:
    """``total + dot``, which may be one instruction."""
    x, y = evaluate(c, dot.a), evaluate(c, dot.b)
    lanes = max(total.lanes, x.lanes, y.lanes)
    kinds = (dot.dtype, WORD, WORD)
    operands = (spread_over(c, value, kind, lanes) for value, kind in zip((total, x, y), kinds, strict=True))
    return Operand(dots.dot_add(dot.op, c.b, lanes, *operands), lanes)


def _adds_up(c: Context, expr: Binary) -> bool:
    """Whether ``expr`` is the next step of a sum: in which order its terms are added, and rounded, is open."""
    return expr.op is BinaryOp.ADD and isinstance(expr.a, Load) and expr.a.buffer is c.stored


def _next_product(c: Context, expr: Binary) -> Binary | None:
    """What is added, if ``expr`` is a sum of floats that goes on by a product."""
    if not _adds_up(c, expr):
        return None
    return expr.b if isinstance(expr.b, Binary) and expr.b.op is BinaryOp.MUL and dtypes.is_float(expr.dtype) else None


def _multiply_add(c: Context, total: Operand, product: Binary) -> Operand:
    x, y = evaluate(c, product.a), evaluate(c, product.b)
    lanes = max(total.lanes, x.lanes, y.lanes)
    before, *factors = (spread_over(c, value, product.dtype, lanes) for value in (total, x, y))
    result = operators.multiply_add(c.b, product.dtype, lanes, before, *factors)
    if c.holds:
        for value, factor in zip((x, y), factors, strict=True):
            if value.lanes < lanes and not value.literal:
                hold(c, factor, result, product.dtype, lanes)
    return Operand(result, lanes)


def _logic(c: Context, expr: Binary, x: Operand) -> Operand:
    """and, or: with literals folded away."""
    decisive = "false" if expr.op is BinaryOp.AND else "true"
    if x.literal:
        return Operand(decisive) if x.text == decisive else evaluate(c, expr.b)
    y = evaluate(c, expr.b)
    if y.literal:
        return Operand(decisive) if y.text == decisive else x
    lanes = max(x.lanes, y.lanes)
    a_text, b_text = spread_over(c, x, "bool", lanes), spread_over(c, y, "bool", lanes)
    return Operand(operators.binary(c.b, expr.op, "bool", lanes, a_text, b_text), lanes)


def _load(c: Context, expr: Load) -> Operand:
    place = c.places[expr.buffer]
    s = spread(c, flat(expr, place.strides))
    lanes = None if s.uniform else c.lanes
    guarded = c.guard is not None or (c.lanes is not None and c.lanes.guarded)
    if place.register:
        whole = lanes is None or (s.stride == 1 and s.offsets is None and (lanes.mask is None or lanes.overrun))
        if whole and not guarded and not s.terms:
            return memory.register_load(c, place, expr.dtype, 1 if lanes is None else lanes.count, s.constant)
        c.registers.write_back(place.pointer)
    pointer, depth = addresses.base(c, place, expr.dtype, s.terms)
    key = pointer, s.constant, s.stride, s.offsets, lanes, c.guard, c.lanes if guarded else None, c.versions[expr.buffer]
    found: Operand | None = c.scope.get(key)
    # Of a step that keeps its elements for itself, and defined throughout it.
    plain = lanes is None or (s.stride == 1 and s.offsets is None)
    step = c.step if c.step is not None and plain and max(depth, c.scope.barrier) <= c.step else None
    again = False
    if step is not None and found is not None and (found.depth or 0) >= c.scope.barrier:
        found = c.scope.get((key, step))
        if again := found is None:  # another step has loaded it
            pointer = _own_pointer(c, pointer, step)
    if found is None:
        fixed = lanes is None or (s.offsets is None and (lanes.mask is None or lanes.mask[0] != "%"))
        depth = c.scope.load_depth(depth, expr.buffer) if fixed and not guarded and not place.register else c.scope.barrier
        prefetch.note(c, pointer, expr.dtype, s.constant, s.stride if s.offsets is None else None, lanes)
        with c.b.at(c.scope.slot(depth)):
            at = addresses.element(c, pointer, expr.dtype, s.constant)
            alignment = addresses.alignment(c, place, expr.dtype, s.constant, s.terms)
            if lanes is None:
                found = Operand(memory.scalar_load(c, place, expr.dtype, at, alignment), 1, depth)
            else:
                loaded = memory.vector_load(c, place, expr.dtype, lanes, at, s.stride, s.offsets, alignment)
                found = loaded._replace(depth=depth)
                if s.stride == 1 and s.offsets is None and expr.buffer in c.next_rows:
                    prefetch.further(c, at, lanes.count * dtypes.size(expr.dtype), c.next_rows[expr.buffer])
        if not again:
            c.scope.keep(key, found, depth)
        if step is not None:
            c.scope.keep((key, step), found, step)
    return found


def _own_pointer(c: Context, pointer: str, step: int) -> str:
    """``pointer`` by a name that LLVM takes for another one: what is loaded through it is loaded once more."""
    key = "own", pointer, step
    known: str | None = c.scope.get(key)
    if known is None:
        known = c.b.op(f'call ptr asm "", "=r,0"(ptr {pointer})')
        c.scope.keep(key, known, step)
    return known


def _select(c: Context, expr: Select) -> Operand:
    condition = evaluate(c, expr.cond)
    if condition.literal:
        return evaluate(c, expr.then if condition.text == "true" else expr.otherwise)
    if not (dependence(expr.then).memory or dependence(expr.otherwise).memory):
        return _choose(c, expr, condition, evaluate(c, expr.then), evaluate(c, expr.otherwise))
    varies = c.varies(dependence(expr).variables)
    cheap = _cheap(expr.then) and _cheap(expr.otherwise)
    if condition.lanes > 1 or (varies and cheap and _masks_natively(c, expr)):
        then, otherwise = _masked_arm(c, expr.then, condition), _masked_arm(c, expr.otherwise, condition, negate=True)
        return _choose(c, expr, condition, then, otherwise)
    if not varies and cheap and not architecture_of(c.target).branches:
        then, otherwise = _guarded_arm(c, expr.then, condition), _guarded_arm(c, expr.otherwise, condition, negate=True)
        return _choose(c, expr, condition, then, otherwise)
    return _branch(c, expr, condition)


def _choose(c: Context, expr: Select, condition: Operand, x: Operand, y: Operand) -> Operand:
    lanes = max(condition.lanes, x.lanes, y.lanes)
    then, otherwise = spread_over(c, x, expr.dtype, lanes), spread_over(c, y, expr.dtype, lanes)
    return Operand(c.b.select(types.value_type(expr.dtype, lanes), condition.lanes, condition.text, then, otherwise), lanes)


@once_for_each
def _cheap(arm: Expr) -> bool:
    """Whether an arm is little more than one load, so that running it for nothing costs less than a branch."""
    values = [node for node in walk(arm) if node.dtype != dtypes.INDEX]
    return len(values) <= 3 and not any(isinstance(node, Select) for node in values)


def _masks_natively(c: Context, expr: Select) -> bool:
    return masks.masks_natively(c.target, _loaded(expr))


@once_for_each
def _loaded(expr: Expr) -> tuple[str, ...]:
    """The dtypes of what is loaded."""
    return tuple(node.dtype for node in walk(expr) if isinstance(node, Load))


def conjunction(c: Context, lanes: Lanes, condition: Operand, negate: bool = False) -> Lanes:
    """The lanes on which ``condition`` holds (or does not), too."""
    n, kind = lanes.count, f"<{lanes.count} x i1>"
    text = c.b.splat(condition, "i1", n)
    if negate:
        text = c.b.op(f"xor {kind} {text}, {types.splat('true', 'i1', n)}")
    if lanes.mask is not None:
        text = c.b.op(f"and {kind} {lanes.mask}, {text}")
    return replace(lanes, mask=text, guarded=True, overrun=False, active=None)


def _masked_arm(c: Context, arm: Expr, condition: Operand, negate: bool = False) -> Operand:
    if not dependence(arm).memory:
        return evaluate(c, arm)
    assert c.lanes is not None
    with c.within(conjunction(c, c.lanes, condition, negate), c.guard), c.scope.inside(c.b.slot()):
        return evaluate(c, arm)._replace(depth=None)


def _guarded_arm(c: Context, arm: Expr, condition: Operand, negate: bool = False) -> Operand:
    if not dependence(arm).memory:
        return evaluate(c, arm)
    guard = c.b.op(f"xor i1 {condition.text}, true") if negate else condition.text
    if c.guard is not None:
        guard = c.b.op(f"and i1 {c.guard}, {guard}")
    with c.within(c.lanes, guard), c.scope.inside(c.b.slot()):
        return evaluate(c, arm)._replace(depth=None)


def _branch(c: Context, expr: Select, condition: Operand) -> Operand:
    """Real control flow: one condition for all lanes. Nothing in an arm needs an outer scalar guard any more."""
    b = c.b
    arms = dependence(expr.then).variables | dependence(expr.otherwise).variables
    lanes = c.lanes.count if c.lanes is not None and c.varies(arms) else 1
    then, otherwise, join = b.label("then"), b.label("else"), b.label("join")
    test = condition.text if c.guard is None else b.op(f"and i1 {c.guard}, {condition.text}")
    incoming = []
    c.registers.flush()
    slot = b.slot()
    b.branch(test, then, otherwise)
    for label, arm, holds in ((then, expr.then, True), (otherwise, expr.otherwise, False)):
        b.start(label)
        # The else arm is also entered when an outer guard does not hold, so it keeps that guard.
        with c.within(c.lanes, None if holds else c.guard), c.scope.inside(slot):
            value = spread_over(c, evaluate(c, arm), expr.dtype, lanes)
        c.registers.flush()
        incoming.append(f"[ {value}, %{b.block} ]")
        b.jump(join)
    b.start(join)
    return Operand(b.op(f"phi {types.value_type(expr.dtype, lanes)} {', '.join(incoming)}"), lanes)

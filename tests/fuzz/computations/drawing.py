"""Random plans: operations on all dtypes, reads at any index, folds, several stages and outputs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np

from tests.fuzz.computations.oracle import DTYPES, FLOATS, INTEGERS, NUMPY, Array, dtype_of, limits
from tests.fuzz.computations.plan import Apply, Axis, Choose, Convert, Element, Input, Node, Number, Plan, Stage, walk

T = TypeVar("T")

#: Extents that trip schedulers up: one, primes, powers of two, and what lies around them.
EXTENTS: Final = (1, 1, 2, 3, 4, 5, 7, 8, 8, 13, 16, 17, 32, 33)
#: Points of a stage, folded ones included.
MOST_POINTS: Final = 2_000

_BINARY: Final = {
    "f": ("+", "-", "*", "/", "//", "%", "power", "minimum", "maximum"),
    "i": ("+", "-", "*", "//", "%", "power", "minimum", "maximum", "<<", ">>", "&", "|", "^"),
    "b": ("minimum", "maximum", "&", "|", "^"),
}
_UNARY: Final = {
    "f": ("neg", "abs", "floor", "ceil", "round", "sqrt", "rsqrt", "exp", "log", "tanh", "sigmoid", "erf"),
    "i": ("neg", "abs", "~"),
    "b": ("not",),
}
_COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=")


def kind(dtype: str) -> str:
    return "b" if dtype == "bool" else "f" if dtype in FLOATS else "i"


def _pick(rng: np.random.Generator, items: Any) -> Any:
    return items[int(rng.integers(len(items)))]


@dataclass
class _Drawing:
    """A plan in the making."""

    rng: np.random.Generator
    inputs: list[Input] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    dtypes: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    #: The extents of the axes of the stage being drawn.
    extents: tuple[int, ...] = ()

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    # Values ----------------------------------------------------------------------------------------------------------
    def expression(self, dtype: str, depth: int) -> Node:
        """Something of ``dtype``."""
        choice = self.rng.random()
        if depth <= 0 or choice < 0.15:
            return self.leaf(dtype)
        if choice < 0.3:
            source = _pick(self.rng, DTYPES)
            operand = self.expression(source, depth - 1)
            # Literals that do not fit are refused.
            refused = isinstance(operand, Number) and not isinstance(operand.value, float) and kind(dtype) != "f"
            return Convert(operand, dtype) if source != dtype and not refused else self.leaf(dtype)
        if choice < 0.4:
            condition = self.expression("bool", depth - 1)
            return Choose(condition, self.expression(dtype, depth - 1), self.expression(dtype, depth - 1))
        if choice < 0.5:
            return self.limited(dtype, depth)
        if dtype == "bool" and choice < 0.75:
            return self.condition(depth)
        if choice < (0.85 if dtype == "bool" else 0.65):
            op = _pick(self.rng, _UNARY[kind(dtype)])
            if dtype == "float64" and self.chance(0.3) and op in ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "erf"):
                return Apply(op, (self.expression(_pick(self.rng, list(INTEGERS)), depth - 1),))
            return Apply(op, (self.expression(dtype, depth - 1),))
        return self.binary(dtype, depth)

    def binary(self, dtype: str, depth: int) -> Node:
        op = _pick(self.rng, _BINARY[kind(dtype)])
        a = self.expression(dtype, depth - 1)
        if op in ("//", "%", "<<", ">>", "power") and self.chance(0.5):
            return Apply(op, (a, self.literal(dtype, small=True)))
        if dtype == "float64" and op == "/" and self.chance(0.3):
            source = _pick(self.rng, list(INTEGERS))
            return Apply(op, (self.expression(source, depth - 1), self.expression(source, depth - 1)))
        if self.chance(0.1):
            # Promoted as numpy does, and brought back.
            other = _pick(self.rng, [d for d in DTYPES if kind(d) == kind(dtype) and "bfloat16" not in (d, dtype)] or [dtype])
            mixed = Apply(op, (a, self.expression(other, depth - 1)))
            common = dtype_of(mixed, self.dtypes)
            if kind(common) == kind(dtype):  # uint64 and int64 make float64, which has no bits
                return mixed if common == dtype else Convert(mixed, dtype)
        return Apply(op, (a, self.expression(dtype, depth - 1)))

    def condition(self, depth: int) -> Node:
        if self.chance(0.3):
            parts = tuple(self.expression("bool", depth - 1) for _ in range(int(self.rng.integers(1, 4))))
            return Apply(_pick(self.rng, ("all", "any")), parts)
        if self.extents and self.chance(0.4):
            return Apply(_pick(self.rng, _COMPARISONS), (self.index(), Number(int(self.rng.integers(-2, 9)), "int64")))
        dtype = _pick(self.rng, DTYPES)
        return Apply(_pick(self.rng, _COMPARISONS), (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1)))

    def limited(self, dtype: str, depth: int) -> Node:
        """Between two limits, then converted, as quantised operators do."""
        source = _pick(self.rng, [d for d in DTYPES if kind(d) == "f"])
        low, high = (0, 1) if dtype == "bool" else limits(dtype) if kind(dtype) == "i" else (-100, 100)
        low, high = (max(min(x, 1 << 20), -(1 << 20)) for x in (low, high))
        value = self.expression(source, depth - 1)
        if self.chance(0.5):
            value = Apply("round", (value,))
        form = FLOATS[source]
        stored = [np.float32(max(min(limit, form.most), -form.most)).astype(NUMPY[source]) for limit in (low, high)]
        ends = [Number(float(limit), source) for limit in stored]
        limited = Apply("minimum", (Apply("maximum", (value, ends[0])), ends[1]))
        return limited if source == dtype else Convert(limited, dtype)

    def leaf(self, dtype: str) -> Node:
        if self.chance(0.12):
            return self.literal(dtype, small=self.chance(0.6))
        if self.extents and self.chance(0.1):
            index = self.index()
            return index if dtype == "int64" else Convert(index, dtype)
        return self.element(dtype)

    def literal(self, dtype: str, small: bool) -> Number:
        if kind(dtype) == "b":
            return Number(self.chance(0.5), dtype)
        if kind(dtype) == "i":
            low, high = limits(dtype)
            if small:
                return Number(int(self.rng.integers(max(low, -9), 10)), dtype)
            return Number(int(_pick(self.rng, (low, low + 1, high, high - 1, high // 2 + 1, high // 3))), dtype)
        if small:
            return Number(float(_pick(self.rng, (-3.0, -2.0, -1.0, -0.5, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 7.0, 0.0))), dtype)
        form = FLOATS[dtype]
        rare = (math.inf, -math.inf, math.nan, form.most, -form.most, form.smallest, -0.0, form.normal)
        return Number(_pick(self.rng, rare), dtype)

    # Indices ---------------------------------------------------------------------------------------------------------
    def index(self) -> Node:
        """Arithmetic on axes, of any sign."""
        axis: Node = Axis(int(self.rng.integers(len(self.extents))))
        for _ in range(int(self.rng.integers(0, 3))):
            op = _pick(self.rng, ("+", "-", "*", "//", "%", "rsub", "join"))
            large = self.chance(0.05)  # so that index arithmetic wraps around
            number = Number((1 << 61) + 5 if large else int(self.rng.integers(-7, 10)) or 2, "int64")
            if op == "rsub":
                axis = Apply("-", (number, axis))
            elif op == "join":
                other = Axis(int(self.rng.integers(len(self.extents))))
                axis = Apply(_pick(self.rng, ("+", "-", "minimum", "maximum")), (axis, other))
            else:
                axis = Apply(op, (axis, number))
        return axis

    def position(self, extent: int) -> tuple[Node, bool]:
        """An index into a dimension, and whether it is certainly within."""
        fitting = [number for number, own in enumerate(self.extents) if own <= extent]
        choice = self.rng.random()
        if fitting and choice < 0.55:
            number = _pick(self.rng, fitting)
            slack = extent - self.extents[number]
            if self.chance(0.2):
                return Apply("-", (Number(extent - 1 - int(self.rng.integers(slack + 1)), "int64"), Axis(number))), True
            offset = int(self.rng.integers(slack + 1))
            return (Apply("+", (Axis(number), Number(offset, "int64"))) if offset else Axis(number)), True
        if not self.extents or choice < 0.6:
            return Number(int(self.rng.integers(extent)), "int64"), True
        if choice < 0.7:
            return Apply("%", (self.index(), Number(extent, "int64"))), True
        if choice < 0.85:
            return self.gathered(extent), True
        return self.index(), False

    def gathered(self, extent: int) -> Node:
        """An index that is read, or computed from what is."""
        dtype = _pick(self.rng, [*INTEGERS, "float32"])
        index: Node = self.element(dtype, plain=True)
        if dtype != "int64":
            index = Convert(index, "int64")
        if self.chance(0.5):
            return Apply("%", (index, Number(extent, "int64")))
        if dtype == "float32":
            ends = Number(0.0, "float32"), Number(float(extent - 1), "float32")
            return Convert(Apply("minimum", (Apply("maximum", (self.element("float32", plain=True), ends[0])), ends[1])), "int64")
        return Apply("minimum", (Apply("maximum", (index, Number(0, "int64"))), Number(extent - 1, "int64")))

    def element(self, dtype: str, plain: bool = False) -> Node:
        """A read of a stage, of an input, or of a new input."""
        known = [name for name, own in self.dtypes.items() if own == dtype]
        stages = [stage.name for stage in self.stages]
        others = [name for name in self.dtypes if name in stages]
        if others and not plain and self.chance(0.35):
            name = _pick(self.rng, others[-2:])
        elif known and self.chance(0.5):
            name = _pick(self.rng, known)
        else:
            return self.new_element(dtype)
        shape = self.shapes[name]
        if plain:
            index: tuple[Node, ...] = tuple(self.simple(extent) for extent in shape)
            return Element(name, index)
        positions = [self.position(extent) for extent in shape]
        read: Node = Element(name, tuple(node for node, _ in positions))
        own = self.dtypes[name]
        inside = []
        for (node, certain), extent in zip(positions, shape, strict=True):
            if not certain:
                inside.append(Apply(">=", (node, Number(0, "int64"))))
                inside.append(Apply("<", (node, Number(extent, "int64"))))
        if inside:
            condition = inside[0] if len(inside) == 1 else Apply("all", tuple(inside))
            read = Choose(condition, read, self.literal(own, small=True))
        return read if own == dtype else Convert(read, dtype)

    def simple(self, extent: int) -> Node:
        fitting = [number for number, own in enumerate(self.extents) if own <= extent]
        return Axis(_pick(self.rng, fitting)) if fitting and self.chance(0.8) else Number(int(self.rng.integers(extent)), "int64")

    def new_element(self, dtype: str) -> Node:
        axes = [number for number in range(len(self.extents)) if self.chance(0.8)][:3]
        if self.chance(0.2):
            axes = [int(axis) for axis in self.rng.permutation(axes)]
        slack = [int(_pick(self.rng, (0, 0, 0, 1, 2))) for _ in axes]
        shape = tuple(self.extents[axis] + more for axis, more in zip(axes, slack, strict=True))
        name = self.new_input(shape, dtype)
        indices: list[Node] = [
            Apply("+", (Axis(axis), Number(more, "int64"))) if more and self.chance(0.5) else Axis(axis)
            for axis, more in zip(axes, slack, strict=True)
        ]
        return Element(name, tuple(indices))

    def new_input(self, shape: tuple[int, ...], dtype: str) -> str:
        name = f"X{len(self.inputs)}"
        extreme = float(_pick(self.rng, (0.0, 0.02, 0.3)))
        self.inputs.append(Input(name, shape, dtype, extreme, self.chance(0.15)))
        self.dtypes[name], self.shapes[name] = dtype, shape
        return name

    # Stages ----------------------------------------------------------------------------------------------------------
    def shape(self, rank: int, most: int) -> tuple[int, ...]:
        while True:
            shape = tuple(int(_pick(self.rng, EXTENTS)) for _ in range(rank))
            if math.prod(shape) <= most:
                return shape

    def stage(self) -> None:
        makers = (self.pointwise, self.pointwise, self.folded, self.folded, self.product, self.window)
        stage = _pick(self.rng, makers)(f"T{len(self.stages)}")
        self.stages.append(stage)
        self.dtypes[stage.name] = dtype_of(stage.body, self.dtypes)
        self.shapes[stage.name] = stage.shape

    def pointwise(self, name: str) -> Stage:
        if self.stages and self.chance(0.6):
            shape = self.stages[-1].shape
        else:
            shape = self.shape(int(self.rng.integers(0, 4)), MOST_POINTS // 4)
        self.extents = shape
        return Stage(name, shape, self.expression(_pick(self.rng, DTYPES), int(self.rng.integers(1, 5))))

    def folded(self, name: str) -> Stage:
        shape = self.shape(int(self.rng.integers(0, 3)), 200)
        reduced = self.shape(int(self.rng.integers(1, 3)), MOST_POINTS // math.prod(shape))
        self.extents = (*shape, *reduced)
        fold = _pick(self.rng, ("sum", "sum", "prod", "max", "min"))
        dtype = _pick(self.rng, DTYPES if fold in ("max", "min") else DTYPES[1:])
        return Stage(name, shape, self.expression(dtype, int(self.rng.integers(0, 4))), fold, reduced)

    def product(self, name: str) -> Stage:
        """A product of two matrices, of narrow dtypes summed in a wide one too."""
        while math.prod(extents := self.shape(3, MOST_POINTS)) < 8:
            pass
        self.extents = extents
        if self.chance(0.5):
            a, b = (str(_pick(self.rng, ("int8", "uint8", "int16", "int8", "uint8"))) for _ in range(2))
            wide = _pick(self.rng, ("int32", "int32", "int64", "float32"))
        else:
            a = b = wide = _pick(self.rng, DTYPES[1:])
        m, n, k = extents
        factors: list[Node] = []
        for dtype, shape, axes in ((a, (m, k), (0, 2)), (b, (k, n), (2, 1))):
            if self.chance(0.3):
                shape, axes = shape[::-1], axes[::-1]
            read: Node = Element(self.new_input(shape, dtype), tuple(Axis(axis) for axis in axes))
            if dtype != wide:
                read = Convert(read, wide)
                if self.chance(0.3) and wide != "float32":
                    read = Apply("-", (read, Number(int(self.rng.integers(-3, 130)), wide)))
            factors.append(read)
        return Stage(name, (m, n), Apply("*", tuple(factors)), "sum", (k,))

    def window(self, name: str) -> Stage:
        """A convolution or a pooling along one dimension, with a border."""
        channels, length, size = (int(_pick(self.rng, extents)) for extents in ((1, 3, 4, 8), (5, 8, 16, 17), (1, 2, 3)))
        stride, border = int(self.rng.integers(1, 3)), int(self.rng.integers(0, 3))
        count = (length + 2 * border - size) // stride + 1
        dtype = _pick(self.rng, DTYPES[1:])
        self.extents = (channels, count, channels, size)
        place = Apply("+", (Apply("*", (Axis(1), Number(stride, "int64"))), Apply("-", (Axis(3), Number(border, "int64")))))
        source = self.new_input((channels, length), dtype)
        inside = Apply("all", (Apply(">=", (place, Number(0, "int64"))), Apply("<", (place, Number(length, "int64")))))
        read: Node = Choose(inside, Element(source, (Axis(2), place)), self.literal(dtype, small=True))
        fold = _pick(self.rng, ("sum", "sum", "max", "min"))
        if fold == "sum":
            weight = self.new_input((channels, channels, size), dtype)
            read = Apply("*", (read, Element(weight, (Axis(0), Axis(2), Axis(3)))))
        return Stage(name, (channels, count), read, fold, (channels, size))


def drawn(seed: int) -> Plan:
    """A random computation: always the same of one seed."""
    rng = np.random.default_rng(seed)
    drawing = _Drawing(rng)
    for _ in range(int(rng.integers(1, 5))):
        drawing.stage()
    names = [stage.name for stage in drawing.stages]
    outputs = [name for name in names[:-1] if drawing.chance(0.25)]
    return pruned(Plan(tuple(drawing.inputs), tuple(drawing.stages), (*outputs, names[-1]), seed))


def pruned(plan: Plan) -> Plan:
    """Without the stages and inputs that no output needs."""
    needed = set(plan.outputs)
    for stage in reversed(plan.stages):
        if stage.name in needed:
            needed |= set(_read(stage.body))
    stages = tuple(stage for stage in plan.stages if stage.name in needed)
    return Plan(tuple(item for item in plan.inputs if item.name in needed), stages, plan.outputs, plan.seed)


def _read(node: Node) -> list[str]:
    return list(itertools.chain.from_iterable([[n.tensor] if isinstance(n, Element) else [] for n in walk(node)]))


# Inputs ----------------------------------------------------------------------------------------------------------


def arrays(plan: Plan) -> list[Array]:
    """The inputs' elements."""
    return [_array(item, np.random.default_rng([plan.seed, int(item.name[1:])])) for item in plan.inputs]


def _array(item: Input, rng: np.random.Generator) -> Array:
    numbers = _plain(item.dtype, item.shape, rng)
    where = rng.random(item.shape) < item.extreme
    special = np.array(extremes(item.dtype), NUMPY[item.dtype])
    return np.where(where, special[rng.integers(len(special), size=item.shape)], numbers).astype(NUMPY[item.dtype])


def _plain(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype in FLOATS:
        return np.asarray(rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 9)).astype(NUMPY[dtype])
    low, high = limits(dtype)
    reach = int(rng.choice([8, 100, 1 << 62]))
    return np.asarray(rng.integers(max(low, -reach), min(high, reach), shape, endpoint=True)).astype(NUMPY[dtype])


def extremes(dtype: str) -> list[Any]:
    """What rarely comes by itself."""
    if dtype == "bool":
        return [False, True]
    if dtype in INTEGERS:
        low, high = limits(dtype)
        return [low, low + 1, high, high - 1, high // 2, 0, 1, *([-1] if low else [])]
    form = FLOATS[dtype]
    edges = [sign * edge for edge in (2.0**7, 2.0**8, 2.0**15, 2.0**31, 2.0**32, 2.0**63, 2.0**64) for sign in (-1, 1)]
    fitting = [edge for edge in edges if abs(edge) <= form.most]
    halves = [0.5, 1.5, -2.5]
    return [math.nan, math.inf, -math.inf, 0.0, -0.0, form.most, -form.most, form.smallest, -form.normal, *halves, *fitting]

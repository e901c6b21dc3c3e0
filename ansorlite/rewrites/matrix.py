"""The rewrite to products of matrices (of convolutions: implicit GEMM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod

from ansorlite.analysis.matrix import MatrixFactor, MatrixProduct, tile_axis
from ansorlite.rewrites.stages import fuse, fusible_axes, linked_axes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Expr, Read, Reduce, Var, cast, const, select
from ansorlite.te.rewriting import tensor_named
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, rewrite, substitute


class FactorLayout(Enum):
    """How a factor lies where matrix units, or the threads that feed them, read it."""

    STEPS_LAST = "steps_last"  # the steps of the sum side by side
    STEPS_FIRST = "steps_first"  # the rows, or the columns, side by side
    CORES = "cores"  # a piece of the steps side by side, and these pieces of neighbouring rows, or columns: core matrices


@dataclass(frozen=True)
class FactorStage:
    """The stage that a factor becomes.

    Attributes:
        name: of the stage.
    """

    name: str
    layout: FactorLayout


def matrix_form(dag: ComputeDAG, stage: str, how: MatrixProduct, piece: int, made: tuple[FactorStage, FactorStage]) -> ComputeDAG:
    """A sum of products over two stages that have its factors as matrices, the steps of the sum in pieces::

        C[h, w, f] = sum(float32(X[h + y, w + x]) * float32(W[f, y, x]), y, x)
        ->  C_a[m, k] = k < 9 ? X[m // 8 + k // 3, m % 8 + k % 3] : 0;  C_b[f, k] = k < 9 ? W[f, k // 3, k % 3] : 0
            C[m, f] = sum(float32(C_a[m, o * 8 + p]) * float32(C_b[f, o * 8 + p]), o, p)

    Neighbouring dimensions of rows, or of columns, become one, in whatever reads the sum too, where all walk them in step. Steps
    beyond the end of the sum are zeros.

    Args:
        piece: steps in one; the sum gets an even number of pieces.
        made: the stages of the factors of rows and of columns.
    """
    target = tensor_named(dag, stage)
    assert isinstance(target.body, Reduce)
    after = _After(dag, target)
    pairs = after.fusible(how)
    groups: list[list[Axis]] = []
    for dim, axis in enumerate(target.axes):
        if dim - 1 in pairs[after.place]:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    axes = tuple(Axis("_".join(axis.name for axis in group), extent=prod(axis.extent for axis in group)) for group in groups)
    values: dict[Var, Expr] = {}
    for whole, group in zip(axes, groups, strict=True):
        values |= _digits(whole, group)
    steps = (
        Axis("piece", extent=2 * -(-how.steps // (2 * piece)), reduce=True),
        Axis("step", extent=piece, reduce=True),
    )
    reads = [_factor(factor, of, axes, values, how, steps) for factor, of in zip((how.a, how.b), made, strict=True)]
    a, b = (cast(read, target.dtype) for read in reads)
    body = Reduce(target.body.op, a * b, steps, target.body.dtype)
    return after.spliced(Tensor(target.name, tuple(axis.extent for axis in axes), target.dtype, axes, body), pairs)


def _factor(
    factor: MatrixFactor,
    made: FactorStage,
    axes: Sequence[Axis],
    values: Mapping[Var, Expr],
    how: MatrixProduct,
    steps: tuple[Axis, Axis],
) -> Read:
    """What is read of the stage that a factor becomes.

    Args:
        axes: of the sum.
        values: of the axes that it had before.
        steps: the reduce axes: a piece, and the step within it.
    """
    used = [axis for axis in axes if any(axis in free_vars(values[own]) for own in factor.axes if own in values)]
    alone = how.rows if factor is how.a else how.columns
    tiled = tile_axis([axis for axis in used if any(axis in free_vars(values[own]) for own in alone)])
    own = {axis: Axis(axis.name, extent=axis.extent) for axis in used}
    onto: dict[Var, Expr] = dict(own.items())
    others = [axis for axis in used if axis is not tiled]
    lead, place = [own[axis] for axis in others], own[tiled]
    outer, inner = steps
    index: Expr = outer * inner.extent + inner
    step: Expr
    indices: tuple[Expr, ...]
    if made.layout is FactorLayout.CORES:
        piece, within = Axis("piece", extent=outer.extent), Axis("step", extent=inner.extent)
        shape, indices = (*lead, piece, place, within), (*others, outer, tiled, inner)
        step = piece * inner.extent + within
    else:
        step = along = Axis("step", extent=outer.extent * inner.extent)
        if made.layout is FactorLayout.STEPS_LAST:
            shape, indices = (*lead, place, along), (*others, tiled, index)
        else:
            shape, indices = (*lead, along, place), (*others, index, tiled)
    moved: dict[Var, Expr] = {axis: substitute(value, onto) for axis, value in values.items()}
    value = substitute(factor.value, {**moved, **_digits(step, how.inner)})
    if outer.extent * inner.extent > how.steps:
        value = select(step < how.steps, value, const(0, value.dtype))
    stage = Tensor(made.name, tuple(axis.extent for axis in shape), value.dtype, shape, value)
    return Read(stage, indices, stage.dtype)


def _digits(number: Expr, axes: Sequence[Axis]) -> dict[Var, Expr]:
    """What each of ``axes`` is in an iteration of all of them, that of the last one fastest."""
    result: dict[Var, Expr] = {}
    step = 1
    for position, axis in reversed(list(enumerate(axes))):
        digit = number // step if step > 1 else number
        result[axis] = digit % axis.extent if position else digit
        step *= axis.extent
    return result


class _After:
    """What depends on a stage, as a computation of its own: the stage, and all else that is read, are its inputs.

    Attributes:
        place: the input in the place of the stage.
    """

    def __init__(self, dag: ComputeDAG, target: Tensor) -> None:
        self.dag = dag
        self.target = target
        self.place = Tensor(target.name, target.shape, target.dtype)
        self._new = {target: self.place}
        self._inside: list[Tensor] = [target]
        for tensor in dag.computes:
            if any(producer in self._inside for producer in dag.producers(tensor)):
                assert tensor.body is not None
                body = rewrite(tensor.body, self._redirected)
                self._new[tensor] = Tensor(tensor.name, tensor.shape, tensor.dtype, tensor.axes, body)
                self._inside.append(tensor)
        outside = [tensor for tensor in self._new if tensor not in self._inside]
        outputs = [self._new[tensor] for tensor in dag.outputs if tensor in self._inside]
        self.computation = ComputeDAG.of([self.place, *(self._new[tensor] for tensor in outside), *outputs])
        # An input that is read nowhere else may get another shape.
        after = frozenset(self._inside[1:])
        self._free = {self._new[t] for t in outside if t.body is None and after.issuperset(dag.consumers(t))}

    def _redirected(self, node: Expr) -> Expr | None:
        if not isinstance(node, Read):
            return None
        of = node.tensor
        if of not in self._new:
            self._new[of] = Tensor(of.name, of.shape, of.dtype, constant=of.constant)
        return Read(self._new[of], node.indices, node.dtype)

    def fusible(self, how: MatrixProduct) -> Mapping[Tensor, tuple[int, ...]]:
        """The pairs of dimensions, of rows or of columns, that can be one; and those of other tensors that then must be."""
        axes = self.target.axes
        alike = tuple(
            dim for dim in range(len(axes) - 1) if any(axes[dim] in of and axes[dim + 1] in of for of in (how.rows, how.columns))
        )
        inputs = dict.fromkeys(self.computation.inputs, ()) | {t: tuple(range(t.ndim - 1)) for t in self._free}
        wanted = {t: tuple(range(t.ndim - 1)) for t in self.computation.computes} | inputs | {self.place: alike}
        return linked_axes(self.computation, fusible_axes(self.computation, wanted), self.place)

    def spliced(self, made: Tensor, pairs: Mapping[Tensor, tuple[int, ...]]) -> ComputeDAG:
        """The whole computation with ``made`` in the place of the stage, and ``pairs`` of dimensions one."""
        fused = fuse(self.computation, pairs)
        old = {tensor.name: tensor for tensor in self.dag.tensors}
        new: dict[Tensor, Tensor] = {}
        for tensor, before in zip(fused.inputs, self.computation.inputs, strict=True):
            new[tensor] = made if before is self.place else tensor if pairs[before] else old[tensor.name]

        def rule(node: Expr) -> Expr | None:
            return Read(new[node.tensor], node.indices, node.dtype) if isinstance(node, Read) else None

        for tensor in fused.computes:
            assert tensor.body is not None
            new[tensor] = Tensor(tensor.name, tensor.shape, tensor.dtype, tensor.axes, rewrite(tensor.body, rule))
        by_name = {tensor.name: tensor for tensor in new.values()}
        return ComputeDAG.of([by_name.get(tensor.name, tensor) for tensor in (*self.dag.inputs, *self.dag.outputs)])

"""The rewrite to dot products of words (see ``te/words.py``): a schedule step that needs no holes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ansorlite.analysis.dot import DotProduct, Factor
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Binary, Expr, Read, Reduce, Var, const, select
from ansorlite.te.intervals import bounds
from ansorlite.te.ops import DOTS
from ansorlite.te.rewriting import rebuilt, redirected, tensor_named, with_body
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import rewrite, substitute
from ansorlite.te.words import WORD, Pieces


def dot_words(dag: ComputeDAG, stage: str, how: DotProduct, names: tuple[str, str]) -> ComputeDAG:
    """A sum of products of small integers over words of them::

        C[i] = sum(A[i, k] * B[k], k)   ->   A_w[i, w] = word(A[i, 4w], ..., A[i, 4w + 3]); B_w[w] = ...
                                             C[i] = sum(dot(A_w[i, w], B_w[w]), w)

    Pieces past the end of the axis are 0, in both words.
    """
    target = tensor_named(dag, stage)

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        if tensor is not target:
            return redirected(tensor, redirect)
        assert isinstance(target.body, Reduce)
        words = Axis(how.axis.name, extent=-(-how.axis.extent // how.width), reduce=True)
        pieces = DOTS[how.op]
        a, b = (
            _read_of(_packed(factor, how.axis, kind, name, redirect), factor, how.axis, words)
            for factor, kind, name in zip((how.a, how.b), pieces, names, strict=True)
        )
        axes = tuple(words if axis is how.axis else axis for axis in target.body.axes)
        return with_body(target, Reduce(target.body.op, Binary(how.op, a, b, WORD), axes, WORD))

    return rebuilt(dag, change)


def _packed(factor: Factor, axis: Axis, pieces: Pieces, name: str, redirect: Callable[[Expr], Expr]) -> Tensor:
    """The stage that makes words of a factor: over the dimensions of the tensor read, that of ``axis`` in words."""
    source = factor.read.tensor
    count = -(-axis.extent // pieces.count)
    shape = tuple(count if d == factor.dim else extent for d, extent in enumerate(source.shape))
    axes = tuple(Axis(f"d{d}" if d != factor.dim else axis.name, extent=extent) for d, extent in enumerate(shape))
    word: Expr | None = None
    places: dict[Var, Expr] = {own: axes[dim] for own, dim in factor.places.items()}
    for number in range(pieces.count):
        step = axes[factor.dim] * pieces.count + number
        read = Read(source, tuple(step if d == factor.dim else a for d, a in enumerate(axes)), source.dtype)
        piece = redirect(_at(factor, places | {axis: step}, read))
        if (count - 1) * pieces.count + number >= axis.extent:
            piece = select(step < axis.extent, piece, const(0, WORD))
        if number < pieces.count - 1 and bounds(piece)[0] < 0:
            # The sign would run into the pieces above.
            piece = piece & ((1 << pieces.bits) - 1)
        placed = piece << number * pieces.bits if number else piece
        word = placed if word is None else word | placed
    assert word is not None
    return Tensor(name, shape, WORD, axes, word)


def _at(factor: Factor, places: Mapping[Var, Expr], read: Read) -> Expr:
    """The factor at another element: ``read``, which is at ``places``."""
    element = Var("element", read.dtype)
    open_ = rewrite(factor.value, lambda node: element if node is factor.read else None)
    return substitute(open_, {**places, element: read})


def _read_of(packed: Tensor, factor: Factor, axis: Axis, words: Axis) -> Read:
    """The word in which the factor's element is."""
    at: dict[Var, Expr] = {axis: words}
    return Read(packed, tuple(substitute(i, at) for i in factor.read.indices), WORD)

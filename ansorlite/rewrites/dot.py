"""The rewrite to dot products of words (see ``te/words.py``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ansorlite.analysis.dot import DotProduct, Factor, has_rows
from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Binary, Cast, Const, Expr, Read, Reduce, Select, Var, cast, const, select, unary
from ansorlite.te.index.form import Affine
from ansorlite.te.index.ranges import bounds
from ansorlite.te.ops import DOTS, UnaryOp
from ansorlite.te.rewriting import rebuilt, redirected, tensor_named, with_body
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, reads, rewrite, substitute
from ansorlite.te.words import WORD, Pieces


def dot_words(dag: ComputeDAG, stage: str, how: DotProduct, names: tuple[str, str], *, steps_last: bool = False) -> ComputeDAG:
    """A sum of products of small numbers over words of them::

        C[i] = sum(A[i, k] * B[k], k)   ->   A_w[i, w] = word(A[i, 4w], ..., A[i, 4w + 3]); B_w[w] = ...
                                             C[i] = sum(dot(A_w[i, w], B_w[w]), w)

    Pieces past the end of the axis are 0, in both words. Where the words of an operand are what memory has already, it becomes
    a tensor of words itself, and no stage makes them.

    Args:
        steps_last: whether the words of a row of the product lie side by side, in whatever order its elements do.
    """
    target = tensor_named(dag, stage)
    pieces = DOTS[how.op]
    factors = (how.a, how.b)
    views = [_words_in_memory(dag, factor, kind) for factor, kind in zip(factors, pieces, strict=True)]
    if how.a.read.tensor is how.b.read.tensor and not all(views):
        # What is read along another dimension, too, is read as bytes.
        views = [[], []]
    in_place = {tensor: kind for view, kind in zip(views, pieces, strict=True) for tensor in view}

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        if tensor in in_place:
            return _seen_in_words(tensor, in_place[tensor], redirect)
        if tensor is not target:
            return redirected(tensor, redirect)
        assert isinstance(target.body, Reduce)
        words = Axis(how.axis.name, extent=how.words, reduce=True)

        def operand(factor: Factor, kind: Pieces, name: str) -> Read:
            source = redirect(factor.read)
            assert isinstance(source, Read)
            last = steps_last and has_rows(target, factor)
            # Of words that are in memory the steps are last anyhow.
            order = sorted(range(source.tensor.ndim), key=lambda d: last and d == factor.dim)
            made = source.tensor if factor.read.tensor in in_place else _packed(factor, how.axis, kind, name, redirect, order)
            return _read_of(made, factor, how.axis, words, kind.count, order)

        a, b = map(operand, factors, pieces, names)
        axes = tuple(words if axis is how.axis else axis for axis in target.body.axes)
        sums = target.body.dtype
        return with_body(target, Reduce(target.body.op, Binary(how.op, a, b, sums), axes, sums))

    return rebuilt(dag, change)


def _words_in_memory(dag: ComputeDAG, factor: Factor, pieces: Pieces) -> list[Tensor]:
    """The tensors that can be seen as words, producers first, if the pieces of the factor's words lie side by side in memory.

    The input of the computation is one of them; the others, if any, move pieces of it or put words of equal pieces between
    them (a border). Nothing else may read them, piece by piece. Constants are none of these: their words are made once, in the
    order of use.
    """
    source, value = factor.read.tensor, factor.value
    as_it_is = value is factor.read or (isinstance(value, Cast) and value.a is factor.read)
    if not (factor.adjacent and as_it_is and pieces.bits == 8 * dtypes.size(source.dtype)) or source.shape[-1] % pieces.count:
        return []
    found: list[Tensor] = []
    while len(dag.consumers(source)) == 1 and not source.constant and source not in dag.outputs:
        found.insert(0, source)
        if source.body is None:
            return found
        moved = [read for read in reads(source.body) if read.tensor.dtype == source.dtype]
        if len(moved) != 1 or not _moves_words(source.body, source.axes[-1], moved[0], source.shape[-1]):
            return []
        source = moved[0].tensor
    return []


def _moves_words(body: Expr, last: Axis, moved: Read, extent: int) -> bool:
    """Whether ``body`` is ``moved``, or a constant, as conditions say that do not know ``last``; which runs along whole rows."""
    match body:
        case Select(cond, then, otherwise):
            return last not in free_vars(cond) and all(_moves_words(arm, last, moved, extent) for arm in (then, otherwise))
        case Read():
            rest = (last not in free_vars(index) for index in body.indices[:-1])
            return body is moved and body.indices[-1] is last and body.tensor.shape[-1] == extent and all(rest)
    return isinstance(body, Const)


def _seen_in_words(tensor: Tensor, pieces: Pieces, redirect: Callable[[Expr], Expr]) -> Tensor:
    """``tensor`` with a word in the place of the pieces that are one in memory, lowest first (machines are little-endian)."""
    words = tensor.shape[-1] // pieces.count
    last = Axis(tensor.axes[-1].name, extent=words) if tensor.axes else None
    shape = (*tensor.shape[:-1], words)
    if tensor.body is None:
        return Tensor(tensor.name, shape, WORD, (), None, tensor.constant)
    assert last is not None

    def rule(node: Expr) -> Expr | None:
        if isinstance(node, Const) and node.dtype == tensor.dtype:
            return const(pieces.word([node.value] * pieces.count), WORD)
        if isinstance(node, Read):
            moved = redirect(node)
            assert isinstance(moved, Read)
            return Read(moved.tensor, (*node.indices[:-1], last), WORD) if node.dtype == tensor.dtype else moved
        return None

    return Tensor(tensor.name, shape, WORD, (*tensor.axes[:-1], last), _retyped(rewrite(tensor.body, rule)))


def _retyped(body: Expr) -> Expr:
    """``body`` whose leaves became words."""
    return Select(body.cond, _retyped(body.then), _retyped(body.otherwise), WORD) if isinstance(body, Select) else body


def _packed(
    factor: Factor, axis: Axis, pieces: Pieces, name: str, redirect: Callable[[Expr], Expr], order: Sequence[int]
) -> Tensor:
    """The stage that makes words of a factor: over the dimensions of the tensor read in this order, that of ``axis`` in words."""
    source = factor.read.tensor
    whole = bool(factor.start.terms) or bool(factor.start.constant)
    length = source.shape[factor.dim] // pieces.count * pieces.count if whole else axis.extent
    count = -(-length // pieces.count)
    shape = tuple(count if d == factor.dim else extent for d, extent in enumerate(source.shape))
    axes = tuple(Axis(f"d{d}" if d != factor.dim else axis.name, extent=extent) for d, extent in enumerate(shape))
    word: Expr | None = None
    places: dict[Var, Expr] = {own: axes[dim] for own, dim in factor.places.items()}
    for number in range(pieces.count):
        step = axes[factor.dim] * pieces.count + number
        read = Read(source, tuple(step if d == factor.dim else a for d, a in enumerate(axes)), source.dtype)
        piece = _bits(redirect(_at(factor, places | {axis: step}, read)), pieces)
        if (count - 1) * pieces.count + number >= length:
            piece = select(step < length, piece, const(0, WORD))
        if number < pieces.count - 1 and bounds(piece)[0] < 0:
            # The sign would run into the pieces above.
            piece = piece & ((1 << pieces.bits) - 1)
        placed = piece << number * pieces.bits if number else piece
        word = placed if word is None else word | placed
    assert word is not None
    return Tensor(name, tuple(shape[d] for d in order), WORD, tuple(axes[d] for d in order), word)


def _bits(value: Expr, pieces: Pieces) -> Expr:
    """A factor's value as an int32 whose low bits are those of a piece."""
    if not pieces.floats:
        return value
    assert isinstance(value, Cast)
    return cast(unary(UnaryOp.BITS, value.a), WORD)


def _at(factor: Factor, places: Mapping[Var, Expr], read: Read) -> Expr:
    """The factor at another element: ``read``, which is at ``places``."""
    element = Var("element", read.dtype)
    open_ = rewrite(factor.value, lambda node: element if node is factor.read else None)
    return substitute(open_, {**places, element: read})


def _read_of(made: Tensor, factor: Factor, axis: Axis, words: Axis, count: int, order: Sequence[int]) -> Read:
    """The word in which the factor's element is; the dimensions of the tensor read are in this order there."""
    at: dict[Var, Expr] = {axis: words}
    start = Affine(
        tuple((term, coefficient // count) for term, coefficient in factor.start.terms), factor.start.constant // count
    )
    place = (start + Affine(((words, 1),), 0)).expr()
    indices = [place if d == factor.dim else substitute(i, at) for d, i in enumerate(factor.read.indices)]
    return Read(made, tuple(indices[d] for d in order), WORD)

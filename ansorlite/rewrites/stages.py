"""Rewrites that change the set of stages.

Each is a pure function ``ComputeDAG -> ComputeDAG`` made of :mod:`ansorlite.te.rewriting`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from ansorlite.loops.nodes import index
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Expr, Read, Reduce, Select, Var
from ansorlite.te.index.affine import affine
from ansorlite.te.reductions import identity
from ansorlite.te.rewriting import rebuilt, redirected, tensor_named, unused, with_body
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import reads, rewrite, substitute


def without_unit_reductions(dag: ComputeDAG) -> ComputeDAG:
    """Reduce axes of extent 1 gone, and affine indices in their shortest form::

    C[h] = sum(A[h + k], k in 0..1)      ->      C[h] = A[h]
    """

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        if tensor.body is None:
            return tensor
        body = redirect(tensor.body)
        unit: dict[Var, Expr] = {axis: index(0) for axis in tensor.reduce_axes if axis.extent == 1}
        if isinstance(body, Reduce) and unit:
            left = tuple(axis for axis in body.axes if axis not in unit)
            inner = substitute(body.body, unit)
            body = Reduce(body.op, inner, left, body.dtype) if left else inner
        body = rewrite(body, _shortest_indices)
        return tensor if body is tensor.body else with_body(tensor, body)

    return rebuilt(dag, change)


def _shortest_indices(node: Expr) -> Expr | None:
    if not isinstance(node, Read):
        return None
    forms = [affine(i) for i in node.indices]
    return Read(node.tensor, tuple(i if f is None else f.expr() for i, f in zip(node.indices, forms, strict=True)), node.dtype)


def cache_write(dag: ComputeDAG, stage: str, cache: str) -> ComputeDAG:
    """``stage`` computed into ``cache``, and copied from there::

    C[i] = sum(A[i, k])      ->      C_local[i] = sum(A[i, k]); C[i] = C_local[i]
    """
    target = tensor_named(dag, stage)

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        if tensor is not target:
            return redirected(tensor, redirect)
        assert target.body is not None
        axes = tuple(Axis(a.name, extent=a.extent) for a in target.axes)
        body = substitute(redirect(target.body), dict(zip(target.axes, axes, strict=True)))
        local = Tensor(cache, target.shape, target.dtype, axes, body)
        return with_body(target, Read(local, target.axes, target.dtype))

    return rebuilt(dag, change)


def cache_read(dag: ComputeDAG, stage: str, source: str, copy: str, order: Sequence[int]) -> ComputeDAG:
    """What ``stage`` reads of ``source`` is read from ``copy``, whose dimensions are those of ``source`` in another order::

    C[i] = sum(A[i, k])      ->      A_t[k, i] = A[i, k]; C[i] = sum(A_t[k, i])
    """
    target = tensor_named(dag, stage)

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        if tensor is not target:
            return redirected(tensor, redirect)
        assert target.body is not None
        body = redirect(target.body)
        of = next(read.tensor for read in reads(body) if read.tensor.name == source)
        axes = tuple(Axis(f"d{dim}", extent=extent) for dim, extent in enumerate(of.shape))
        made = Tensor(
            copy, tuple(of.shape[dim] for dim in order), of.dtype, tuple(axes[dim] for dim in order), Read(of, axes, of.dtype)
        )

        def rule(node: Expr) -> Expr | None:
            if isinstance(node, Read) and node.tensor is of:
                return Read(made, tuple(rewrite(node.indices[dim], rule) for dim in order), node.dtype)
            return None

        return with_body(target, rewrite(body, rule))

    return rebuilt(dag, change)


def rfactor(dag: ComputeDAG, stage: str, factored: Axis, partial: str) -> ComputeDAG:
    """A reduction split over its reduce axis ``factored`` into independent partial reductions::

        C[i] = sum(A[i, k], k)      ->      C_rf[r, i] = sum(A[i, k], k in part r); C[i] = sum(C_rf[r, i], r)

    How many parts there are is a hole: ``r`` has the nominal extent of ``k`` here, and each fold gives it the real one.
    """
    target = tensor_named(dag, stage)

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        if tensor is not target:
            return redirected(tensor, redirect)
        assert isinstance(target.body, Reduce)
        name = unused(f"{factored.name}_part", {axis.name for axis in target.axes + target.reduce_axes})
        axes = (Axis(name, extent=factored.extent), *(Axis(a.name, extent=a.extent) for a in target.axes))
        body = substitute(redirect(target.body), dict(zip(target.axes, axes[1:], strict=True)))
        parts = Tensor(partial, (factored.extent, *target.shape), target.dtype, axes, body)
        r = Axis(name, extent=factored.extent, reduce=True)
        return with_body(target, Reduce(target.body.op, Read(parts, (r, *target.axes), target.dtype), (r,), target.dtype))

    return rebuilt(dag, change)


def partial_sums(dag: ComputeDAG, stage: str, factored: Axis, partial: str, parts: int) -> ComputeDAG:
    """A reduction as ``parts`` reductions over runs of its reduce axis ``factored``, a stage like any other, and their fold::

        C[i] = sum(A[i, k], k in 12)      ->      C_rf[r, i] = sum(A[i, r * 4 + k], k in 4); C[i] = sum(C_rf[r, i], r in 3)

    Where the parts do not divide the axis, what is beyond its end adds nothing.
    """
    target = tensor_named(dag, stage)

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        if tensor is not target:
            return redirected(tensor, redirect)
        assert isinstance(target.body, Reduce)
        body = redirect(target.body)
        assert isinstance(body, Reduce)
        length = -(-factored.extent // parts)
        name = unused(f"{factored.name}_part", {axis.name for axis in target.axes + target.reduce_axes})
        part, rest = Axis(name, extent=parts), Axis(factored.name, extent=length, reduce=True)
        axes = tuple(Axis(axis.name, extent=axis.extent) for axis in target.axes)
        at: Expr = part * length + rest
        inner = substitute(body.body, {factored: at, **dict(zip(target.axes, axes, strict=True))})
        if parts * length != factored.extent:
            inner = Select(at < factored.extent, inner, identity(body.op, inner.dtype), inner.dtype)
        over = tuple(rest if axis is factored else axis for axis in body.axes)
        made = Tensor(partial, (parts, *target.shape), target.dtype, (part, *axes), Reduce(body.op, inner, over, body.dtype))
        r = Axis(name, extent=parts, reduce=True)
        return with_body(target, Reduce(body.op, Read(made, (r, *target.axes), target.dtype), (r,), target.dtype))

    return rebuilt(dag, change)


def with_unit_axis(dag: ComputeDAG, stage: str) -> ComputeDAG:
    """A stage without dimensions gets one, of one element::

    C[] = sum(A[k], k)      ->      C[u] = sum(A[k], k)
    """
    target = tensor_named(dag, stage)
    changed: list[Tensor] = []

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        if tensor is target:
            assert target.body is not None
            name = unused("u", {axis.name for axis in target.reduce_axes})
            changed.append(Tensor(stage, (1,), target.dtype, (Axis(name, extent=1),), redirect(target.body)))
            return changed[0]
        if tensor.body is None:
            return tensor
        body = rewrite(redirect(tensor.body), lambda node: _at_the_only_element(node, changed))
        return tensor if body is tensor.body else with_body(tensor, body)

    return rebuilt(dag, change)


def _at_the_only_element(node: Expr, changed: Sequence[Tensor]) -> Expr | None:
    if isinstance(node, Read) and node.tensor in changed and not node.indices:
        return Read(node.tensor, (index(0),), node.dtype)
    return None


def fusible_axes(dag: ComputeDAG, wanted: Mapping[Tensor, Sequence[int]] | None = None) -> dict[Tensor, tuple[int, ...]]:
    """For each tensor the dimensions ``d`` that can be one with dimension ``d + 1`` everywhere; of those ``wanted``, if given.

    That is so when every compute walks the pair in step with whatever tensors it touches them in: each read has at a
    fusible pair the two axes of a fusible pair, plain and whole, and nowhere else an axis of one.
    """
    pairs = {t: set(range(t.ndim - 1) if wanted is None else wanted.get(t, ())) for t in dag.tensors}
    changed = True
    while changed:
        changed = False
        for tensor in dag.computes:
            changed |= _strike_out(tensor, pairs)
    return {t: tuple(sorted(found)) for t, found in pairs.items()}


def _strike_out(tensor: Tensor, pairs: dict[Tensor, set[int]]) -> bool:
    """Remove the pairs of ``tensor`` and of what it reads that disagree; whether any was removed."""
    assert tensor.body is not None
    changed = False
    reads = _all_reads(tensor)
    for read in reads:
        for d in list(pairs[read.tensor]):
            if _own_pair(tensor, read, d) not in pairs[tensor]:
                pairs[read.tensor].discard(d)
                changed = True
    for d in list(pairs[tensor]):
        a, b = tensor.axes[d], tensor.axes[d + 1]
        if any(not _keeps_together(read, a, b, pairs[read.tensor]) for read in reads) or _used_as_value(tensor, (a, b)):
            pairs[tensor].discard(d)
            changed = True
    return changed


def linked_axes(dag: ComputeDAG, pairs: Mapping[Tensor, Sequence[int]], start: Tensor) -> dict[Tensor, tuple[int, ...]]:
    """Of the fusible ``pairs`` those that must be one where those of ``start`` are."""
    linked: dict[Tensor, set[int]] = {t: set(pairs[t]) if t is start else set() for t in dag.tensors}
    changed = True
    while changed:
        changed = False
        for tensor in dag.computes:
            for read in _all_reads(tensor):
                for d in pairs[read.tensor]:
                    own = _own_pair(tensor, read, d)
                    there, here = d in linked[read.tensor], own in linked[tensor]
                    if there != here:
                        assert own is not None
                        linked[read.tensor].add(d)
                        linked[tensor].add(own)
                        changed = True
    return {t: tuple(sorted(found)) for t, found in linked.items()}


def _all_reads(tensor: Tensor) -> list[Read]:
    found: list[Read] = []

    def note(node: Expr) -> Expr | None:
        if isinstance(node, Read):
            found.append(node)
        return None

    assert tensor.body is not None
    rewrite(tensor.body, note)
    return found


def _own_pair(tensor: Tensor, read: Read, d: int) -> int | None:
    """The dimension of ``tensor`` whose axis, with the next, stands whole at ``d`` and ``d + 1`` of the read."""
    a, b = read.indices[d], read.indices[d + 1]
    for own in range(tensor.ndim - 1):
        if tensor.axes[own] is a and tensor.axes[own + 1] is b:
            whole = read.tensor.shape[d] == tensor.shape[own] and read.tensor.shape[d + 1] == tensor.shape[own + 1]
            return own if whole else None
    return None


def _keeps_together(read: Read, a: Axis, b: Axis, pairs: set[int]) -> bool:
    """Whether the read touches neither axis, or only both as one fusible pair."""
    at = [d for d, node in enumerate(read.indices) if _mentions(node, a) or _mentions(node, b)]
    if not at:
        return True
    return len(at) == 2 and at[0] + 1 == at[1] and read.indices[at[0]] is a and read.indices[at[1]] is b and at[0] in pairs


def _mentions(expr: Expr, axis: Axis) -> bool:
    found = False

    def note(node: Expr) -> Expr | None:
        nonlocal found
        found = found or node is axis
        return None

    rewrite(expr, note)
    return found


def _used_as_value(tensor: Tensor, axes: tuple[Axis, ...]) -> bool:
    """Whether an axis is used outside of indices (in a condition, or as a number)."""
    assert tensor.body is not None
    stack: list[Expr] = [tensor.body]
    seen = {tensor.body}  # shared parts once: there may be exponentially many ways to them
    while stack:
        node = stack.pop()
        if isinstance(node, Var) and node in axes:
            return True
        if not isinstance(node, Read):
            new = [child for child in node.children() if child not in seen]
            seen.update(new)
            stack.extend(new)
    return False


def fuse(dag: ComputeDAG, pairs: Mapping[Tensor, tuple[int, ...]]) -> ComputeDAG:
    """Pairs of dimensions made one, in all tensors at once (the memory is the same); ``pairs`` as of :func:`fusible_axes`::

    C[n, h, w] = A[n, h, w] + B[n]      ->      C[n, h.w] = A[n, h.w] + B[n]
    """
    groups = {t: _groups(t.ndim, pairs[t]) for t in dag.tensors}

    def shape(tensor: Tensor) -> tuple[int, ...]:
        return tuple(prod(tensor.shape[d] for d in group) for group in groups[tensor])

    new: dict[Tensor, Tensor] = {}
    for tensor in dag.tensors:
        if tensor.body is None:
            same = not pairs[tensor]
            new[tensor] = tensor if same else Tensor(tensor.name, shape(tensor), tensor.dtype, constant=tensor.constant)
            continue
        extents = shape(tensor)
        axes = tuple(
            tensor.axes[g[0]] if len(g) == 1 else Axis("_".join(tensor.axes[d].name for d in g), extent=e)
            for g, e in zip(groups[tensor], extents, strict=True)
        )
        leads = {tensor.axes[g[0]]: axis for g, axis in zip(groups[tensor], axes, strict=True)}
        body = _fused_body(tensor, leads, groups, new)
        new[tensor] = Tensor(tensor.name, extents, tensor.dtype, axes, body)
    return ComputeDAG.of([new[t] for t in (*dag.inputs, *dag.outputs)])


def _groups(ndim: int, pairs: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    groups: list[list[int]] = []
    for d in range(ndim):
        if d > 0 and d - 1 in pairs:
            groups[-1].append(d)
        else:
            groups.append([d])
    return tuple(tuple(g) for g in groups)


def _fused_body(
    tensor: Tensor, leads: Mapping[Axis, Axis], groups: dict[Tensor, tuple[tuple[int, ...], ...]], new: dict[Tensor, Tensor]
) -> Expr:
    def rule(node: Expr) -> Expr | None:
        if not isinstance(node, Read):
            return None
        indices = []
        for group in groups[node.tensor]:
            first = node.indices[group[0]]
            indices.append(leads[first] if len(group) > 1 and isinstance(first, Axis) else first)
        return Read(new[node.tensor], tuple(indices), node.dtype)

    assert tensor.body is not None
    return rewrite(tensor.body, rule)

"""The questions that the derivation rules ask (Ansor §4.1, ``compute_dag.cc``), each about the expression alone."""

from __future__ import annotations

from math import prod

from ansorlite.analysis.access import Access, accesses, has_select
from ansorlite.analysis.constants import constant_stages
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Binary, Read, Unary
from ansorlite.te.index.affine import reach
from ansorlite.te.ops import Cost, info
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import walk


def is_simple(access: Access) -> bool:
    """Whether every index is a plain axis or a constant, no axis twice, in the order of the tensor's dimensions."""
    plain = [form.plain if form is not None else None for form in access.dims]
    constant = [form is not None and not form.terms for form in access.dims]
    if not all(p is not None or c for p, c in zip(plain, constant, strict=True)):
        return False
    axes = [p for p in plain if p is not None]
    return len(set(axes)) == len(axes)


def is_expensive(tensor: Tensor) -> bool:
    """Whether an element costs an exponential or the like, so that computing it twice is never free."""
    if tensor.body is None:
        return False
    return any(isinstance(node, Binary | Unary) and info(node.op).cost is Cost.MATH for node in walk(tensor.body))


def reads_each_once(consumer: Tensor, producer: Tensor) -> bool:
    """Whether ``consumer`` reads every element of ``producer`` at most once in all, so that inlining repeats nothing."""
    found = [access for access in accesses(consumer) if access.tensor is producer]
    if len(found) != 1 or not is_simple(found[0]):
        return False
    used = found[0].axes
    return all(axis in used or axis.extent == 1 for axis in consumer.axes + consumer.reduce_axes)


def is_strictly_inlinable(dag: ComputeDAG, tensor: Tensor) -> bool:
    """Whether computing ``tensor`` inside its consumers, and storing it nowhere, can only help.

    That is so for an element-wise tensor (no reduction, not an output) whose reads are simple and that does not
    branch; and if it is expensive, only where its single consumer reads each element once. It is not so for what may be
    computed once, before the first call, into no more memory than it is made from.
    """
    if tensor.body is None or tensor.reduce_axes or tensor in dag.outputs:
        return False
    if tensor in constant_stages(dag) and prod(tensor.shape) <= sum(prod(source.shape) for source in dag.producers(tensor)):
        return False
    consumers = dag.consumers(tensor)
    once = len(consumers) == 1 and reads_each_once(consumers[0], tensor)
    if is_expensive(tensor):
        return once
    if not all(is_simple(access) for access in accesses(tensor)):
        return False
    return once or not has_select(tensor)


def moves_only(tensor: Tensor) -> bool:
    """Whether it is another tensor's elements in another order (a transpose, a dimension split in two), and nothing else."""
    return isinstance(tensor.body, Read) and all(form is not None for access in accesses(tensor) for form in access.dims)


def has_data_reuse(tensor: Tensor) -> bool:
    """Whether multi-level tiling pays: a reduction in which some read misses an axis of the result.

    TVM's NeedsMultiLevelTiling also says so of a stage without a reduction two of whose reads do (``x * scale[i] + shift[i]``).
    Such a stage stores each of its elements once, which no tiling saves; and if it were tiled, it could not follow in
    the tiles of the reduction that it reads. TVM's also counts reads that only miss an axis that is summed over (the mean or
    the largest of a row, beside the row): no more than one element for each sum, which is in a register anyway. So is what is
    the same everywhere (a size, a scale).
    """
    if not tensor.reduce_axes:
        return False
    axes = [axis for axis in tensor.axes if axis.extent > 1]
    return any(axis not in access.axes for access in accesses(tensor) if access.axes for axis in axes)


def fusible_consumer(dag: ComputeDAG, tensor: Tensor) -> Tensor | None:
    """The only consumer, when it reads ``tensor`` element by element over the very same axes; else ``None``."""
    consumers = dag.consumers(tensor)
    if tensor in dag.outputs or len(consumers) != 1:
        return None
    (consumer,) = consumers
    if consumer.reduce_axes or consumer.shape != tensor.shape:
        return None
    for access in accesses(consumer):
        if access.tensor is tensor and tuple(form.plain if form else None for form in access.dims) != consumer.axes:
            return None
    return consumer


def has_more_reduction_parallelism(tensor: Tensor, threads: int) -> bool:
    """Whether the space axes are too few to keep ``threads`` busy while the reduction is long (TVM's NeedsRfactor)."""
    space = prod(axis.extent for axis in tensor.axes)
    reduce = prod(axis.extent for axis in tensor.reduce_axes)
    if not tensor.reduce_axes or reduce <= 1:
        return False
    if has_data_reuse(tensor):
        return space <= reduce and space <= 16 * threads
    return reduce > threads and space < 16 * threads


def packable(access: Access) -> bool:
    """Whether the read can be served from a copy in the order of use: it is no larger than the tensor, and needs no guard.

    A window that slides cannot: a copy of what each of its places sees repeats elements.
    """
    if not access.axes or prod(axis.extent for axis in access.axes) > prod(access.tensor.shape):
        return False
    for form, extent in zip(access.dims, access.tensor.shape, strict=True):
        low, high = (-1, 0) if form is None else reach(form)
        if low < 0 or high >= extent:
            return False
    return True


def fetchable(access: Access) -> bool:
    """Whether what is read some iterations later can be told: packable, with indices that are sums of multiples of axes."""
    plain = all(form is not None and all(isinstance(term, Axis) for term in form.variables) for form in access.dims)
    linear = plain and all(isinstance(term, Axis) for form in access.dims if form is not None for term, _ in form.terms)
    return packable(access) and linear


def reused_over(tensor: Tensor, access: Access) -> tuple[Axis, ...]:
    """The axes of ``tensor`` that ``access`` does not depend on: along these one element is read again and again."""
    return tuple(a for a in tensor.axes + tensor.reduce_axes if a.extent > 1 and a not in access.axes)

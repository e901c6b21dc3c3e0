"""Which stages follow from constant inputs alone: they are computed once, before the first call, whatever the schedule."""

from __future__ import annotations

from ansorlite.once import once_for_each
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import reads


@once_for_each
def constant_stages(dag: ComputeDAG) -> frozenset[Tensor]:
    """The computes that read constant inputs, or stages of this set, and nothing else; outputs are not among them.

    What reads nothing at all is left where it is used.
    """
    known = {tensor for tensor in dag.inputs if tensor.constant}
    if not known:
        return frozenset()
    for tensor in dag.computes:
        producers = dag.producers(tensor)
        if producers and tensor not in dag.outputs and known.issuperset(producers):
            known.add(tensor)
    return frozenset(known.intersection(dag.computes))


def follows_from_constants(dag: ComputeDAG, body: Expr) -> bool:
    """Whether ``body`` reads something, and only constant inputs and :func:`constant_stages`."""
    read = {read.tensor for read in reads(body)}
    return bool(read) and all(tensor.constant or tensor in constant_stages(dag) for tensor in read)

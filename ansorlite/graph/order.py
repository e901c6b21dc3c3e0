"""An order in which values can be computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from heapq import heappop, heappush


def producers_first(reads: Mapping[str, Sequence[str]]) -> list[str]:
    """The keys of ``reads`` in an order in which each can be computed: of those that can be next, always the first.

    Args:
        reads: value → what it is computed of; what is no key is given.

    Raises:
        graphlib.CycleError: a value depends on itself.
    """
    names = list(reads)
    position = {name: number for number, name in enumerate(names)}
    sorter = TopologicalSorter({name: [each for each in reads[name] if each in reads] for name in names})
    sorter.prepare()
    ready: list[int] = []
    order = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heappush(ready, position[name])
        order.append(names[heappop(ready)])
        sorter.done(order[-1])
    return order

"""AddRfactor on GPUs (split-K): a long sum of few elements in several runs, more blocks at once, which a second launch adds up.

The runs are as many as a target's multiprocessors ask for, and each is a stage like any other for the rules behind this one. What
comes out is the same in every call, as nothing is added to memory by several blocks. The sum as it was stays a sketch, too.

A stage without dimensions gets one of one element first, so that threads can have it.
"""

from __future__ import annotations

from math import prod
from typing import Final

from ansorlite.analysis.constants import constant_stages
from ansorlite.analysis.predicates import fusible_consumer, has_data_reuse
from ansorlite.schedule.primitives import CacheWrite, Rfactor
from ansorlite.sketch.state import Applicability, Rule, State
from ansorlite.te.expr import Axis
from ansorlite.te.tensor import Tensor

#: Elements that a block is taken to compute of a product, and how many blocks are to be had for each multiprocessor.
_BLOCK: Final = 64 * 64
_BLOCKS: Final = 2
#: Steps of a run, at least: of a product, whose outputs all go through memory once more; of a sum that reads each element once.
SHORTEST_PRODUCT: Final = 64
SHORTEST_SUM: Final = 1024


def _without_dimensions(state: State) -> list[str]:
    return [stage.name for stage in state.dag.computes if not stage.axes]


def _lacks_axes(state: State) -> Applicability:
    first = not state.schedule.structure.stages
    return Applicability.APPLY_AND_SKIP_REST if first and _without_dimensions(state) else Applicability.SKIP


def _add_axes(state: State) -> tuple[State, ...]:
    s = state.fork()
    for name in _without_dimensions(state):
        s.add_unit_axis(name)
    return (State(s, state.target, state.pending, state.bands, state.rows),)


def _longest(stage: Tensor) -> Axis:
    return max(stage.reduce_axes, key=lambda axis: axis.extent)


def _parts(state: State) -> int:
    """How many runs a sum is worth; fewer than two: none."""
    stage, gpu = state.stage, state.target.gpu
    assert gpu is not None
    if not stage.reduce_axes or stage.name in state.schedule.structure.stages or stage in constant_stages(state.dag):
        return 0
    if any(isinstance(step, CacheWrite | Rfactor) and stage.name in _made(step) for step in state.steps):
        return 0
    elements, longest = prod(stage.shape), _longest(stage).extent
    if has_data_reuse(stage):
        wanted = min(-(-_BLOCKS * gpu.processors * _BLOCK // elements), longest // SHORTEST_PRODUCT)
    else:
        wanted = min(_BLOCKS * gpu.processors // elements, longest // SHORTEST_SUM)
    # Those that divide the sum need no guard.
    return next((parts for parts in range(wanted, wanted // 2, -1) if longest % parts == 0), wanted)


def _made(step: CacheWrite | Rfactor) -> tuple[str, ...]:
    """The stages that have their parts already, or get their loops with another one's."""
    return (step.name, step.loop.stage) if isinstance(step, Rfactor) else (step.name,)


def _is_long(state: State) -> Applicability:
    return Applicability.APPLY if _parts(state) > 1 else Applicability.SKIP


def _cut(state: State) -> tuple[State, ...]:
    s, stage = state.fork(), state.stage
    waiting = fusible_consumer(state.dag, stage)
    partial = s.rfactor(s.stage(stage)[_longest(stage)], parts=_parts(state))
    # An element-wise stage that waited for the sum's own loops is asked again.
    first = [waiting.name] if waiting is not None and waiting.name not in s.structure.stages else []
    return (state.visited(s, first=(*first, stage.name, partial.name)),)


UNIT_AXIS = Rule("AddUnitAxis", _lacks_axes, _add_axes)
PARTIAL_SUMS = Rule("AddRfactor", _is_long, _cut)

"""AutoTVM's way to write a space (Chen et al., NeurIPS 2018; apache/tvm v0.14, ``autotvm/task/space.py``): a template declares
its knobs by name on a ``Config``, and schedules with what they are set to.

A knob is a sample of the schedule, so strategies, cost models and databases see of a template what they see of any space.
``space="ansorlite.spaces.autotvm:x86"`` searches the template that TVM's x86 back end has for products and convolutions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ansorlite.errors import ScheduleError
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.samples import Value
from ansorlite.schedule.schedule import Schedule
from ansorlite.te.expr import Reduce


class Splits(Enum):
    """Which splits of a loop a knob offers: TVM's policies.

    FACTORS: all whose trips divide the loop's. POWER2: inner loops of powers of two. VERBOSE: both, and what the tiles of this
    house have besides.
    """

    FACTORS = "factors"
    POWER2 = "power2"
    VERBOSE = "verbose"


class Annotations(Enum):
    """What may be done to loops."""

    UNROLL = "try_unroll"
    VECTORIZE = "try_vec"
    BOTH = "try_unroll_vec"


@dataclass(frozen=True)
class SplitKnob:
    """The trips of each loop, the outermost first; of the outermost ``None`` where it walks what is left."""

    schedule: Schedule
    size: tuple[Value | None, ...]

    def apply(self, loop: LoopRef) -> tuple[LoopRef, ...]:
        return self.schedule.split(loop, self.size)


@dataclass(frozen=True)
class ReorderKnob:
    """An order of loops."""

    schedule: Schedule
    order: tuple[int, ...]

    def apply(self, loops: Sequence[LoopRef]) -> tuple[LoopRef, ...]:
        """The loops as they are ordered now."""
        ordered = tuple(loops[at] for at in self.order)
        self.schedule.reorder(*ordered)
        return ordered


@dataclass(frozen=True)
class AnnotateKnob:
    """Straight-line code of at most so many steps, and vectors of so many lanes of the last loop."""

    schedule: Schedule
    steps: Value | None
    lanes: Value | None

    def apply(self, loops: Sequence[LoopRef]) -> None:
        if self.lanes is not None:
            self.schedule.vectorize(loops[-1], lanes=self.lanes)
        if self.steps is not None:
            self.schedule.unroll(tuple(loops), max_steps=self.steps)


@dataclass(frozen=True)
class OtherKnob:
    """A number."""

    val: Value


#: Steps of straight-line code: none, and as TVM's templates have them.
_STEPS: Final = (0, 16, 64, 256)
_LANES: Final = (1, 4, 8, 16)
#: The longest inner loop of a split into powers of two.
_LONGEST: Final = 64


class Config:
    """Declares the knobs of a template: TVM's ``cfg``. There, ``cfg[name]`` is the knob; here, declaring one gives it."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule

    def define_split(
        self,
        name: str,
        loop: LoopRef,
        num_outputs: int = 2,
        policy: Splits | str = Splits.FACTORS,
        candidate: Sequence[Sequence[int]] | None = None,
        max_factor: int = _LONGEST,
    ) -> SplitKnob:
        """A loop becomes ``num_outputs``.

        Args:
            candidate: the splits to choose from, the trips of all loops, -1 for what is left; instead of those of ``policy``.
                Each is a structure of its own.
            max_factor: the longest innermost loop.

        Raises:
            ScheduleError: no split is such; a name that is taken.
        """
        s = self._schedule
        if candidate is not None:
            if not candidate or any(len(each) != num_outputs for each in candidate):
                raise ScheduleError(f"knob {name!r} splits into {num_outputs} loops; give candidates of so many trips each")
            chosen = candidate[int(s.sample(range(len(candidate)), name=name))]
            return SplitKnob(s, tuple(None if trips == -1 else trips for trips in chosen))
        match Splits(policy):
            case Splits.POWER2:
                inner = tuple(
                    s.sample([2**power for power in range(max_factor.bit_length())], name=f"{name}.{level}")
                    for level in range(1, num_outputs)
                )
                return SplitKnob(s, (None, *inner))
            case Splits.FACTORS | Splits.VERBOSE as which:
                perfect = which is Splits.FACTORS
                trips = s.sample_tile(loop, num_outputs, perfect=perfect, max_innermost=max_factor, name=name)
                return SplitKnob(s, trips)

    def define_reorder(
        self, name: str, loops: Sequence[LoopRef], policy: str = "all", candidate: Sequence[Sequence[int]] | None = None
    ) -> ReorderKnob:
        """Loops take each other's places: any order (``"all"``), or one of ``candidate``, each the positions of loops. Each is a
        structure of its own.

        Raises:
            ScheduleError: another policy, no order, or one that is none; a name that is taken.
        """
        if policy != "all":
            raise ScheduleError(f"knob {name!r} has the policy {policy!r}; an order is any ('all') or one of candidate=")
        orders = list(itertools.permutations(range(len(loops)))) if candidate is None else [tuple(each) for each in candidate]
        if not orders or any(sorted(order) != list(range(len(loops))) for order in orders):
            raise ScheduleError(f"knob {name!r} orders {len(loops)} loops; give candidates of their positions, each once")
        chosen = orders[int(self._schedule.sample(range(len(orders)), name=name))]
        return ReorderKnob(self._schedule, chosen)

    def define_annotate(
        self, name: str, loops: Sequence[LoopRef], policy: Annotations | str = Annotations.UNROLL
    ) -> AnnotateKnob:
        """Loops may become straight-line code, the last one vectors.

        Raises:
            ScheduleError: no loops; a name that is taken.
        """
        s, what = self._schedule, Annotations(policy)
        if not loops:
            raise ScheduleError(f"knob {name!r} annotates no loop; name one")
        steps = None if what is Annotations.VECTORIZE else s.sample(_STEPS, name=f"{name}.steps")
        lanes = None if what is Annotations.UNROLL else s.sample(_LANES, name=f"{name}.lanes")
        return AnnotateKnob(s, steps, lanes)

    def define_knob(self, name: str, candidate: Iterable[int]) -> OtherKnob:
        """A number of several.

        Raises:
            ScheduleError: none to choose from; a name that is taken.
        """
        return OtherKnob(self._schedule.sample(candidate, name=name))


def x86(s: Schedule) -> None:
    """The template of products, convolutions and whatever else sums once: TVM's ``dense_nopack`` and direct convolution for x86.

    Up to three of the last axes and the last sum are each split in two; the inner loops of axes are innermost, the last one in
    vectors. What is element by element before is computed where it is read, what is after it in the same tiles.

    Raises:
        ScheduleError: the task sums more than once, or not at all.
    """
    cfg = Config(s)
    dag = s.dag
    sums = [tensor for tensor in dag.computes if isinstance(tensor.body, Reduce)]
    if len(sums) != 1:
        raise ScheduleError(
            f"AutoTVM's template is for tasks that sum once, and this one sums {len(sums)} times; leave out space="
        )
    (summed,) = sums
    after = [summed]
    while (users := dag.consumers(after[-1])) and len(users) == 1:
        after.append(users[0])
    if after[-1] not in dag.outputs or len(dag.outputs) != 1:
        raise ScheduleError("AutoTVM's template is for tasks of one output, which follows from its sum; leave out space=")
    last = after[-1]
    for tensor in dag.computes:
        if tensor not in (summed, last):
            s.inline(tensor.name)
    stage = s.stage(summed.name)
    axes, sums_over = stage.axes, stage.reduce_axes
    whole, tiled = axes[:-_TILED], axes[-_TILED:]
    outer: list[LoopRef] = []
    inner: list[LoopRef] = []
    for axis in tiled:
        around, within = cfg.define_split(f"tile_{axis.name}", axis, 2, Splits.VERBOSE).apply(axis)
        outer.append(around)
        inner.append(within)
    steps = cfg.define_split(f"tile_{sums_over[-1].name}", sums_over[-1], 2).apply(sums_over[-1])
    s.reorder(*whole, *outer, *sums_over[:-1], *steps, *inner)
    if last is not summed:
        s.reverse_compute_at(last.name, outer[-1])
    cfg.define_annotate("ann", inner, Annotations.BOTH).apply(inner)
    s.parallel((*whole, *outer), depth=cfg.define_knob("parallel", range(len(axes) + 1)).val)


#: So many of the last axes are split.
_TILED: Final = 3

"""MetaSchedule's way to write a space (Shao et al., NeurIPS 2022; apache/tvm v0.14, ``tir.Schedule`` and
``meta_schedule.space_generator``): a function does to a schedule what is certain, and draws what is not.

``space=ScheduleFn(f)`` searches what ``f`` leaves open; ``f`` gets a :class:`TirSchedule`, whose methods have the names and
arguments that TVM's have. A block there is a stage here; what is drawn is a sample of the schedule, so that strategies, cost
models and databases see of it what they see of any space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ansorlite.errors import ScheduleError
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.samples import Value
from ansorlite.schedule.schedule import Schedule, Stage
from ansorlite.schedule.structure import Location
from ansorlite.schedule.trace import Trace
from ansorlite.sketch.sketch import Sketch
from ansorlite.spaces.builders import Functions
from ansorlite.task import Task

#: The only function of a task.
_MAIN: Final = "main"


class TirSchedule:
    """A schedule with TVM's names. A decision that is given (``decision=``) is taken; else it is left open.

    Attributes:
        schedule: what all of it is done to; it has primitives that TVM's lacks.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    @property
    def trace(self) -> Trace:
        """All that was done: instructions and what was drawn; ``print`` shows the function that does it again."""
        return self.schedule.trace

    # Blocks and loops ---------------------------------------------------------------------------------------------

    def get_block(self, name: str, func_name: str = _MAIN) -> Stage:
        """The stage of that name.

        Raises:
            ScheduleError: there is none; or another function than ``"main"`` is meant, and a task has no other.
        """
        if func_name != _MAIN:
            raise ScheduleError(f"block {name!r} of function {func_name!r} is asked for, but a task is one function: {_MAIN!r}")
        return self.schedule.stage(name)

    def get_loops(self, block: Stage | str) -> tuple[LoopRef, ...]:
        """The loops of the block itself, the outermost first."""
        return (self.get_block(block) if isinstance(block, str) else block).loops

    # Samples ------------------------------------------------------------------------------------------------------

    def sample_perfect_tile(
        self, loop: LoopRef, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None
    ) -> tuple[Value, ...]:
        """The iterations of ``n`` loops, whose product is the loop's.

        Every factorisation is as likely; in TVM each prime goes to the loops evenly.

        Raises:
            ScheduleError: no tile is such, or the decision has another number of loops.
        """
        if decision is None:
            return self.schedule.sample_tile(loop, n, perfect=True, max_innermost=max_innermost_factor)
        if len(decision) != n:
            raise ScheduleError(f"loop {loop} is to be split into {n} loops, but decision has {len(decision)}; give one for each")
        return tuple(decision)

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float] | None = None, decision: int | None = None
    ) -> Value:
        """One of ``candidates``, each as likely as ``probs`` says; ``decision`` is a position among them.

        Raises:
            ScheduleError: none to choose from, probabilities that do not fit, or a position that there is not.
        """
        if decision is None:
            return self.schedule.sample(candidates, weights=probs)
        if not 0 <= decision < len(candidates):
            raise ScheduleError(f"decision {decision} is no position among the {len(candidates)} candidates")
        return candidates[decision]

    def sample_compute_location(self, block: Stage | str, decision: int | None = None) -> Location:
        """A place for a block: the root (-1), or a loop of the one block that reads it, by its position.

        Raises:
            ScheduleError: nothing reads it, several blocks do, or there is no such loop.
        """
        name = block if isinstance(block, str) else block.name
        if decision is None:
            return self.schedule.sample_location(name)
        users = self.schedule.structure.users(name)
        loops = self.get_loops(users[0]) if len(users) == 1 else ()
        if not -1 <= decision < len(loops):
            raise ScheduleError(f"decision {decision} is no loop of what reads block {name!r}; -1 is the root")
        return None if decision == -1 else loops[decision]

    # Loops --------------------------------------------------------------------------------------------------------

    def split(self, loop: LoopRef, factors: Sequence[Value | None]) -> tuple[LoopRef, ...]:
        """One loop becomes several; one of ``factors`` may be ``None``, for what is left."""
        return self.schedule.split(loop, factors)

    def fuse(self, *loops: LoopRef) -> LoopRef:
        """Neighbouring loops become one."""
        return self.schedule.fuse(*loops)

    def reorder(self, *loops: LoopRef) -> None:
        """Loops take each other's places."""
        self.schedule.reorder(*loops)

    def parallel(self, loop: LoopRef) -> None:
        """Iterations are shared by threads."""
        self.schedule.parallel(loop)

    def vectorize(self, loop: LoopRef) -> None:
        """Iterations are lanes of vectors."""
        self.schedule.vectorize(loop)

    def unroll(self, loop: LoopRef) -> None:
        """Iterations are written one after another."""
        self.schedule.unroll(loop)

    def bind(self, loop: LoopRef, thread_axis: str) -> None:
        """Iterations are blocks or threads of a GPU: ``"blockIdx.x"``, ``"threadIdx.y"``, ``"vthread.x"``.

        Raises:
            ScheduleError: another name, or a loop that cannot be.
        """
        kind = thread_axis.partition(".")[0]
        if kind not in _AXES:
            raise ScheduleError(f"loop {loop} is to be bound to {thread_axis!r}; axes are those of {', '.join(_AXES)}")
        self.schedule.bind(loop, _AXES[kind])

    # Places -------------------------------------------------------------------------------------------------------

    def compute_at(self, block: Stage | str, loop: Location) -> None:
        """What an iteration needs of a block is computed in it; ``None``: all of it, before."""
        self.schedule.compute_at(block, loop)

    def reverse_compute_at(self, block: Stage | str, loop: Location) -> None:
        """An element-wise consumer runs right after the tile that it reads."""
        self.schedule.reverse_compute_at(block, loop)

    def compute_inline(self, block: Stage | str) -> None:
        """A block is computed where it is read."""
        self.schedule.inline(block)

    def cache_write(self, block: Stage | str, write_buffer_index: int, storage_scope: str) -> Stage:
        """A block is computed into a buffer of its own, and copied from there. Scopes are those of ``Schedule.cache_write``.

        Raises:
            ScheduleError: a block writes one buffer: the index is 0.
        """
        if write_buffer_index != 0:
            raise ScheduleError(f"a block writes one buffer, and write_buffer_index is {write_buffer_index}; it must be 0")
        return self.schedule.cache_write(block, scope=storage_scope)

    def decompose_reduction(self, block: Stage | str, loop: LoopRef) -> None:
        """Accumulators start in loops of their own, right before ``loop``. (``Schedule.decompose_reduction`` names the loop at
        whose beginning that is, the one around it.)

        Raises:
            ScheduleError: it is no loop of the block, or there is a loop outside of it that adds up.
        """
        loops = self.get_loops(block)
        if loop not in loops:
            raise ScheduleError(f"accumulators are to start before loop {loop}, which is none of {', '.join(map(str, loops))}")
        at = loops.index(loop)
        self.schedule.decompose_reduction(block, loops[at - 1] if at else None)

    def rfactor(self, loop: LoopRef) -> Stage:
        """Partial sums over parts of a loop, and their fold."""
        return self.schedule.rfactor(loop)


#: TVM's axes of threads, as the schedule names them.
_AXES: Final = {"blockIdx": "block", "threadIdx": "thread", "vthread": "vthread"}

#: What a user writes.
Stochastic: TypeAlias = Callable[[TirSchedule], object]


@dataclass(frozen=True)
class ScheduleFn:
    """The sketches that a stochastic schedule makes: a :class:`~ansorlite.spaces.builders.SpaceBuilder`.

    Attributes:
        sch_fn: schedules, and draws what it does not decide.
        postprocs: done to each schedule after it, in order, so that several functions share them.
    """

    sch_fn: Stochastic
    postprocs: tuple[Stochastic, ...] = ()

    def __init__(self, sch_fn: Stochastic, postprocs: Iterable[Stochastic] = ()) -> None:
        object.__setattr__(self, "sch_fn", sch_fn)
        object.__setattr__(self, "postprocs", tuple(postprocs))

    def spaces(self, task: Task) -> tuple[Sketch, ...]:
        """
        Raises:
            ScheduleError: a function fails, or what they make is no schedule.
        """

        def whole(schedule: Schedule) -> None:
            sch = TirSchedule(schedule)
            for function in (self.sch_fn, *self.postprocs):
                function(sch)

        whole.__name__ = getattr(self.sch_fn, "__name__", repr(self.sch_fn))
        return Functions((whole,)).spaces(task)


@dataclass(frozen=True)
class RewriteParallelVectorizeUnroll:
    """A post-processor, after TVM's: the outer loops of a block are shared by threads, its innermost one runs in vectors and is
    written out.

    Attributes:
        block: its name; of a nest in which others are computed, that of the outermost.
        max_depth: how many of the outer loops are shared at most.
        max_vectorize_extent: the most lanes.
        unroll_max_steps: what the most steps of straight-line code are chosen from.
    """

    block: str
    max_depth: int = 2
    max_vectorize_extent: int = 16
    unroll_max_steps: tuple[int, ...] = (0, 16, 64, 256)

    def __call__(self, sch: TirSchedule) -> None:
        loops = sch.get_loops(self.block)
        sums = [sch.schedule.structure.axis(loop).reduce for loop in loops]
        outer = sums.index(True) if True in sums else len(loops) - 1
        if not sums[-1]:
            lanes = [2**power for power in range(self.max_vectorize_extent.bit_length())]
            sch.schedule.vectorize(loops[-1], lanes=sch.sample_categorical(lanes))
        sch.schedule.unroll(loops[-1], max_steps=sch.sample_categorical(self.unroll_max_steps))
        shared = loops[: min(outer, self.max_depth)]
        if shared:
            sch.schedule.parallel(shared, depth=sch.sample_categorical(range(len(shared) + 1)))

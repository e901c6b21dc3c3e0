"""Schedules that no rule writes: what is not refused computes what is written, and its features are those of its loops."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from ansorlite.errors import ScheduleError
from ansorlite.features import NAMES, extract
from ansorlite.features.population import population_facts
from ansorlite.features.reference import reference
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.printer import text
from ansorlite.loops.verifier import verify
from ansorlite.platforms import finished
from ansorlite.schedule.schedule import Schedule
from ansorlite.schedule.trace_reader import read
from ansorlite.sketch.sketch import Sketch
from ansorlite.task import Task
from ansorlite.te import dtypes
from ansorlite.te.evaluate import evaluate
from tests.contracts.cases import NAMED, named_dag, times
from tests.strategies import arrays_for, assert_close
from tests.targets import NARROW, WIDE

#: Schedules in a test: the fewer, the more tests run side by side.
_EACH = 25
_FACTORS = (1, 2, 3, 4, 5, 7, 8)


def scramble(s: Schedule, rng: np.random.Generator) -> None:
    """Applies primitives at random; those that are refused leave no trace."""
    for tensor in reversed(s.dag.computes):
        if tensor.name in s.structure.tensors:
            _scramble_stage(s, tensor.name, rng)


def _scramble_stage(s: Schedule, name: str, rng: np.random.Generator) -> None:
    target, local, refused = name, None, contextlib.suppress(ScheduleError)
    match rng.integers(5):
        case 0:
            with refused:
                s.inline(name)
                return
        case 1 if s.structure.users(name):
            places = s.stage(s.structure.users(name)[0]).loops
            with refused:
                s.compute_at(name, places[rng.integers(len(places))])
        case 2:
            with refused:
                local = s.cache_write(name)
                target = local.name
    said = s.structure.loops(target)
    if said.boxed or said.follows:
        with refused:
            loops = s.stage(target).loops
            s.vectorize(loops[rng.integers(len(loops))], lanes=int(rng.choice([2, 4, 8])))
        return
    for _ in range(rng.integers(5)):
        factors: list[int | None] = [int(rng.choice(_FACTORS)) for _ in range(rng.integers(1, 4))]
        factors.insert(int(rng.integers(len(factors) + 1)), None)
        loops = s.stage(target).loops
        if loops:
            with refused:
                s.split(loops[rng.integers(len(loops))], factors)
    loops = s.stage(target).loops
    if not loops:
        return
    if rng.random() < 0.8:
        with refused:
            s.reorder(*(loops[n] for n in rng.permutation(len(loops))))
    loops = s.stage(target).loops
    if local is not None:
        with refused:
            s.reverse_compute_at(name, loops[rng.integers(len(loops))])
    if rng.random() < 0.5:
        with refused:
            s.vectorize(loops[-1], lanes=int(rng.choice([2, 4, 8])))
    if rng.random() < 0.5:
        with refused:
            s.unroll(loops[rng.integers(len(loops)) :], max_steps=int(rng.choice([4, 16, 64])))
    if rng.random() < 0.5:
        with refused:
            s.parallel(loops[: rng.integers(1, len(loops) + 1)], depth=int(rng.integers(3)))
    sources = [source.name for source in s.dag.producers(s.structure.tensor(target))]
    if sources and rng.random() < 0.3:
        with refused:
            at = loops[rng.integers(len(loops))] if rng.random() < 0.7 else None
            s.cache_read(target, sources[rng.integers(len(sources))], at=at)


def check(seed: int) -> bool:
    """Whether the schedule of this seed is a program; if it is, that is checked."""
    rng = np.random.default_rng(seed)
    name, machine = list(NAMED)[rng.integers(len(NAMED))], (WIDE, NARROW)[rng.integers(2)]
    task = Task(named_dag(name), machine)
    s = Schedule(task.dag, machine)
    scramble(s, rng)
    sketch = Sketch(s.structure, s.trace, machine)
    try:
        function = sketch.lower(())
    except ScheduleError:
        return False
    try:
        verify(function)
        again = read(task.dag, str(s.trace))
        assert str(again.trace) == str(s.trace)
        assert text(Sketch(again.structure, again.trace, machine).lower(())) == text(function)
        inputs = arrays_for(task.dag, rng)
        outputs = [np.zeros(t.shape, dtypes.NUMPY[t.dtype]) for t in task.dag.outputs]
        interpret(function, [*inputs, *outputs], reorder=rng)
        assert_close(task.dag, outputs, evaluate(task.dag, inputs))
        fast = extract(sketch, np.zeros((1, 0), np.int64))[0]
        statements = [facts.name for facts in population_facts(sketch.fold(()))]
        (slow,) = reference(finished(function, machine), statements, machine)
        wrong = ~np.isclose(fast, slow, rtol=0.0, atol=1e-9)
        assert not wrong.any(), [(statements[n], NAMES[f], fast[n, f], slow[n, f]) for n, f in np.argwhere(wrong)]
    except Exception as error:
        error.add_note(f"{name}, seed {seed}:\n{s.trace}\n{text(function)}")
        raise
    return True


@pytest.mark.parametrize("begin", range(0, times(12) * _EACH, _EACH))
def test_what_is_not_refused_is_right(begin: int) -> None:
    assert sum(check(seed) for seed in range(1000 + begin, 1000 + begin + _EACH)) > 0

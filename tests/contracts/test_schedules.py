"""Schedules that no rule writes: what is not refused computes what is written, and its features are those of its loops."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from ansorlite.errors import ScheduleError
from ansorlite.features import NAMES, extract
from ansorlite.features.population import population_facts
from ansorlite.features.reference import reference
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Function
from ansorlite.loops.printer import text
from ansorlite.loops.verifier import verify
from ansorlite.platforms import finished
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.samples import Value
from ansorlite.schedule.schedule import Schedule
from ansorlite.schedule.structure import Location
from ansorlite.schedule.trace_reader import read
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from tests.contracts.cases import NAMED, named_dag, times
from tests.contracts.test_right_numbers import compiled, finished_and_interpreted, poisoned
from tests.strategies import arrays_for, assert_close
from tests.targets import NARROW, WIDE

#: Schedules in a test: the fewer, the more tests run side by side.
_EACH = 25
_FACTORS = (1, 2, 3, 4, 5, 7, 8)
_LANES = (2, 4, 8)


#: Of what has holes so many rows are looked at.
_ROWS = 3
#: Of so many schedules one is compiled, too.
_COMPILED = 4


def number(s: Schedule, rng: np.random.Generator, choices: tuple[int, ...]) -> Value:
    """One of the choices; or a sample, which stands for any."""
    return s.sample(choices) if rng.random() < 0.2 else int(rng.choice(choices))


def place(s: Schedule, rng: np.random.Generator, loops: Sequence[LoopRef]) -> Location:
    """One of the loops, or none; or a sample of both."""
    choices = [*loops, None]
    some = [choices[n] for n in rng.integers(len(choices), size=3)]
    return s.sample(some) if rng.random() < 0.3 else some[0]


def scramble(s: Schedule, rng: np.random.Generator) -> None:
    """Applies primitives at random; those that are refused leave no trace."""
    for tensor in reversed(s.dag.computes):
        if tensor.name in s.structure.tensors:
            _scramble_stage(s, tensor.name, rng)


def factors(s: Schedule, rng: np.random.Generator, loop: LoopRef) -> Sequence[Value | None]:
    if rng.random() < 0.2:
        return s.sample_tile(loop, parts=int(rng.integers(1, 4)))
    found: list[Value | None] = [number(s, rng, _FACTORS) for _ in range(rng.integers(1, 4))]
    found.insert(int(rng.integers(len(found) + 1)), None)
    return found


def fuse(s: Schedule, name: str, rng: np.random.Generator) -> None:
    """Fuses neighbouring loops, now and then, and may split what they became."""
    loops = s.stage(name).loops
    if len(loops) < 2 or rng.random() < 0.7:
        return
    count = int(rng.integers(2, min(len(loops), 3) + 1))
    first = int(rng.integers(len(loops) - count + 1))
    with contextlib.suppress(ScheduleError):
        fused = s.fuse(*loops[first : first + count])
        if rng.random() < 0.7:
            inner = number(s, rng, _FACTORS)
            s.split(fused, [None, inner] if rng.random() < 0.7 else s.sample_tile(fused, parts=2, perfect=True))
        loops = s.stage(name).loops
        if rng.random() < 0.5:
            s.reorder(*(loops[n] for n in rng.permutation(len(loops))))


def _scramble_stage(s: Schedule, name: str, rng: np.random.Generator) -> None:
    target, local, refused = name, None, contextlib.suppress(ScheduleError)
    match rng.integers(5):
        case 0:
            with refused:
                s.inline(name)
                return
        case 1 | 4 if s.structure.users(name):
            readers = [*s.structure.users(name), *(reader.name for reader in s.dag.consumers(s.structure.tensor(name)))]
            places = s.stage(readers[rng.integers(len(readers))]).loops
            with refused:
                s.compute_at(name, place(s, rng, places))
        case 2:
            with refused:
                local = s.cache_write(name, scope=[None, "register", "local", "global"][rng.integers(4)])
                target = local.name
    axes = s.stage(target).tensor.axes
    if len(axes) > 1 and rng.random() < 0.3:
        with refused:
            dim = rng.integers(len(axes) - 1)
            s.storage_align(target, LoopRef(target, axes[dim].name), int(rng.choice(_FACTORS)), int(rng.integers(3)))
    said = s.structure.loops(target)
    if said.follows or (said.boxed and rng.random() < 0.3):
        with refused:
            loops = s.stage(target).loops
            s.vectorize(loops[rng.integers(len(loops))], lanes=number(s, rng, _LANES))
        return
    for _ in range(rng.integers(5)):
        loops = s.stage(target).loops
        if loops:
            with refused:
                loop = loops[rng.integers(len(loops))]
                tail = [*[None] * 12, "shift", "cut", "guard", "mask"][rng.integers(16)]
                s.split(loop, factors(s, rng, loop), tail=tail)
    loops = s.stage(target).loops
    if not loops:
        return
    if rng.random() < 0.8:
        with refused:
            s.reorder(*(loops[n] for n in rng.permutation(len(loops))))
    fuse(s, target, rng)
    loops = s.stage(target).loops
    if s.stage(target).tensor.reduce_axes and rng.random() < 0.4:
        with refused:
            s.decompose_reduction(target, place(s, rng, loops))
    if local is not None:
        with refused:
            s.reverse_compute_at(name, place(s, rng, loops))
    if rng.random() < 0.5:
        with refused:
            s.vectorize(loops[-1], lanes=number(s, rng, _LANES))
    if rng.random() < 0.5:
        with refused:
            s.unroll(loops[rng.integers(len(loops)) :], max_steps=number(s, rng, (4, 16, 64)))
    if local is None and rng.random() < 0.2:
        with refused:
            scope = [None, "register", "local"][rng.integers(3)]
            local = s.cache_write(target, scope=scope, at=place(s, rng, loops))
            target = local.name
            loops = local.loops
    if rng.random() < 0.5:
        with refused:
            s.parallel(loops[: rng.integers(1, len(loops) + 1)], depth=number(s, rng, (0, 1, 2)))
    if rng.random() < 0.5:
        for loop, to in zip(loops, rng.permutation(["block", "vthread", "warp", "lane", "thread"]), strict=False):
            if rng.random() < 0.5:
                with refused:
                    s.bind(loop, str(to))
    sources = [source.name for source in s.dag.producers(s.structure.tensor(target))]
    if sources and rng.random() < 0.3:
        with refused:
            layout = ("packed", "plain", "transposed")[rng.integers(3)]
            scope = None if rng.random() < 0.7 else "shared"
            s.cache_read(target, sources[rng.integers(len(sources))], at=place(s, rng, loops), layout=layout, scope=scope)
    if sources and rng.random() < 0.5:
        with refused:
            source, loop = sources[rng.integers(len(sources))], loops[rng.integers(len(loops))]
            s.prefetch(target, source, at=loop, distance=number(s, rng, (1, 2, 3)))
    copy_ahead(s, target, rng)
    for copy in s.structure.loops(target).copies:
        if rng.random() < 0.5:
            with refused:
                along = loops[rng.integers(len(loops))]
                s.storage_align(copy.name, along, number(s, rng, _FACTORS), number(s, rng, (0, 1, 2)))


def copy_ahead(s: Schedule, target: str, rng: np.random.Generator) -> None:
    """Rings of what threads share, now and then, and its layout."""
    shared = [tensor.name for tensor in s.dag.computes if s.structure.loops(tensor.name).shared]
    if not shared or rng.random() < 0.5:
        return
    loops = s.stage(target).loops
    with contextlib.suppress(ScheduleError):
        s.pipeline(loops[rng.integers(len(loops))], number(s, rng, (1, 2, 3, 4)))
    with contextlib.suppress(ScheduleError):
        s.swizzle(shared[rng.integers(len(shared))], number(s, rng, (1, 2, 8)))


def check(seed: int) -> bool:
    """Whether the schedule of this seed is a program; if it is, that is checked."""
    rng = np.random.default_rng(seed)
    name, machine = list(NAMED)[rng.integers(len(NAMED))], (WIDE, NARROW)[rng.integers(2)]
    task = Task(named_dag(name), machine)
    s = Schedule(task.dag, machine)
    scramble(s, rng)
    sketch = Sketch(s.structure, s.trace, machine)
    space = TileSpace(sketch)
    try:
        assert str(read(task.dag, sketch.text).trace) == sketch.text
        rows = space.sample(_ROWS if sketch.holes else 1, rng)
        rows = rows[space.valid(rows)]
        keys, features = space.canonical(rows), extract(sketch, rows)
    except ScheduleError:
        return False
    known: dict[str, bytes] = {}
    for number, (row, key, fast) in enumerate(zip(rows, keys, features, strict=True)):
        function = sketch.lower(row)
        try:
            check_row(task, sketch, row, function, fast, rng)
            if seed % _COMPILED == 0 and number == 0:
                check_compiled(task, function, rng)
            assert known.setdefault(text(function), key.tobytes()) == key.tobytes()
        except Exception as error:
            error.add_note(f"{name}, seed {seed}:\n{s.trace}\nrow {row}:\n{sketch.candidate(row).trace}\n{text(function)}")
            raise
    assert len(set(known.values())) == len(known)
    return len(rows) > 0


def check_row(
    task: Task, sketch: Sketch, row: NDArray[np.int64], function: Function, fast: NDArray[np.float64], rng: np.random.Generator
) -> None:
    """The program of a row computes what is written, is made again by its trace, and has the features of its loops."""
    verify(function)
    again = sketch_of(task, sketch.candidate(row))
    assert again.text == sketch.candidate(row).trace
    assert text(again.lower(())) == text(function)
    inputs = arrays_for(task.dag, rng)
    outputs = poisoned(task.dag)
    interpret(function, [*inputs, *outputs], reorder=rng)
    assert_close(task.dag, outputs, evaluate(task.dag, inputs))
    program = sketch.fold(row)
    if any(stage.dealt for nest in program.nests for stage in nest.attached):
        return  # what threads of a GPU compute together is described by its sizes (features/gpu.py), not by loops
    statements = [facts.name for facts in population_facts(program)]
    (slow,) = reference(finished(function, task.target), statements, task.target)
    wrong = ~np.isclose(fast, slow, rtol=0.0, atol=1e-9)
    assert not wrong.any(), [(statements[n], NAMES[f], fast[n, f], slow[n, f]) for n, f in np.argwhere(wrong)]


def check_compiled(task: Task, function: Function, rng: np.random.Generator) -> None:
    """The loops that run, and their code, compute the same."""
    inputs = arrays_for(task.dag, rng)
    expected = evaluate(task.dag, inputs)
    assert_close(task.dag, finished_and_interpreted(task.dag, function, inputs, task.target), expected)
    if (made := compiled(task.dag, function, inputs)) is not None:
        assert_close(task.dag, made, expected)


@pytest.mark.parametrize("begin", range(0, times(12) * _EACH, _EACH))
def test_what_is_not_refused_is_right(begin: int) -> None:
    assert sum(check(seed) for seed in range(1000 + begin, 1000 + begin + _EACH)) > 0


@pytest.mark.parametrize("seed", [2000503, 2000526, 2000597, 2000613, 2000666, 2000844, 2001227])
def test_what_padding_leaves_out_of_uneven_loops_and_regions(seed: int) -> None:
    """Schedules that were found by their numbers: their estimates were not those of their loops."""
    assert check(seed)

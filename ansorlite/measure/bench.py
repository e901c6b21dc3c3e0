"""The runner's side of a run: arrays of a task, the check of each program's output, and its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from ansorlite.measure import turns
from ansorlite.measure.backend import Backend
from ansorlite.measure.check import Checker, Tolerance, tolerance
from ansorlite.measure.inputs import make_inputs
from ansorlite.measure.protocol import Answer, Compare, Phase, Prepare, Run, Status
from ansorlite.measure.settings import MeasureSettings, cores
from ansorlite.measure.timing import TIMINGS
from ansorlite.measure.turns import OnDevice
from ansorlite.runtime.arguments import Array, empty
from ansorlite.runtime.device import Device, Memory
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.timing import calls_for
from ansorlite.task import Task
from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate


@dataclass(frozen=True)
class _Workplace:
    """The arrays of one task on its device, who checks them, and programs that are bound to them, by file; the last used last."""

    device: Device
    inputs: list[Memory]
    outputs: list[Memory]
    checker: Checker
    programs: dict[str, OnDevice] = field(default_factory=dict)

    @property
    def arguments(self) -> list[Memory]:
        return [*self.inputs, *self.outputs]

    @property
    def nbytes(self) -> int:
        return sum(memory.array.nbytes for memory in self.arguments)

    def poison(self) -> None:
        """Let the outputs be what is wrong everywhere."""
        self.checker.poison([memory.array for memory in self.outputs])
        for memory in self.outputs:
            self.device.copy_in(memory)

    def results(self) -> list[Array]:
        """What the last program to run has stored."""
        for memory in self.outputs:
            self.device.copy_out(memory)
        return [memory.array for memory in self.outputs]

    def free(self) -> None:
        self.programs.clear()
        for memory in self.arguments:
            self.device.free(memory)


#: Whether the inputs are all positive, the inputs, the outputs.
Reference: TypeAlias = tuple[bool, list[Array], list[Array]]

#: Arrays of tasks that had their turn are kept up to this share of the memory limit.
_KEPT_SHARE: Final = 0.25

#: Of the time for a comparison, what may be over before the last pair of turns begins.
_TURNS_SHARE: Final = 0.6

#: Blocks of a reference that are made side by side, at most: each takes some 100 MB.
_BLOCKS: Final = 8

#: Programs of a task that stay loaded: the best so far, and the one that may take its place.
_LOADED: Final = 2


class Bench:
    """Runs programs of one task after another."""

    def __init__(self, backend: Backend, settings: MeasureSettings, enter: Callable[[Phase], None]) -> None:
        """
        Args:
            enter: told whenever a job reaches its next phase.
        """
        self._backend = backend
        self._settings = settings
        self._enter = enter
        self._workplaces: dict[str, _Workplace] = {}  # by task key, the last used last

    def prepare(self, task: Task, job: Prepare) -> Answer:
        """Make inputs and reference outputs, and keep the latter in ``job.reference``."""
        start = time.perf_counter()
        reference = _, inputs, outputs = reference_of(task.dag, self._settings.seed)
        with ThreadPoolExecutor(1) as beside:
            written = beside.submit(_write, reference, Path(job.reference))
            place = _workplace(task, inputs, outputs)
            place.poison()  # what is touched for the first time takes long, and would do so when a program's turn has come
            written.result()
        self._keep(task, place)
        return Answer(Status.OK, seconds=time.perf_counter() - start)

    def run(self, task: Task, job: Run) -> Answer:
        """Check one program and time it, in turns with the best if it comes near it."""
        settings = self._settings
        place = self._arrange(task, job.reference)
        start = time.perf_counter()
        program = self._program(task, place, job.artifact)
        place.poison()
        self._enter(Phase.RUNNING)
        first = program.seconds(1)
        self._enter(Phase.CHECKING)
        check_start = time.perf_counter()
        wrong = place.checker.compare(place.results())
        check_seconds = time.perf_counter() - check_start

        def answer(status: Status, latency: float | None) -> Answer:
            seconds = time.perf_counter() - start - check_seconds
            return Answer(status, wrong, seconds, check_seconds, latency)

        if wrong:
            return answer(Status.WRONG, None)
        if job.once and turns.is_long(first, settings):
            return answer(Status.OK, first)
        slow = turns.slower(program, first, job.best, settings)
        if slow is not None:
            return answer(Status.SLOW, slow)
        file = job.rival
        rival = None if file is None else lambda: self._program(task, place, file)
        return answer(Status.OK, TIMINGS[settings.timing](program, first, rival, job.best, settings))

    def compare(self, task: Task, job: Compare) -> Answer:
        """Check one program against another, and time them in turns. That one's output is the reference: numpy's takes longer."""
        start = time.perf_counter()
        until = start + _TURNS_SHARE * job.seconds
        settings = self._settings
        place = self._workplaces.get(task.key) or self._trusting(task, job.rival)
        rival = self._program(task, place, job.rival)
        base = min(rival.seconds(1), turns.undisturbed(rival, 1))
        program = self._program(task, place, job.artifact)
        place.poison()
        first = program.seconds(1)
        wrong = place.checker.compare(place.results())
        if wrong:
            return Answer(Status.WRONG, wrong, time.perf_counter() - start)
        base = min(base, turns.undisturbed(rival, calls_for(base, settings.repeat_seconds)))
        latency = turns.slower(program, first, base, settings)
        status = Status.OK if latency is None else Status.SLOW
        if latency is None:
            ours = min(first, turns.undisturbed(program, 1))
            latency = base * turns.relative(program, rival, (ours, base), settings, until)
        return Answer(status, seconds=time.perf_counter() - start, latency=latency, rival=base)

    def _trusting(self, task: Task, artifact: str) -> _Workplace:
        """A workplace whose reference is what a program gives: on inputs of which its outputs are finite, if there are such."""
        for positive in (False, True):
            inputs = make_inputs(task.dag, np.random.default_rng(self._settings.seed), positive)
            place = _workplace(task, inputs, [empty(t.shape, t.dtype) for t in task.dag.outputs], slack=2.0)
            self._program(task, place, artifact).call(1)
            results = place.results()
            if all(np.isfinite(output).all() for output in results if dtypes.is_float(output.dtype.name)):
                break
        trusted = _workplace(task, [memory.array for memory in place.inputs], [output.copy() for output in results], slack=2.0)
        place.free()
        self._keep(task, trusted)
        return trusted

    def _program(self, task: Task, place: _Workplace, artifact: str) -> OnDevice:
        """The program in a file, bound to the arrays of ``place``. It stays loaded: others may be compared with it."""
        program = place.programs.pop(artifact, None)
        if program is None:
            program = OnDevice(self._backend.load(task, Path(artifact).read_bytes(), place.arguments), place.device)
        place.programs[artifact] = program
        while len(place.programs) > _LOADED:
            del place.programs[next(iter(place.programs))]
        return program

    def _arrange(self, task: Task, reference: str) -> _Workplace:
        """The workplace of ``task``: the one that is there, or one made from what was prepared before."""
        place = self._workplaces.pop(task.key, None)
        if place is None:
            inputs, outputs = prepared(task.dag, self._settings.seed, Path(reference))[1:]
            place = _workplace(task, inputs, outputs)
        self._keep(task, place)
        return place

    def _keep(self, task: Task, place: _Workplace) -> None:
        self._workplaces[task.key] = place
        while len(self._workplaces) > 1 and self._kept > _KEPT_SHARE * self._settings.memory_bytes:
            self._workplaces.pop(next(iter(self._workplaces))).free()

    @property
    def _kept(self) -> int:
        return sum(place.nbytes for place in self._workplaces.values())


def _workplace(task: Task, inputs: list[Array], references: Sequence[Array], slack: float = 1.0) -> _Workplace:
    """
    Args:
        slack: so many times what rounding explains passes: 2 where the references are as inexact as what is checked.
    """
    device = device_of(task.target)
    outputs = [device.guarded(tensor.shape, tensor.dtype) for tensor in task.dag.outputs]
    allowed = tolerance(task.dag)
    allowed = Tolerance(slack * allowed.relative, slack * allowed.jumping)
    checker = Checker([tensor.name for tensor in task.dag.outputs], references, allowed)
    return _Workplace(device, [device.read_only(array) for array in inputs], outputs, checker)


def reference_of(dag: ComputeDAG, seed: int) -> Reference:
    """What programs of a computation are to give.

    Where numbers of both signs give outputs that are not finite (roots, logarithms), and could hide what is wrong,
    positive ones are taken.
    """
    for positive in (False, True):
        inputs = make_inputs(dag, np.random.default_rng(seed), positive)
        outputs = evaluate(dag, inputs, threads=min(cores(), _BLOCKS), single=True)
        if all(np.isfinite(output).all() for output in outputs if dtypes.is_float(output.dtype.name)):
            break
    return positive, inputs, outputs


def _write(reference: Reference, file: Path) -> None:
    """Keep what :func:`prepared` reads."""
    positive, _, outputs = reference
    with file.open("wb") as stream:
        stream.write(bytes([positive]))
        for output in outputs:
            stream.write(np.ascontiguousarray(output).reshape(-1).view(np.uint8).data)


def prepared(dag: ComputeDAG, seed: int, reference: Path) -> Reference:
    """What :func:`reference_of` gave, of the file that :meth:`Bench.prepare` wrote."""
    content = reference.read_bytes()
    positive, content = bool(content[0]), content[1:]
    outputs = []
    for tensor in dag.outputs:
        array = empty(tensor.shape, tensor.dtype)
        array.reshape(-1)[...] = np.frombuffer(content, array.dtype, array.size)
        content = content[array.nbytes :]
        outputs.append(array)
    return positive, make_inputs(dag, np.random.default_rng(seed), positive), outputs

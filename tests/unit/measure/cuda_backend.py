"""The backend for GPUs in processes that have CuPy's stand-in; the trace of a candidate says how its program is spoilt."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ansorlite.codegen.nvptx.assemble import ASSEMBLER_VARIABLE
from ansorlite.codegen.object import DeviceLaunch, DeviceObject, Slot
from ansorlite.measure import native
from ansorlite.measure.backend import BuiltProgram
from ansorlite.programs.packing import pack, unpack
from ansorlite.runtime.device import Memory
from ansorlite.runtime.timing import Call
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.task import Task
from tests.cupy_stand_in import StandIn

os.environ[ASSEMBLER_VARIABLE] = "driver"
STAND_IN: Final = StandIn()
sys.modules["cupy"] = STAND_IN.module


def _code(change: Callable[[bytes], bytes]) -> Callable[[DeviceObject], DeviceObject]:
    return lambda compiled: replace(compiled, code=change(compiled.code))


def _launch(change: Callable[[DeviceLaunch], DeviceLaunch]) -> Callable[[DeviceObject], DeviceObject]:
    return lambda compiled: replace(compiled, launches=tuple(map(change, compiled.at(compiled.launches[0].when))))


def _moved(nbytes: int) -> Callable[[DeviceObject], DeviceObject]:
    """The output, which is the last argument, is elsewhere."""

    def change(launch: DeviceLaunch) -> DeviceLaunch:
        *others, last = launch.arguments
        return replace(launch, arguments=(*others, Slot(last.base, last.offset + nbytes)))

    return _launch(change)


#: What is done to the program.
SPOILT: Final[dict[str, Callable[[DeviceObject], DeviceObject]]] = {
    "good": lambda compiled: compiled,
    "touches what is nobody's": _moved(1 << 30),
    "writes beside its arrays": _moved(64),
    "hangs": _code(lambda code: code.replace(b"ret;", b"$for_ever:\n\tbra.uni \t$for_ever;\n\tret;")),
    "computes something else": _code(lambda code: code.replace(b"add.rn.f32", b"mul.rn.f32").replace(b"add.f32", b"mul.f32")),
    "is no code": _code(lambda _: b"\x7fELF"),
    "wants too much": _launch(lambda launch: replace(launch, shared=1 << 20)),
}


def build(task: Task, candidate: Candidate) -> BuiltProgram:
    assert not STAND_IN.gpu.blocks, "builders ask nothing of a GPU"
    name, _, _ = candidate.trace.partition(": ")
    compiled = unpack(native.build(task, NAIVE).code)
    assert isinstance(compiled, DeviceObject)
    spoilt = SPOILT.get(name, SPOILT["good"])(compiled)
    return BuiltProgram(pack(spoilt), reports=spoilt.reports)


def load(task: Task, artifact: bytes, arguments: Sequence[Memory]) -> Call:
    return native.load(task, artifact, arguments)


default = native.default

"""The thread team: every iteration once, whoever helps; nobody waits for ever."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np
import pytest

from ansorlite.codegen.machine import machine, optimise
from ansorlite.errors import TargetError
from ansorlite.platforms import build
from ansorlite.runtime import team
from ansorlite.runtime.kernel import Kernel
from ansorlite.target import host
from tests.unit.loops.build import tiled_matmul

#: Counts iterations, and wrong use of thread numbers: two members at once with one number, or a number out of range.
#: The context: calls per iteration, members inside per thread number, how many were wrong, the number of threads.
BODY: Final = """
define void @body(ptr %context, i64 %begin, i64 %end, i64 %thread) {
entry:
  %counts = load ptr, ptr %context
  %inside_at = getelementptr ptr, ptr %context, i64 1
  %inside = load ptr, ptr %inside_at
  %wrong_at = getelementptr ptr, ptr %context, i64 2
  %wrong = load ptr, ptr %wrong_at
  %threads_at = getelementptr ptr, ptr %context, i64 3
  %threads = load i64, ptr %threads_at
  %large = icmp uge i64 %thread, %threads
  %outside = zext i1 %large to i64
  atomicrmw add ptr %wrong, i64 %outside monotonic, align 8
  %mine = getelementptr i64, ptr %inside, i64 %thread
  %others = atomicrmw add ptr %mine, i64 1 monotonic, align 8
  atomicrmw add ptr %wrong, i64 %others monotonic, align 8
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %step ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %step, label %leave
step:
  %count = getelementptr i64, ptr %counts, i64 %i
  atomicrmw add ptr %count, i64 1 monotonic, align 8
  %next = add i64 %i, 1
  br label %head
leave:
  atomicrmw sub ptr %mine, i64 1 monotonic, align 8
  ret void
}

; Writes down which thread ran each iteration, 1 more than its number, and takes a while.
define void @signed(ptr %context, i64 %begin, i64 %end, i64 %thread) {
entry:
  %mark = add i64 %thread, 1
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %step ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %spin, label %leave
spin:
  %turn = phi i64 [ 0, %head ], [ %following, %spin ]
  call void asm sideeffect "", "~{memory}"()
  %following = add i64 %turn, 1
  %enough = icmp eq i64 %following, 2000
  br i1 %enough, label %step, label %spin
step:
  %at = getelementptr i64, ptr %context, i64 %i
  store i64 %mark, ptr %at
  %next = add i64 %i, 1
  br label %head
leave:
  ret void
}
"""

RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Counter:
    """Runs regions of ``BODY`` on ``threads`` threads."""

    def __init__(self, body: int, iterations: int, threads: int) -> None:
        self.counts = np.zeros(iterations, np.int64)
        self.wrong = np.zeros(1, np.int64)
        self._inside = np.zeros(team_size := 64, np.int64)
        assert threads <= team_size
        self._body, self._threads = body, threads
        addresses = [array.ctypes.data for array in (self.counts, self._inside, self.wrong)]
        self._context = np.array([*addresses, threads], np.uint64)
        self._run = RUN(team.address())

    def run(self, chunks: int) -> None:
        self._run(self._body, self._context.ctypes.data, len(self.counts), chunks, self._threads)


def linked() -> Any:
    """The code of ``BODY`` in this process."""
    target = host()
    code = machine(target).emit_object(optimise(f'target triple = "{target.triple}"\n{BODY}', target))
    linker = llvm.create_lljit_compiler(machine(target), use_jit_link=True)
    tracker: Any = (
        llvm.JITLibraryBuilder().add_object_img(code).export_symbol("body").export_symbol("signed").link(linker, "body")
    )
    return tracker


@pytest.fixture(scope="module")
def compiled() -> Any:
    return linked()


@pytest.fixture(scope="module")
def body(compiled: Any) -> int:
    return int(compiled["body"])


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("iterations", [0, 1, 2, 3, 16, 17, 1000])
def test_every_iteration_runs_once(body: int, iterations: int, threads: int) -> None:
    for chunks in sorted({0, 1, 2, 3, 16, iterations} if iterations else {0}):
        counter = Counter(body, iterations, threads)
        counter.run(min(chunks, iterations))
        assert (counter.counts == (chunks > 0)).all()
        assert counter.wrong[0] == 0


@pytest.mark.parametrize("threads", [2, 3, 4, 5])
@pytest.mark.parametrize("chunks", [8, 17, 64])
def test_threads_work_from_both_ends(compiled: Any, chunks: int, threads: int) -> None:
    """Of each lane threads of even number have the beginning, those of odd number the rest: two threads a half in a row each."""
    run = RUN(team.address())
    for _ in range(50):
        who = np.zeros(chunks, np.int64)
        run(int(compiled["signed"]), who.ctypes.data, chunks, chunks, threads)
        assert (who > 0).all()
        for lane in np.array_split((who - 1) % 2, (threads + 1) // 2):
            assert (np.diff(lane) >= 0).all()


def test_regions_in_a_row_with_changing_teams(body: int) -> None:
    counters = [Counter(body, 5 + threads, threads) for threads in (4, 2, 1, 3)]
    for _ in range(3000):
        for number, counter in enumerate(counters):
            counter.run(5 - number)
    for counter in counters:
        assert (counter.counts == 3000).all()
        assert counter.wrong[0] == 0


def test_callers_at_once(body: int) -> None:
    counters = [Counter(body, 40, 3) for _ in range(3)]

    def call(counter: Counter) -> None:
        for _ in range(2000):
            counter.run(20)

    callers = [threading.Thread(target=call, args=(counter,)) for counter in counters]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for counter in counters:
        assert (counter.counts == 2000).all()
        assert counter.wrong[0] == 0


def test_sleepers_wake(body: int) -> None:
    """A region after a rest; and one in which the other thread must come, as its chunk waits for it."""
    counter = Counter(body, 8, 3)
    for _ in range(20):
        counter.run(8)
        time.sleep(0.002)  # longer than helpers watch
    assert (counter.counts == 20).all()

    meeting = threading.Barrier(2, timeout=60)
    members = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    def meet(_context: int, _begin: int, _end: int, thread: int) -> None:
        members.append(thread)
        meeting.wait()

    address = ctypes.cast(meet, ctypes.c_void_p).value
    for _ in range(20):
        time.sleep(0.002)
        members.clear()
        RUN(team.address())(address, None, 2, 2, 2)
        assert sorted(members) == [0, 1]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_helpers_keep_off_their_callers_core(body: int) -> None:
    Counter(body, 8, 2).run(8)  # the helpers start, while every core is allowed
    allowed = os.sched_getaffinity(0)
    meeting = threading.Barrier(2, timeout=60)
    cores: dict[int, set[int]] = {}

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    def meet(_context: int, _begin: int, _end: int, thread: int) -> None:
        cores[thread] = os.sched_getaffinity(0)
        meeting.wait()

    try:
        for core in sorted(allowed)[:2]:
            os.sched_setaffinity(0, {core})
            RUN(team.address())(ctypes.cast(meet, ctypes.c_void_p).value, None, 2, 2, 2)
            assert cores == {0: {core}, 1: allowed - {core}}
    finally:
        os.sched_setaffinity(0, allowed)


#: Forks while another thread is inside of the team; parent and child then use it.
FORKING: Final = """
import ctypes, faulthandler, os, threading
from tests.unit.runtime import test_team
from ansorlite.runtime import team

faulthandler.dump_traceback_later(50, exit=True)
code = test_team.linked()
body = int(code["body"])
entered, leave = threading.Event(), threading.Event()

@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
def stay(*_):
    entered.set()
    leave.wait(40)

arguments = (ctypes.cast(stay, ctypes.c_void_p).value, None, 4, 4, 3)
caller = threading.Thread(target=test_team.RUN(team.address()), args=arguments)
caller.start()
assert entered.wait(40)
child = os.fork()
counter = test_team.Counter(body, 50, 3)
if child == 0:
    for _ in range(100):
        counter.run(20)
    os._exit(0 if (counter.counts == 100).all() and counter.wrong[0] == 0 else 1)
leave.set()
caller.join()
assert os.waitpid(child, 0)[1] == 0
counter.run(20)
assert (counter.counts == 1).all()
"""


def test_a_fork_has_a_team() -> None:
    """Nor is it in the way that the team was taken when the process split.

    In a process of its own: after a fork, a child may wait for ever for a lock that a thread of another library had.
    """
    done = subprocess.run([sys.executable, "-c", FORKING], timeout=60, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("threads", [1, 2, 4, 7])
def test_kernels_agree_whatever_the_team(threads: int) -> None:
    rng = np.random.default_rng(threads)
    a, b = rng.standard_normal((37, 19)).astype(np.float32), rng.standard_normal((19, 23)).astype(np.float32)
    target, function = host(threads), tiled_matmul(37, 23, 19, 8)
    result = Kernel(build(function, target), function.params, target)(a, b)
    alone = Kernel(build(function, host(1)), function.params, host(1))(a, b)
    np.testing.assert_array_equal(result, alone)


PROGRAM: Final = """
import numpy as np
from ansorlite.platforms import build
from ansorlite.runtime.kernel import Kernel
from ansorlite.target import host
from tests.unit.loops.build import tiled_matmul
function, target = tiled_matmul(64, 32, 16, 8), host(3)
kernel = Kernel(build(function, target), function.params, target)
for _ in range(50):
    assert kernel(np.ones((64, 16), "f4"), np.ones((16, 32), "f4")).sum() == 64 * 32 * 16
"""


@pytest.mark.parametrize("spin", ["0", "50", "1000000"])
def test_a_process_ends_whatever_its_helpers_do(spin: str) -> None:
    environment = {**os.environ, team.SPIN_VARIABLE: spin}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, timeout=60, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("spin", ["", "soon", "-1", "1e3", "9" * 10])
def test_refuses_other_spins(spin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(team.SPIN_VARIABLE, spin)
    with pytest.raises(TargetError, match=r"not a whole number of microseconds"):
        team.address.__wrapped__()


def test_other_architectures_are_refused() -> None:
    target = host()
    other = type(target)(**{**target.__dict__, "triple": "riscv64-unknown-linux-gnu"})
    with pytest.raises(TargetError, match="riscv64"):
        team.team.text(other, 0)

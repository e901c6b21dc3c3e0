"""What was compiled and is gone leaves nothing in memory, neither Python's nor LLVM's."""

from __future__ import annotations

import ctypes
import gc
import tracemalloc
import weakref
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.best import Programs
from ansorlite.programs.kernels import compile_candidate
from ansorlite.runtime import linker
from ansorlite.task import Task


class _MallocInfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    )


def allocated() -> int:
    """Bytes that this process has from ``malloc``, LLVM's and Python's together."""
    gc.collect()
    gc.collect()  # expressions are known by weak references, whose ends free others
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is None:
        pytest.skip("this C library does not tell how much memory is allocated (mallinfo2, glibc 2.33)")
    function.restype = _MallocInfo
    facts = function()
    return int(facts.uordblks + facts.hblkhd)


def product() -> Task:
    """A new task, each time of equal expressions."""
    a, b = te.placeholder((16, 16), "float32", "A", constant=True), te.placeholder((16, 16), "float32", "B")
    k = te.reduce_axis(16, "k")
    return Task([a, b, te.compute((16, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k))])


ONES = np.ones((16, 16), np.float32)
TASK = product()


def again() -> None:
    al.compile(TASK)(ONES, ONES)


def anew() -> None:
    kernel = al.compile(product())
    kernel(ONES, ONES)
    kernel.prepare(A=ONES)(ONES)


def growth(once: Callable[[], object], times: int, measured: Callable[[], int]) -> int:
    """Of what is measured, by so many calls: the least of three rounds, as tables that grow now and then do so in one."""
    found = [measured()]
    for _ in range(3):
        for _ in range(times):
            once()
        found.append(measured())
    return min(after - before for before, after in pairwise(found))


def traced() -> int:
    """Bytes of Python's objects."""
    gc.collect()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("once", [again, anew])
def test_compiling_and_forgetting_takes_no_memory(once: Callable[[], None]) -> None:
    for _ in range(50):
        once()
    # 9 KiB a time, when LLVM's linker was never freed; 3 KiB a new task, when facts of its expressions were kept apart from it.
    assert growth(once, 50, allocated) < 50 * 512


def test_of_a_kernel_nothing_stays() -> None:
    kernel = al.compile(TASK)
    kernel(ONES, ONES)
    gc.collect()
    linkers, gone = len(linker._linkers), weakref.ref(kernel._loaded)
    tracemalloc.start()
    try:
        again()
        grown = growth(again, 20, traced)
    finally:
        tracemalloc.stop()
    assert grown < 20 * 64
    del kernel
    gc.collect()
    assert gone() is None
    assert len(linker._linkers) <= linkers


def test_a_linker_goes_with_the_last_of_its_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linker, "_LINKS_OF_ONE", 2)
    monkeypatch.setattr(linker, "_linkers", weakref.WeakValueDictionary())
    kernels = [al.compile(TASK) for _ in range(3)]
    first, second = (weakref.ref(kernel._loaded._linked._linker) for kernel in (kernels[0], kernels[2]))
    assert kernels[0]._loaded._linked._linker is kernels[1]._loaded._linked._linker is not second()
    del kernels[0]
    gc.collect()
    np.testing.assert_array_equal(kernels[0](ONES, ONES), np.full((16, 16), 16, np.float32))
    del kernels[0]
    gc.collect()
    assert first() is None
    np.testing.assert_array_equal(kernels[0](ONES, ONES), np.full((16, 16), 16, np.float32))
    kernels.clear()
    gc.collect()
    assert second() is None


def test_building_a_program_leaves_what_llvmlite_leaks_and_no_more() -> None:
    """1,488 bytes of each ``PassBuilder`` of llvmlite 0.50 cannot be freed from Python."""
    candidate = Programs(None).candidate(TASK)
    for _ in range(5):
        compile_candidate(TASK, candidate)
    assert growth(lambda: compile_candidate(TASK, candidate), 15, allocated) < 15 * 2500

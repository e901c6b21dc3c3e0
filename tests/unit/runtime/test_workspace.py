"""Blocks of memory: where they begin, and that what is large is asked for in large pages, which the system may refuse."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest

from ansorlite.errors import MemoryLimitError
from ansorlite.runtime import pages, workspace
from ansorlite.runtime.device import Memory as Block
from ansorlite.runtime.host import HostSpace
from ansorlite.runtime.pages import LARGE_PAGE, zeros

LARGE = 2 * LARGE_PAGE + 12345


class Memory(mmap.mmap):
    """Notes what is asked for."""

    asked: list[tuple[int, int, int]] = []  # noqa: RUF012

    def madvise(self, *advice: int) -> None:
        self.asked.append(advice)  # type: ignore[arg-type]


class Refusing(mmap.mmap):
    def madvise(self, *_: int) -> None:
        raise OSError(22, "Invalid argument")


def allocated(nbytes: int) -> Block:
    return workspace.workspace(HostSpace(), nbytes)


def given(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    monkeypatch.setattr(pages.mmap, "mmap", kind)


def test_whole_large_pages_of_a_large_block_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    Memory.asked.clear()
    given(monkeypatch, Memory)
    block = zeros(LARGE)
    ((advice, start, length),) = Memory.asked
    assert (advice, length) == (mmap.MADV_HUGEPAGE, 2 * LARGE_PAGE)
    assert start < LARGE_PAGE
    assert block.nbytes == LARGE
    assert block.ctypes.data % LARGE_PAGE == 0
    assert not block.any()
    taken = allocated(LARGE)
    assert len(Memory.asked) == 2
    assert taken.address % LARGE_PAGE == 0
    assert taken.array.nbytes >= LARGE


def test_nothing_is_asked_for_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    Memory.asked.clear()
    given(monkeypatch, Memory)
    for nbytes in (0, 1, LARGE_PAGE - 64):
        assert zeros(nbytes).nbytes == nbytes
        assert allocated(nbytes).address % 64 == 0
    assert not Memory.asked


def test_a_system_without_large_pages_gives_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, Refusing)
    block = zeros(LARGE)
    block[...] = 7
    assert int(np.sum(block, dtype=np.int64)) == 7 * LARGE
    assert allocated(LARGE).array.nbytes >= LARGE


def test_what_there_is_no_room_for_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(12, "Cannot allocate memory")

    given(monkeypatch, full)
    with pytest.raises(MemoryLimitError, match="there is no memory left for temporaries"):
        allocated(LARGE)
    with pytest.raises(MemoryError):
        zeros(LARGE)

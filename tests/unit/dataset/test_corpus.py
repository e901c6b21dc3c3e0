"""Data sets on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ansorlite.cost_model.views import View, seen
from ansorlite.dataset import CorpusError, read_corpus, write_corpus
from ansorlite.features.loop_tree import TREE
from ansorlite.features.programs import ProgramSpace
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.spaces.derivation import derive

from .support import candidates, entry, task

Arrays = dict[str, np.ndarray[Any, Any]]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    written = [entry(16), entry(24, device="there")]
    paths = write_corpus(written, tmp_path / "corpus")
    assert paths == write_corpus(written, tmp_path / "corpus")
    found = {each.device: each for each in read_corpus(tmp_path / "corpus")}
    for one in written:
        other = found[one.device]
        assert (other.task.key, other.task.target, other.origin) == (one.task.key, one.task.target, "net")
        assert [part.traces for part in other.parts] == [part.traces for part in one.parts]
        np.testing.assert_array_equal(other.latencies, one.latencies)
        for mine, theirs in zip(one.parts, other.parts, strict=True):
            assert all((mine.views[view] == theirs.views[view]).all() for view in View)


def test_views_are_those_that_a_search_sees() -> None:
    own = entry()
    sketch = derive(own.task)[0]
    space = ProgramSpace(sketch)
    for part in own.parts:
        rows = [sketch.row_of(Candidate(trace)) for trace in part.traces]
        if None not in rows:
            programs = space.programs(np.array(rows, np.int64))
            for view in View:
                np.testing.assert_allclose(part.views[view], seen(view, programs), rtol=1e-6)
    assert any(NAIVE.trace in part.traces for part in own.parts)
    assert len(own) == len(candidates(task(), 4))


def changed(path: Path, change: Callable[[Arrays], object]) -> None:
    with np.load(path) as stored:
        arrays = dict(stored)
    change(arrays)
    np.savez(path, **arrays)


def meta(arrays: Arrays, **facts: object) -> None:
    arrays["meta"] = np.array(json.dumps({**json.loads(str(arrays["meta"])), **facts}))


def orphan(arrays: Arrays) -> None:
    arrays["loops_0"] = arrays["loops_0"].copy()
    arrays["loops_0"][:, 1, TREE.index("parent")] = 5


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda arrays: arrays.pop("tokens_0"), "it has no 'tokens_0'"),
        (lambda arrays: arrays.pop("meta"), "it has no 'meta'"),
        (lambda arrays: arrays.update(latencies_0=np.array([None], object)), "pickles are not read"),
        (lambda arrays: arrays.update(latencies_0=-arrays["latencies_0"]), "its latencies_0 are no positive float64"),
        (lambda arrays: arrays.update(tokens_0=arrays["tokens_0"][:, :, 1:]), "its tokens_0 has"),
        (lambda arrays: arrays.update(knobs_0=arrays["knobs_0"] * np.nan), "not finite float32"),
        (lambda arrays: arrays.update(traces=np.zeros(3, np.uint8)), "its traces are damaged"),
        (orphan, "have a node before the one around it"),
        (lambda arrays: meta(arrays, format=2), "it is of format 2, and this version reads 1"),
        (lambda arrays: meta(arrays, columns={"features": ["a"], "tokens": [], "loops": [], "knobs": []}), "another version"),
        (lambda arrays: meta(arrays, task="b"), "its computation is another one than it says"),
        (lambda arrays: meta(arrays, parts=1), "traces for"),
        (lambda arrays: meta(arrays, dag=3), "cannot be used"),
        (lambda arrays: meta(arrays, target={}), "cannot be used"),
        (lambda arrays: arrays.update(meta=np.array("[1]")), "cannot be used"),
    ],
)
def test_what_is_damaged_is_one_sentence(tmp_path: Path, change: Callable[[Arrays], object], told: str) -> None:
    (path,) = write_corpus([entry()], tmp_path)
    changed(path, change)
    with pytest.raises(CorpusError, match=told) as caught:
        read_corpus(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("make the corpus again")


def test_what_is_none_is_one_sentence(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(CorpusError, match=r"make one with: python -m ansorlite\.dataset"):
            read_corpus(folder)
    (tmp_path / "a.npz").write_bytes(b"something")
    with pytest.raises(CorpusError, match=r"no whole \.npz file"):
        read_corpus(tmp_path)

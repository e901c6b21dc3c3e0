"""Tuning that starts from a data set of other tasks."""

from pathlib import Path

import numpy as np
import pytest

import ansorlite as al
from ansorlite.cost_model.views import View
from ansorlite.dataset import write_corpus
from ansorlite.dataset.corpus import CorpusError
from ansorlite.errors import ArgumentError
from ansorlite.tuner import base_model
from ansorlite.tuner.base_model import from_corpus
from benchmarks.kernels.operators.matmul import Matmul
from benchmarks.search.__main__ import TABLES
from benchmarks.search.entries import entry_of
from benchmarks.search.table import read

CLOUDS = ("odd_softmax_331x1009", "bert_layer_norm_128x768")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write_corpus([entry_of(read(TABLES / "cloud" / f"{name}.npz"), 24) for name in CLOUDS], tmp_path / "corpus")
    return tmp_path / "corpus"


def test_what_others_taught_ranks_first(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_model, "ENOUGH", 20)
    first, second = (entry_of(read(TABLES / "cloud" / f"{name}.npz"), 24) for name in CLOUDS)
    known, other = from_corpus(corpus)([first.task, second.task], np.random.default_rng(0))
    features = first.groups(View.FEATURES)[0].features
    assert np.ptp(known.predict(features)) > 0
    assert not np.array_equal(known.predict(features), other.predict(features)), "its own programs are no experience of others"
    task = al.Task(Matmul(5, 7, 3).tensors(), first.task.target)
    result = al.tune(task, trials=6, preset="autotvm", cost_model=from_corpus(corpus), progress=False)
    assert result.trials == 6


def test_too_few_programs_and_no_data_set_are_one_sentence(corpus: Path, tmp_path: Path) -> None:
    task = al.Task(Matmul(5, 7, 3).tensors())
    with pytest.raises(ArgumentError, match="takes 500 programs of other tasks, and there are"):
        al.tune(task, trials=2, cost_model=from_corpus(corpus), progress=False)
    with pytest.raises(CorpusError, match="there is no corpus in"):
        from_corpus(tmp_path / "nothing")

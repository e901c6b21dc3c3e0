"""Machine code of this process is shared: copies and pickles of it are refused in one sentence that says what to do instead."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.task import Task

MODEL = """<ir_version: 10, opset_import: ["" : 21]>
m (float[%s, 4] x) => (float[%s, 4] y) { y = %s (x) }"""


def task() -> Task:
    a = te.placeholder((4,), "float32", "A")
    return Task([a, te.compute((4,), lambda i: a[i] + 1.0)])


def model(size: str, operator: str) -> Any:
    return al.compile(al.from_onnx(onnx.parser.parse_model(MODEL % (size, size, operator))))


def loaded(folder: Path) -> Any:
    model("2", "Exp").export(folder / "m.so")
    return al.load(folder / "m.so")


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize(
    ("make", "instead"),
    [
        (lambda _: al.compile(task()), "this Kernel is .*compile the task, which can be pickled"),
        (lambda _: model("2", "Exp"), r"this Executable is .*what its method export\(path\) wrote"),
        (lambda _: model("n", "Exp"), "this OpenExecutable is .*load and compile the model's file"),
        (loaded, "this LoadedModel is .*load its library"),
    ],
)
def test_no_copies(how: Callable[[Any], Any], make: Callable[[Path], Any], instead: str, tmp_path: Path) -> None:
    with pytest.raises(al.AnsorliteError, match=instead) as caught:
        how(make(tmp_path))
    assert "\n" not in str(caught.value)


def test_what_is_data_is_pickled() -> None:
    again = pickle.loads(pickle.dumps(task()))
    np.testing.assert_array_equal(al.compile(again)(np.zeros(4, np.float32)), np.ones(4, np.float32))

"""Names and texts of other people's files reach a terminal without what it would obey."""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from click.testing import Result
from onnx import TensorProto, helper

import ansorlite as al
from ansorlite import te
from ansorlite.visible import logger, visible

Call = Callable[..., Result]

#: Clears the screen, sets a title, moves up, turns the direction of writing, in one name.
EVIL = "a\x1b[2J\x1b]0;owned\x07\r\x9b1A\u202eb\u2066"
CONTROL = re.compile("[^\n\t\x20-\x7e\xa0-\u061b\u061d-\u200d\u2010-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\U0010ffff]")


def clean(text: str) -> str:
    """``text``, in which there must be no control character."""
    assert not CONTROL.search(text), repr(text)
    return text


def evil_model(operator: str = "Exp", domain: str = "", rows: int | str = 2) -> onnx.ModelProto:
    nodes = [
        helper.make_node(operator, [f"x{EVIL}"], [f"h{EVIL}"], name=f"node{EVIL}", domain=domain),
        helper.make_node("Det", [f"h{EVIL}"], [f"y{EVIL}"], name=f"volume{EVIL}"),
    ]
    inputs = [helper.make_tensor_value_info(f"x{EVIL}", TensorProto.FLOAT, (rows, 2, 2))]
    outputs = [helper.make_tensor_value_info(f"y{EVIL}", TensorProto.FLOAT, (rows,))]
    graph = helper.make_graph(nodes, f"g{EVIL}", inputs, outputs)
    opsets = [helper.make_opsetid("", 20), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def native_model() -> onnx.ModelProto:
    proto = evil_model()
    del proto.graph.node[1]
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info(f"h{EVIL}", TensorProto.FLOAT, (2, 2, 2)))
    return proto


@pytest.fixture
def models(folder: Path) -> Path:
    """Models with evil names in ``folder``, also such as are refused for many reasons."""
    onnx.save(evil_model(), folder / "hybrid.onnx")
    onnx.save(native_model(), folder / "native.onnx")
    onnx.save(evil_model(rows=f"n{EVIL}"), folder / "open.onnx")
    onnx.save(evil_model(operator=f"Exp{EVIL}"), folder / "unknown.onnx")
    onnx.save(evil_model(domain=f"d{EVIL}"), folder / "domain.onnx")
    cyclic = evil_model()
    cyclic.graph.node[0].input[0] = f"y{EVIL}"
    onnx.save(cyclic, folder / "cyclic.onnx")
    (folder / f"file{EVIL}.onnx").write_bytes(b"\x1b[2J no model")
    return folder


#: Command and model → how it ends. What is told of some of them has no names.
RUNS = {
    "tasks native": 0,
    "tasks hybrid": 0,
    "tasks open": 2,
    "tasks unknown": 2,
    "tasks domain": 2,
    "tasks cyclic": 2,
    "run native": 0,
    "run hybrid": 0,
    "run open": 2,
    "run unknown": 2,
    "run cyclic": 2,
    "export native": 0,
    "export hybrid": 2,
}


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("words", RUNS)
def test_models(call: Call, words: str) -> None:
    command, name = words.split()
    more = ["-o", f"out{EVIL}.so"] if command == "export" else []
    told = call(command, f"{name}.onnx", *more)
    assert told.exit_code == RUNS[words], told.output
    assert "\\x1b[2J" in clean(told.stdout) + clean(told.stderr) or words in ("tasks native", "export hybrid")
    as_json = call(command, f"{name}.onnx", *more, "--json")
    assert clean(as_json.stdout) + clean(as_json.stderr)
    if RUNS[words] == 0:
        json.loads(as_json.stdout)


@pytest.mark.usefixtures("models")
def test_tuning_and_what_follows(call: Call) -> None:
    told = call("tune", "native.onnx", "--trials", 2, "--database", f"t{EVIL}.db", "--progress")
    assert told.exit_code == 0, told.output
    clean(told.stdout)
    clean(told.stderr)
    at = ("--database", f"t{EVIL}.db")
    quickly = ("--seconds", 0.1, "--no-profile")
    for words in (
        ("run", "native.onnx", *at),
        ("bench", "native.onnx", *at, *quickly),
        ("report", f"t{EVIL}.db", "-o", f"p{EVIL}.html"),
    ):
        told = call(*words)
        assert told.exit_code == 0, told.output
        clean(told.stdout)


@pytest.mark.usefixtures("models")
def test_words_and_file_names_that_are_refused(call: Call) -> None:
    for words in (
        (f"comm{EVIL}",),
        ("tasks", f"nowhere{EVIL}.onnx"),
        ("tasks", f"file{EVIL}.onnx"),
        ("tasks", "native.onnx", f"--opt{EVIL}"),
        ("tasks", "native.onnx", "--shape", f"x{EVIL}=2,2"),
        ("tasks", "native.onnx", "--target", EVIL),
        ("run", "native.onnx", "--input", f"{EVIL}=x.npy"),
        ("run", "native.onnx", "--seed", EVIL),
        ("records", f"nowhere{EVIL}.db"),
        ("records", "hybrid.onnx", "--outcome", EVIL),
    ):
        told = call(*words)
        assert told.exit_code == 2, words
        assert clean(told.stderr)
        assert clean(told.stdout) == ""


@pytest.mark.usefixtures("database")
def test_databases(call: Call, folder: Path) -> None:
    with sqlite3.connect(folder / "t.db") as connection:
        connection.execute(
            "UPDATE measurements SET outcome = 'crash', latency = NULL, checked = 0, error = ?", (f"e{EVIL}\n{EVIL}",)
        )
        connection.execute("UPDATE measurements SET target = ?, trace = ? || id, version = ?", (EVIL, EVIL, EVIL))
        connection.execute("UPDATE tasks SET key = ?", (f"key{EVIL}",))
    shown = call("records", "t.db")
    assert shown.exit_code == 0, shown.output
    assert "\\x1b[2J" in clean(shown.stdout)
    told = json.loads(clean(call("records", "t.db", "--json").stdout))
    assert told["records"][0]["error"] == f"e{EVIL}\n{EVIL}"
    clean(call("records", "t.db", "--export", "-").stdout)
    assert "the nearest is" in clean(call("records", "t.db", "--task", f"x{EVIL}").stderr)
    assert call("report", "t.db", "-o", "page.html").exit_code == 0
    assert "\\x1b[2J" in clean((folder / "page.html").read_text())
    for words in (
        ("run", "kernels.py:matmul", "--args", 16, 16, 16, "--database", "t.db"),
        ("records", "t.db", "--import", "t.db"),
    ):
        told = call(*words)
        clean(told.stdout)
        clean(told.stderr)


def test_errors_warnings_and_representations(caplog: pytest.LogCaptureFixture) -> None:
    assert str(al.AnsorliteError(f"no {EVIL}")) == f"no {visible(EVIL)}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn(f"left: {al.AnsorliteError(EVIL)}", stacklevel=1)
    clean(str(caught[0].message))
    with caplog.at_level(logging.WARNING):
        logger("ansorlite.tests").warning("of %s: %d", EVIL, 3)
    assert clean(caplog.messages[0]) == f"of {visible(EVIL)}: 3"
    a = te.placeholder((4,), name=EVIL)
    b = te.compute((4,), lambda i: a[i] + 1.0, name=EVIL)
    task = al.Task([a, b])
    for thing in (a, a.shape, b, b.axes, task, task.dag.key):
        clean(repr(thing))
    for program in (al.compile(task).source("loops"), str(te.printer.text(task.dag))):
        clean(program)
    clean(repr(al.from_onnx(native_model())))


def test_what_people_write_stays_as_it_is() -> None:
    for text in ("plain", "naïve Größe 数据 العربية 🙂\n\tx", "a\\x1b"):
        assert visible(text) == text
    assert visible("\x00\x7f\x85\u2028\udc80\U000e0041\r") == "\\x00\\x7f\\x85\\u2028\\udc80\\U000e0041\\r"

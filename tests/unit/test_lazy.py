"""Names that are imported when they are first used, and what is not imported before."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

import ansorlite
from ansorlite import codegen, cost_model, dataset, export, graph, measure, platforms, runtime, search, sketch, spaces
from ansorlite.cost_model import neural
from ansorlite.frontends import onnx as frontend
from ansorlite.measure import native

PACKAGES = (
    ansorlite,
    codegen,
    cost_model,
    neural,
    dataset,
    export,
    frontend,
    graph,
    measure,
    native,
    platforms,
    runtime,
    search,
    sketch,
    spaces,
)
LIGHT = Path(onnx.__path__[0]) / "backend" / "test" / "data" / "light" / "light_squeezenet.onnx"

#: What only the search, or a measurement, needs.
TUNING = (
    *("lightgbm", "scipy.sparse", "rich", "psutil"),
    *("ansorlite.columns.machine", "ansorlite.columns.program", "ansorlite.evolution", "ansorlite.features"),
    *("ansorlite.search.default", "ansorlite.task_scheduler"),
    *("ansorlite.search.strategies", "ansorlite.tuner", "ansorlite.report"),
)

#: What else a program that was compiled before does without.
COMPILING = (
    "ansorlite.schedule",
    "ansorlite.spaces.derivation",
    "ansorlite.codegen.compile",
    "ansorlite.measure.pool",
    "ansorlite.platforms.table",
)

#: What else a model does without that was loaded before.
LOADING = (
    *("onnx", "google.protobuf", "networkx"),
    *("ansorlite.frontends.onnx.importer", "ansorlite.graph.passes", "ansorlite.graph.hybrid", "ansorlite.analysis"),
    *("ansorlite.export.write", "ansorlite.runtime.peaks"),
)

#: What a worker that builds programs for CPUs does without.
NO_BUILDING = (
    *("lightgbm", "scipy", "ansorlite.evolution", "ansorlite.features", "ansorlite.cost_model.draft"),
    *("ansorlite.search.default", "ansorlite.spaces.derivation"),
    *("ansorlite.codegen.nvptx.compile", "ansorlite.codegen.opencl.compile"),
)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_public_name_is_there_and_no_module_hides_it(package: object) -> None:
    name = getattr(package, "__name__", "")
    for public in getattr(package, "__all__", ()):
        # An import of a submodule of that name would put the module in the name's place.
        assert importlib.util.find_spec(f"{name}.{public}") is None
        assert public in dir(package)
        assert getattr(package, public) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'ansorlite' has no attribute 'tuen'"):
        getattr(ansorlite, "tuen")  # noqa: B009


def imported(code: str, folder: Path) -> list[str]:
    """The modules that a new process has imported after ``code``; its cache of compiled programs is ``folder``."""
    ending = "\nimport sys\nprint(*sys.modules, sep='\\n')"
    environment = {"ANSORLITE_CACHE_DIR": str(folder), "PYTHONPATH": str(Path(ansorlite.__path__[0]).parent)}
    done = subprocess.run([sys.executable, "-c", code + ending], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.split()


RUN = """
import numpy as np
from onnx import parser
import ansorlite as al
proto = parser.parse_model('''<ir_version: 10, opset_import: ["" : 21]>
    product (float[8, 8] x, float[8, 8] w) => (float[8, 8] y) { y = MatMul(x, w) }''')
x = np.ones((8, 8), np.float32)
al.compile(al.from_onnx(proto))(x, x)
"""


def test_what_was_compiled_before_runs_without_what_compiles_or_tunes(tmp_path: Path) -> None:
    first = imported(RUN, tmp_path)
    assert "ansorlite.codegen.compile" in first
    assert "lightgbm" not in first
    again = imported(RUN, tmp_path)
    assert [name for name in (*TUNING, *COMPILING) if name in again] == []


def test_a_model_is_loaded_without_what_compiles_or_tunes(tmp_path: Path) -> None:
    modules = imported(f"import ansorlite as al\nal.from_onnx({str(LIGHT)!r})", tmp_path)
    assert [name for name in (*TUNING, *COMPILING) if name in modules] == []


def test_a_model_from_the_cache_runs_without_what_reads_models(tmp_path: Path) -> None:
    proto = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        product (float[8, 8] x, float[8, 8] w) => (float[8, 8] y) { y = MatMul(x, w) }""")
    onnx.save(proto, tmp_path / "product.onnx")
    code = f"""
import numpy as np
import ansorlite as al
x = np.ones((8, 8), np.float32)
assert (al.compile(al.from_onnx({str(tmp_path / "product.onnx")!r}))(x, x)["y"] == 8).all()
"""
    assert "onnx" in imported(code, tmp_path / "cache")
    again = imported(code, tmp_path / "cache")
    assert [name for name in (*TUNING, *COMPILING, *LOADING) if name in again] == []


WORKER = """
import sys
import ansorlite.measure.worker
from ansorlite import te
from ansorlite.measure import native
from ansorlite.runtime.devices import device_of
from ansorlite.task import Task

def modules():
    return {name for name in sys.modules if name.startswith("ansorlite")}

A = te.placeholder((8,), "float32", name="A")
task = Task([A, te.compute((8,), lambda i: te.exp(A[i]), name="B")])
"""

BUILDER = """
from ansorlite.sketch.candidate import NAIVE
native.build
ready = modules()
open({file!r}, "wb").write(native.build(task, NAIVE).code)
assert modules() == ready, modules() - ready
"""

RUNNER = """
native.load
ready = modules()
device = device_of(task.target)
memory = [device.guarded((8,), "float32") for _ in range(2)]
native.load(task, open({file!r}, "rb").read(), memory)(1)
assert modules() == ready, modules() - ready
"""


def test_a_worker_has_imported_what_its_jobs_need_before_the_first_and_nothing_else(tmp_path: Path) -> None:
    file = str(tmp_path / "program")
    building = imported(WORKER + BUILDER.format(file=file), tmp_path / "cache")
    assert [name for name in NO_BUILDING if name in building] == []
    running = imported(WORKER + RUNNER.format(file=file), tmp_path / "cache")
    assert [name for name in (*TUNING, *COMPILING, *NO_BUILDING) if name in running] == []

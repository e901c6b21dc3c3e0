"""MetaSchedule, the tuner of TVM: given as many trials of the same expression as ours.

It measures in processes of its own, which import all of TVM's tensor intrinsics, those of graphics processors too: half a
minute for each, and more where many modules are loaded. Here they import those of x86 only.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from ansorlite.te.dag import ComputeDAG
from benchmarks.kernels.operators.operator import Array, Operator
from benchmarks.kernels.peers.peer import Contender
from benchmarks.kernels.results import Run

#: Seconds that building a candidate may take, the start of the process included.
_BUILD_TIMEOUT: Final = 200.0
#: One line a trial.
_RECORDS: Final = "database_tuning_record.json"


class MetaSchedule:
    """Weights are inputs. Its records are kept beside ours, and count: a run goes on. Without trials it has no program."""

    def missing(self) -> str:
        found = importlib.util.find_spec("tvm")
        return "" if found else "TVM is not installed; install it with: pip install 'ansorlite[metaschedule]'"

    def version(self) -> str:
        return version("apache-tvm")

    def contenders(self, operator: Operator, arrays: Sequence[Array], run: Run, records: Path | None) -> Mapping[str, Contender]:
        if run.trials == 0:
            return {}
        os.environ |= {"TVM_NUM_THREADS": str(run.threads), "TVM_BIND_THREADS": "0"}  # read when its thread pool starts
        tvm = importlib.import_module("tvm")
        dag = ComputeDAG.of(operator.tensors())
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) if records is None else _folder(records, dag, run)
            library = _tuned(importlib.import_module("benchmarks.kernels.peers.tvm_te").prim_func(dag), run, folder)
        if library is None:
            return {}
        tensors = [tvm.runtime.tensor(array) for array in arrays]
        output = tvm.runtime.empty(dag.outputs[0].shape, dag.outputs[0].dtype)
        function = library["main"]
        return {"metaschedule": Contender(lambda: function(*tensors, output), lambda _: output.numpy())}


def _folder(records: Path, dag: ComputeDAG, run: Run) -> Path:
    """Of this computation on so many threads from this seed."""
    digest = sha256(dag.key.encode()).hexdigest()[:16]
    return records / f"metaschedule-{digest}-t{run.threads}-s{run.seed}"


def _tuned(function: Any, run: Run, folder: Path) -> Any:
    """The best program of so many trials, those of earlier runs counted; ``None`` if none was valid."""
    tvm = importlib.import_module("tvm")
    cpu = tvm.target.codegen.llvm_get_system_cpu()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": run.threads})
    only_x86 = _only_x86()
    only_x86()
    meta_schedule = importlib.import_module("tvm.s_tir.meta_schedule")
    folder.mkdir(parents=True, exist_ok=True)
    measured = folder / _RECORDS
    done = len(measured.read_text().splitlines()) if measured.exists() else 0
    if done < run.trials:
        meta_schedule.tune_tir(
            function,
            target,
            str(folder),
            run.trials - done,
            builder=meta_schedule.builder.LocalBuilder(max_workers=run.threads, timeout_sec=_BUILD_TIMEOUT, initializer=only_x86),
            num_tuning_cores=run.threads,
            seed=run.seed + 1,
        )
    database = meta_schedule.database.JSONDatabase(work_dir=str(folder))
    best = meta_schedule.tir_integration.compile_tir(database, function, target)
    return None if best is None else tvm.compile(best.mod, target)


def _only_x86() -> Callable[[], None]:
    """A function that lets ``import tvm.s_tir.tensor_intrin`` find the intrinsics of x86 and no others.

    It is not a function of this module, so that it is pickled by value: who unpickles it does not import this module.
    """

    def install() -> None:
        name = "tvm.s_tir.tensor_intrin"
        package = ModuleType(name)
        package.__path__ = [str(Path(str(importlib.import_module("tvm.s_tir").__file__)).parent / "tensor_intrin")]
        sys.modules.setdefault(name, package)
        importlib.import_module(f"{name}.x86")

    return install

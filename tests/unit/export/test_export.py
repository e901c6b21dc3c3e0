"""Exported models: from C, from Python without what compiles, with weights inside and beside, and what is refused."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

import ansorlite as al
from ansorlite import processor
from ansorlite.api.export import export
from ansorlite.best import Programs
from ansorlite.cli.main import main
from ansorlite.errors import ArgumentError, ModelError, TargetError
from ansorlite.export.description import FORMAT, Description, parse
from ansorlite.export.header import identifier, unique
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Value
from ansorlite.graph.executable import Executable, compile_model
from ansorlite.graph.model import Model
from ansorlite.platforms import build
from ansorlite.records import Measurement, Outcome
from ansorlite.runtime.kernel import Kernel
from ansorlite.runtime.pages import LARGE_PAGE
from ansorlite.sketch.candidate import NAIVE
from ansorlite.sketch.program import lower
from ansorlite.target import Target, host, resolve
from ansorlite.task import Task
from ansorlite.topi.activations import relu
from ansorlite.topi.conv import conv
from ansorlite.topi.matmul import gemm
from ansorlite.topi.shape import reshape
from tests import emulated
from tests.unit.graph.support import Meaning

EXAMPLE = Path(__file__).parents[3] / "examples" / "run_model.c"
SHAPE = (1, 3, 8, 8)


def classifier(target: Target | None = None) -> Model:
    """What the C example runs: a convolution, and a product of two matrices whose weights' kernel runs on all threads."""
    rng = np.random.default_rng(0)
    build = GraphBuilder()
    image = build.input("image", Value(SHAPE, "float32"))
    filters = build.constant(rng.standard_normal((16, 3, 3, 3)).astype(np.float32))
    features = build.apply(relu, build.apply(conv, image, filters))
    flat = build.apply(reshape, features, shape=(1, 576))
    weight = build.constant(rng.standard_normal((576, 10)).astype(np.float32))
    return Model.of(build.finish({"scores": build.apply(gemm, flat, weight)}), target or host())


@pytest.fixture(scope="module")
def executable() -> Executable:
    return compile_model(classifier(), Programs(None).kernel)


@pytest.fixture(scope="module")
def exported(executable: Executable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model as ``classifier.so``, and as ``apart.so`` with weights beside it."""
    folder = tmp_path_factory.mktemp("exported")
    executable.export(folder / "classifier.so")
    executable.export(folder / "apart.so", weights="beside")
    return folder


@pytest.fixture
def image() -> np.ndarray:
    return np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)


@pytest.mark.parametrize("name", ["classifier.so", "apart.so"])
def test_a_loaded_model_computes_what_it_was_exported_from(
    executable: Executable, exported: Path, image: np.ndarray, name: str
) -> None:
    loaded = al.load(exported / name)
    assert {name: (p.shape, p.dtype) for name, p in loaded.inputs.items()} == {"image": (SHAPE, "float32")}
    np.testing.assert_array_equal(loaded(image)["scores"], executable(image)["scores"])
    out = np.empty((1, 10), np.float32)
    loaded.run({"image": image}, {"scores": out})
    np.testing.assert_array_equal(out, executable(image)["scores"])


def test_the_c_example_runs(executable: Executable, exported: Path, image: np.ndarray, tmp_path: Path) -> None:
    program = tmp_path / "run_model"
    warnings = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
    link = [str(exported / "classifier.so"), f"-Wl,-rpath,{exported}"]
    command = ["cc", *warnings, f"-I{exported}", str(EXAMPLE), *link, "-o", str(program)]
    subprocess.run(command, check=True)
    numbers = " ".join(f"{value:.9g}" for value in image.flat)
    done = subprocess.run([program], input=numbers, capture_output=True, text=True, check=True)
    np.testing.assert_allclose(np.array(done.stdout.split(), np.float32), executable(image)["scores"].ravel(), rtol=1e-6)
    assert subprocess.run([program], input="1 2 3", capture_output=True, text=True, check=False).returncode == 2


#: Weights in a file; several instances; a child of a fork, which has no helpers.
PROGRAM = """
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "apart.h"

int main(int count, char **words) {
    static float image[192], first[10], second[10];
    if (apart_create("nowhere") || apart_create(words[0])) return 3;
    apart *a = apart_create(words[count - 1]), *b = apart_create(words[count - 1]);
    if (!a || !b) return 4;
    for (int i = 0; i < 192; ++i) image[i] = i / 192.0f;
    apart_run(a, image, first);
    if (fork() == 0) {
        for (int i = 0; i < 100; ++i) apart_run(b, image, second);
        _exit(memcmp(first, second, sizeof first) != 0);
    }
    int status;
    wait(&status);
    apart_destroy(a);
    apart_destroy(b);
    apart_destroy(NULL);
    for (int i = 0; i < 10; ++i) printf("%.9g ", first[i]);
    return status != 0;
}
"""


def test_weights_beside_the_library_are_mapped(executable: Executable, exported: Path, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    link = [str(exported / "apart.so"), f"-Wl,-rpath,{exported}"]
    command = ["cc", f"-I{exported}", str(tmp_path / "program.c"), *link, "-o", str(tmp_path / "program")]
    subprocess.run(command, check=True)
    done = subprocess.run([tmp_path / "program", exported / "apart.weights"], capture_output=True, text=True, check=True)
    ramp = (np.arange(192, dtype=np.float32) / np.float32(192)).reshape(SHAPE)
    np.testing.assert_allclose(np.array(done.stdout.split(), np.float32), executable(ramp)["scores"].ravel(), rtol=1e-6)


def test_loading_imports_nothing_that_compiles_or_tunes(exported: Path) -> None:
    code = f"""
import sys
import ansorlite as al
al.load({str(exported / "classifier.so")!r})
print([name for name in ("onnx", "lightgbm", "llvmlite", "scipy", "networkx") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_many_threads_run_a_loaded_model(executable: Executable, exported: Path) -> None:
    loaded = al.load(exported / "classifier.so")
    wrong: list[int] = []

    def work(seed: int) -> None:
        image = np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)
        expected = executable(image)["scores"]
        wrong.extend(seed for _ in range(50) if not np.array_equal(loaded(image)["scores"], expected))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_model_of_copies_alone_needs_no_weights_file(tmp_path: Path) -> None:
    build = GraphBuilder()
    x = build.input("x", Value((3,), "int64"))
    executable = compile_model(Model.of(build.finish({"y": x})), Programs(None).kernel)
    executable.export(tmp_path / "same.so", weights="beside")
    np.testing.assert_array_equal(al.load(tmp_path / "same.so")(np.arange(3))["y"], np.arange(3))
    assert not (tmp_path / "same.weights").exists()


def test_refuses_files_that_are_no_exported_model(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(ModelError, match=r"text\.so is not a model that this version of ansorlite exported"):
        al.load(tmp_path / "text.so")
    with pytest.raises(ModelError, match="there is no file"):
        al.load(tmp_path / "nothing.so")
    shutil.copy(exported / "apart.so", tmp_path)
    with pytest.raises(ModelError, match=r"put the file apart\.weights beside it"):
        al.load(tmp_path / "apart.so")
    (tmp_path / "apart.weights").write_bytes(b"short")
    with pytest.raises(ModelError, match=r"apart\.weights is not the file of weights"):
        al.load(tmp_path / "apart.so")


@pytest.mark.parametrize(("rows", "alignment"), [(16, 64), (1024, LARGE_PAGE)])
def test_a_large_instance_begins_at_a_large_page(rows: int, alignment: int, tmp_path: Path) -> None:
    """So that the system can give it one."""
    build = GraphBuilder()
    x = build.input("x", Value((rows, 1024), "float32"))
    weight = build.constant(np.ones((1024, 1024), np.float32) / 1024)
    product = build.apply(gemm, build.apply(relu, build.apply(gemm, x, weight)), weight)
    executable = compile_model(Model.of(build.finish({"y": product})), Programs(None).kernel)
    executable.export(tmp_path / "chain.so")
    library = ctypes.CDLL(str(tmp_path / "chain.so"))
    library.chain_create.restype = ctypes.c_void_p
    instance = library.chain_create()
    assert instance
    assert instance % alignment == 0
    given, found = np.ones((rows, 1024), np.float32), np.zeros((rows, 1024), np.float32)
    pointers = (ctypes.c_void_p(address) for address in (instance, given.ctypes.data, found.ctypes.data))
    library.chain_run(*pointers)
    np.testing.assert_allclose(found, 1, rtol=1e-4)
    library.chain_destroy(ctypes.c_void_p(instance))


def test_descriptions_of_other_formats_are_refused(exported: Path) -> None:
    description = al.load(exported / "classifier.so").description
    assert parse(description.text()) == description
    with pytest.raises(ModelError, match="format 99"):
        parse(description.text().replace(f'"format": {FORMAT}', '"format": 99'))
    for damaged in ("", "[]", "{}", f'{{"format": {FORMAT}}}', f'{{"format": {FORMAT}, "features": 3}}'):
        with pytest.raises(ModelError, match="damaged"):
            parse(damaged)


def test_a_missing_instruction_set_is_named(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = tmp_path / "cpuinfo"
    facts.write_text("processor : 0\nflags\t\t: fpu sse2 avx\n")
    assert processor.missing(["avx", "64bit"], facts) == ()
    assert processor.missing(["avx", "avx512f", "fma"], facts) == ("avx512f", "fma")
    needed = al.load(exported / "classifier.so").description.features
    assert {"sse2", "sse4.2"} & set(needed) or "neon" in needed
    assert processor.missing(needed) == ()
    monkeypatch.setattr(processor, "missing", lambda _: ("avx512f", "fma"))
    with pytest.raises(TargetError, match="a processor with avx512f, fma, which this one lacks"):
        al.load(exported / "classifier.so")


def test_refuses_to_export_what_runs_in_python(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="runs in Python, so it cannot be exported"):
        compile_model(classifier(), Meaning).export(tmp_path / "m.so")


def test_says_where_it_cannot_write(executable: Executable, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"is a folder; give the path of the library to be written, as .*/model\.so"):
        executable.export(tmp_path)
    with pytest.raises(ArgumentError, match=r"nowhere/model\.so cannot be written \(No such file or directory\)"):
        executable.export(tmp_path / "nowhere/model.so")
    with pytest.raises(ArgumentError, match=r"nowhere/model\.weights cannot be written"):
        executable.export(tmp_path / "nowhere/model.so", weights="beside")
    with pytest.raises(ArgumentError, match=r"weights is 'apart'; it must be \"inside\""):
        executable.export(tmp_path / "model.so", weights="apart")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_kernels_of_one_name_are_refused(tmp_path: Path) -> None:
    def kernel(task: Task) -> Kernel:
        function = lower(task, NAIVE)
        return Kernel(build(function, task.target), function.params, task.target)

    with pytest.raises(ArgumentError, match="two kernels of this model have one name"):
        compile_model(classifier(), kernel).export(tmp_path / "m.so")


def test_needs_a_linker(executable: Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TargetError, match="there is no linker"):
        executable.export(tmp_path / "m.so")
    assert list(tmp_path.iterdir()) == []


def test_a_linker_that_is_not_there_is_named(executable: Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    with pytest.raises(TargetError, match=r"no-such-compiler cannot be run \(No such file or directory\); set CC"):
        executable.export(tmp_path / "m.so")


def test_needs_a_folder_for_temporary_files(executable: Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(ArgumentError, match=r"no folder for temporary files \(No such file or directory\); set TMPDIR to one"):
        executable.export(tmp_path / "m.so")


def test_a_linker_by_itself_is_enough(
    executable: Executable, image: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shutil.which("ld")
    assert found is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ld").symlink_to(found)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    executable.export(tmp_path / "m.so")
    np.testing.assert_array_equal(al.load(tmp_path / "m.so")(image)["scores"], executable(image)["scores"])


def test_names_become_identifiers(executable: Executable, tmp_path: Path) -> None:
    assert [identifier(name) for name in ("data_0", "0.weight", "x:0", "für", "while", "")] == [
        "data_0",
        "_0_weight",
        "x_0",
        "f_r",
        "_while",
        "_",
    ]
    assert unique(["x", "x", "x.2", "instance"]) == ["x", "x_2", "x_2_2", "instance_2"]
    for name in ("two words", "1st", "class", ""):
        with pytest.raises(ArgumentError, match="is no name that C functions can begin with"):
            executable.export(tmp_path / "m.so", name=name)
    executable.export(tmp_path / "m.so", name="net")
    assert "net *net_create(void);" in (tmp_path / "m.h").read_text()


def test_the_library_tells_what_it_was_made_of(executable: Executable, exported: Path) -> None:
    description = al.load(exported / "classifier.so").description
    assert isinstance(description, Description)
    assert description.steps == executable.facts
    assert [step.name for step in description.steps] == ["conv+relu 1x16x6x6", "gemm 1x10"]
    assert description.steps[1].flops == 2 * 576 * 10
    assert description.steps[1].bytes == 4 * (576 + 576 * 10 + 10)
    assert all(step.task and step.candidate for step in description.steps)


def test_a_loaded_model_times_its_steps(exported: Path, image: np.ndarray) -> None:
    loaded = al.load(exported / "classifier.so")
    seconds = loaded.step_seconds({"image": image}, runs=3)
    assert len(seconds) == len(loaded.description.steps)
    assert all(0 < time < 10 for time in seconds)
    with pytest.raises(ArgumentError, match="runs is 0"):
        loaded.step_seconds({"image": image}, runs=0)


def test_arrays_that_fit_go_straight_to_native_code(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = al.load(exported / "classifier.so")
    rng = np.random.default_rng(0)
    given = {name: rng.standard_normal(value.shape).astype(value.dtype) for name, value in loaded.inputs.items()}
    expected = loaded(given)
    ran: list[object] = []
    monkeypatch.setattr(loaded, "_run", ran.append)
    for name, result in loaded(given).items():
        np.testing.assert_array_equal(result, expected[name])
    assert not ran
    loaded({name: np.asfortranarray(np.repeat(array, 2, axis=-1))[..., ::2] for name, array in given.items()})
    assert len(ran) == 1  # copied first


@pytest.mark.skipif(emulated.obstacle() is not None, reason=emulated.obstacle() or "")
@pytest.mark.parametrize(("target", "threads"), [("aarch64", 1), ("aarch64+dotprod", 2)])
def test_a_library_for_aarch64_runs_there(tmp_path: Path, image: np.ndarray, target: str, threads: int) -> None:
    """Its weights are packed here by code for this machine; its C functions are called in a process of qemu's."""
    arm = replace(resolve(target), threads=threads)
    model = classifier(arm)
    export(model, tmp_path / "classifier.so")
    assert "classifier *classifier_create(void);" in (tmp_path / "classifier.h").read_text()
    there = emulated.started(16)
    handle = there.load_library((tmp_path / "classifier.so").read_bytes())
    instance = there.call(there.symbol(handle, "classifier_create"))
    assert instance
    scores = there.call_on(there.symbol(handle, "classifier_run"), instance, image, np.empty((1, 10), np.float32))
    there.call(there.symbol(handle, "classifier_destroy"), instance)
    here = compile_model(classifier(), Programs(None).kernel)(image)["scores"]
    np.testing.assert_allclose(scores, here, rtol=1e-4, atol=1e-4)


def test_a_library_for_another_machine_has_the_programs_that_were_best_there(tmp_path: Path) -> None:
    arm = replace(resolve("aarch64"), threads=1)
    model = classifier(arm)
    task = model.tasks[0][0]
    with al.Database(tmp_path / "tuning.db") as database:
        database.add(task, Measurement(NAIVE, Outcome.OK, latency=1e-3, checked=True, machine="ssh://pi@board", when=1.0))
        with Programs(database) as programs:
            kernel = programs.abroad(task)
            assert (kernel.origin.candidate, kernel.origin.latency) == (NAIVE, 1e-3)
            assert programs.abroad(model.tasks[1][0]).origin.latency is None
    with pytest.raises(TargetError, match="cannot run here; export it"):
        kernel.bind()


def test_the_command_exports_for_another_machine(tmp_path: Path) -> None:
    a, b = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in "ab")
    graph = helper.make_graph([helper.make_node("Relu", ["a"], ["b"])], "small", [a], [b])
    path = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    words = ["export", str(path), "--target", "aarch64+sve", "-o", str(tmp_path / "small.so")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "small.so").read_bytes()[18:20] == b"\xb7\x00", "ELF's number of AArch64"
    if processor.ARCHITECTURE != "aarch64":
        with pytest.raises(TargetError, match=r"small\.so was exported for aarch64, and this is"):
            al.load(tmp_path / "small.so")

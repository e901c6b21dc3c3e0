"""An exported model is what its files hold when it is loaded, all of it, or one error."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ansorlite as al
from ansorlite.best import Programs
from ansorlite.errors import ModelError
from ansorlite.export import opened
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Value
from ansorlite.graph.executable import compile_model
from ansorlite.graph.model import Model
from ansorlite.topi.matmul import gemm

X = np.random.default_rng(0).standard_normal((2, 64)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).standard_normal((64, 48)).astype(np.float32)


def export(path: Path, factor: float, **how: str) -> Path:
    """``y = x @ (WEIGHTS * factor)``: models of equal names, shapes and sizes."""
    build = GraphBuilder()
    x = build.input("x", Value(X.shape, "float32"))
    weight = build.constant(WEIGHTS * np.float32(factor))
    model = Model.of(build.finish({"y": build.apply(gemm, x, weight)}))
    compile_model(model, Programs(None).kernel).export(path, **how)  # type: ignore[arg-type]
    return path


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders ``1`` and ``2``, each with ``inside.so``, and ``beside.so`` with its weights, of the model with that factor."""
    folder = tmp_path_factory.mktemp("trust")
    for factor in (1, 2):
        (folder / f"{factor}").mkdir()
        export(folder / f"{factor}" / "inside.so", factor)
        export(folder / f"{factor}" / "beside.so", factor, weights="beside")
    return folder


def result(loaded: al.LoadedModel) -> np.ndarray:
    return loaded(X)["y"]


def is_times(loaded: al.LoadedModel, factor: float) -> bool:
    return np.allclose(result(loaded), factor * (X @ WEIGHTS), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["inside", "beside"])
def test_what_was_exported_anew_is_loaded_anew(tmp_path: Path, name: str) -> None:
    how = {"weights": name}
    first = al.load(export(tmp_path / "m.so", 1, **how))
    second = al.load(export(tmp_path / "m.so", 2, **how))
    assert is_times(first, 1)
    assert is_times(second, 2)
    assert is_times(al.load(export(tmp_path / "m.so", 1, **how)), 1)


@pytest.mark.parametrize("name", ["inside", "beside"])
def test_files_written_over_in_place_are_loaded_anew_and_harm_nobody(exported: Path, tmp_path: Path, name: str) -> None:
    """``cp`` keeps the file that a loader may know, and first cuts it off, under whoever has mapped it."""
    for file in (exported / "1").glob(f"{name}*"):
        shutil.copy(file, tmp_path)
    first = al.load(tmp_path / f"{name}.so")
    for file in (exported / "2").glob(f"{name}*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert is_times(al.load(tmp_path / f"{name}.so"), 2)
    for file in tmp_path.iterdir():
        file.write_bytes(b"")
    assert is_times(first, 1)


def test_equal_libraries_are_one_and_weights_are_each_ones_own(exported: Path, tmp_path: Path) -> None:
    shutil.copy(exported / "1" / "inside.so", tmp_path / "other.so")
    one, other = al.load(exported / "1" / "inside.so"), al.load(tmp_path / "other.so")
    assert one._library is other._library
    np.testing.assert_array_equal(result(one), result(other))


def test_weights_can_be_shared_with_other_processes(exported: Path, tmp_path: Path) -> None:
    for file in (exported / "1").glob("beside*"):
        shutil.copy(file, tmp_path)
    loaded = al.load(tmp_path / "beside.so", share_weights=True)
    assert is_times(loaded, 1)
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(tmp_path / "beside.weights") in line]
    assert len(mapped) == 1
    export(tmp_path / "beside.so", 2, weights="beside")  # puts a new file in its place
    assert is_times(loaded, 1)


@pytest.mark.parametrize("name", ["inside.so", "beside.so", "beside.weights"])
def test_any_damage_is_one_error(exported: Path, tmp_path: Path, name: str) -> None:
    for file in (exported / "1").glob("*side*"):
        shutil.copy(file, tmp_path)
    library, spoilt = (tmp_path / name).with_suffix(".so"), tmp_path / name
    whole = spoilt.read_bytes()
    places = np.linspace(0, len(whole) - 1, 40).astype(int).tolist()
    flipped = [whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :] for at in places]
    for data in (*flipped, *(whole[:at] for at in places), whole + b"x", whole + whole, bytes(len(whole))):
        spoilt.write_bytes(data)
        for share in (False, True):
            with pytest.raises(ModelError, match="damaged; export") as caught:
                al.load(library, share_weights=share)
            assert "\n" not in str(caught.value)
    spoilt.write_bytes(whole)
    assert is_times(al.load(library), 1)


def test_weights_of_another_export_are_refused(exported: Path, tmp_path: Path) -> None:
    shutil.copy(exported / "1" / "beside.so", tmp_path)
    shutil.copy(exported / "2" / "beside.weights", tmp_path)
    with pytest.raises(ModelError, match=r"beside\.weights is not the file of weights that belongs to beside\.so"):
        al.load(tmp_path / "beside.so")


def test_a_system_without_proc(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(exported / "1" / "inside.so", tmp_path / "m.so")
    monkeypatch.setattr(opened, "_DESCRIPTORS", tmp_path / "nowhere")
    monkeypatch.setattr(opened, "_opened", {})
    assert is_times(al.load(tmp_path / "m.so"), 1)
    monkeypatch.setattr(opened, "_opened", {})
    shutil.copy(exported / "2" / "inside.so", tmp_path / "m.so")
    assert is_times(al.load(tmp_path / "m.so"), 2)


PROGRAM = """
#include <stdio.h>
#include "%(name)s.h"

int main(int count, char **words) {
    float x[128], y[96];
    %(name)s *model = %(name)s_create(%(argument)s);
    if (!model) return 3;
    if (fread(x, sizeof x, 1, stdin) != 1) return 4;
    %(name)s_run(model, x, y);
    %(name)s_destroy(model);
    fwrite(y, sizeof y, 1, stdout);
    return 0 * count * !words;
}
"""


@pytest.mark.parametrize(("name", "argument"), [("inside", "void"), ("beside", "words[1]")])
def test_in_c_damaged_weights_make_no_instance(exported: Path, tmp_path: Path, name: str, argument: str) -> None:
    for file in (exported / "1").glob(f"{name}*"):
        shutil.copy(file, tmp_path)
    code = PROGRAM % {"name": name, "argument": "" if argument == "void" else argument}
    (tmp_path / "program.c").write_text(code)
    library = tmp_path / f"{name}.so"
    link = [str(library), f"-Wl,-rpath,{tmp_path}", "-o", str(tmp_path / "program")]
    subprocess.run(["cc", f"-I{tmp_path}", str(tmp_path / "program.c"), *link], check=True)

    def run() -> subprocess.CompletedProcess[bytes]:
        command = [tmp_path / "program", tmp_path / f"{name}.weights"]
        return subprocess.run(command, input=X.tobytes(), capture_output=True, check=False)

    done = run()
    assert done.returncode == 0
    np.testing.assert_allclose(np.frombuffer(done.stdout, np.float32).reshape(2, 48), X @ WEIGHTS, rtol=1e-3, atol=1e-3)
    file = library if name == "inside" else tmp_path / f"{name}.weights"
    whole = file.read_bytes()
    # Wherever it went among what is packed, this weight is one of them.
    at = whole.index(WEIGHTS[40, 30].tobytes())
    file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    assert run().returncode == 3
    if name == "beside":
        file.write_bytes(whole[:-1])
        assert run().returncode == 3
        shutil.copy(exported / "2" / "beside.weights", file)
        assert run().returncode == 3
    file.write_bytes(whole)
    assert run().returncode == 0

"""The page of each kind of machine: how a machine is held to one, what the page says of made-up results, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from ansorlite.target import LEVELS, PROCESSORS, TARGET_VARIABLE
from benchmarks.common.machine import Machine
from benchmarks.common.spread import Spread
from benchmarks.kernels.results import UNTUNED
from benchmarks.kernels.results import Results as KernelResults
from benchmarks.models.results import FEW, OURS
from benchmarks.models.results import Results as ModelResults
from benchmarks.models.results import Run as ModelRun
from benchmarks.models.results import Timing as ModelTiming
from benchmarks.pages import __main__ as command
from benchmarks.pages import kinds, page
from benchmarks.pages.bars import LARGE, bars, better_rival, by_suite, untuned_beside_rival
from benchmarks.pages.kinds import KINDS, environment, forced, kind_here
from tests.unit.benchmarks.test_results import MACHINE, timing, tuning

FORCED = replace(MACHINE, cpu="a wide cpu", target=replace(LEVELS["x86-64-v3"], threads=2).key, versions={"ansorlite": "1 (abc)"})
NATIVE = replace(FORCED, target=replace(PROCESSORS["znver3"], threads=2).key)
MODEL_RUN = ModelRun(2, 64, 0, 30.0)


def one(ratio: float) -> Spread:
    return Spread(ratio, ratio, ratio)


def model(name: str, untuned: float = 1.25, **ratios: float) -> ModelTiming:
    spreads = {"untuned": one(untuned), **{peer: one(ratio) for peer, ratio in ratios.items()}}
    return ModelTiming(name, MODEL_RUN, 3, 0, {OURS: 1e-3}, spreads, 0.5, {OURS: 0.0}, 0.0, 1.0)


def pretend(monkeypatch: pytest.MonkeyPatch, *levels: str) -> None:
    """As if this machine could run code for these levels alone."""
    known = {LEVELS[level].cpu for level in levels}
    monkeypatch.setattr(kinds, "obstacle", lambda target: None if target.cpu in known else "this processor has no such thing")


def test_the_kind_is_the_most_that_the_processor_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for levels, kind in (((), None), (("x86-64-v3",), "avx2"), (("x86-64-v3", "x86-64-v4"), "avx512")):
        pretend(monkeypatch, *levels)
        assert kind_here() == kind


def test_a_machine_of_the_kind_is_left_as_it_is_and_a_wider_one_held_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"PATH": "/bin", TARGET_VARIABLE: "x86-64-v2", "ONEDNN_MAX_CPU_ISA": "SSE41", "PYTHONDONTWRITEBYTECODE": "1"}
    pretend(monkeypatch, "x86-64-v3")
    assert not forced("avx2")
    assert environment("avx2", given) == {"PATH": "/bin"}
    pretend(monkeypatch, "x86-64-v3", "x86-64-v4")
    assert forced("avx2")
    assert environment("avx2", given) == {
        "PATH": "/bin",
        TARGET_VARIABLE: "x86-64-v3",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    }
    assert environment("avx512", given)["PATH"] == "/bin"
    assert TARGET_VARIABLE not in environment("avx512", given)


def test_what_cannot_be_held_takes_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    for levels, takes_part in ((("x86-64-v3",), True), (("x86-64-v3", "x86-64-v4"), False)):
        pretend(monkeypatch, *levels)
        for words in command._commands("avx2", Path("x"), ("odd",), ("197",), ("all",), 60.0, early=False):
            against = words[words.index("--against") + 1].split(",")
            assert "torch" in against
            assert ("onnxruntime" in against) is takes_part
            assert words[words.index("--database") + 1].startswith("x/")
    few, many, *_ = command._commands("avx2", Path("x"), ("odd",), ("197",), ("none",), None, early=False)
    assert [*command._commands("avx2", Path("x"), ("odd",), ("197",), ("none",), None, early=True)] == [few]
    assert [words[words.index("--trials") + 1] for words in (few, many)] == ["64", "200"]
    assert all(words[words.index("--case") + 1] == "197" for words in (few, many))


def test_bars_stand_beside_what_was_found() -> None:
    large = timing(*LARGE, 1.5, flops=2**31, of_peak=Spread(0.8, 0.9, 1.0), trials=200)
    late = {
        LARGE: large,
        ("odd", "slow"): timing("odd", "slow", 0.75, trials=200),
        ("bert", "free"): timing("bert", "free", 0.5, trials=200),
    }
    early = {LARGE: timing(*LARGE, 1.0)}
    models = {
        "light_resnet50": model("light_resnet50", onnxruntime=1.5, openvino=1.2, torch=0.5),
        "vit": replace(model("vit", onnxruntime=0.9, torch=3.0, **{FEW: 1.25}), few=8),
    }
    table = bars(KINDS["avx2"].bars, early, {LARGE: tuning(LARGE[1], 64, 0, ())}, late, models)
    found = {row[0]: row[1:] for row in table.rows}
    assert found == {
        "all suites ÷ PyTorch, geometric mean at 200 trials": ("≥ 1.8", "0.83", "3"),
        "all suites ÷ PyTorch, geometric mean at 64 trials": ("≥ 1.6", "1.00", "1"),
        "seconds of tuning a case with 64 trials, at most": ("≤ 10", "4.0", "1"),
        "the slowest of ansor10, subgraph, odd, memory ÷ PyTorch: slow": ("≥ 0.9", "0.75", "1"),
        "1024^3, share of what multiply-adds alone reach on all cores in the same rounds": ("≥ 0.85", "0.90", "1"),
        "1024^3 ÷ PyTorch": ("≥ 1.1", "1.50", "1"),
        "kernels without any trial ÷ tuned, geometric mean": ("≥ 0.88", "0.50", "3"),
        "light_resnet50 ÷ the better of onnxruntime and openvino": ("≥ 1.15", "1.20", "1"),
        "models ÷ the better of onnxruntime and openvino, geometric mean": ("≥ 1.25", "1.04", "2"),
        "models without any trial ÷ the better of onnxruntime and openvino, geometric mean": ("–", "0.83", "2"),
        "models after 8 trials a task ÷ after all, geometric mean": ("≥ 0.97", "0.80", "1"),
        "the slowest model ÷ the better of onnxruntime and openvino: vit": ("≥ 0.95", "0.90", "2"),
    }
    assert table.notes == ("below 0.9 of PyTorch (ansor10, subgraph, odd, memory): slow 0.75.",)
    suites = {row[0]: row[1:] for row in by_suite(early, late, 0.9).rows}
    assert suites["anchors"] == ("1", "1.00", "1.50", "0", f"{LARGE[1]}: 1.50")
    assert suites["odd"] == ("1", "–", "0.75", "1", "slow: 0.75")
    assert suites["all"][:4] == ("3", "1.00", "0.83", "2")


def test_where_nothing_was_run_there_is_no_bar() -> None:
    assert bars(KINDS["avx2"].bars, {}, {}, {}, {}).rows == ()
    alone = model("a", torch=2.0)
    assert better_rival(alone) is None
    assert untuned_beside_rival(alone) is None
    assert bars(KINDS["avx512"].bars, {}, {}, {}, {"a": alone}).rows == ()


def results(machine: Machine) -> tuple[KernelResults, ModelResults]:
    kernels, models = KernelResults(None), ModelResults(None)
    kernels.add(machine)
    for trials in (64, 200):
        kernels.add(timing("odd", "a", 1.5, trials=trials))
    models.add(replace(machine, versions={"openvino": "7"}))
    models.add(model("light_squeezenet", openvino=1.3))
    return kernels, models


def test_a_page_names_the_processor_and_how_it_was_held(tmp_path: Path) -> None:
    kind = KINDS["avx2"]
    for machine, held in ((NATIVE, False), (FORCED, True)):
        found = results(machine)
        assert page.machine_of(found, tmp_path) == machine
        text = page.text(kind, held, "the command", *found, 2, MODEL_RUN)
        assert ("No machine with AVX2 alone was at hand" in text) is held
        assert ("`ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2`" in text) is held
        words = ("# Performance: AVX2", "the command", "a wide cpu", "1 (abc)", "openvino 7", "1970-01-01", "64 trials", "200")
        tables = ("## Bars", "## Suites", "## Geometric means", "## Odd", "## Models", "light_squeezenet")
        assert [word for word in (*words, *tables) if word not in text] == []


def test_results_of_several_machines_are_not_one_page(tmp_path: Path) -> None:
    found = results(FORCED)
    page.check(found, tmp_path, "a wide cpu")
    with pytest.raises(ValueError, match="has results of a wide cpu, and this is another; give another folder with --folder"):
        page.check(found, tmp_path, "another")
    found[1].add(NATIVE)
    with pytest.raises(ValueError, match="a page is of one machine"):
        page.machine_of(found, tmp_path)
    with pytest.raises(ValueError, match="no results of kernels yet"):
        page.machine_of((KernelResults(None), ModelResults(None)), tmp_path)


def test_the_command_runs_what_is_missing_and_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmarks themselves are stood in for."""
    pretend(monkeypatch, "x86-64-v3", "x86-64-v4")
    monkeypatch.setattr(command, "check_runs", lambda _: None)
    monkeypatch.setattr(command, "cpu_name", lambda: "a wide cpu")
    ran: list[list[str]] = []

    def run(words: list[str], kind: str) -> int:
        ran.append(words)
        rows = KernelResults(tmp_path / "r" / "kernels.jsonl")
        rows.add(FORCED)
        rows.add(timing("odd", "a", 1.5, trials=200))
        assert kind == "avx2"
        return int(len(ran) == 1)

    monkeypatch.setattr(command, "_run", run)
    words = ["--kind", "avx2", "--folder", str(tmp_path / "r"), "--page", str(tmp_path / "p.md"), "--model", "none"]
    done = CliRunner().invoke(command.main, words, catch_exceptions=False)
    assert done.exit_code == 1, "an output was wrong"
    assert len(ran) == 2
    assert "No machine with AVX2 alone" in (tmp_path / "p.md").read_text()
    again = CliRunner().invoke(command.main, [*words, "--write-only"], catch_exceptions=False)
    assert again.exit_code == 0
    assert len(ran) == 2
    monkeypatch.setattr(command, "cpu_name", lambda: "another")
    refused = CliRunner().invoke(command.main, words)
    assert refused.exit_code == 1
    assert "give another folder" in refused.output
    assert len(ran) == 2


def test_a_machine_of_no_kind_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch)
    done = CliRunner().invoke(command.main, [])
    assert done.exit_code == 1
    assert "there are pages for machines with AVX2 or AVX-512, which this one is not" in done.output


def test_untuned_is_told_as_a_share() -> None:
    assert untuned_beside_rival(model("a", untuned=1.25, onnxruntime=1.5, openvino=2.0)) == pytest.approx(1.2)
    assert UNTUNED in timing("odd", "a", 1.0).bare

"""Graphs that Dynamo sees with several shapes are exported once, and served as any model with open dimensions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'ansorlite[torch]'")
pytest.importorskip("onnxscript", reason="PyTorch's exporter needs onnxscript: pip install 'ansorlite[torch]'")

import torch

from ansorlite.frontends.torch import compile_open, compiled_graph, exported
from ansorlite.frontends.torch.errors import NotCompiledError

WIDTH, HEADS = 32, 4


class Attention(torch.nn.Module):
    """Attention over what was and what comes."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.joined = torch.nn.Linear(WIDTH, WIDTH)

    def forward(
        self, x: torch.Tensor, past: tuple[torch.Tensor, torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        batch, length, _ = x.shape
        query, key, value = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.parts(x).chunk(3, dim=-1))
        if past is not None:
            key, value = torch.cat((past[0], key), 2), torch.cat((past[1], value), 2)
        scores = query @ key.transpose(-1, -2) / key.shape[2]
        mixed = torch.softmax(scores, -1) @ value
        return self.joined(mixed.transpose(1, 2).reshape(batch, length, WIDTH)), (key, value)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def exports(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each graph that was exported, whether its shapes were open."""
    found: list[bool] = []
    export = exported.export

    def counted(*arguments: object, open_dimensions: object = None, **options: object) -> object:
        found.append(open_dimensions is not None)
        return export(*arguments, open_dimensions=open_dimensions, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(exported, "export", counted)
    return found


def same(found: object, expected: object) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_sequences_of_any_length(exports: list[bool]) -> None:
    module = Attention().eval()
    compiled = torch.compile(module, backend="ansorlite")
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        for length in (9, 12, 10, 15, 11, 14, 12):
            x = torch.randn(2, length, WIDTH)
            found, expected = compiled(x), module(x)
            same(found, expected)
            # No parts of what programs for longer ones give.
            assert all(each.is_contiguous() for each in (found[0], *found[1]))
    # The first length is no open one yet.
    assert exports == [False, True]


def test_caches_that_grow(exports: list[bool]) -> None:
    module = Attention().eval()
    compiled = torch.compile(module, backend="ansorlite")
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        past = expected_past = (torch.randn(1, HEADS, 5, WIDTH // HEADS), torch.randn(1, HEADS, 5, WIDTH // HEADS))
        for _ in range(8):
            x = torch.randn(1, 1, WIDTH)
            found, past = compiled(x, past)
            expected, expected_past = module(x, expected_past)
            same((found, past), (expected, expected_past))
    assert exports == [False, True]


def test_dynamic_from_the_first_call_on(exports: list[bool]) -> None:
    module = Attention().eval()
    compiled = torch.compile(module, backend="ansorlite", dynamic=True)
    with torch.inference_mode():
        for batch, length in ((3, 9), (2, 5), (7, 12)):
            x = torch.randn(batch, length, WIDTH)
            same(compiled(x), module(x))
    assert exports == [True]


def test_sizes_among_the_results_are_compiled_shape_by_shape(exports: list[bool]) -> None:
    def counted(x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return torch.relu(x @ x.T) + x.shape[0], x.shape[0] + 1

    compiled = torch.compile(counted, backend="ansorlite", dynamic=True)
    for rows in (3, 5):
        x = torch.randn(rows, 8)
        same(compiled(x), counted(x))
    assert True not in exports


def test_views_of_results_are_compiled_shape_by_shape(exports: list[bool]) -> None:
    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.softmax(x, 0)
        return y, y[1:]

    compiled = torch.compile(both, backend="ansorlite", dynamic=True)
    for rows in (3, 5):
        x = torch.randn(rows, 8)
        y, rest = compiled(x)
        same((y, rest), both(x))
        assert rest.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
    assert True not in exports


def test_other_results_than_pytorchs_for_a_shape_end_it(monkeypatch: pytest.MonkeyPatch, exports: list[bool]) -> None:
    """What was exported for one shape may be something else for another: each is compared once."""
    module = Attention().eval()
    compiled = torch.compile(module, backend="ansorlite", dynamic=True)
    check, calls = compile_open.check_agreement, []

    def strict(found: list[torch.Tensor], due: list[torch.Tensor], most: float) -> None:
        calls.append(found[0].shape)
        if found[0].shape[1] == 7:
            raise NotCompiledError("as for an exporter that took a size for a constant")
        check(found, due, most)

    monkeypatch.setattr(compile_open, "check_agreement", strict)
    with torch.inference_mode():
        for length in (9, 9, 7, 5):
            x = torch.randn(2, length, WIDTH)
            same(compiled(x), module(x))
    assert calls == [(2, 9, WIDTH), (2, 7, WIDTH)]
    assert exports == [True, False, False]


def test_what_cannot_be_exported_with_open_shapes_is_with_fixed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> object:
        raise NotCompiledError("no")

    monkeypatch.setattr(compiled_graph, "compile_open_graph", refused)
    module = Attention().eval()
    compiled = torch.compile(module, backend="ansorlite", dynamic=True)
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        for length in (4, 6):
            x = torch.randn(2, length, WIDTH)
            same(compiled(x), module(x))

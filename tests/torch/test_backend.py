"""``torch.compile(module, backend="ansorlite")`` computes what PyTorch computes, and says what it leaves to it."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'ansorlite[torch]'")
pytest.importorskip("onnxscript", reason="PyTorch's exporter needs onnxscript: pip install 'ansorlite[torch]'")

import torch

import ansorlite as al
from ansorlite.frontends.torch.agreement import check_agreement, most_apart
from ansorlite.frontends.torch.backend import backend
from ansorlite.frontends.torch.errors import NotCompiledError
from tests.torch import modules

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Dynamo remembers graphs, and gives up a function after some of them."""
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def random(*shape: int) -> torch.Tensor:
    return torch.from_numpy(RNG.standard_normal(shape, np.float32))


def same(found: object, expected: object) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_pytorch_finds_the_backend_by_its_name() -> None:
    assert entry_points(group="torch_dynamo_backends")["ansorlite"].load() is backend
    assert "ansorlite" in torch.compiler.list_backends()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(
    ("module", "shape"),
    [(modules.mlp(), (3, 16)), (modules.conv_net(), (1, 3, 12, 12)), (modules.TransformerBlock(), (1, 10, 32))],
    ids=["mlp", "conv_net", "transformer_block"],
)
def test_modules_run_on_kernels(
    module: torch.nn.Module, shape: tuple[int, ...], mode: Callable[[], AbstractContextManager[None]]
) -> None:
    x = random(*shape)
    module.eval()
    compiled = torch.compile(module, backend="ansorlite")
    with mode(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        for _ in range(2):
            same(compiled(x), module(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(
    ("module", "shape"),
    [(modules.mlp(), (3, 16)), (modules.conv_net(), (1, 3, 12, 12)), (modules.TransformerBlock(), (1, 10, 32))],
    ids=["mlp", "conv_net", "transformer_block"],
)
def test_modules_in_floats_of_two_bytes(module: torch.nn.Module, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    narrow = copy.deepcopy(module).eval().to(dtype)
    x = random(*shape).to(dtype)
    compiled = torch.compile(narrow, backend="ansorlite")
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        found, exact = compiled(x), copy.deepcopy(narrow).double()(x.double())
    assert found.dtype is dtype
    few = 16 * torch.finfo(dtype).eps
    torch.testing.assert_close(found.double(), exact, rtol=few, atol=few * float(exact.abs().max()))


def test_products_of_float32_may_multiply_bfloat16() -> None:
    module, x = modules.conv_net().eval(), random(1, 3, 12, 12)
    compiled = torch.compile(module, backend="ansorlite", options={"precision": "bfloat16"})
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        found, exact = compiled(x), module(x)
    assert found.dtype is torch.float32
    few = 4 * torch.finfo(torch.bfloat16).eps * float(exact.abs().max())
    assert 0 < float((found - exact).abs().max()) < few
    lower = torch.compile(module, backend="ansorlite", options={"precision": "half"})
    with torch.inference_mode(), pytest.raises(Exception, match="precision is 'half'; it must be 'float32' or 'bfloat16'"):
        lower(x)


def test_bfloat16_made_and_returned_beside_floats() -> None:
    module = modules.Half()
    x = random(5, 7).T
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        same(torch.compile(module, backend="ansorlite")(x), module(x))


def test_results_that_are_not_pytorchs_are_told_apart() -> None:
    expected = torch.tensor([4.0, -1.0, torch.inf, torch.nan])
    check_agreement([expected.clone(), torch.tensor([5])], [expected, torch.tensor([7])], 0.1)
    check_agreement([torch.tensor([4.3, -1.0, torch.inf, torch.nan])], [expected], 0.1)
    check_agreement([torch.tensor([5e-40, 0.0])], [torch.tensor([6e-40, 1e-44])], 0.01)
    for wrong in ([4.5, -1.0, torch.inf, torch.nan], [4.0, -1.0, -torch.inf, torch.nan], [4.0, -1.0, torch.nan, torch.inf]):
        with pytest.raises(NotCompiledError, match="result 1 "):
            check_agreement([expected, torch.tensor(wrong)], [expected, expected], 0.1)


@pytest.mark.parametrize(
    ("function", "precision", "most"),
    [
        (torch.relu, "float32", 0.01),
        (torch.relu, "bfloat16", 0.1),
        (lambda x: x.half().relu(), "float32", 0.1),
        (lambda x: x.bfloat16().relu().float(), "float32", 0.1),
    ],
)
def test_graphs_of_narrow_floats_may_differ_by_more(
    function: Callable[[torch.Tensor], torch.Tensor], precision: str, most: float
) -> None:
    graphs: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, _: object) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    torch.compile(function, backend=keep)(random(3))
    assert most_apart(graphs[0], precision) == most


def encoder(**options: bool | str) -> torch.nn.Module:
    return torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, **options), 2)


@pytest.mark.parametrize("options", [{}, {"norm_first": True, "activation": "gelu"}], ids=["", "norm_first"])
def test_an_encoder_whose_layers_pytorch_fuses(options: dict[str, bool | str]) -> None:
    module = encoder(**options).eval()
    compiled = torch.compile(module, backend="ansorlite")
    x = random(2, 5, 32)
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        same(compiled(x), module(x))


def test_masks_of_a_fused_layer() -> None:
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    of_keys = torch.tensor([[False, False, False, True, True], [False] * 5])
    of_pairs = torch.ones(5, 5, dtype=torch.bool).triu(1)
    x = random(2, 5, 32)
    for masks in ({"src_key_padding_mask": of_keys}, {"src_mask": of_pairs, "src_key_padding_mask": of_keys}):
        torch._dynamo.reset()
        compiled = torch.compile(layer, backend="ansorlite")
        with torch.inference_mode(), warnings.catch_warnings():
            warnings.filterwarnings("error", message="ansorlite leaves")
            same(compiled(x, **masks), layer(x, **masks))


@pytest.mark.parametrize(
    "module",
    [
        torch.nn.LSTM(8, 4, 2, bidirectional=True, batch_first=True),
        torch.nn.GRU(8, 4, bias=False),
        torch.nn.RNN(8, 4, nonlinearity="relu"),
    ],
    ids=lambda module: type(module).__name__,
)
def test_recurrent_modules(module: torch.nn.Module) -> None:
    compiled = torch.compile(module, backend="ansorlite", fullgraph=True)
    x = random(3, 5, 8)
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        same(compiled(x), module(x))


def test_sequences_of_different_lengths() -> None:
    module = modules.Packed()
    x = random(2, 5, 8)
    with torch.no_grad():
        same(torch.compile(module, backend="ansorlite")(x), module(x))


def test_results_have_the_strides_that_later_views_need() -> None:
    module = modules.Turned()
    compiled = torch.compile(module, backend="ansorlite")
    x = random(2, 3)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        found, expected = compiled(x), module(x)
    same(found, expected)
    assert found[0].stride() == expected[0].stride()
    same(found[0].T.view(-1), expected[0].T.view(-1))


def test_results_that_are_views_of_each_other_or_of_arguments() -> None:
    module = modules.Views()
    compiled = torch.compile(module, backend="ansorlite", fullgraph=True)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        for _ in range(2):
            x = random(3, 8)
            found, expected = compiled(x), module(x)
            same(found, expected)
            turned, whole, part, *_, flat = found
            assert [tensor.stride() for tensor in (turned, whole, part)] == [(1, 8), (8, 1), (8, 1)]
            whole[1, 2] = 5
            assert turned[2, 1] == part[0, 0] == 5
            flat[0] = 7
            assert x[0, 0] == 7


def test_what_only_returns_views_is_nothing_to_compile() -> None:
    compiled = torch.compile(lambda x: (x.T, x[1:]), backend="ansorlite")
    x = random(3, 8)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        turned, rest = compiled(x)
    x[1, 0] = 5
    assert turned[0, 1] == rest[0, 0] == 5


def test_results_that_overlap_are_left_to_pytorch() -> None:
    compiled = torch.compile(modules.Overlapping(), backend="ansorlite")
    with torch.no_grad(), pytest.warns(UserWarning, match="returns tensors that overlap"):
        left, right = compiled(random(2, 8))
    left[1, 4] = 5
    assert right[1, 1] == 5


@pytest.mark.parametrize(
    ("lead", "mask"),
    [
        ((), None),
        ((), (16, 12)),
        ((4,), None),
        ((4,), (4, 16, 12)),
        ((3, 4), (3, 1, 16, 12)),
        ((2, 3, 4), None),
        ((2, 3, 4), (16, 12)),
        ((2, 3, 4), (3, 1, 16, 12)),
        ((2, 3, 4), (2, 1, 4, 16, 12)),
    ],
    ids=str,
)
def test_attention_of_any_number_of_dimensions(lead: tuple[int, ...], mask: tuple[int, ...] | None) -> None:
    attention = torch.nn.functional.scaled_dot_product_attention
    compiled = torch.compile(attention, backend="ansorlite")
    query, key, value = random(*lead, 16, 8), random(*lead, 12, 8), random(*lead, 12, 6)
    seen = None if mask is None else random(*mask) > 0
    if seen is not None:
        seen[..., 0] = True
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        same(compiled(query, key, value, attn_mask=seen, scale=0.25), attention(query, key, value, attn_mask=seen, scale=0.25))


@pytest.mark.parametrize("begin", [None, 0, 3])
def test_steps_through_memory_are_those_of_pytorch(begin: int | None) -> None:
    module = modules.Strided(begin)
    compiled = torch.compile(module, backend="ansorlite")
    x = random(4, 5)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        same(compiled(x), module(x))


def test_arguments_and_results_that_are_no_single_tensor() -> None:
    compiled = torch.compile(modules.Several(), backend="ansorlite", fullgraph=True)
    x, y = random(2, 3), random(3)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        found = compiled(x, {"y": y, "scale": 3})
    assert found["nothing"] is None
    same(found["sum"], x + y * 3)
    same(found["pair"], (torch.relu(x), x.sum()))


def test_arguments_go_where_they_belong_whichever_is_read_first() -> None:
    attention = torch.nn.functional.scaled_dot_product_attention
    compiled = torch.compile(attention, backend="ansorlite")
    query, key, value = (random(2, 4, 16, 8) for _ in range(3))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        same(compiled(query, key, value), attention(query, key, value))


def test_new_shapes_are_compiled_for() -> None:
    module = modules.mlp()
    compiled = torch.compile(module, backend="ansorlite")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="ansorlite leaves")
        for batch in (2, 3, 5, 2):
            x = random(batch, 16)
            same(compiled(x), module(x))


def test_parameters_may_change_afterwards() -> None:
    module = modules.mlp()
    compiled = torch.compile(module, backend="ansorlite")
    x = random(2, 16)
    with torch.no_grad():
        before = compiled(x)
        module[0].weight.mul_(-2)
        same(compiled(x), module(x))
        assert not torch.equal(compiled(x), before)
        module.load_state_dict({name: torch.ones_like(value) for name, value in module.state_dict().items()})
        same(compiled(x), module(x))


def test_modules_of_one_class_keep_their_own_parameters() -> None:
    first, second = (torch.compile(torch.nn.Linear(16, 4), backend="ansorlite") for _ in range(2))
    x = random(2, 16)
    with torch.no_grad():
        same(first(x), x @ first.weight.T + first.bias)
        same(second(x), x @ second.weight.T + second.bias)


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (modules.Largest(), "TopK"),
        (modules.Noisy(), "Dropout"),
        (modules.Counting(), "changes tensors in place"),
        (modules.Between(), "as_strided of a part"),
        (modules.Quarter(), "numpy cannot view"),
        (modules.Masked(), "is not finite in other places"),
        (modules.Nothing(), "has no elements"),
        (modules.Inverse(), "linalg_inv"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, torch.nn.Module) else "",
)
def test_what_it_cannot_take_is_left_to_pytorch_and_said_once(module: torch.nn.Module, reason: str) -> None:
    compiled = torch.compile(module, backend="ansorlite")
    x = random(2, 8)
    with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = []
        for run in (compiled, module, compiled):
            torch.manual_seed(1)
            results.append(run(x))
    said = [str(warning.message) for warning in caught if "ansorlite leaves" in str(warning.message)]
    assert len(said) == 1
    assert reason in said[0]
    assert said[0].isprintable()
    first, expected, again = (result.float() for result in results)
    same(first, expected)
    same(again, expected)


def test_changes_in_place_happen_once_a_call() -> None:
    module = modules.Counting()
    compiled = torch.compile(module, backend="ansorlite")
    with torch.no_grad(), pytest.warns(UserWarning, match="changes tensors in place"):
        compiled(random(2))
    assert module.calls.item() == 1


def test_gradients_are_left_to_pytorch() -> None:
    module = modules.mlp()
    compiled = torch.compile(module, backend="ansorlite")
    with pytest.warns(UserWarning, match=r"call the module under torch\.no_grad"):
        compiled(random(2, 16)).sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


def test_programs_come_from_the_database(tmp_path: Path) -> None:
    module = torch.nn.Linear(16, 8)
    path = tmp_path / "tuning.db"
    compiled = torch.compile(module, backend="ansorlite", options={"database": path, "trials": 3})
    x = random(4, 16)
    with torch.no_grad():
        same(compiled(x), module(x))
    with al.Database(path) as database:
        assert sum(database.outcomes().values()) == 3


def test_an_unknown_option_is_named() -> None:
    compiled = torch.compile(torch.nn.Linear(4, 4), backend="ansorlite", options={"trails": 3})
    with torch.no_grad(), pytest.raises(Exception, match="no option 'trails'; the options are: database, trials, space, target"):
        compiled(random(2, 4))


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_modes(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trials: list[int] = []
    monkeypatch.setattr(al, "tune", lambda *_, **options: trials.append(options["trials"]))
    module = torch.nn.Linear(8, 4)
    x = random(2, 8)
    with torch.no_grad():
        same(torch.compile(module, backend="ansorlite", mode=mode)(x), module(x))
    assert trials == ([64] if mode.startswith("max-autotune") else [])


def test_an_unknown_mode_is_named() -> None:
    compiled = torch.compile(torch.nn.Linear(4, 4), backend="ansorlite", mode="fastest")
    with (
        torch.no_grad(),
        pytest.raises(Exception, match="no mode 'fastest'; the modes are: default, reduce-overhead, max-autotune"),
    ):
        compiled(random(2, 4))


def test_what_was_tuned_without_a_database_is_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[int] = []

    def compile_with(model: object, database: al.Database, space: Any = None) -> object:
        known.append(len(database.records()))
        return compiled_by(model, database, space=space)

    compiled_by = al.compile
    monkeypatch.setattr(al, "compile", compile_with)
    module = torch.nn.Linear(16, 8)
    x = random(4, 16)
    with torch.no_grad():
        same(torch.compile(module, backend="ansorlite", options={"trials": 2})(x), module(x))
    assert known == [2]


def test_the_exporters_remarks_reach_nobody(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def talkative(*arguments: object, **options: object) -> object:
        for package in ("torch.onnx._internal", "onnxscript.optimizer", "onnx_ir.passes"):
            logging.getLogger(package).warning("a remark of %s", package)
        warnings.warn("a warning of the exporter", stacklevel=2)
        return exported(*arguments, **options)

    exported = torch.onnx.export
    monkeypatch.setattr(torch.onnx, "export", talkative)
    compiled = backend(torch.fx.symbolic_trace(lambda x: (torch.relu(x),)), [random(4)])
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(random(4))
    told = capfd.readouterr()
    assert told.out + told.err == ""


def test_arguments_are_read_and_results_given_without_copies() -> None:
    graph = torch.fx.symbolic_trace(lambda x: (torch.relu(x),))
    compiled = backend(graph, [random(4)])
    x = random(4)
    with torch.no_grad():
        first, second = compiled(x)[0], compiled(x)[0]
        x.fill_(2.0)
        (third,) = compiled(x)
    same(first, second)
    same(third, x)
    assert len({x.data_ptr(), first.data_ptr(), second.data_ptr(), third.data_ptr()}) == 4

"""PyTorch modules through ``torch.compile(backend="ansorlite")`` beside PyTorch itself, in floats of four and of two bytes.

    python -m benchmarks.torch_compile [--model NAME]... [--dtype bfloat16]... [--trials 64] [--inductor]

All of a row take turns with rest between them. *Difference* is the largest from the module in float64, as a share of the largest
element, of ours and of PyTorch's own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click
import numpy as np
import torch

from ansorlite.target import host
from benchmarks.common.command import chosen
from benchmarks.common.rounds import quietest_rounds
from benchmarks.common.spread import Spread, ratio
from benchmarks.common.tables import Table, show, spread
from benchmarks.models.exported import drawn
from benchmarks.models.modules import MODULES

_NAMES: Final = ("resnet18", "resnet50", "mobilenet_v2", "unet", "vit", "mixer", "bert")
_DTYPES: Final = {str(dtype).removeprefix("torch."): dtype for dtype in (torch.float32, torch.bfloat16, torch.float16)}
_HEADER: Final = ("model", "dtype", "ours", "÷ eager", "÷ channels_last", "÷ inductor", "difference", "of eager")


@dataclass(frozen=True)
class _Row:
    """
    Attributes:
        seconds: of a call of ours, in the median.
        ratios: how many times as fast ours is, by peer.
        differences: ours and PyTorch's, from float64.
    """

    seconds: float
    ratios: Mapping[str, Spread]
    differences: tuple[float, float]


@click.command()
@click.option("--model", "models", multiple=True, default=("all",), help="A name, or all.")
@click.option("--dtype", "dtypes", multiple=True, type=click.Choice(list(_DTYPES)), default=tuple(_DTYPES), help="Of all floats.")
@click.option("--trials", type=click.IntRange(min=1), help="Tune each graph with so many; by default nothing is tuned.")
@click.option("--seconds", default=4.0, show_default=True, help="How long the comparison of one row lasts.")
@click.option("--inductor", is_flag=True, help="Also beside PyTorch's own compiler, which needs one of C++.")
def main(models: Sequence[str], dtypes: Sequence[str], trials: int | None, seconds: float, inductor: bool) -> None:
    """Time modules of benchmarks/models/zoo through torch.compile beside PyTorch."""
    torch.set_num_threads(host().threads)
    lines = []
    for name in chosen(models, _NAMES, "model"):
        for dtype in dtypes:
            row = _measured(name, _DTYPES[dtype], trials, seconds, inductor)
            peers = (spread(row.ratios.get(peer)) for peer in ("eager", "channels_last", "inductor"))
            lines.append((name, dtype, f"{1e3 * row.seconds:.2f} ms", *peers, *(f"{each:.0e}" for each in row.differences)))
    show(Table("torch.compile", _HEADER, tuple(lines)))


def _measured(name: str, dtype: torch.dtype, trials: int | None, seconds: float, inductor: bool) -> _Row:
    module, arrays = drawn(*MODULES[name], np.random.default_rng(0))
    given = [torch.from_numpy(array) for array in arrays.values()]
    exact = copy.deepcopy(module).double()
    module = module.to(dtype)
    inputs = [_as(tensor, dtype) for tensor in given]
    torch._dynamo.reset()
    ours = torch.compile(module, backend="ansorlite", options={} if trials is None else {"trials": trials})
    peers: dict[str, Callable[[], Any]] = {"eager": lambda: module(*inputs)}
    if all(tensor.ndim == 4 for tensor in inputs):
        last = copy.deepcopy(module).to(memory_format=torch.channels_last)
        pictures = [tensor.to(memory_format=torch.channels_last) for tensor in inputs]
        peers["channels_last"] = lambda: last(*pictures)
    with torch.inference_mode():
        if inductor:
            peers["inductor"] = _bound(torch.compile(module), inputs)
        expected = _first(exact(*(_as(tensor, torch.float64) for tensor in given)))
        differences = [_difference(_first(run(*inputs)), expected) for run in (ours, module)]
        rounds = quietest_rounds([lambda: ours(*inputs), *peers.values()], seconds, host().threads)
    mine, *theirs = rounds.times
    ratios = {peer: ratio(times, mine) for peer, times in zip(peers, theirs, strict=True)}
    return _Row(float(np.median(mine)), ratios, (differences[0], differences[1]))


def _as(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _bound(module: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> Callable[[], Any]:
    """A call of the module, compiled already."""
    module(*inputs)
    return lambda: module(*inputs)


def _first(result: Any) -> torch.Tensor:
    found: torch.Tensor = result[0] if isinstance(result, tuple) else result
    return found.double()


def _difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max())


if __name__ == "__main__":
    main()

"""PyTorch modules through ``torch.compile(backend="ansorlite")`` beside PyTorch itself, in floats of four and of two bytes.

    python -m benchmarks.torch_compile [--model NAME]... [--dtype bfloat16]... [--trials 64] [--inductor]

All of a row take turns with rest between them. *Difference* is the largest from the module in float64, as a share of the largest
element, of ours and of PyTorch's own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click
import numpy as np
import torch
from torch import nn

from ansorlite.target import host
from benchmarks.common.command import chosen
from benchmarks.common.rounds import quietest_rounds
from benchmarks.common.spread import Spread, ratio
from benchmarks.common.tables import Table, show, spread
from benchmarks.models.exported import randomize
from benchmarks.models.zoo.bert import Bert
from benchmarks.models.zoo.mixer import Mixer
from benchmarks.models.zoo.mobilenet import MobileNetV2
from benchmarks.models.zoo.resnet import resnet18, resnet50
from benchmarks.models.zoo.unet import UNet
from benchmarks.models.zoo.vit import ViT

_PICTURE: Final = ((1, 3, 224, 224),)
#: What makes a module, and the shapes of what it takes; words, which are integers, have none.
_MODULES: Final[Mapping[str, tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...]]]] = {
    "resnet18": (resnet18, _PICTURE),
    "resnet50": (resnet50, _PICTURE),
    "mobilenet_v2": (MobileNetV2, _PICTURE),
    "unet": (UNet, ((1, 3, 128, 128),)),
    "vit": (ViT, _PICTURE),
    "mixer": (Mixer, _PICTURE),
    "bert": (Bert, ()),
}
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
    for name in chosen(models, _MODULES, "model"):
        for dtype in dtypes:
            row = _measured(name, _DTYPES[dtype], trials, seconds, inductor)
            peers = (spread(row.ratios.get(peer)) for peer in ("eager", "channels_last", "inductor"))
            lines.append((name, dtype, f"{1e3 * row.seconds:.2f} ms", *peers, *(f"{each:.0e}" for each in row.differences)))
    show(Table("torch.compile", _HEADER, tuple(lines)))


def _measured(name: str, dtype: torch.dtype, trials: int | None, seconds: float, inductor: bool) -> _Row:
    make, shapes = _MODULES[name]
    rng = np.random.default_rng(0)
    module = make().eval()
    randomize(module, rng)
    given = [torch.from_numpy(rng.standard_normal(shape, np.float32)) for shape in shapes] or list(_words(rng))
    exact = copy.deepcopy(module).double()
    module = module.to(dtype)
    inputs = [_as(tensor, dtype) for tensor in given]
    torch._dynamo.reset()
    ours = torch.compile(module, backend="ansorlite", options={} if trials is None else {"trials": trials})
    peers: dict[str, Callable[[], Any]] = {"eager": lambda: module(*inputs)}
    if shapes:
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


def _words(rng: np.random.Generator) -> Iterator[torch.Tensor]:
    yield torch.from_numpy(rng.integers(30522, size=(1, 128)))
    yield torch.ones(1, 128, dtype=torch.int64)


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

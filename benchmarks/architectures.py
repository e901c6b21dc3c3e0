"""Architectures of the package ``transformers`` through ``torch.compile(backend="ansorlite")``, beside eager PyTorch.

    pip install transformers
    python -m benchmarks.architectures [--model NAME]... [--seconds 3]

Two layers of each, random weights, nothing is downloaded, nothing is tuned. *Left* counts graphs that PyTorch runs, with the
first reason. *Difference* is the largest from eager PyTorch, as a share of the largest element. Each one runs in a process of
its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

import click
import torch

from ansorlite.frontends.torch.compiled_graph import LEFT_TO_PYTORCH
from ansorlite.target import host
from benchmarks.common.command import chosen
from benchmarks.common.rounds import quietest_rounds
from benchmarks.common.spread import ratio
from benchmarks.common.tables import Table, geometric_mean, show

_TOKENS: Final = 64
_WORDS: Final = 1000


@dataclass(frozen=True)
class _Architecture:
    """
    Attributes:
        config, model: names of classes of ``transformers``.
        options: of the configuration.
        takes: what goes in: tokens, pairs of token sequences, pictures, tokens and a picture, or sounds.
    """

    config: str
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    takes: str = "tokens"


def _causal(family: str, **options: Any) -> _Architecture:
    small = {"hidden_size": 512, "intermediate_size": 1376, "num_attention_heads": 8, "num_hidden_layers": 2}
    return _Architecture(f"{family}Config", f"{family}ForCausalLM", {**small, "vocab_size": _WORDS, **options})


def _encoder(family: str, **options: Any) -> _Architecture:
    return _Architecture(f"{family}Config", f"{family}Model", {"num_hidden_layers": 2, "vocab_size": _WORDS, **options})


def _picture(family: str, layers: str | None = None) -> _Architecture:
    return _Architecture(f"{family}Config", f"{family}Model", {layers: 2} if layers else {}, "picture")


_RELATIVE: Final = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
_GROUPED: Final = {"num_key_value_heads": 4}
_TWO_SIDED: Final = {"encoder_layers": 2, "decoder_layers": 2}

_ARCHITECTURES: Final[Mapping[str, _Architecture]] = {
    "albert": _encoder("Albert", hidden_size=768, intermediate_size=3072, num_attention_heads=12),
    "bart": _Architecture("BartConfig", "BartModel", {**_TWO_SIDED, "vocab_size": _WORDS}, "pairs"),
    "bert": _encoder("Bert"),
    "bigbird": _encoder("BigBird"),
    "bloom": _Architecture("BloomConfig", "BloomForCausalLM", {"n_layer": 2, "hidden_size": 512, "vocab_size": _WORDS}),
    "canine": _encoder("Canine"),
    "clip": _Architecture(
        "CLIPConfig",
        "CLIPModel",
        {
            "text_config": {"num_hidden_layers": 2, "vocab_size": _WORDS, "eos_token_id": _WORDS - 1},
            "vision_config": {"num_hidden_layers": 2},
        },
        "both",
    ),
    "convbert": _encoder("ConvBert"),
    "convnextv2": _picture("ConvNextV2"),
    "cvt": _picture("Cvt"),
    "deberta": _encoder("Deberta", **_RELATIVE),
    "deberta_v2": _encoder("DebertaV2", hidden_size=768, num_attention_heads=12, intermediate_size=3072, **_RELATIVE),
    "deit": _picture("DeiT", "num_hidden_layers"),
    "dinov2": _picture("Dinov2", "num_hidden_layers"),
    "distilbert": _Architecture("DistilBertConfig", "DistilBertModel", {"n_layers": 2, "vocab_size": _WORDS}),
    "electra": _encoder("Electra"),
    "falcon": _causal("Falcon"),
    "fnet": _encoder("FNet"),
    "gemma": _causal("Gemma", head_dim=64, **_GROUPED),
    "gemma2": _causal("Gemma2", head_dim=64, **_GROUPED),
    "gpt2": _Architecture("GPT2Config", "GPT2LMHeadModel", {"n_layer": 2, "vocab_size": _WORDS}),
    "gpt_neox": _causal("GPTNeoX"),
    "hubert": _Architecture("HubertConfig", "HubertModel", {"num_hidden_layers": 2}, "sound"),
    "levit": _picture("Levit"),
    "llama": _causal("Llama", **_GROUPED),
    "longformer": _encoder("Longformer", attention_window=32),
    "mamba": _Architecture("MambaConfig", "MambaForCausalLM", {"hidden_size": 256, "num_hidden_layers": 2, "vocab_size": _WORDS}),
    "mistral": _causal("Mistral", **_GROUPED),
    "mixtral": _causal("Mixtral", num_local_experts=4, **_GROUPED),
    "mobilebert": _encoder("MobileBert"),
    "mobilevit": _picture("MobileViT"),
    "modernbert": _encoder("ModernBert", pad_token_id=0),
    "opt": _Architecture("OPTConfig", "OPTForCausalLM", {"num_hidden_layers": 2, "vocab_size": _WORDS}),
    "phi": _causal("Phi"),
    "phi3": _causal("Phi3", pad_token_id=0, **_GROUPED),
    "poolformer": _picture("PoolFormer"),
    "pvt": _picture("Pvt"),
    "qwen2": _causal("Qwen2", **_GROUPED),
    "qwen3": _causal("Qwen3", head_dim=64, **_GROUPED),
    "roberta": _encoder("Roberta"),
    "roformer": _encoder("RoFormer"),
    "segformer": _picture("Segformer"),
    "siglip": _picture("SiglipVision", "num_hidden_layers"),
    "squeezebert": _encoder("SqueezeBert"),
    "swin": _picture("Swin"),
    "t5": _Architecture("T5Config", "T5ForConditionalGeneration", {"num_layers": 2, "vocab_size": _WORDS}, "pairs"),
    "vit": _picture("ViT", "num_hidden_layers"),
    "wav2vec2": _Architecture("Wav2Vec2Config", "Wav2Vec2Model", {"num_hidden_layers": 2}, "sound"),
    "xlnet": _Architecture("XLNetConfig", "XLNetModel", {"n_layer": 2, "d_model": 512, "n_head": 8, "vocab_size": _WORDS}),
}


@click.command()
@click.option("--model", "models", multiple=True, default=("all",), help="A name, or all.")
@click.option("--seconds", default=3.0, show_default=True, help="How long the comparison of one row lasts.")
@click.option("--limit", default=300.0, show_default=True, help="Seconds that one may take at most.")
@click.option("--alone", is_flag=True, help="Here, not in a process of its own: prints one JSON object.")
def main(models: Sequence[str], seconds: float, limit: float, alone: bool) -> None:
    """Compile modules of the package transformers, and time them beside PyTorch."""
    names = chosen(models, tuple(_ARCHITECTURES), "model")
    if alone:
        for name in names:
            click.echo(json.dumps(_measured(_ARCHITECTURES[name], seconds)))
        return
    found = [(name, _in_its_own_process(name, seconds, limit)) for name in names]
    rows = [
        (
            name,
            str(row["left"]),
            row["reason"][:70],
            f"{row['difference']:.0e}",
            f"{row['ratio']:.2f}",
            f"{row['compiled']:.0f} s",
        )
        if "ratio" in row
        else (name, "–", row["reason"][:70], "–", "–", "–")
        for name, row in found
    ]
    whole = [row["ratio"] for _, row in found if row.get("left") == 0]
    rows.append((f"{len(whole)} of {len(found)} whole", "", "", "", f"{geometric_mean(whole):.2f}" if whole else "–", ""))
    show(Table("architectures", ("model", "left", "why", "difference", "÷ eager", "compiled in"), tuple(rows)))


def _in_its_own_process(name: str, seconds: float, limit: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.architectures", "--alone", "--model", name, "--seconds", str(seconds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"reason": f"took more than {limit:.0f} s"}
    last = (done.stdout if done.returncode == 0 else done.stderr).strip().rpartition("\n")[2]
    return dict(json.loads(last)) if done.returncode == 0 else {"reason": last}


def _measured(architecture: _Architecture, seconds: float) -> dict[str, Any]:
    torch.set_num_threads(host().threads)
    torch.manual_seed(0)
    library = import_module("transformers")
    config = getattr(library, architecture.config)(**architecture.options)
    module = getattr(library, architecture.model)(config).eval()
    given = _inputs(architecture.takes, config)
    if "Causal" in architecture.model or architecture.takes == "pairs":
        given["use_cache"] = False
    compiled = torch.compile(module, backend="ansorlite")
    with torch.inference_mode(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = list(_tensors(module(**given)))
        begin = time.perf_counter()
        results = list(_tensors(compiled(**given)))
        took = time.perf_counter() - begin
        rounds = quietest_rounds([lambda: compiled(**given), lambda: module(**given)], seconds, host().threads)
    said = [str(warning.message) for warning in caught]
    left = [text.removeprefix(LEFT_TO_PYTORCH) for text in said if text.startswith(LEFT_TO_PYTORCH)]
    mine, theirs = rounds.times
    return {
        "left": len(left),
        "reason": left[0] if left else "",
        "difference": max(_difference(ours, theirs) for ours, theirs in zip(results, expected, strict=True)),
        "ratio": ratio(theirs, mine).median,
        "compiled": took,
    }


def _inputs(takes: str, config: Any) -> dict[str, torch.Tensor]:
    """Arguments of a module, by name."""
    tokens = torch.randint(5, _WORDS - 5, (1, _TOKENS))
    size = getattr(config, "image_size", 224)
    picture = torch.randn(1, 3, size, size) if isinstance(size, int) else torch.randn(1, 3, *size)
    return {
        "tokens": {"input_ids": tokens},
        "pairs": {"input_ids": tokens, "decoder_input_ids": tokens[:, : _TOKENS // 4]},
        "picture": {"pixel_values": picture},
        "both": {"input_ids": tokens, "pixel_values": picture},
        "sound": {"input_values": torch.randn(1, 8000)},
    }[takes]


def _tensors(result: Any) -> Iterator[torch.Tensor]:
    """All of a module's results."""
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, Mapping):
        yield from _tensors(tuple(result.values()))
    elif isinstance(result, tuple | list):
        for each in result:
            yield from _tensors(each)


def _difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    if not expected.is_floating_point():
        return float((found != expected).any())
    return float((found - expected).abs().max() / expected.abs().max().clamp_min(1e-30))


if __name__ == "__main__":
    main()

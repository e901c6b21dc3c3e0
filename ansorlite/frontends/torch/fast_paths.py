"""PyTorch's fused operators for inference, which its exporter does not know, written as what they compute.

Without gradients ``nn.TransformerEncoderLayer`` is one call of such an operator, and Dynamo records that call.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

import torch
from torch.nn import functional


def without_fast_paths(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """``graph``, which stays as it is, with each call of a fused operator replaced by one of the plain function."""
    if not any(node.target in _PLAIN for node in graph.graph.nodes):
        return graph
    nodes = copy.deepcopy(graph.graph)
    for node in nodes.nodes:
        node.target = _PLAIN.get(node.target, node.target)
    return torch.fx.GraphModule(graph, nodes)


def _encoder_layer(
    src: torch.Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: torch.Tensor,
    norm_bias_1: torch.Tensor,
    norm_weight_2: torch.Tensor,
    norm_bias_2: torch.Tensor,
    ffn_weight_1: torch.Tensor,
    ffn_bias_1: torch.Tensor,
    ffn_weight_2: torch.Tensor,
    ffn_bias_2: torch.Tensor,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> torch.Tensor:
    """``torch._transformer_encoder_layer_fwd``, by its arguments.

    Args:
        src: (batch, length, embed_dim).
        mask: of bools, True where a key is not seen; or of floats, which are added to the scores.
        mask_type: of what shape the mask is: 0 (length, length); 1 (batch, length); 2 (batch, heads, length, length).
    """
    if mask is not None:
        mask = mask if mask.is_floating_point() else mask.logical_not()
        mask = mask[:, None, None, :] if mask_type == _OF_KEYS else mask

    def attention(x: torch.Tensor) -> torch.Tensor:
        parts = functional.linear(x, qkv_weight, qkv_bias).chunk(3, dim=-1)
        query, key, value = (part.unflatten(-1, (num_heads, -1)).transpose(1, 2) for part in parts)
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return functional.linear(seen.transpose(1, 2).flatten(2), proj_weight, proj_bias)

    def dense(x: torch.Tensor) -> torch.Tensor:
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        return functional.linear(functional.gelu(hidden) if use_gelu else functional.relu(hidden), ffn_weight_2, ffn_bias_2)

    def norm_1(x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        src = src + attention(norm_1(src))
        return src + dense(norm_2(src))
    src = norm_1(src + attention(src))
    return norm_2(src + dense(src))


#: The ``mask_type`` of a mask that is the same for all queries.
_OF_KEYS: Final = 1

_PLAIN: Final[dict[Any, Callable[..., torch.Tensor]]] = {torch._transformer_encoder_layer_fwd: _encoder_layer}

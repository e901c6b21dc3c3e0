"""Calls that PyTorch's exporter does not know, or not rightly, written as what they compute.

Without gradients ``nn.TransformerEncoderLayer`` is one call of a fused operator, and Dynamo records that call. The exporter takes
``as_strided`` for steps through a tensor's elements in the order of its dimensions, not in that of memory, and attention of
four dimensions only.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch.nn import functional

from ansorlite.frontends.torch.errors import NotCompiledError
from ansorlite.frontends.torch.views import along_memory


def exportable(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """``graph``, which stays as it is, with each such call replaced by one of the plain function."""
    if not any(map(_is_misread, graph.graph.nodes)):
        return graph
    nodes = copy.deepcopy(graph.graph)
    for node in nodes.nodes:
        if _is_misread(node):
            node.op, node.target = "call_function", _PLAIN[node.target]
    return torch.fx.GraphModule(graph, nodes)


def _is_misread(node: torch.fx.Node) -> bool:
    """Whether it is such a call; attention of four dimensions is none."""
    made = node.meta.get("example_value")
    known = node.target is functional.scaled_dot_product_attention and made is not None and made.ndim == 4
    return node.target in _PLAIN and not known


def _as_strided(
    tensor: torch.Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> torch.Tensor:
    """``torch.as_strided``, of a tensor whose dimensions are in the order in which they lie in memory.

    Raises:
        NotCompiledError: the elements of ``tensor`` do not lie side by side, so that what is between them could be meant.
    """
    order = along_memory(tensor)
    begin = 0 if storage_offset is None else storage_offset - tensor.storage_offset()
    if order is None or begin < 0:
        raise NotCompiledError("it takes as_strided of a part of a tensor")
    return tensor.permute(order).reshape(-1)[begin:].as_strided(size, stride)


def _attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None, *rest: Any, **options: Any
) -> torch.Tensor:
    """``functional.scaled_dot_product_attention`` of (..., heads, length, width), in four dimensions."""
    attention = functional.scaled_dot_product_attention
    missing = 4 - query.ndim
    if missing >= 0:
        ones = (None,) * missing
        return attention(query[ones], key[ones], value[ones], attn_mask, *rest, **options)[(0,) * missing]
    lead = torch.broadcast_shapes(*(tensor.shape[:-3] for tensor in (query, key, value)))

    def flat(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.expand(*lead, *tensor.shape[-3:]).flatten(0, len(lead) - 1)

    mask = flat(attn_mask) if attn_mask is not None and attn_mask.ndim > 3 else attn_mask
    return attention(flat(query), flat(key), flat(value), mask, *rest, **options).unflatten(0, lead)


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

#: By what Dynamo calls them: functions, and methods of tensors.
_PLAIN: Final[dict[Any, Callable[..., torch.Tensor]]] = {
    torch._transformer_encoder_layer_fwd: _encoder_layer,
    functional.scaled_dot_product_attention: _attention,
    torch.as_strided: _as_strided,
    "as_strided": _as_strided,
}

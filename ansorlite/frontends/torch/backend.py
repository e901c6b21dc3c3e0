"""The Dynamo backend: ``torch.compile(module, backend="ansorlite", options={"database": "tuning.db"})``.

Dynamo hands over graphs, with parameters among their arguments. Each is compiled when it is first called, for the shapes that it
is called with and with its parameters as constants; see :class:`CompiledGraph`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch

from ansorlite.errors import ArgumentError
from ansorlite.frontends.torch.compiled_graph import CompiledGraph
from ansorlite.frontends.torch.settings import Settings


def backend(
    graph: torch.fx.GraphModule, examples: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Sequence[Any]]:
    """What PyTorch finds under the name ``ansorlite``.

    Args:
        options: ``database``, ``trials``, ``rules``: see :class:`Settings`.

    Raises:
        ArgumentError: an unknown option.
    """
    known = [field.name for field in fields(Settings)]
    for name in options or {}:
        if name not in known:
            raise ArgumentError(f"the backend ansorlite has no option {name!r}; the options are: {', '.join(known)}")
    placeholders = graph.graph.find_nodes(op="placeholder")
    constant = [_is_constant(node, example) for node, example in zip(placeholders, examples, strict=True)]
    return CompiledGraph(graph, constant, Settings(**(options or {})))


def _is_constant(placeholder: torch.fx.Node, example: Any) -> bool:
    """Whether it is a parameter or buffer of a module."""
    told = placeholder.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")
    return bool(told) or isinstance(example, torch.nn.Parameter)

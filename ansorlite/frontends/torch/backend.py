"""The Dynamo backend: ``torch.compile(module, backend="ansorlite", options={"database": "tuning.db"})``.

Dynamo hands over graphs, with parameters among their arguments. Each is compiled when it is first called, for the shapes that it
is called with and with its parameters as constants; see :class:`CompiledGraph`.
PyTorch imports this file when ``torch.compile`` is first asked for the backend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

import torch
import torch._dynamo

from ansorlite.errors import ArgumentError
from ansorlite.frontends.torch.compiled_graph import CompiledGraph
from ansorlite.frontends.torch.settings import Settings

# By default Dynamo leaves nn.RNN, nn.GRU and nn.LSTM to PyTorch before any backend could see them, or say so. This is a
# setting of the process: nothing tells Dynamo what a backend takes.
torch._dynamo.config.allow_rnn = True

#: What the modes of ``torch.compile`` mean here. Calls have little overhead in any of them, and there are no CUDA graphs.
MODES: Final[Mapping[str, Settings]] = {
    "default": Settings(),
    "reduce-overhead": Settings(),
    "max-autotune": Settings(trials=64),
    "max-autotune-no-cudagraphs": Settings(trials=64),
}


def backend(
    graph: torch.fx.GraphModule, examples: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: str = "default"
) -> Callable[..., Sequence[Any]]:
    """What PyTorch finds under the name ``ansorlite``.

    Args:
        options: those of :class:`Settings`, by name.
        mode: one of :data:`MODES`; PyTorch takes a mode or options, not both.

    Raises:
        ArgumentError: an unknown option or mode.
    """
    if mode not in MODES:
        raise ArgumentError(f"the backend ansorlite has no mode {mode!r}; the modes are: {', '.join(MODES)}")
    known = [field.name for field in fields(Settings)]
    for name in options or {}:
        if name not in known:
            raise ArgumentError(f"the backend ansorlite has no option {name!r}; the options are: {', '.join(known)}")
    placeholders = graph.graph.find_nodes(op="placeholder")
    constant = [_is_constant(node, example) for node, example in zip(placeholders, examples, strict=True)]
    return CompiledGraph(graph, constant, replace(MODES[mode], **(options or {})))


def _is_constant(placeholder: torch.fx.Node, example: Any) -> bool:
    """Whether it is a parameter or buffer of a module."""
    told = placeholder.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")
    return bool(told) or isinstance(example, torch.nn.Parameter)

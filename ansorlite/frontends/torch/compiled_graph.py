"""One graph of Dynamo's, compiled for each set of shapes and constants that it is called with, or for all shapes at once."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from ansorlite.frontends.torch.compile import Call, compile_graph
from ansorlite.frontends.torch.compile_open import OpenShapes, compile_open_graph
from ansorlite.frontends.torch.errors import NotCompiledError
from ansorlite.frontends.torch.settings import Settings

#: More of them are not kept: who calls with ever new shapes compiles every time, but memory stays in bounds.
_MOST: Final = 64

#: What the warning begins with.
LEFT_TO_PYTORCH: Final = "ansorlite leaves a graph to PyTorch: "

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class _Entry:
    """
    Attributes:
        constants: the tensors that are constants of it: held, so that nothing else comes to lie where they are.
        versions: of these when it was compiled; ``None`` if it reads them anew each time.
    """

    call: Call
    constants: tuple[torch.Tensor, ...]
    versions: tuple[int, ...] | None


class CompiledGraph:
    """Runs a graph with kernels of ansorlite, or with PyTorch where these cannot do that; a warning says why, once.

    Constants are known by where they lie and by how often they were changed in place: with other ones it is compiled anew.

    Args:
        constant: for each argument, whether it is a constant.
    """

    def __init__(self, graph: torch.fx.GraphModule, constant: Sequence[bool], settings: Settings) -> None:
        self._graph = graph
        self._open = OpenShapes.of(graph, constant)
        self._constant = tuple(constant)
        self._settings = settings
        self._entries: dict[object, _Entry] = {}
        self._said: set[str] = set()

    def __call__(self, *arguments: Any) -> Sequence[Any]:
        if self._open is not None:
            try:
                return self._entry(arguments, self._open).call(arguments)
            except NotCompiledError:
                self._open = None
        return self._entry(arguments, None).call(arguments)

    def _entry(self, arguments: Sequence[Any], shapes: OpenShapes | None) -> _Entry:
        """What computes the graph for these arguments.

        Raises:
            NotCompiledError: nothing does for all shapes.
        """
        each = list(zip(arguments, self._constant, strict=True))
        key = tuple(_key(argument, constant, shapes is not None) for argument, constant in each)
        constants = tuple(argument for argument, constant in each if constant)
        entry = self._entries.get(key)
        if entry is None or entry.versions not in (None, _versions(constants)):
            if shapes is None:
                entry = self._compiled(arguments, constants)
            else:
                call = compile_open_graph(self._graph, arguments, self._constant, shapes, self._settings)
                entry = _Entry(call, constants, _versions(constants))
            self._entries[key] = entry
            if len(self._entries) > _MOST:
                del self._entries[next(iter(self._entries))]
        return entry

    def _compiled(self, arguments: Sequence[Any], constants: tuple[torch.Tensor, ...]) -> _Entry:
        versions = _versions(constants)
        try:
            return _Entry(compile_graph(self._graph, arguments, self._constant, self._settings), constants, versions)
        except NotCompiledError as error:
            if str(error) not in self._said:
                self._said.add(str(error))
                warnings.warn(LEFT_TO_PYTORCH + _plain(str(error)), stacklevel=2)
            return _Entry(lambda arguments: self._graph(*arguments), constants, None)


def _key(argument: Any, constant: bool, is_open: bool) -> object:
    if not isinstance(argument, torch.Tensor):
        return None if is_open and type(argument) is int else argument
    if constant:
        return argument.data_ptr(), argument.shape, argument.stride(), argument.dtype, argument.device
    return None if is_open else argument.shape, argument.dtype, argument.device


def _plain(text: str) -> str:
    """Without what colours a terminal, and other control codes: PyTorch's errors have both, and names may."""
    return "".join(c if c.isprintable() else " " for c in _COLOURS.sub("", text))


def _versions(constants: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """What was made under ``torch.inference_mode()`` has none: PyTorch does not follow its changes."""
    return tuple(0 if constant.is_inference() else constant._version for constant in constants)

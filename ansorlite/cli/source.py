"""From what the user names, an ONNX file or a function in a Python file, to a model or a task."""

from __future__ import annotations

import contextlib
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ansorlite.api.from_onnx import from_onnx
from ansorlite.cli.options import Given, parse_dims, parse_shapes
from ansorlite.errors import ArgumentError, ExpressionError, ModelError
from ansorlite.graph.hybrid import AnyModel
from ansorlite.graph.open_model import OpenModel
from ansorlite.graph.precision import PRECISIONS
from ansorlite.python_file import module_of
from ansorlite.task import Task


def load(source: str, given: Given, target: str) -> Task | AnyModel | OpenModel:
    """The model of ``model.onnx``, or the task of ``kernels.py:function``. A model is an open one only if a dimension is open.

    What shapes depend on the values of is left to Python: there are no values before the model runs.

    Raises:
        ModelError: a model file that does not exist or cannot be used.
        ArgumentError: a Python file or function that does not exist, or that does not take these ints.
        ExpressionError: the function makes no sense of them; the message names the line.
    """
    workload = load_open(source, given, target)
    return workload.at({}) if isinstance(workload, OpenModel) and not workload.dims else workload


def load_open(source: str, given: Given, target: str) -> Task | AnyModel | OpenModel:
    """As :func:`load`, but a model whose shapes depend on the values of inputs is an open one, too.

    Raises:
        ModelError, ArgumentError, ExpressionError: as :func:`load`.
    """
    shapes, dims = parse_shapes(given.shapes), parse_dims(given.dims)
    path, colon, function = source.rpartition(":")
    if colon and path.endswith(".py"):
        if given.precision != PRECISIONS[0]:
            raise ArgumentError(f"--precision is for models; the tensors of {source} say themselves what they multiply")
        return _load_kernel(Path(path), function, given.sizes, target)
    if source.endswith(".py"):
        raise ArgumentError(f"{source} needs the name of a function: {source}:matmul")
    if given.sizes:
        raise ArgumentError(f"--args is for a function in a Python file; {source} is a model, whose inputs --shape and --dim fix")
    if Path(source).is_dir():
        raise ModelError(f"{source} is a folder; give the ONNX file in it")
    if not Path(source).is_file():
        raise ModelError(f"there is no file {source}; give an ONNX model, or a function in a Python file as in kernels.py:matmul")
    return from_onnx(source, shapes=shapes, target=target, dims=dims, precision=given.precision)


def _load_kernel(path: Path, name: str, sizes: Sequence[int], target: str) -> Task:
    # What the user's file prints must not get between us and whoever reads our stdout.
    with contextlib.redirect_stdout(sys.stderr), _errors_name_the_line(path):
        function = _function(module_of(path), path, name)
        _check_call(function, f"{path}:{name}", sizes)
        return Task(function(*sizes), target)


def _function(module: ModuleType, path: Path, name: str) -> Callable[..., Any]:
    function = getattr(module, name, None)
    if not inspect.isfunction(function):
        own = [key for key, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == module.__name__]
        raise ArgumentError(f"{path} has no function {name!r}; it has: {', '.join(own) or 'none'}")
    return function


def _check_call(function: Callable[..., Any], name: str, sizes: Sequence[int]) -> None:
    signature = inspect.signature(function)
    try:
        signature.bind(*sizes)
    except TypeError:
        given = f"it was given {' '.join(map(str, sizes)) or 'nothing'}"
        raise ArgumentError(f"{name} takes {signature}, but {given}; say --args and an int for each") from None


@contextlib.contextmanager
def _errors_name_the_line(path: Path) -> Any:
    try:
        yield
    except ExpressionError as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == path.resolve()]
        raise ExpressionError(f"{path}:{lines[-1]}: {error}" if lines else str(error)) from error

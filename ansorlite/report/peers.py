"""Others to be compared with. They are not needed for anything else, so they are imported only when asked for."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ansorlite.errors import ModelError


def has_onnxruntime() -> bool:
    """Whether onnxruntime is installed."""
    return importlib.util.find_spec("onnxruntime") is not None


def onnxruntime_session(
    model: str | bytes, threads: int, inputs: Mapping[str, np.ndarray[Any, Any]], *, optimize: bool = True
) -> Callable[[], list[Any]]:
    """A function of nothing that runs a model once in onnxruntime, on so many threads, and returns its outputs.

    Args:
        model: the path of a file, or its bytes.
        optimize: whether onnxruntime may rewrite the graph, as it does by default; else each operator is computed as it stands.

    Raises:
        ModelError: onnxruntime is not installed, or does not take the model.
    """
    if not has_onnxruntime():
        raise ModelError("onnxruntime is not installed; install it with: pip install 'ansorlite[bench]'")
    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if not optimize:
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions share no base class but this
        raise ModelError(f"onnxruntime does not take {model if isinstance(model, str) else 'the model'}: {error}") from error
    feeds = dict(inputs)
    return lambda: session.run(None, feeds)  # type: ignore[no-any-return]

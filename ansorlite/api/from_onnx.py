"""The verb :func:`from_onnx`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ansorlite.api.checks import check_by_name, check_flag, check_shapes
from ansorlite.frontends.onnx.kept import load_kept
from ansorlite.graph.precision import check_precision

if TYPE_CHECKING:
    from ansorlite.frontends.onnx.file import Source
    from ansorlite.graph.dimensions import Dim, Sizes
    from ansorlite.graph.hybrid import AnyModel
    from ansorlite.graph.open_model import OpenModel
    from ansorlite.target import Target


def from_onnx(
    model: Source,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    target: str | Target = "llvm",
    *,
    dims: Mapping[str, Sizes] | None = None,
    blocked: bool = True,
    precision: str = "float32",
) -> AnyModel | OpenModel:
    """Load an ONNX model. Operators that are no tensor expression run in Python; the model's ``fallbacks`` name them.

    What the file leaves open stays open, if neither ``shapes`` nor ``dims`` fixes it; so does what depends on the values of
    inputs. Such a model is compiled for the sizes and values that it is called with: see
    :class:`ansorlite.graph.open_model.OpenModel`.

    Args:
        model: the path of a file, its bytes, or an ``onnx.ModelProto``. What comes of a file or of bytes is kept in the cache, if
            all of it is native and nothing is open.
        shapes: shapes for inputs, by name; a name instead of an extent leaves that open.
        dims: open dimension → its size; or several sizes, which programs are made for, each to serve the smaller ones, too. By
            default those are powers of two.
        blocked: whether convolutions may keep as many channels side by side as a vector of the target has lanes, as they do best
            for most models.
        precision: what matrix products and convolutions of float32 multiply. ``"bfloat16"`` rounds their operands to it, and sums
            them in float32; all else stays float32 (PyTorch's float32 matmul precision "medium", oneDNN's fpmath mode). It is
            for processors that multiply bfloat16 faster.

    Raises:
        ModelError: the file is not there or malformed, a shape is wrong, or nothing knows an operator (told when that is needed
            first: at once, if nothing is open).
        ArgumentError: what is no model, no shapes or no sizes at all; or
            ``dims`` names no open dimension, or gives sizes that are not positive integers; or another precision.
        TargetError: an unknown target.
    """
    check_shapes(shapes)
    check_by_name("dims", dims, '{"batch": (1, 8, 32)}')
    check_flag("blocked", blocked)
    check_precision(precision)
    return load_kept(model, shapes, dims, target, blocked=blocked, precision=precision)

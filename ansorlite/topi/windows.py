"""The arithmetic of sliding windows, shared by convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorlite.errors import ExpressionError


@dataclass(frozen=True)
class Window:
    """A window that slides over the spatial dimensions; one entry for each of them, in elements.

    Attributes:
        kernel: how many elements the window takes.
        strides: steps between two windows.
        before, after: elements of border at the two ends.
        dilations: steps between two elements of one window.
        ceil_mode: whether a last, incomplete window counts.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilations: tuple[int, ...]
    ceil_mode: bool = False

    def __post_init__(self) -> None:
        lengths = {len(self.kernel), len(self.strides), len(self.before), len(self.after), len(self.dilations)}
        if len(lengths) != 1:
            raise ExpressionError(f"a window needs as many strides, pads and dilations as kernel {self.kernel} has dimensions")
        if min((*self.kernel, *self.strides, *self.dilations), default=1) < 1:
            raise ExpressionError(f"kernel {self.kernel}, strides {self.strides} and dilations {self.dilations} must be positive")
        if min((*self.before, *self.after), default=0) < 0:
            raise ExpressionError(f"pads {self.before} and {self.after} of a window must not be negative")

    @property
    def span(self) -> tuple[int, ...]:
        """Elements from the first to the last of one window."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def outputs(self, extents: Sequence[int]) -> tuple[int, ...]:
        """How many windows there are over ``extents`` elements.

        Raises:
            ExpressionError: another number of dimensions, or not one window fits.
        """
        if len(extents) != len(self.kernel):
            raise ExpressionError(f"a window of {len(self.kernel)} dimensions cannot slide over {len(extents)}")
        result = []
        for extent, span, stride, before, after in zip(extents, self.span, self.strides, self.before, self.after, strict=True):
            room = extent + before + after - span
            count = (room + (stride - 1 if self.ceil_mode else 0)) // stride + 1
            if count < 1:
                raise ExpressionError(f"a window that spans {self.span} does not fit into {tuple(extents)} with its pads")
            # A window that would begin in the border after the data counts for nothing.
            if self.ceil_mode and (count - 1) * stride >= extent + before:
                count -= 1
            result.append(count)
        return tuple(result)

    def reach(self, extents: Sequence[int]) -> tuple[int, ...]:
        """Elements of border after the data that the last windows touch: at least what they read, at most that."""
        return tuple(
            max(0, (count - 1) * stride + span - extent - before)
            for count, stride, span, extent, before in zip(
                self.outputs(extents), self.strides, self.span, extents, self.before, strict=True
            )
        )


def window(
    kernel: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Window:
    """A :class:`Window` with strides and dilations of 1 and no border where none are given."""
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    return Window(
        tuple(kernel),
        ones if strides is None else tuple(strides),
        zeros if before is None else tuple(before),
        zeros if after is None else tuple(after),
        ones if dilations is None else tuple(dilations),
        ceil_mode,
    )

"""What of programs a cost model looks at: the features of statements, or another view."""

from __future__ import annotations

from enum import Enum
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.protocol import CostModel
from ansorlite.features.loop_tree import LoopTree


class View(Enum):
    """Views of ``n`` programs of one sketch, each an array of three dimensions: ``(n, items, numbers)``."""

    FEATURES = "statements, each with its features"
    KNOBS = "one item, with the coordinates of all choices"
    TOKENS = "the primitives of the trace"
    LOOPS = "the nodes of the loop tree"


class Shown(Protocol):
    """What is known of some programs: :class:`ansorlite.features.programs.Programs`, for one."""

    @property
    def features(self) -> NDArray[np.float64]: ...

    @property
    def knobs(self) -> NDArray[np.float64]: ...

    @property
    def tokens(self) -> NDArray[np.float64]: ...

    @property
    def loops(self) -> LoopTree: ...


@runtime_checkable
class Viewing(Protocol):
    """A cost model that looks at something else than features: what it is fitted on and predicts of is its view of programs."""

    @property
    def view(self) -> View: ...


def view_of(model: CostModel) -> View:
    """What ``model`` looks at."""
    return model.view if isinstance(model, Viewing) else View.FEATURES


def seen(view: View, programs: Shown) -> NDArray[np.float64]:
    """``(n, items, numbers)``: what is seen of ``programs`` in a view."""
    match view:
        case View.FEATURES:
            return programs.features
        case View.KNOBS:
            return programs.knobs[:, None, :]
        case View.TOKENS:
            return programs.tokens
        case View.LOOPS:
            return programs.loops.array

"""Building and running candidates in supervised worker processes."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.measure.building import Built, build_all
    from ansorlite.measure.measurer import Measurer
    from ansorlite.measure.referee import Referee, Turn
    from ansorlite.measure.settings import MeasureSettings

__all__ = ["Built", "MeasureSettings", "Measurer", "Referee", "Turn", "build_all"]

_HOMES: Final = {
    "MeasureSettings": "ansorlite.measure.settings",
    "Measurer": "ansorlite.measure.measurer",
    "Referee": "ansorlite.measure.referee",
    "Turn": "ansorlite.measure.referee",
    "Built": "ansorlite.measure.building",
    "build_all": "ansorlite.measure.building",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)

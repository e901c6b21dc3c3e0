"""Building and running candidates in supervised worker processes."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.measure.building import build_all
    from ansorlite.measure.measurer import Measurer
    from ansorlite.measure.referee import Referee, Turn
    from ansorlite.measure.roles import Artifact, Failure
    from ansorlite.measure.settings import MeasureSettings

__all__ = ["Artifact", "Failure", "MeasureSettings", "Measurer", "Referee", "Turn", "build_all"]

_HOMES: Final = {
    "MeasureSettings": "ansorlite.measure.settings",
    "Measurer": "ansorlite.measure.measurer",
    "Referee": "ansorlite.measure.referee",
    "Turn": "ansorlite.measure.referee",
    "Artifact": "ansorlite.measure.roles",
    "Failure": "ansorlite.measure.roles",
    "build_all": "ansorlite.measure.building",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)

"""Building and running candidates in supervised worker processes."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.measure.building import build_all
    from ansorlite.measure.measurer import Measurer
    from ansorlite.measure.rules import rules_from
    from ansorlite.measure.settings import MeasureSettings

__all__ = ["MeasureSettings", "Measurer", "build_all", "rules_from"]

_HOMES: Final = {
    "MeasureSettings": "ansorlite.measure.settings",
    "Measurer": "ansorlite.measure.measurer",
    "rules_from": "ansorlite.measure.rules",
    "build_all": "ansorlite.measure.building",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)

"""Building and running candidates in supervised worker processes."""

from ansorlite.measure.measurer import Measurer
from ansorlite.measure.settings import MeasureSettings

__all__ = ["MeasureSettings", "Measurer"]

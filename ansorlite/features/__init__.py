"""Features of programs: of a whole population at once from the fold, or of one from its loop IR (the slow reference)."""

from ansorlite.features.extract import extract
from ansorlite.features.names import NAMES, NUM_FEATURES

__all__ = ["NAMES", "NUM_FEATURES", "extract"]

"""Measured programs as data sets: to train cost models on, and to judge them by."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.dataset.corpus import CorpusError, read_corpus, write_corpus
    from ansorlite.dataset.entry import Entry, Part
    from ansorlite.dataset.judging import Scores, judge
    from ansorlite.dataset.recorded import entries_of
    from ansorlite.dataset.splits import SPLITS, Split

__all__ = ["SPLITS", "CorpusError", "Entry", "Part", "Scores", "Split", "entries_of", "judge", "read_corpus", "write_corpus"]

_HOMES: Final = {
    "SPLITS": "ansorlite.dataset.splits",
    "CorpusError": "ansorlite.dataset.corpus",
    "Entry": "ansorlite.dataset.entry",
    "Part": "ansorlite.dataset.entry",
    "Scores": "ansorlite.dataset.judging",
    "Split": "ansorlite.dataset.splits",
    "entries_of": "ansorlite.dataset.recorded",
    "judge": "ansorlite.dataset.judging",
    "read_corpus": "ansorlite.dataset.corpus",
    "write_corpus": "ansorlite.dataset.corpus",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)

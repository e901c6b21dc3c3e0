"""Records of the schemas before 3, which become today's. Only who has such records loads what derives their programs."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.records.older.conversion import Converter, convert_table, converted

__all__ = ["Converter", "convert_table", "converted"]

_HOMES: Final = {
    "Converter": "ansorlite.records.older.conversion",
    "convert_table": "ansorlite.records.older.conversion",
    "converted": "ansorlite.records.older.conversion",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)

"""What differs from one kind of machine to the next: a row of a table for each; and how its programs are made by that row."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.platforms.finish import build, finished
    from ansorlite.platforms.table import PLATFORMS, platform_of

__all__ = ["PLATFORMS", "build", "finished", "platform_of"]

_HOMES: Final = {
    "PLATFORMS": "ansorlite.platforms.table",
    "build": "ansorlite.platforms.finish",
    "finished": "ansorlite.platforms.finish",
    "platform_of": "ansorlite.platforms.table",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)

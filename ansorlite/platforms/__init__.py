"""What differs from one kind of machine to the next: a row of a table for each; and how its programs are made by that row."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.platforms.finish import build, build_preparing, finished, stand_in
    from ansorlite.platforms.table import PLATFORMS, platform_of

__all__ = ["PLATFORMS", "build", "build_preparing", "finished", "platform_of", "stand_in"]

_HOMES: Final = {
    "PLATFORMS": "ansorlite.platforms.table",
    "build": "ansorlite.platforms.finish",
    "build_preparing": "ansorlite.platforms.finish",
    "finished": "ansorlite.platforms.finish",
    "platform_of": "ansorlite.platforms.table",
    "stand_in": "ansorlite.platforms.finish",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)

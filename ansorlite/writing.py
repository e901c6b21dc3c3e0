"""Files that are written where the user says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ansorlite.errors import ArgumentError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What goes wrong with the file or folder at ``path`` inside is told as the user's mistake.

    Raises:
        ArgumentError: it cannot be written: no such folder, no right to, no space left.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ArgumentError(
            f"{path} cannot be written ({error.strerror}); free some space there, or give another path"
        ) from error

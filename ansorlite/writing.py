"""Files that are written where the user says."""

from __future__ import annotations

import secrets
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
        reason = error.strerror or error  # numpy gives no number
        raise ArgumentError(f"{path} cannot be written ({reason}); free some space there, or give another path") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to be written inside, which then takes the place of ``path``: whole, or not at all.

    Whoever has the file open that was there goes on undisturbed.

    Raises:
        ArgumentError: as :func:`writing`.
    """
    # Two who write one file at a time do not write one another's.
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    with writing(path):
        try:
            yield new
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)

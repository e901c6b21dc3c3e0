"""Files that are written where the user says."""

from __future__ import annotations

import secrets
import shutil
import tempfile
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


def make_temporary_folder() -> Path:
    """A new folder that only this user may look into, and the caller removes.

    Raises:
        ArgumentError: there is no place for such.
    """
    try:
        return Path(tempfile.mkdtemp(prefix="ansorlite-"))
    except OSError as error:
        reason = error.strerror or error
        raise ArgumentError(f"there is no folder for temporary files ({reason}); set TMPDIR to one") from error


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """The same for the time of a ``with``.

    Raises:
        ArgumentError: as for that function.
    """
    folder = make_temporary_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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

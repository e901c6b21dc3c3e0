"""Folders for files that nobody needs once a process is over."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Final

from ansorlite.errors import ArgumentError

#: How the names begin of folders that may be removed once their process is over.
_PREFIX: Final = "ansorlite-work-"

#: Seconds for which a folder stays whatever happens: it is made first, and locked then.
_FRESH: Final = 60.0


def make_folder(prefix: str) -> Path:
    """A new folder among the temporary files that only this user may look into. Nobody removes it but the caller.

    Raises:
        ArgumentError: there is no place for such.
    """
    try:
        return Path(tempfile.mkdtemp(prefix=prefix))
    except OSError as error:
        reason = error.strerror or error
        raise ArgumentError(f"there is no folder for temporary files ({reason}); set TMPDIR to one") from error


class TemporaryFolder:
    """A new folder that only this user may look into, until it is closed; as a context manager it gives its path.

    It is locked as long as this process lives: one whose process was killed is removed by the next process that makes one beside
    it.

    Attributes:
        path: where it is.
    """

    def __init__(self) -> None:
        """
        Raises:
            ArgumentError: there is no place for such.
        """
        _remove_abandoned(tempfile.gettempdir())
        self.path = make_folder(_PREFIX)
        self._lock = _locked(self.path)

    def close(self) -> None:
        """Remove it. Closing twice does nothing."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _locked(folder: Path) -> int | None:
    """A descriptor of the folder, locked until that is closed; ``None`` where it is locked already, or has no locks."""
    descriptor = None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if descriptor is not None:
            os.close(descriptor)
        return None
    return descriptor


@cache
def _remove_abandoned(place: str) -> None:
    """Remove what killed processes of this user left in ``place``; once a process."""
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and _is_old(entry) and (lock := _locked(Path(entry.path))) is not None:
                shutil.rmtree(entry.path, ignore_errors=True)
                os.close(lock)


def _is_old(entry: os.DirEntry[str]) -> bool:
    """Whether this user made it, and not just now."""
    try:
        facts = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # its owner removes it
        return False
    return facts.st_uid == os.getuid() and time.time() - facts.st_mtime > _FRESH

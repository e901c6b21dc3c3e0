"""The system's linker, or the compiler that calls it: object files into a shared library."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ansorlite.errors import TargetError

#: Compilers, which know their linker and its libraries; by preference. ``$CC`` comes before them.
_COMPILERS: Final = ("cc", "gcc", "clang")
#: Linkers by themselves.
_LINKERS: Final = ("ld", "ld.lld", "ld.gold")

#: The library's threads run its code until the process ends, so it is never unloaded.
_OPTIONS: Final = ("-z", "nodelete", "-z", "noexecstack", "-z", "now")


def link(objects: Sequence[Path], output: Path, exports: Sequence[str], folder: Path) -> None:
    """Make the shared library ``output`` of ``objects``; only ``exports`` are visible outside.

    Args:
        folder: for files on the way.

    Raises:
        TargetError: there is no linker, or it fails.
    """
    script = folder / "exports"
    script.write_text(f"{{ global: {' '.join(f'{name};' for name in exports)} local: *; }};\n")
    options = [*_OPTIONS, "-soname", output.name, f"--version-script={script}"]
    # However many kernels there are, the command line stays short.
    listed = folder / "objects"
    listed.write_text("\n".join(f'"{path}"' for path in objects))
    command = [*_linker(options), "-o", str(output), f"@{listed}", *_LIBRARIES]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise TargetError(f"{command[0]} cannot be run ({error.strerror}); set CC to a compiler, or unset it") from error
    if done.returncode != 0:
        raise TargetError(f"{command[0]} cannot link the model: {' '.join(done.stderr.split())[-400:]}")


#: Named as any Linux with glibc has them, so that no development files are needed.
_LIBRARIES: Final = ("-l:libm.so.6", "-l:libc.so.6")


def _linker(options: Sequence[str]) -> list[str]:
    """The command, with ``options`` for the linker."""
    through = [word for option in options for word in ("-Xlinker", option)]
    if chosen := os.environ.get("CC"):
        return [*shlex.split(chosen), "-shared", *through]
    for name in _COMPILERS:
        if path := shutil.which(name):
            return [path, "-shared", *through]
    for name in _LINKERS:
        if path := shutil.which(name):
            return [path, "-shared", *options]
    programs = ", ".join((*_COMPILERS, *_LINKERS))
    raise TargetError(
        f"there is no linker ({programs}) to export with; install one, for example with the package gcc or binutils"
    )

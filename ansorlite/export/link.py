"""The system's linker, or the compiler that calls it: object files into a shared library."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import llvmlite.binding as llvm

from ansorlite import processor
from ansorlite.codegen.machine import machine
from ansorlite.errors import TargetError
from ansorlite.target import Target
from ansorlite.temporary import TemporaryFolder

#: Compilers, which know their linker and its libraries; by preference. ``$CC`` comes before them.
_COMPILERS: Final = ("cc", "gcc", "clang")
#: Linkers by themselves.
_LINKERS: Final = ("ld", "ld.lld", "ld.gold")

#: The library's threads run its code until the process ends, so it is never unloaded.
_OPTIONS: Final = ("-z", "nodelete", "-z", "noexecstack", "-z", "now")


def link(objects: Sequence[Path], output: Path, exports: Sequence[str], folder: Path, target: Target) -> None:
    """Make the shared library ``output`` of ``objects``; only ``exports`` are visible outside.

    Args:
        folder: for files on the way.
        target: what the objects are for.

    Raises:
        TargetError: there is no linker, or it fails.
    """
    script = folder / "exports"
    script.write_text(f"{{ global: {' '.join(f'{name};' for name in exports)} local: *; }};\n")
    options = [*_OPTIONS, "-soname", output.name, f"--version-script={script}"]
    # However many kernels there are, the command line stays short.
    listed = folder / "objects"
    listed.write_text("\n".join(f'"{path}"' for path in objects))
    libraries = _LIBRARIES if _native(target) else _stubs(folder, target)
    _run([*_linker(options, target), "-o", str(output), f"@{listed}", *libraries])


def link_loose(code: bytes, exports: Sequence[str], target: Target) -> bytes:
    """A shared library of one object file, which finds what it calls with whoever loads it, and can be unloaded.

    Raises:
        TargetError: there is no linker, or it fails.
    """
    with TemporaryFolder() as folder:
        script, given, output = folder / "exports", folder / "given.o", folder / "output.so"
        script.write_text(f"{{ global: {' '.join(f'{name};' for name in exports)} local: *; }};\n")
        given.write_bytes(code)
        options = ("-z", "noexecstack", "-z", "now", f"--version-script={script}")
        _run([*_linker(options, target), "-o", str(output), str(given)])
        return output.read_bytes()


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise TargetError(f"{command[0]} cannot be run ({error.strerror}); set CC to a compiler, or unset it") from error
    if done.returncode != 0:
        raise TargetError(f"{command[0]} cannot link the model: {' '.join(done.stderr.split())[-400:]}")


#: Named as any Linux with glibc has them, so that no development files are needed.
_NEEDED: Final = ("libm.so.6", "libc.so.6")
_LIBRARIES: Final = tuple(f"-l:{name}" for name in _NEEDED)


def _native(target: Target) -> bool:
    """Whether this machine's own linker does."""
    return target.architecture == processor.ARCHITECTURE


def _stubs(folder: Path, target: Target) -> list[str]:
    """Libraries with nothing in them but their names, for a machine whose own are not here: what is missing is found there."""
    empty = folder / "empty.o"
    empty.write_bytes(
        machine(target).emit_object(llvm.parse_assembly(f'target triple = "{target.triple}"', llvm.create_context()))
    )
    stubs = []
    for name in _NEEDED:
        stubs.append(str(folder / name))
        _run([*_linker(("-soname", name), target), "-o", stubs[-1], str(empty)])
    return stubs


def _cross_linker(options: Sequence[str], target: Target) -> list[str]:
    """A linker for another architecture."""
    for name in (f"{target.architecture}-linux-gnu-ld", "ld.lld"):
        if path := shutil.which(name):
            return [path, "-shared", *options]
    spec = importlib.util.find_spec("ziglang")
    if spec is not None and spec.origin is not None:
        return [str(Path(spec.origin).with_name("zig")), "ld.lld", "-shared", *options]
    raise TargetError(
        f"there is no linker for {target.architecture}; install one, for example with `pip install ziglang` or the package lld"
    )


def _linker(options: Sequence[str], target: Target) -> list[str]:
    """The command, with ``options`` for the linker."""
    if not _native(target):
        return _cross_linker(options, target)
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

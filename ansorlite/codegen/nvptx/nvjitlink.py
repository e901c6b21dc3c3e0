"""NVIDIA's library nvJitLink, which compiles PTX without a driver or a compiler's toolkit: PyTorch and CuPy's wheels bring it."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from ansorlite.errors import TargetError

#: Newest first; and where wheels have them, in the package ``nvidia``.
_NAMES: Final = ("libnvJitLink.so.13", "libnvJitLink.so.12")
_IN_WHEELS: Final = ("cu13/lib", "nvjitlink/lib")
#: In the names of functions: each library has those of all minor versions of its major one.
_VERSIONS: Final = ("13_0", "12_0")
#: Of the library's kinds of input.
_PTX: Final = 2


def _candidates() -> Iterator[str]:
    package = importlib.util.find_spec("nvidia")
    for folder in (package.submodule_search_locations or ()) if package else ():
        for inside in _IN_WHEELS:
            yield from (str(file) for name in _NAMES if (file := Path(folder) / inside / name).is_file())
    yield from _NAMES


@cache
def library() -> Any:
    """The library; ``None`` where there is none."""
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def link(ptx: bytes, processor: str) -> tuple[bytes, str]:
    """The machine code of ``ptx`` for ``processor``: ``"sm_90a"``; and what was told of registers.

    Raises:
        TargetError: there is no such library, or it refuses the program.
    """
    found = library()
    if found is None:
        raise TargetError("there is no nvJitLink: install nvidia-nvjitlink, or ptxas by nvidia-cuda-nvcc")
    call = _Calls(found)
    options = (ctypes.c_char_p * 2)(f"-arch={processor}".encode(), b"-verbose")
    handle = ctypes.c_void_p()
    call.checked("Create", ctypes.byref(handle), 2, options, handle=None)
    try:
        call.checked("AddData", handle, _PTX, ptx + b"\0", ctypes.c_size_t(len(ptx) + 1), b"kernel", handle=handle)
        call.checked("Complete", handle, handle=handle)
        cubin = call.bytes_of("LinkedCubin", handle)
        told = call.text_of("InfoLog", handle) + call.text_of("ErrorLog", handle)
    finally:
        call("Destroy", ctypes.byref(handle))
    return cubin, told


class _Calls:
    """Functions of the library, by what follows ``nvJitLink`` in their names."""

    def __init__(self, found: Any) -> None:
        self._library = found

    def __call__(self, name: str, *arguments: Any) -> int:
        for version in _VERSIONS:
            function = getattr(self._library, f"__nvJitLink{name}_{version}", None)
            if function is not None:
                return int(function(*arguments))
        raise TargetError(f"this nvJitLink has no function nvJitLink{name}; install a newer nvidia-nvjitlink")

    def checked(self, name: str, *arguments: Any, handle: Any) -> None:
        if status := self(name, *arguments):
            told = self.text_of("ErrorLog", handle) if handle is not None else ""
            raise TargetError(f"nvJitLink refuses the program (nvJitLink{name}: {status}): {told.strip()[:500]}")

    def bytes_of(self, name: str, handle: Any) -> bytes:
        size = ctypes.c_size_t()
        self.checked(f"Get{name}Size", handle, ctypes.byref(size), handle=None)
        content = ctypes.create_string_buffer(max(1, size.value))
        self.checked(f"Get{name}", handle, content, handle=None)
        return content.raw[: size.value]

    def text_of(self, name: str, handle: Any) -> str:
        return self.bytes_of(name, handle).rstrip(b"\0").decode(errors="replace")

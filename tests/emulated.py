"""Kernels for 64-bit Arm on a machine of another kind: run by qemu, their memory ending where unreadable memory begins.

One process of ``qemu-aarch64-static`` does what it is told through a pipe: fill memory, call a function, give memory back. All
else is done from here by calls of the C library's functions in it, the loading of a kernel too. So what runs is what would run
on such a machine: the machine code of LLVM, the thread team with its threads, the C library's mathematics.

It takes Debian's packages qemu-user-static and libc6-arm64-cross, and the linker in the Python package ziglang.
"""

from __future__ import annotations

import importlib.util
import itertools
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import llvmlite.binding as llvm
import numpy as np

from ansorlite.alignment import PAGE
from ansorlite.codegen import team
from ansorlite.codegen.machine import machine, optimise
from ansorlite.codegen.object import Object
from ansorlite.loops.nodes import Buffer
from ansorlite.runtime.team import spin
from ansorlite.target import NAMED, Target
from ansorlite.te import dtypes

_QEMU: Final = "qemu-aarch64-static"
_LIBRARIES: Final = Path("/usr/aarch64-linux-gnu")
#: Bytes of SVE's registers, at least.
_LEAST_SVE: Final = 16
#: Bytes of address space for a kernel's arrays.
_ARENA: Final = 1 << 32

_LAZY, _NOW, _GLOBAL = 1, 2, 0x100
_NONE, _READ_WRITE = 0, 3

# Commands are 8 words: fill the memory at [1] with [2] bytes that follow (0); send [2] bytes from [1] (1); call the function
# at [1] with the six words from [2] on, and send what it returns (2).
_SERVER: Final = """target triple = "aarch64-unknown-linux-gnu"
@command = internal global [8 x i64] zeroinitializer
@scratch = internal global [4096 x i8] zeroinitializer
@hello = internal global [2 x ptr] [ptr @dlsym, ptr @scratch]

define internal void @all(ptr %move, i32 %file, ptr %begin, i64 %size) noinline {
entry:
  br label %look
look:
  %done = phi i64 [ 0, %entry ], [ %after, %more ]
  %left = sub i64 %size, %done
  %some = icmp ne i64 %left, 0
  br i1 %some, label %go, label %end
go:
  %at = getelementptr i8, ptr %begin, i64 %done
  %moved = call i64 %move(i32 %file, ptr %at, i64 %left)
  %alive = icmp sgt i64 %moved, 0
  br i1 %alive, label %more, label %dead
more:
  %after = add i64 %done, %moved
  br label %look
dead:
  call void @_exit(i32 0)
  unreachable
end:
  ret void
}

define void @_start() {
entry:
  call void @all(ptr @write, i32 1, ptr @hello, i64 16)
  br label %next
next:
  call void @all(ptr @read, i32 0, ptr @command, i64 64)
  %words = load [8 x i64], ptr @command
  %kind = extractvalue [8 x i64] %words, 0
  %where = extractvalue [8 x i64] %words, 1
  %at = inttoptr i64 %where to ptr
  %a = extractvalue [8 x i64] %words, 2
  switch i64 %kind, label %call [ i64 0, label %fill
                                  i64 1, label %send ]
fill:
  call void @all(ptr @read, i32 0, ptr %at, i64 %a)
  br label %next
send:
  call void @all(ptr @write, i32 1, ptr %at, i64 %a)
  br label %next
call:
  %b = extractvalue [8 x i64] %words, 3
  %c = extractvalue [8 x i64] %words, 4
  %d = extractvalue [8 x i64] %words, 5
  %e = extractvalue [8 x i64] %words, 6
  %f = extractvalue [8 x i64] %words, 7
  %result = call i64 %at(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f)
  store i64 %result, ptr @command
  call void @all(ptr @write, i32 1, ptr @command, i64 8)
  br label %next
}

declare i64 @read(i32, ptr, i64)
declare i64 @write(i32, ptr, i64)
declare ptr @dlsym(ptr, ptr)
declare void @_exit(i32)
"""


def obstacle() -> str | None:
    """What is missing here, as the end of a sentence; ``None``: nothing is."""
    if shutil.which(_QEMU) is None:
        return f"there is no {_QEMU}: apt-get install qemu-user-static"
    if not (_LIBRARIES / "lib" / "libc.so.6").exists():
        return "there is no C library for it: apt-get install libc6-arm64-cross"
    if importlib.util.find_spec("ziglang") is None:
        return "there is no linker for it: pip install ziglang"
    return None


def _linked(code: bytes, output: Path, *options: str) -> Path:
    spec = importlib.util.find_spec("ziglang")
    assert spec is not None
    assert spec.origin is not None
    file = output.with_suffix(".o")
    file.write_bytes(code)
    words = [str(Path(spec.origin).with_name("zig")), "ld.lld", "-o", str(output), *options, str(file)]
    subprocess.run(words, check=True, capture_output=True, text=True)
    return output


class Machine:
    """A process of another architecture, and the functions of the C library in it.

    Args:
        sve_bytes: length of SVE's registers.
    """

    def __init__(self, sve_bytes: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ansorlite-emulated-")
        self._serial = itertools.count()
        server = self._file("server")
        arm = NAMED["aarch64"]
        code = machine(arm).emit_object(llvm.parse_assembly(_SERVER, llvm.create_context()))
        libraries = [str(_LIBRARIES / "lib" / "libc.so.6"), "-dynamic-linker", "/lib/ld-linux-aarch64.so.1"]
        _linked(code, server, *libraries)
        words = [_QEMU, "-cpu", f"max,sve-max-vq={sve_bytes // 16}", "-L", str(_LIBRARIES), str(server)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._dlsym, self._scratch = struct.unpack("<2Q", self._receive(16))
        self._dlopen, self._dlclose, self._mprotect = (self.symbol(0, name) for name in ("dlopen", "dlclose", "mprotect"))
        private, anonymous, no_reserve = 0x2, 0x20, 0x4000
        minus_one = (1 << 64) - 1
        self._arena = self.call(self.symbol(0, "mmap"), 0, _ARENA, _NONE, private | anonymous | no_reserve, minus_one, 0)
        self._open("libm.so.6", _NOW | _GLOBAL)
        built = machine(arm).emit_object(optimise(team.text(arm, spin()), arm))
        self._open(str(_linked(built, self._file("team.so"), "-shared")), _NOW | _GLOBAL)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def load(self, code: bytes) -> int:
        """A handle of what is in an object file, for :meth:`symbol`."""
        return self._open(str(_linked(code, self._file(f"library{next(self._serial)}.so"), "-shared")), _NOW)

    def load_library(self, library: bytes) -> int:
        """The same of what is in a shared library."""
        file = self._file(f"given{next(self._serial)}.so")
        file.write_bytes(library)
        return self._open(str(file), _NOW)

    def unload(self, handle: int) -> None:
        self.call(self._dlclose, handle)

    def symbol(self, handle: int, name: str) -> int:
        """Where a function is; ``handle`` 0: of any library."""
        found = self.call(self._dlsym, handle, name.encode())
        assert found, name
        return found

    def run(self, functions: Sequence[int], arrays: Sequence[np.ndarray], blocks: Sequence[int]) -> None:
        """Call ``void function(void **addresses)`` one after another; what they write is in ``arrays`` afterwards.

        Args:
            arrays: contiguous ones. In the other process each ends where unreadable memory begins.
            blocks: bytes of further blocks of memory, which hold anything and begin at cache lines.
        """
        nbytes = [*(array.nbytes for array in arrays), *blocks, 8 * (len(arrays) + len(blocks))]
        self.call(self._mprotect, self._arena, _ARENA, _NONE)
        addresses, end = [], self._arena
        for number, size in enumerate(nbytes):
            begin, pages = end + PAGE, max(1, -(-size // PAGE) + (number >= len(arrays)))
            end = begin + pages * PAGE
            assert end < self._arena + _ARENA
            self.call(self._mprotect, begin, end - begin, _READ_WRITE)
            addresses.append(end - size if number < len(arrays) else (end - size) // 64 * 64)
        for address, array in zip(addresses, arrays, strict=False):
            self._fill(address, array.tobytes())
        *given, table = addresses
        self._fill(table, struct.pack(f"<{len(given)}Q", *given))
        for function in functions:
            self.call(function, table)
        for address, array in zip(addresses, arrays, strict=False):
            self._send(1, address, array.nbytes)
            array[...] = np.frombuffer(self._receive(array.nbytes), array.dtype).reshape(array.shape)

    def call_on(self, function: int, instance: int, *arrays: np.ndarray) -> np.ndarray:
        """Call ``void function(void *instance, ...)`` with the addresses of copies; what the last of them is afterwards."""
        begin, end, addresses = self._arena + PAGE, self._arena + PAGE, []
        for array in arrays:
            addresses.append(end)
            end += -(-array.nbytes // 64) * 64
        self.call(self._mprotect, begin, -(-(end - begin) // PAGE) * PAGE, _READ_WRITE)
        for address, array in zip(addresses, arrays, strict=True):
            self._fill(address, array.tobytes())
        self.call(function, instance, *addresses)
        self._send(1, addresses[-1], arrays[-1].nbytes)
        return np.frombuffer(self._receive(arrays[-1].nbytes), arrays[-1].dtype).reshape(arrays[-1].shape)

    def _file(self, name: str) -> Path:
        return Path(self._folder.name) / name

    def _open(self, path: str, mode: int) -> int:
        handle = self.call(self._dlopen, path.encode(), mode)
        if not handle:
            told = self.call(self.symbol(0, "dlerror"))
            self._send(1, told, 200)
            raise RuntimeError(self._receive(200).split(b"\0")[0].decode())
        return handle

    def call(self, function: int, *arguments: int | bytes) -> int:
        """Call a function of up to six integers and addresses; of bytes, it is given the address of a copy with a zero behind."""
        end = self._scratch
        words = []
        for argument in arguments:
            words.append(end if isinstance(argument, bytes) else argument)
            if isinstance(argument, bytes):
                self._fill(end, argument + b"\0")
                end += len(argument) + 1
        self._send(2, function, *words)
        (result,) = struct.unpack("<Q", self._receive(8))
        return int(result)

    def _fill(self, address: int, data: bytes) -> None:
        self._send(0, address, len(data), data=data)

    def _send(self, *words: int, data: bytes = b"") -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(struct.pack("<8Q", *words, *[0] * (8 - len(words))) + data)
            self._process.stdin.flush()
        except BrokenPipeError:
            self._died()

    def _receive(self, nbytes: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(nbytes)
        if len(data) < nbytes:
            self._died()
        return data

    def _died(self) -> None:
        _, told = self._process.communicate()
        started.cache_clear()
        raise RuntimeError(f"the emulated process ended with code {self._process.returncode}: {told.decode().strip()}")


@cache
def started(sve_bytes: int) -> Machine:
    """The one machine of that kind."""
    return Machine(sve_bytes)


class EmulatedKernel:
    """A kernel in the other process; so much of :class:`ansorlite.runtime.kernel.Kernel` as tests need."""

    def __init__(self, compiled: Object, params: Sequence[Buffer], target: Target) -> None:
        assert compiled.target == target.key
        self._compiled = compiled
        self._params = tuple(params)
        self._sve_bytes = target.sve_bytes or _LEAST_SVE

    def bind(self, *arrays: np.ndarray) -> Callable[[], None]:
        """A call on these arrays, inputs then outputs, of the parameters' dtypes. What is constant is prepared by the call."""
        for array, buffer in zip(arrays, self._params, strict=True):
            assert array.dtype == dtypes.NUMPY[buffer.dtype]
            assert array.nbytes == buffer.nbytes
        return lambda: self._run(arrays)

    def _run(self, arrays: Sequence[np.ndarray]) -> None:
        there, compiled = started(self._sve_bytes), self._compiled
        handle = there.load(compiled.code)
        names = [*([compiled.prepare] if compiled.prepared else []), compiled.entry]
        copies = [np.ascontiguousarray(array) for array in arrays]
        workspace = max(compiled.workspace, compiled.prepare_workspace)
        there.run([there.symbol(handle, name) for name in names], copies, [workspace, compiled.prepared])
        there.unload(handle)
        inputs = len(arrays) - compiled.outputs
        for array, copy in zip(arrays[:inputs], copies, strict=False):
            assert array.tobytes() == copy.tobytes(), "an input was written to"
        for array, copy in zip(arrays[inputs:], copies[inputs:], strict=True):
            array[...] = copy.reshape(array.shape)

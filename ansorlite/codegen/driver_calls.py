"""Functions of LLVM IR that call an NVIDIA driver, which is found when they run, and a module of them with tables and texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ansorlite.codegen.builder import Builder, Module
from ansorlite.target import Target

#: What the names of all that is defined begin with.
PREFIX: Final = "ansorlite_gpu_"
#: Bytes of the message.
MESSAGE: Final = 512
#: What is called of the driver's library: names of symbols, of which some have versions.
CALLED: Final = {
    "cuInit": "cuInit",
    "cuDeviceGet": "cuDeviceGet",
    "cuDeviceGetAttribute": "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain": "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease": "cuDevicePrimaryCtxRelease_v2",
    "cuCtxPushCurrent": "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent": "cuCtxPopCurrent_v2",
    "cuModuleLoadData": "cuModuleLoadData",
    "cuModuleUnload": "cuModuleUnload",
    "cuModuleGetFunction": "cuModuleGetFunction",
    "cuFuncSetAttribute": "cuFuncSetAttribute",
    "cuMemAlloc": "cuMemAlloc_v2",
    "cuMemFree": "cuMemFree_v2",
    "cuMemcpyAsync": "cuMemcpyAsync",
    "cuPointerGetAttribute": "cuPointerGetAttribute",
    "cuStreamSynchronize": "cuStreamSynchronize",
    "cuLaunchKernel": "cuLaunchKernel",
    "cuEventCreate": "cuEventCreate",
    "cuEventRecord": "cuEventRecord",
    "cuEventElapsedTime": "cuEventElapsedTime",
    "cuEventDestroy": "cuEventDestroy_v2",
    "cuGetErrorName": "cuGetErrorName",
}


class DriverModule(Module):
    """A module of such functions."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._strings: dict[str, str] = {}

    def table(self, name: str, kind: str, items: Sequence[str]) -> None:
        """An array of constants, with one more of zeros: it has a place where it is empty."""
        content = ", ".join([*(f"{kind} {item}" for item in items), f"{kind} zeroinitializer"])
        name = f"{PREFIX}{name}"
        self.define(name, f"@{name} = internal constant [{len(items) + 1} x {kind}] [{content}], align 16")

    def data(self, name: str, content: bytes) -> None:
        escaped = "".join(f"\\{byte:02X}" for byte in content)
        self.define(name, f'@{name} = internal constant [{len(content)} x i8] c"{escaped}", align 64')

    def string(self, text: str) -> str:
        """Where C's string ``text`` is."""
        if text not in self._strings:
            self._strings[text] = f"{PREFIX}text{len(self._strings)}"
            self.data(self._strings[text], text.encode() + b"\0")
        return f"@{self._strings[text]}"


class DriverFunction(Builder):
    """Writes one function of a module."""

    module: DriverModule

    def __init__(self, module: DriverModule, name: str, result: str, parameters: str = "") -> None:
        """``name`` without :data:`PREFIX`; ``result`` is its type."""
        super().__init__(module, f"internal {result} @{PREFIX}{name}({parameters}) nounwind")
        self._name = f"{PREFIX}{name}"

    def place(self, kind: str) -> str:
        """A place on the stack."""
        return self.at_entry(f"alloca {kind}, align 16")

    def ask(self, name: str, *arguments: str) -> str:
        """Call a function of the driver; the name of its answer."""
        number = list(CALLED).index(name)
        place = self.op(f"getelementptr ptr, ptr @{PREFIX}driver, i64 {number}")
        function = self.op(f"load ptr, ptr {place}, align 8")
        return self.op(f"call i32 {function}({', '.join(arguments)})")

    def must(self, failed: str, what: str, name: str, *arguments: str) -> None:
        """The same; where it does not answer 0, say so and go to ``failed``."""
        result = self.ask(name, *arguments)
        wrong, right = self.label("wrong"), self.label("right")
        self.branch(self.op(f"icmp eq i32 {result}, 0"), right, wrong)
        self.start(wrong)
        self.do(f"call void @{PREFIX}fail(i32 {result}, ptr {self.module.string(what)})")
        self.jump(failed)
        self.start(right)

    def tell(self, form: str, *arguments: str) -> None:
        """Write the message, as C's ``printf`` does."""
        into = f"ptr @{PREFIX}message, i64 {MESSAGE}"
        self.do(f"call i32 (ptr, i64, ptr, ...) @snprintf({into}, ptr {form}, {', '.join(arguments)})")

    @contextmanager
    def loop(self, count: str) -> Iterator[str]:
        """What is written within is done for each number below ``count``, an i64; gives that number."""
        place, head, body, end = self.place("i64"), self.label("head"), self.label("body"), self.label("end")
        self.do(f"store i64 0, ptr {place}, align 8")
        self.jump(head)
        self.start(head)
        number = self.op(f"load i64, ptr {place}, align 8")
        self.branch(self.op(f"icmp slt i64 {number}, {count}"), body, end)
        self.start(body)
        yield number
        self.do(f"store i64 {self.op(f'add i64 {number}, 1')}, ptr {place}, align 8")
        self.jump(head)
        self.start(end)

    @contextmanager
    def where(self, condition: str) -> Iterator[None]:
        """What is written within is done where ``condition`` is true."""
        then, end = self.label("then"), self.label("end")
        self.branch(condition, then, end)
        self.start(then)
        yield
        self.jump(end)
        self.start(end)

    def done(self) -> None:
        """Add it to the module."""
        self.module.define(self._name, self.text())

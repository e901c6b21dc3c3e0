"""A whole model on an NVIDIA GPU as LLVM IR: machine code as constants, and calls of the driver, which is found when it runs.

Nothing but the driver's library is needed, ``libcuda.so.1``: no toolkit, no compiler. What is defined:

``i32 connect()`` finds the driver; it answers 0 if it cannot. ``ptr make(i32 device, ptr weights)`` loads the kernels, and makes
an instance with the weights and room for temporaries on a GPU, or null. ``i32 go(ptr instance, ptr stream, i32 wait, ptr
pointers)`` runs the model on one array for each input and output, of the GPU (used where it is) or of the host (copied); it
answers 0, or the driver's number of an error. ``void unmake(ptr instance)`` gives back all. What went wrong is one sentence in
``message``, and a number in ``code``, each thread's own. All are hidden in the library, with :data:`PREFIX` before their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from ansorlite.alignment import DEVICE_ALIGNMENT, aligned
from ansorlite.codegen.entry import Address, Call, EntryStep, Move
from ansorlite.codegen.object import DeviceObject, Form
from ansorlite.loops.kernel_module import When

#: What the names of all that is defined begin with.
PREFIX: Final = "ansorlite_gpu_"
#: Bytes of the message.
MESSAGE: Final = 512
#: The driver's library, and what is called of it: names of symbols, of which some have versions.
LIBRARY: Final = "libcuda.so.1"
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
    "cuGetErrorName": "cuGetErrorName",
}

#: Numbers of the driver's interface.
_MAJOR, _MINOR = 75, 76
_SHARED_ATTRIBUTE: Final = 8
_MEMORY_TYPE: Final = 2
_ON_DEVICE: Final = 2
#: Shared memory of a block beyond this must be asked for.
_COMMON_SHARED: Final = 48 << 10
_NOW: Final = 2


@dataclass(frozen=True, eq=False)
class GpuModel:
    """A whole model as launches and copies.

    Attributes:
        steps: in order; blocks of memory by number: temporaries, weights, each input, each output.
        kernels: by the names that the steps call them by.
        values: bytes of each input and output.
        inputs: how many of them are inputs.
        temporaries, weights: bytes.
        processor: LLVM's name of the GPU's kind: ``"sm_90a"``.
    """

    steps: Sequence[EntryStep]
    kernels: Mapping[str, DeviceObject]
    values: Sequence[int]
    inputs: int
    temporaries: int
    weights: int
    processor: str


@dataclass(frozen=True)
class _Step:
    """A launch of the function with that number; or a copy of ``nbytes``, without one, from the first slot to the second."""

    function: int
    grid: int
    threads: int
    shared: int
    slots: tuple[Address, ...]
    nbytes: int


class _Function:
    """Writes one function. Stack slots are made at its entry, and values have names that are numbers."""

    def __init__(self, text: _Text, head: str) -> None:
        self._text = text
        self._head = head
        self._entry: list[str] = []
        self._lines: list[str] = []
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def do(self, line: str) -> None:
        self._lines.append(f"  {line}")

    def op(self, operation: str) -> str:
        """The name of the result."""
        name = f"%{self.name()}"
        self.do(f"{name} = {operation}")
        return name

    def slot(self, kind: str) -> str:
        """A place on the stack."""
        name = f"%{self.name()}"
        self._entry.append(f"  {name} = alloca {kind}, align 16")
        return name

    def label(self, name: str) -> None:
        self._lines.append(f"{name}:")

    def call(self, name: str, *arguments: str) -> str:
        """Of the driver; the name of its answer."""
        number = list(CALLED).index(name)
        place = self.op(f"getelementptr ptr, ptr @{PREFIX}driver, i64 {number}")
        function = self.op(f"load ptr, ptr {place}, align 8")
        return self.op(f"call i32 {function}({', '.join(arguments)})")

    def must(self, failed: str, what: str, name: str, *arguments: str) -> None:
        """The same; where it does not answer 0, say so and go to ``failed``."""
        result = self.call(name, *arguments)
        good = self.op(f"icmp eq i32 {result}, 0")
        wrong, right = self.name(), self.name()
        self.do(f"br i1 {good}, label %{right}, label %{wrong}")
        self.label(wrong)
        self.do(f"call void @{PREFIX}fail(i32 {result}, ptr {self._text.string(what)})")
        self.do(f"br label %{failed}")
        self.label(right)

    @contextmanager
    def loop(self, count: str) -> Iterator[str]:
        """What is written within is done for each number below ``count``, an i64; gives that number."""
        place, head, body, end = self.slot("i64"), self.name(), self.name(), self.name()
        self.do(f"store i64 0, ptr {place}, align 8")
        self.do(f"br label %{head}")
        self.label(head)
        number = self.op(f"load i64, ptr {place}, align 8")
        more = self.op(f"icmp slt i64 {number}, {count}")
        self.do(f"br i1 {more}, label %{body}, label %{end}")
        self.label(body)
        yield number
        self.do(f"store i64 {self.op(f'add i64 {number}, 1')}, ptr {place}, align 8")
        self.do(f"br label %{head}")
        self.label(end)

    @contextmanager
    def where(self, condition: str) -> Iterator[None]:
        """What is written within is done where ``condition`` is true."""
        then, end = self.name(), self.name()
        self.do(f"br i1 {condition}, label %{then}, label %{end}")
        self.label(then)
        yield
        self.do(f"br label %{end}")
        self.label(end)

    def done(self) -> None:
        """Add it to the module."""
        self._text.parts.append("\n".join([f"{self._head} nounwind {{", "entry:", *self._entry, *self._lines, "}"]))


class _Text:
    """Writes a module."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._strings: dict[str, str] = {}

    def constant(self, name: str, kind: str, items: Sequence[str]) -> None:
        """An array of them, with one more of zeros: it has a place where it is empty."""
        content = ", ".join([*(f"{kind} {item}" for item in items), f"{kind} zeroinitializer"])
        self.parts.append(f"@{PREFIX}{name} = internal constant [{len(items) + 1} x {kind}] [{content}], align 16")

    def data(self, name: str, content: bytes) -> None:
        self.parts.append(f'@{name} = internal constant [{len(content)} x i8] c"{_escaped(content)}", align 64')

    def string(self, text: str) -> str:
        """Where C's string ``text`` is."""
        if text not in self._strings:
            self._strings[text] = f"{PREFIX}text{len(self._strings)}"
            self.data(self._strings[text], text.encode() + b"\0")
        return f"@{self._strings[text]}"


def _escaped(content: bytes) -> str:
    return "".join(f"\\{byte:02X}" for byte in content)


def text(model: GpuModel, triple: str) -> str:
    """The LLVM IR of a module for the host."""
    into = _Text()
    images = {name: number for number, name in enumerate(model.kernels)}
    for name, number in images.items():
        # PTX is C's string.
        into.data(f"{PREFIX}image{number}", model.kernels[name].code + b"\0")
    into.constant("images", "ptr", [f"@{PREFIX}image{number}" for number in images.values()])
    functions = _functions(model)
    into.constant(
        "functions",
        _FUNCTION,
        [
            f"{{ i64 {images[kernel]}, i64 {shared}, ptr {into.string(symbol)} }}"
            for (kernel, symbol), shared in functions.items()
        ],
    )
    steps = list(_steps(model, list(functions)))
    first = accumulate((len(step.slots) for step in steps), initial=0)
    into.constant(
        "steps",
        _STEP,
        [
            f"{{ i64 {step.function}, i32 {step.grid}, i32 {step.threads}, i32 {step.shared}, i32 0, i64 {begin}, "
            f"i64 {len(step.slots)}, i64 {step.nbytes} }}"
            for step, begin in zip(steps, first, strict=False)
        ],
    )
    into.constant("slots", _SLOT, [f"{{ i64 {slot.base}, i64 {slot.offset} }}" for step in steps for slot in step.slots])
    places = list(accumulate(map(aligned, model.values), initial=aligned(model.temporaries)))
    into.constant("values", _SLOT, [f"{{ i64 {size}, i64 {place} }}" for size, place in zip(model.values, places, strict=False)])
    into.constant("names", "ptr", [into.string(symbol) for symbol in CALLED.values()])
    into.parts.append(
        f"@{PREFIX}driver = internal global [{len(CALLED)} x ptr] zeroinitializer, align 16\n"
        f"@{PREFIX}connected = internal global i8 0\n"
        f"@{PREFIX}message = hidden thread_local global [{MESSAGE} x i8] zeroinitializer, align 16\n"
        f"@{PREFIX}code = hidden thread_local global i32 0\n" + _DECLARED
    )
    sizes = _Sizes(len(images), len(functions), len(steps), max((len(step.slots) for step in steps), default=0), places[-1])
    _fail(into)
    _connect(into)
    _make(into, model, sizes)
    _unmake(into, sizes)
    _go(into, model, sizes)
    return "\n".join([f'target triple = "{triple}"', *into.parts, ""])


_FUNCTION: Final = "{ i64, i64, ptr }"
_STEP: Final = "{ i64, i32, i32, i32, i32, i64, i64, i64 }"
_SLOT: Final = "{ i64, i64 }"
#: Of an instance: its context, device, weights and room; behind these its modules, then its functions, 8 bytes each.
_CONTEXT, _DEVICE, _WEIGHTS, _ROOM, _HEAD = 0, 8, 16, 24, 32
_DECLARED: Final = """declare ptr @dlopen(ptr, i32)
declare ptr @dlsym(ptr, ptr)
declare ptr @dlerror()
declare ptr @calloc(i64, i64)
declare void @free(ptr)
declare i32 @snprintf(ptr, i64, ptr, ...)
"""


@dataclass(frozen=True)
class _Sizes:
    """How many there are; of slots in one step, at most; and the bytes of the room."""

    images: int
    functions: int
    steps: int
    slots: int
    room: int


def _functions(model: GpuModel) -> dict[tuple[str, str], int]:
    """Kernel and symbol of each function that is launched in a call → bytes of shared memory that it must ask for."""
    return {
        (name, launch.symbol): launch.shared if launch.shared > _COMMON_SHARED else 0
        for name, kernel in model.kernels.items()
        for launch in kernel.at(When.CALL)
    }


def _steps(model: GpuModel, functions: Sequence[tuple[str, str]]) -> Iterator[_Step]:
    for step in model.steps:
        if isinstance(step, Move):
            yield _Step(-1, 0, 0, 0, (step.source, step.target), step.nbytes)
            continue
        for launch in model.kernels[step.entry].at(When.CALL):
            slots = tuple(_at(step, slot.base, slot.offset) for slot in launch.arguments)
            yield _Step(functions.index((step.entry, launch.symbol)), launch.grid, launch.threads, launch.shared, slots, 0)


def _at(call: Call, position: int, offset: int) -> Address:
    given = call.arguments[position]
    return Address(given.base, given.offset + offset)


def _fail(into: _Text) -> None:
    """Keep what the driver says, behind what was wanted of it."""
    f = _Function(into, f"define internal void @{PREFIX}fail(i32 %result, ptr %what)")
    name = f.slot("ptr")
    f.do(f"store ptr {into.string('an unknown error')}, ptr {name}, align 8")
    f.call("cuGetErrorName", "i32 %result", f"ptr {name}")
    told = f.op(f"load ptr, ptr {name}, align 8")
    f.do(f"store i32 %result, ptr @{PREFIX}code, align 4")
    _print(f, into.string("%s (%s)"), "ptr %what", f"ptr {told}")
    f.do("ret void")
    f.done()


def _print(f: _Function, form: str, *arguments: str) -> None:
    """Into the message."""
    f.do(f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr @{PREFIX}message, i64 {MESSAGE}, ptr {form}, {', '.join(arguments)})")


def _connect(into: _Text) -> None:
    f = _Function(into, f"define internal i32 @{PREFIX}connect()")
    known = f.op(f"load atomic i8, ptr @{PREFIX}connected acquire, align 1")
    f.do(f"br i1 {f.op(f'icmp ne i8 {known}, 0')}, label %found, label %open")
    f.label("open")
    f.do(f"store i32 -1, ptr @{PREFIX}code, align 4")
    library = f.op(f"call ptr @dlopen(ptr {into.string(LIBRARY)}, i32 {_NOW})")
    f.do(f"br i1 {f.op(f'icmp eq ptr {library}, null')}, label %none, label %look")
    f.label("look")
    symbol = f.slot("ptr")
    with f.loop(str(len(CALLED))) as number:
        name = f.op(f"load ptr, ptr {f.op(f'getelementptr ptr, ptr @{PREFIX}names, i64 {number}')}, align 8")
        f.do(f"store ptr {name}, ptr {symbol}, align 8")
        place = f.op(f"call ptr @dlsym(ptr {library}, ptr {name})")
        next_one = f.name()
        f.do(f"br i1 {f.op(f'icmp eq ptr {place}, null')}, label %old, label %{next_one}")
        f.label(next_one)
        f.do(f"store ptr {place}, ptr {f.op(f'getelementptr ptr, ptr @{PREFIX}driver, i64 {number}')}, align 8")
    f.do(f"store atomic i8 1, ptr @{PREFIX}connected release, align 1")
    f.do("br label %found")
    f.label("found")
    f.do("ret i32 1")
    f.label("none")
    reason = f.op("call ptr @dlerror()")
    _print(f, into.string("there is no NVIDIA driver here (%s); install it"), f"ptr {reason}")
    f.do("ret i32 0")
    f.label("old")
    lacking = f.op(f"load ptr, ptr {symbol}, align 8")
    _print(f, into.string("the NVIDIA driver is too old, it has no %s; install a newer one"), f"ptr {lacking}")
    f.do("ret i32 0")
    f.done()


def _make(into: _Text, model: GpuModel, sizes: _Sizes) -> None:
    f = _Function(into, f"define internal ptr @{PREFIX}make(i32 %device, ptr %weights)")
    handle, major, minor = f.slot("i32"), f.slot("i32"), f.slot("i32")
    connected = f.op(f"call i32 @{PREFIX}connect()")
    f.do(f"br i1 {f.op(f'icmp ne i32 {connected}, 0')}, label %begin, label %nothing")
    f.label("begin")
    f.must("nothing", "the NVIDIA driver does not start", "cuInit", "i32 0")
    f.must("nothing", "there is no GPU with that number", "cuDeviceGet", f"ptr {handle}", "i32 %device")
    device = f.op(f"load i32, ptr {handle}, align 4")
    for place, attribute in ((major, _MAJOR), (minor, _MINOR)):
        f.must(
            "nothing",
            "the GPU tells nothing of itself",
            "cuDeviceGetAttribute",
            f"ptr {place}",
            f"i32 {attribute}",
            f"i32 {device}",
        )
    numbers = [f.op(f"load i32, ptr {place}, align 4") for place in (major, minor)]
    f.do(f"br i1 {_suits(f, model, *numbers)}, label %suited, label %other")
    f.label("suited")
    model_at = f.op(f"call ptr @calloc(i64 1, i64 {_HEAD + 8 * (sizes.images + sizes.functions)})")
    f.do(f"br i1 {f.op(f'icmp eq ptr {model_at}, null')}, label %nothing, label %retain")
    f.label("retain")
    places = {
        offset: f.op(f"getelementptr i8, ptr {model_at}, i64 {offset}") for offset in (_CONTEXT, _DEVICE, _WEIGHTS, _ROOM, _HEAD)
    }
    modules, functions = places[_HEAD], f.op(f"getelementptr ptr, ptr {places[_HEAD]}, i64 {sizes.images}")
    f.do(f"store i32 {device}, ptr {places[_DEVICE]}, align 4")
    f.must("undo", "the GPU cannot be used", "cuDevicePrimaryCtxRetain", f"ptr {places[_CONTEXT]}", f"i32 {device}")
    context = f.op(f"load ptr, ptr {places[_CONTEXT]}, align 8")
    f.must("undo", "the GPU cannot be used", "cuCtxPushCurrent", f"ptr {context}")
    refused = "the driver refuses the model's code"
    with f.loop(str(sizes.images)) as number:
        image = f.op(f"load ptr, ptr {f.op(f'getelementptr ptr, ptr @{PREFIX}images, i64 {number}')}, align 8")
        f.must(
            "pop", refused, "cuModuleLoadData", f"ptr {f.op(f'getelementptr ptr, ptr {modules}, i64 {number}')}", f"ptr {image}"
        )
    with f.loop(str(sizes.functions)) as number:
        image, shared, name = _fields(f, _FUNCTION, "functions", number, "i64", "i64", "ptr")
        module = f.op(f"load ptr, ptr {f.op(f'getelementptr ptr, ptr {modules}, i64 {image}')}, align 8")
        place = f.op(f"getelementptr ptr, ptr {functions}, i64 {number}")
        f.must("pop", refused, "cuModuleGetFunction", f"ptr {place}", f"ptr {module}", f"ptr {name}")
        with f.where(f.op(f"icmp ne i64 {shared}, 0")):
            function, asked = f.op(f"load ptr, ptr {place}, align 8"), f.op(f"trunc i64 {shared} to i32")
            f.must(
                "pop",
                "the GPU has too little shared memory for the model",
                "cuFuncSetAttribute",
                f"ptr {function}",
                f"i32 {_SHARED_ATTRIBUTE}",
                f"i32 {asked}",
            )
    full = "the GPU has no memory left for the model; free some"
    f.must("pop", full, "cuMemAlloc", f"ptr {places[_WEIGHTS]}", f"i64 {max(1, model.weights)}")
    f.must("pop", full, "cuMemAlloc", f"ptr {places[_ROOM]}", f"i64 {max(1, sizes.room)}")
    if model.weights:
        target = f.op(f"load i64, ptr {places[_WEIGHTS]}, align 8")
        source = f.op("ptrtoint ptr %weights to i64")
        f.must("pop", "the GPU fails", "cuMemcpyAsync", f"i64 {target}", f"i64 {source}", f"i64 {model.weights}", "ptr null")
        f.must("pop", "the GPU fails", "cuStreamSynchronize", "ptr null")
    before = f.slot("ptr")
    f.call("cuCtxPopCurrent", f"ptr {before}")
    f.do(f"ret ptr {model_at}")
    f.label("pop")
    f.call("cuCtxPopCurrent", f"ptr {before}")
    f.do("br label %undo")
    f.label("undo")
    f.do(f"call void @{PREFIX}unmake(ptr {model_at})")
    f.do("br label %nothing")
    f.label("other")
    f.do(f"store i32 -1, ptr @{PREFIX}code, align 4")
    said = "the model was compiled for " + model.processor + ", and this GPU has compute capability %d.%d; export it for this one"
    _print(f, into.string(said), *(f"i32 {number}" for number in numbers))
    f.do("br label %nothing")
    f.label("nothing")
    f.do("ret ptr null")
    f.done()


def _suits(f: _Function, model: GpuModel, major: str, minor: str) -> str:
    """Whether a GPU of this compute capability runs the code: PTX later ones too, machine code those of its major version; what
    is for one alone (``sm_90a``), that one."""
    digits = model.processor.removeprefix("sm_")
    least = int(digits.removesuffix("a"))
    found = f.op(f"add i32 {f.op(f'mul i32 {major}, 10')}, {minor}")
    if digits.endswith("a"):
        return f.op(f"icmp eq i32 {found}, {least}")
    later = f.op(f"icmp sge i32 {found}, {least}")
    if all(kernel.form is Form.PTX for kernel in model.kernels.values()):
        return later
    return f.op(f"and i1 {later}, {f.op(f'icmp eq i32 {major}, {least // 10}')}")


def _fields(f: _Function, kind: str, table: str, number: str, *types: str) -> list[str]:
    """The first fields of an entry of a table."""
    entry = f.op(f"getelementptr {kind}, ptr @{PREFIX}{table}, i64 {number}")
    places = [f.op(f"getelementptr {kind}, ptr {entry}, i32 0, i32 {position}") for position in range(len(types))]
    return [
        f.op(f"load {each}, ptr {place}, align {8 if each in ('i64', 'ptr') else 4}")
        for each, place in zip(types, places, strict=True)
    ]


def _unmake(into: _Text, sizes: _Sizes) -> None:
    """Give back what an instance has got so far, and the instance."""
    f = _Function(into, f"define internal void @{PREFIX}unmake(ptr %model)")
    f.do(f"br i1 {f.op('icmp eq ptr %model, null')}, label %end, label %some")
    f.label("some")
    context = f.op("load ptr, ptr %model, align 8")
    before = f.slot("ptr")
    with f.where(f.op(f"icmp ne ptr {context}, null")):
        f.call("cuCtxPushCurrent", f"ptr {context}")
        for offset in (_ROOM, _WEIGHTS):
            address = f.op(f"load i64, ptr {f.op(f'getelementptr i8, ptr %model, i64 {offset}')}, align 8")
            with f.where(f.op(f"icmp ne i64 {address}, 0")):
                f.call("cuMemFree", f"i64 {address}")
        modules = f.op(f"getelementptr i8, ptr %model, i64 {_HEAD}")
        with f.loop(str(sizes.images)) as number:
            module = f.op(f"load ptr, ptr {f.op(f'getelementptr ptr, ptr {modules}, i64 {number}')}, align 8")
            with f.where(f.op(f"icmp ne ptr {module}, null")):
                f.call("cuModuleUnload", f"ptr {module}")
        f.call("cuCtxPopCurrent", f"ptr {before}")
        device = f.op(f"load i32, ptr {f.op(f'getelementptr i8, ptr %model, i64 {_DEVICE}')}, align 4")
        f.call("cuDevicePrimaryCtxRelease", f"i32 {device}")
    f.do("call void @free(ptr %model)")
    f.do("br label %end")
    f.label("end")
    f.do("ret void")
    f.done()


def _go(into: _Text, model: GpuModel, sizes: _Sizes) -> None:
    f = _Function(into, f"define internal i32 @{PREFIX}go(ptr %model, ptr %stream, i32 %wait, ptr %given)")
    count = len(model.values)
    bases, kind, before = f.slot(f"[{2 + count} x i64]"), f.slot("i32"), f.slot("ptr")
    words, parameters = f.slot(f"[{max(2, sizes.slots)} x i64]"), f.slot(f"[{max(2, sizes.slots)} x ptr]")
    context = f.op("load ptr, ptr %model, align 8")
    weights, room = (
        f.op(f"load i64, ptr {f.op(f'getelementptr i8, ptr %model, i64 {at}')}, align 8") for at in (_WEIGHTS, _ROOM)
    )
    functions = f.op(f"getelementptr i8, ptr %model, i64 {_HEAD + 8 * sizes.images}")
    failed = "the GPU fails: a program of this process, or of another one, has broken its memory or hangs"
    f.must("lost", failed, "cuCtxPushCurrent", f"ptr {context}")
    f.do(f"store i64 {room}, ptr {bases}, align 8")
    f.do(f"store i64 {weights}, ptr {f.op(f'getelementptr i64, ptr {bases}, i64 1')}, align 8")
    with f.loop(str(max(2, sizes.slots))) as number:
        word = f.op(f"getelementptr i64, ptr {words}, i64 {number}")
        f.do(f"store ptr {word}, ptr {f.op(f'getelementptr ptr, ptr {parameters}, i64 {number}')}, align 8")
    with f.loop(str(count)) as number:
        given = f.op(f"load i64, ptr {f.op(f'getelementptr i64, ptr %given, i64 {number}')}, align 8")
        size, offset = _fields(f, _SLOT, "values", number, "i64", "i64")
        f.do(f"store i32 0, ptr {kind}, align 4")
        told = f.call("cuPointerGetAttribute", f"ptr {kind}", f"i32 {_MEMORY_TYPE}", f"i64 {given}")
        there = f.op(f"icmp eq i32 {f.op(f'load i32, ptr {kind}, align 4')}, {_ON_DEVICE}")
        there = f.op(f"and i1 {there}, {f.op(f'icmp eq i32 {told}, 0')}")
        even = f.op(f"icmp eq i64 {f.op(f'and i64 {given}, {DEVICE_ALIGNMENT - 1}')}, 0")
        used = f.op(f"and i1 {there}, {even}")
        place = f.op(f"select i1 {used}, i64 {given}, i64 {f.op(f'add i64 {room}, {offset}')}")
        behind = f.op(f"add i64 {number}, 2")
        f.do(f"store i64 {place}, ptr {f.op(f'getelementptr i64, ptr {bases}, i64 {behind}')}, align 8")
        is_input = f.op(f"icmp slt i64 {number}, {model.inputs}")
        with f.where(f.op(f"and i1 {is_input}, {f.op(f'icmp ne i64 {place}, {given}')}")):
            f.must("pop", failed, "cuMemcpyAsync", f"i64 {place}", f"i64 {given}", f"i64 {size}", "ptr %stream")
    with f.loop(str(sizes.steps)) as number:
        types = ("i64", "i32", "i32", "i32", "i32", "i64", "i64", "i64")
        function, grid, threads, shared, _, begin, slots, size = _fields(f, _STEP, "steps", number, *types)
        with f.loop(slots) as position:
            base, offset = _fields(f, _SLOT, "slots", f.op(f"add i64 {begin}, {position}"), "i64", "i64")
            start = f.op(f"load i64, ptr {f.op(f'getelementptr i64, ptr {bases}, i64 {base}')}, align 8")
            word = f.op(f"getelementptr i64, ptr {words}, i64 {position}")
            f.do(f"store i64 {f.op(f'add i64 {start}, {offset}')}, ptr {word}, align 8")
        launches = f.op(f"icmp sge i64 {function}, 0")
        with f.where(launches):
            loaded = f.op(f"load ptr, ptr {f.op(f'getelementptr ptr, ptr {functions}, i64 {function}')}, align 8")
            blocks = (f"i32 {grid}", "i32 1", "i32 1", f"i32 {threads}", "i32 1", "i32 1")
            f.must(
                "pop",
                failed,
                "cuLaunchKernel",
                f"ptr {loaded}",
                *blocks,
                f"i32 {shared}",
                "ptr %stream",
                f"ptr {parameters}",
                "ptr null",
            )
        with f.where(f.op(f"xor i1 {launches}, true")):
            source = f.op(f"load i64, ptr {words}, align 8")
            target = f.op(f"load i64, ptr {f.op(f'getelementptr i64, ptr {words}, i64 1')}, align 8")
            f.must("pop", failed, "cuMemcpyAsync", f"i64 {target}", f"i64 {source}", f"i64 {size}", "ptr %stream")
    with f.loop(str(count - model.inputs)) as number:
        output = f.op(f"add i64 {number}, {model.inputs}")
        given = f.op(f"load i64, ptr {f.op(f'getelementptr i64, ptr %given, i64 {output}')}, align 8")
        (size,) = _fields(f, _SLOT, "values", output, "i64")
        behind = f.op(f"add i64 {output}, 2")
        place = f.op(f"load i64, ptr {f.op(f'getelementptr i64, ptr {bases}, i64 {behind}')}, align 8")
        with f.where(f.op(f"icmp ne i64 {place}, {given}")):
            f.must("pop", failed, "cuMemcpyAsync", f"i64 {given}", f"i64 {place}", f"i64 {size}", "ptr %stream")
    with f.where(f.op("icmp ne i32 %wait, 0")):
        f.must("pop", failed, "cuStreamSynchronize", "ptr %stream")
    f.call("cuCtxPopCurrent", f"ptr {before}")
    f.do("ret i32 0")
    f.label("pop")
    f.call("cuCtxPopCurrent", f"ptr {before}")
    f.do("br label %lost")
    f.label("lost")
    f.do(f"ret i32 {f.op(f'load i32, ptr @{PREFIX}code, align 4')}")
    f.done()

"""A whole model on an NVIDIA GPU as LLVM IR: machine code as constants, and calls of the driver, which is found when it runs.

Nothing but the driver's library is needed, ``libcuda.so.1``: no toolkit, no compiler. What is defined:

``i32 connect()`` finds the driver; it answers 0 if it cannot. ``ptr make(i32 device, ptr weights)`` loads the kernels, and makes
an instance with the weights and room for temporaries on a GPU, or null. ``i32 go(ptr instance, ptr stream, i32 wait, ptr
pointers)`` runs the model on one array for each input and output, of the GPU (used where it is) or of the host (copied); it
answers 0, or the driver's number of an error. ``i32 go_profiled(..., ptr nanoseconds)`` does the same, waits, and writes how
long each of the model's steps took, an i64, by the GPU's events. ``void unmake(ptr instance)`` gives back all. What went wrong
is one sentence in ``message``, and a number in ``code``, each thread's own. All are hidden in the library, with :data:`PREFIX`
before their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from ansorlite.alignment import DEVICE_ALIGNMENT, aligned
from ansorlite.codegen.driver_calls import CALLED, PREFIX, DriverFunction, DriverModule
from ansorlite.codegen.entry import Address, Call, EntryStep, Move
from ansorlite.codegen.object import DeviceObject, Form
from ansorlite.loops.kernel_module import When
from ansorlite.target import Target

#: Bytes of the message.
MESSAGE: Final = 512
#: The driver's library.
LIBRARY: Final = "libcuda.so.1"

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
    """A launch of the function with that number; or a copy of ``nbytes``, without one, from the first slot to the second.

    ``begins``: how many of the model's steps begin with it: the last one, and those before that do nothing.
    """

    begins: int
    function: int
    grid: int
    threads: int
    shared: int
    slots: tuple[Address, ...]
    nbytes: int


def text(model: GpuModel, host: Target) -> str:
    """The LLVM IR of a module for the host."""
    into = DriverModule(host)
    images = {name: number for number, name in enumerate(model.kernels)}
    for name, number in images.items():
        # PTX is C's string.
        into.data(f"{PREFIX}image{number}", model.kernels[name].code + b"\0")
    into.table("images", "ptr", [f"@{PREFIX}image{number}" for number in images.values()])
    functions = _functions(model)
    into.table(
        "functions",
        _FUNCTION,
        [
            f"{{ i64 {images[kernel]}, i64 {shared}, ptr {into.string(symbol)} }}"
            for (kernel, symbol), shared in functions.items()
        ],
    )
    steps = list(_steps(model, list(functions)))
    first = accumulate((len(step.slots) for step in steps), initial=0)
    into.table(
        "steps",
        _STEP,
        [
            f"{{ i64 {step.function}, i32 {step.grid}, i32 {step.threads}, i32 {step.shared}, i32 {step.begins}, i64 {begin}, "
            f"i64 {len(step.slots)}, i64 {step.nbytes} }}"
            for step, begin in zip(steps, first, strict=False)
        ],
    )
    into.table("slots", _SLOT, [f"{{ i64 {slot.base}, i64 {slot.offset} }}" for step in steps for slot in step.slots])
    places = list(accumulate(map(aligned, model.values), initial=aligned(model.temporaries)))
    into.table("values", _SLOT, [f"{{ i64 {size}, i64 {place} }}" for size, place in zip(model.values, places, strict=False)])
    into.table("names", "ptr", [into.string(symbol) for symbol in CALLED.values()])
    into.define(f"{PREFIX}driver", f"@{PREFIX}driver = internal global [{len(CALLED)} x ptr] zeroinitializer, align 16")
    into.define(f"{PREFIX}connected", f"@{PREFIX}connected = internal global i8 0")
    message = f"@{PREFIX}message = hidden thread_local global [{MESSAGE} x i8] zeroinitializer, align 16"
    into.define(f"{PREFIX}message", message)
    into.define(f"{PREFIX}code", f"@{PREFIX}code = hidden thread_local global i32 0")
    for signature in _DECLARED:
        into.declare(signature)
    sizes = _Sizes(len(images), len(functions), len(steps), max((len(step.slots) for step in steps), default=0), places[-1])
    _fail(into)
    _connect(into)
    _make(into, model, sizes)
    _unmake(into, sizes)
    _go(into, model, sizes, profiled=False)
    _go(into, model, sizes, profiled=True)
    return into.text()


_FUNCTION: Final = "{ i64, i64, ptr }"
_STEP: Final = "{ i64, i32, i32, i32, i32, i64, i64, i64 }"
_SLOT: Final = "{ i64, i64 }"
#: Of an instance: its context, device, weights and room; behind these its modules, then its functions, 8 bytes each.
_CONTEXT, _DEVICE, _WEIGHTS, _ROOM, _HEAD = 0, 8, 16, 24, 32
#: What is called of the C library.
_DECLARED: Final = (
    "ptr @dlopen(ptr, i32)",
    "ptr @dlsym(ptr, ptr)",
    "ptr @dlerror()",
    "ptr @calloc(i64, i64)",
    "void @free(ptr)",
    "i32 @snprintf(ptr, i64, ptr, ...)",
)


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
    begins = 0
    for step in model.steps:
        begins += 1
        if isinstance(step, Move):
            yield _Step(begins, -1, 0, 0, 0, (step.source, step.target), step.nbytes)
            begins = 0
            continue
        for launch in model.kernels[step.entry].at(When.CALL):
            slots = tuple(_at(step, slot.base, slot.offset) for slot in launch.arguments)
            number = functions.index((step.entry, launch.symbol))
            yield _Step(begins, number, launch.grid, launch.threads, launch.shared, slots, 0)
            begins = 0


def _at(call: Call, position: int, offset: int) -> Address:
    given = call.arguments[position]
    return Address(given.base, given.offset + offset)


def _fail(into: DriverModule) -> None:
    """Keep what the driver says, behind what was wanted of it."""
    f = DriverFunction(into, "fail", "void", "i32 %result, ptr %what")
    name = f.place("ptr")
    f.do(f"store ptr {into.string('an unknown error')}, ptr {name}, align 8")
    f.ask("cuGetErrorName", "i32 %result", f"ptr {name}")
    told = f.op(f"load ptr, ptr {name}, align 8")
    f.do(f"store i32 %result, ptr @{PREFIX}code, align 4")
    _print(f, into.string("%s (%s)"), "ptr %what", f"ptr {told}")
    f.do("ret void")
    f.done()


def _print(f: DriverFunction, form: str, *arguments: str) -> None:
    """Into the message."""
    f.do(f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr @{PREFIX}message, i64 {MESSAGE}, ptr {form}, {', '.join(arguments)})")


def _connect(into: DriverModule) -> None:
    f = DriverFunction(into, "connect", "i32")
    known = f.op(f"load atomic i8, ptr @{PREFIX}connected acquire, align 1")
    f.branch(f.op(f"icmp ne i8 {known}, 0"), "found", "open")
    f.start("open")
    f.do(f"store i32 -1, ptr @{PREFIX}code, align 4")
    library = f.op(f"call ptr @dlopen(ptr {into.string(LIBRARY)}, i32 {_NOW})")
    f.branch(f.op(f"icmp eq ptr {library}, null"), "none", "look")
    f.start("look")
    symbol = f.place("ptr")
    with f.loop(str(len(CALLED))) as number:
        name = f.op(f"load ptr, ptr {f.op(f'getelementptr ptr, ptr @{PREFIX}names, i64 {number}')}, align 8")
        f.do(f"store ptr {name}, ptr {symbol}, align 8")
        place = f.op(f"call ptr @dlsym(ptr {library}, ptr {name})")
        next_one = f.label("next")
        f.branch(f.op(f"icmp eq ptr {place}, null"), "old", next_one)
        f.start(next_one)
        f.do(f"store ptr {place}, ptr {f.op(f'getelementptr ptr, ptr @{PREFIX}driver, i64 {number}')}, align 8")
    f.do(f"store atomic i8 1, ptr @{PREFIX}connected release, align 1")
    f.jump("found")
    f.start("found")
    f.do("ret i32 1")
    f.start("none")
    reason = f.op("call ptr @dlerror()")
    _print(f, into.string("there is no NVIDIA driver here (%s); install it"), f"ptr {reason}")
    f.do("ret i32 0")
    f.start("old")
    lacking = f.op(f"load ptr, ptr {symbol}, align 8")
    _print(f, into.string("the NVIDIA driver is too old, it has no %s; install a newer one"), f"ptr {lacking}")
    f.do("ret i32 0")
    f.done()


def _make(into: DriverModule, model: GpuModel, sizes: _Sizes) -> None:
    f = DriverFunction(into, "make", "ptr", "i32 %device, ptr %weights")
    handle, major, minor = f.place("i32"), f.place("i32"), f.place("i32")
    connected = f.op(f"call i32 @{PREFIX}connect()")
    f.branch(f.op(f"icmp ne i32 {connected}, 0"), "begin", "nothing")
    f.start("begin")
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
    f.branch(_suits(f, model, *numbers), "suited", "other")
    f.start("suited")
    model_at = f.op(f"call ptr @calloc(i64 1, i64 {_HEAD + 8 * (sizes.images + sizes.functions)})")
    f.branch(f.op(f"icmp eq ptr {model_at}, null"), "nothing", "retain")
    f.start("retain")
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
    before = f.place("ptr")
    f.ask("cuCtxPopCurrent", f"ptr {before}")
    f.do(f"ret ptr {model_at}")
    f.start("pop")
    f.ask("cuCtxPopCurrent", f"ptr {before}")
    f.jump("undo")
    f.start("undo")
    f.do(f"call void @{PREFIX}unmake(ptr {model_at})")
    f.jump("nothing")
    f.start("other")
    f.do(f"store i32 -1, ptr @{PREFIX}code, align 4")
    said = "the model was compiled for " + model.processor + ", and this GPU has compute capability %d.%d; export it for this one"
    _print(f, into.string(said), *(f"i32 {number}" for number in numbers))
    f.jump("nothing")
    f.start("nothing")
    f.do("ret ptr null")
    f.done()


def _suits(f: DriverFunction, model: GpuModel, major: str, minor: str) -> str:
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


def _fields(f: DriverFunction, kind: str, table: str, number: str, *types: str) -> list[str]:
    """The first fields of an entry of a table."""
    entry = f.op(f"getelementptr {kind}, ptr @{PREFIX}{table}, i64 {number}")
    places = [f.op(f"getelementptr {kind}, ptr {entry}, i32 0, i32 {position}") for position in range(len(types))]
    return [
        f.op(f"load {each}, ptr {place}, align {8 if each in ('i64', 'ptr') else 4}")
        for each, place in zip(types, places, strict=True)
    ]


def _unmake(into: DriverModule, sizes: _Sizes) -> None:
    """Give back what an instance has got so far, and the instance."""
    f = DriverFunction(into, "unmake", "void", "ptr %model")
    f.branch(f.op("icmp eq ptr %model, null"), "end", "some")
    f.start("some")
    context = f.op("load ptr, ptr %model, align 8")
    before = f.place("ptr")
    with f.where(f.op(f"icmp ne ptr {context}, null")):
        f.ask("cuCtxPushCurrent", f"ptr {context}")
        for offset in (_ROOM, _WEIGHTS):
            address = f.op(f"load i64, ptr {f.op(f'getelementptr i8, ptr %model, i64 {offset}')}, align 8")
            with f.where(f.op(f"icmp ne i64 {address}, 0")):
                f.ask("cuMemFree", f"i64 {address}")
        modules = f.op(f"getelementptr i8, ptr %model, i64 {_HEAD}")
        with f.loop(str(sizes.images)) as number:
            module = f.op(f"load ptr, ptr {f.op(f'getelementptr ptr, ptr {modules}, i64 {number}')}, align 8")
            with f.where(f.op(f"icmp ne ptr {module}, null")):
                f.ask("cuModuleUnload", f"ptr {module}")
        f.ask("cuCtxPopCurrent", f"ptr {before}")
        device = f.op(f"load i32, ptr {f.op(f'getelementptr i8, ptr %model, i64 {_DEVICE}')}, align 4")
        f.ask("cuDevicePrimaryCtxRelease", f"i32 {device}")
    f.do("call void @free(ptr %model)")
    f.jump("end")
    f.start("end")
    f.do("ret void")
    f.done()


def _go(into: DriverModule, model: GpuModel, sizes: _Sizes, *, profiled: bool) -> None:
    taken = "ptr %model, ptr %stream, i32 %wait, ptr %given"
    f = DriverFunction(into, "go_profiled" if profiled else "go", "i32", f"{taken}, ptr %nanoseconds" if profiled else taken)
    events = _Events(f, len(model.steps)) if profiled else None
    count = len(model.values)
    bases, kind, before = f.place(f"[{2 + count} x i64]"), f.place("i32"), f.place("ptr")
    words, parameters = f.place(f"[{max(2, sizes.slots)} x i64]"), f.place(f"[{max(2, sizes.slots)} x ptr]")
    context = f.op("load ptr, ptr %model, align 8")
    weights, room = (
        f.op(f"load i64, ptr {f.op(f'getelementptr i8, ptr %model, i64 {at}')}, align 8") for at in (_WEIGHTS, _ROOM)
    )
    functions = f.op(f"getelementptr i8, ptr %model, i64 {_HEAD + 8 * sizes.images}")
    failed = "the GPU fails: a program of this process, or of another one, has broken its memory or hangs"
    f.must("lost", failed, "cuCtxPushCurrent", f"ptr {context}")
    if events is not None:
        events.make(failed)
    f.do(f"store i64 {room}, ptr {bases}, align 8")
    f.do(f"store i64 {weights}, ptr {f.op(f'getelementptr i64, ptr {bases}, i64 1')}, align 8")
    with f.loop(str(max(2, sizes.slots))) as number:
        word = f.op(f"getelementptr i64, ptr {words}, i64 {number}")
        f.do(f"store ptr {word}, ptr {f.op(f'getelementptr ptr, ptr {parameters}, i64 {number}')}, align 8")
    with f.loop(str(count)) as number:
        given = f.op(f"load i64, ptr {f.op(f'getelementptr i64, ptr %given, i64 {number}')}, align 8")
        size, offset = _fields(f, _SLOT, "values", number, "i64", "i64")
        f.do(f"store i32 0, ptr {kind}, align 4")
        told = f.ask("cuPointerGetAttribute", f"ptr {kind}", f"i32 {_MEMORY_TYPE}", f"i64 {given}")
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
        function, grid, threads, shared, begins, begin, slots, size = _fields(f, _STEP, "steps", number, *types)
        if events is not None:
            with f.loop(f.op(f"zext i32 {begins} to i64")):
                events.record(failed)
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
    if events is not None:
        # Behind the last step, and for those behind it that do nothing.
        with f.loop(f.op(f"sub i64 {len(model.steps) + 1}, {events.recorded()}")):
            events.record(failed)
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
    if events is not None:
        events.tell(failed)
        events.unmake()
    f.ask("cuCtxPopCurrent", f"ptr {before}")
    f.do("ret i32 0")
    f.start("pop")
    if events is not None:
        events.unmake()
    f.ask("cuCtxPopCurrent", f"ptr {before}")
    f.jump("lost")
    f.start("lost")
    f.do(f"ret i32 {f.op(f'load i32, ptr @{PREFIX}code, align 4')}")
    f.done()


class _Events:
    """One before each step of the model, and one behind the last."""

    def __init__(self, f: DriverFunction, steps: int) -> None:
        self._f = f
        self._steps = steps
        self._events, self._next = f.place(f"[{steps + 1} x ptr]"), f.place("i64")
        self._milliseconds = f.place("float")
        f.do(f"store [{steps + 1} x ptr] zeroinitializer, ptr {self._events}, align 16")
        f.do(f"store i64 0, ptr {self._next}, align 8")

    def _at(self, number: str) -> str:
        return self._f.op(f"getelementptr ptr, ptr {self._events}, i64 {number}")

    def _event(self, number: str) -> str:
        return self._f.op(f"load ptr, ptr {self._at(number)}, align 8")

    def make(self, failed: str) -> None:
        f = self._f
        with f.loop(str(self._steps + 1)) as number:
            f.must("pop", failed, "cuEventCreate", f"ptr {self._at(number)}", "i32 0")

    def recorded(self) -> str:
        """How many have been."""
        return self._f.op(f"load i64, ptr {self._next}, align 8")

    def record(self, failed: str) -> None:
        """The next one."""
        f, number = self._f, self.recorded()
        f.must("pop", failed, "cuEventRecord", f"ptr {self._event(number)}", "ptr %stream")
        f.do(f"store i64 {f.op(f'add i64 {number}, 1')}, ptr {self._next}, align 8")

    def tell(self, failed: str) -> None:
        """Wait, and write how long each step took."""
        f = self._f
        f.must("pop", failed, "cuStreamSynchronize", "ptr %stream")
        with f.loop(str(self._steps)) as number:
            begin, end = self._event(number), self._event(f.op(f"add i64 {number}, 1"))
            f.must("pop", failed, "cuEventElapsedTime", f"ptr {self._milliseconds}", f"ptr {begin}", f"ptr {end}")
            wide = f.op(f"fpext float {f.op(f'load float, ptr {self._milliseconds}, align 4')} to double")
            whole = f.op(f"fptosi double {f.op(f'fmul double {wide}, 1.0e6')} to i64")
            f.do(f"store i64 {whole}, ptr {f.op(f'getelementptr i64, ptr %nanoseconds, i64 {number}')}, align 8")

    def unmake(self) -> None:
        f = self._f
        with f.loop(str(self._steps + 1)) as number:
            event = self._event(number)
            with f.where(f.op(f"icmp ne ptr {event}, null")):
                f.ask("cuEventDestroy", f"ptr {event}")

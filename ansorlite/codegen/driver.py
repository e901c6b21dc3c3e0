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

from typing import Final

from ansorlite.codegen import driver_go, driver_instance, driver_tables
from ansorlite.codegen.driver_calls import CALLED, MESSAGE, PREFIX, DriverFunction, DriverModule
from ansorlite.codegen.driver_tables import GpuModel
from ansorlite.target import Target

#: The driver's library.
LIBRARY: Final = "libcuda.so.1"
#: A number of the C library's: all that a library names is looked up when it is opened.
_NOW: Final = 2
#: What is called of the C library.
_DECLARED: Final = (
    "ptr @dlopen(ptr, i32)",
    "ptr @dlsym(ptr, ptr)",
    "ptr @dlerror()",
    "ptr @calloc(i64, i64)",
    "void @free(ptr)",
    "i32 @snprintf(ptr, i64, ptr, ...)",
)


def text(model: GpuModel, host: Target) -> str:
    """The LLVM IR of a module for the host."""
    into = DriverModule(host)
    sizes = driver_tables.write(into, model)
    into.table("names", "ptr", [into.string(symbol) for symbol in CALLED.values()])
    into.define(f"{PREFIX}driver", f"@{PREFIX}driver = internal global [{len(CALLED)} x ptr] zeroinitializer, align 16")
    into.define(f"{PREFIX}connected", f"@{PREFIX}connected = internal global i8 0")
    message = f"@{PREFIX}message = hidden thread_local global [{MESSAGE} x i8] zeroinitializer, align 16"
    into.define(f"{PREFIX}message", message)
    into.define(f"{PREFIX}code", f"@{PREFIX}code = hidden thread_local global i32 0")
    for signature in _DECLARED:
        into.declare(signature)
    _fail(into)
    _connect(into)
    driver_instance.make(into, model, sizes)
    driver_instance.unmake(into, sizes)
    driver_go.go(into, model, sizes, profiled=False)
    driver_go.go(into, model, sizes, profiled=True)
    return into.text()


def _fail(into: DriverModule) -> None:
    """Keep what the driver says, behind what was wanted of it."""
    f = DriverFunction(into, "fail", "void", "i32 %result, ptr %what")
    name = f.place("ptr")
    f.do(f"store ptr {into.string('an unknown error')}, ptr {name}, align 8")
    f.ask("cuGetErrorName", "i32 %result", f"ptr {name}")
    told = f.op(f"load ptr, ptr {name}, align 8")
    f.do(f"store i32 %result, ptr @{PREFIX}code, align 4")
    f.tell(into.string("%s (%s)"), "ptr %what", f"ptr {told}")
    f.do("ret void")
    f.done()


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
    f.tell(into.string("there is no NVIDIA driver here (%s); install it"), f"ptr {reason}")
    f.do("ret i32 0")
    f.start("old")
    lacking = f.op(f"load ptr, ptr {symbol}, align 8")
    f.tell(into.string("the NVIDIA driver is too old, it has no %s; install a newer one"), f"ptr {lacking}")
    f.do("ret i32 0")
    f.done()

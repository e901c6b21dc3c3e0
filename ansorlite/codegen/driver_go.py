"""One run of a model on an NVIDIA GPU: inputs in, its launches and copies in order, outputs out."""

from __future__ import annotations

from typing import Final

from ansorlite.alignment import DEVICE_ALIGNMENT
from ansorlite.codegen.driver_calls import PREFIX, DriverFunction, DriverModule
from ansorlite.codegen.driver_events import Events
from ansorlite.codegen.driver_instance import HEAD, ROOM, WEIGHTS
from ansorlite.codegen.driver_tables import SLOT, STEP, GpuModel, Sizes, fields

#: Numbers of the driver's interface.
_MEMORY_TYPE: Final = 2
_ON_DEVICE: Final = 2


def go(into: DriverModule, model: GpuModel, sizes: Sizes, *, profiled: bool) -> None:
    """Write ``go``, or ``go_profiled``, which times each step as well."""
    taken = "ptr %model, ptr %stream, i32 %wait, ptr %given"
    f = DriverFunction(into, "go_profiled" if profiled else "go", "i32", f"{taken}, ptr %nanoseconds" if profiled else taken)
    events = Events(f, len(model.steps)) if profiled else None
    count = len(model.values)
    bases, kind, before = f.place(f"[{2 + count} x i64]"), f.place("i32"), f.place("ptr")
    words, parameters = f.place(f"[{max(2, sizes.slots)} x i64]"), f.place(f"[{max(2, sizes.slots)} x ptr]")
    context = f.op("load ptr, ptr %model, align 8")
    weights, room = (f.op(f"load i64, ptr {f.op(f'getelementptr i8, ptr %model, i64 {at}')}, align 8") for at in (WEIGHTS, ROOM))
    functions = f.op(f"getelementptr i8, ptr %model, i64 {HEAD + 8 * sizes.images}")
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
        size, offset = fields(f, SLOT, "values", number, "i64", "i64")
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
        function, grid, threads, shared, begins, begin, slots, size = fields(f, STEP, "steps", number, *types)
        if events is not None:
            with f.loop(f.op(f"zext i32 {begins} to i64")):
                events.record(failed)
        with f.loop(slots) as position:
            base, offset = fields(f, SLOT, "slots", f.op(f"add i64 {begin}, {position}"), "i64", "i64")
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
        (size,) = fields(f, SLOT, "values", output, "i64")
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

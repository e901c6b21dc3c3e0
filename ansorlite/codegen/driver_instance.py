"""An instance of a model on an NVIDIA GPU: its context, modules, functions, weights and room; made, and given back."""

from __future__ import annotations

from typing import Final

from ansorlite.codegen.driver_calls import PREFIX, DriverFunction, DriverModule
from ansorlite.codegen.driver_tables import FUNCTION, GpuModel, Sizes, fields
from ansorlite.codegen.object import Form

#: Of an instance: its context, device, weights and room; behind these its modules, then its functions, 8 bytes each.
CONTEXT, DEVICE, WEIGHTS, ROOM, HEAD = 0, 8, 16, 24, 32
#: Numbers of the driver's interface.
_MAJOR, _MINOR = 75, 76
_SHARED_ATTRIBUTE: Final = 8


def make(into: DriverModule, model: GpuModel, sizes: Sizes) -> None:
    """Write ``make``, which answers an instance, or null where something failed: all that it has got by then is given back."""
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
    model_at = f.op(f"call ptr @calloc(i64 1, i64 {HEAD + 8 * (sizes.images + sizes.functions)})")
    f.branch(f.op(f"icmp eq ptr {model_at}, null"), "nothing", "retain")
    f.start("retain")
    places = {
        offset: f.op(f"getelementptr i8, ptr {model_at}, i64 {offset}") for offset in (CONTEXT, DEVICE, WEIGHTS, ROOM, HEAD)
    }
    modules, functions = places[HEAD], f.op(f"getelementptr ptr, ptr {places[HEAD]}, i64 {sizes.images}")
    f.do(f"store i32 {device}, ptr {places[DEVICE]}, align 4")
    f.must("undo", "the GPU cannot be used", "cuDevicePrimaryCtxRetain", f"ptr {places[CONTEXT]}", f"i32 {device}")
    context = f.op(f"load ptr, ptr {places[CONTEXT]}, align 8")
    f.must("undo", "the GPU cannot be used", "cuCtxPushCurrent", f"ptr {context}")
    refused = "the driver refuses the model's code"
    with f.loop(str(sizes.images)) as number:
        image = f.op(f"load ptr, ptr {f.op(f'getelementptr ptr, ptr @{PREFIX}images, i64 {number}')}, align 8")
        f.must(
            "pop", refused, "cuModuleLoadData", f"ptr {f.op(f'getelementptr ptr, ptr {modules}, i64 {number}')}", f"ptr {image}"
        )
    with f.loop(str(sizes.functions)) as number:
        image, shared, name = fields(f, FUNCTION, "functions", number, "i64", "i64", "ptr")
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
    f.must("pop", full, "cuMemAlloc", f"ptr {places[WEIGHTS]}", f"i64 {max(1, model.weights)}")
    f.must("pop", full, "cuMemAlloc", f"ptr {places[ROOM]}", f"i64 {max(1, sizes.room)}")
    if model.weights:
        target = f.op(f"load i64, ptr {places[WEIGHTS]}, align 8")
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
    f.tell(into.string(said), *(f"i32 {number}" for number in numbers))
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


def unmake(into: DriverModule, sizes: Sizes) -> None:
    """Write ``unmake``, which gives back what an instance has got so far, and the instance."""
    f = DriverFunction(into, "unmake", "void", "ptr %model")
    f.branch(f.op("icmp eq ptr %model, null"), "end", "some")
    f.start("some")
    context = f.op("load ptr, ptr %model, align 8")
    before = f.place("ptr")
    with f.where(f.op(f"icmp ne ptr {context}, null")):
        f.ask("cuCtxPushCurrent", f"ptr {context}")
        for offset in (ROOM, WEIGHTS):
            address = f.op(f"load i64, ptr {f.op(f'getelementptr i8, ptr %model, i64 {offset}')}, align 8")
            with f.where(f.op(f"icmp ne i64 {address}, 0")):
                f.ask("cuMemFree", f"i64 {address}")
        modules = f.op(f"getelementptr i8, ptr %model, i64 {HEAD}")
        with f.loop(str(sizes.images)) as number:
            module = f.op(f"load ptr, ptr {f.op(f'getelementptr ptr, ptr {modules}, i64 {number}')}, align 8")
            with f.where(f.op(f"icmp ne ptr {module}, null")):
                f.ask("cuModuleUnload", f"ptr {module}")
        f.ask("cuCtxPopCurrent", f"ptr {before}")
        device = f.op(f"load i32, ptr {f.op(f'getelementptr i8, ptr %model, i64 {DEVICE}')}, align 4")
        f.ask("cuDevicePrimaryCtxRelease", f"i32 {device}")
    f.do("call void @free(ptr %model)")
    f.jump("end")
    f.start("end")
    f.do("ret void")
    f.done()

"""The public side of a model that was exported for an NVIDIA GPU: its C functions, and what is known about it, as LLVM IR.

``NAME *NAME_create(int device)`` makes an instance on a GPU: kernels, weights, temporaries. Where the weights lie in a file of
their own, it is ``NAME_create(int device, const char *weights)``. ``int NAME_run(NAME *, inputs..., outputs...)`` runs it and
waits; ``int NAME_enqueue(NAME *, void *stream, inputs..., outputs...)`` asks for it on a stream; ``const char *NAME_error(void)``
says what went wrong last in this thread. For Python there is ``ansorlite_model``: the addresses of a description (JSON), of what
creates, runs and destroys an instance, of the message and the driver's number of an error, and of what runs one and times its
steps.
"""

from __future__ import annotations

from string import Template
from typing import Final

from ansorlite.codegen import checksum, driver
from ansorlite.codegen.driver_calls import MESSAGE, PREFIX
from ansorlite.codegen.driver_tables import GpuModel
from ansorlite.export.description import MODEL, Description
from ansorlite.export.public_side import MAPPED, MAPPING_CALLS, WEIGHTS
from ansorlite.target import Target

_INSIDE: Final = Template("""@$weights = external hidden constant i8
@ansorlite_checked = internal global i8 0

define internal ptr @ansorlite_create(i32 %device, ptr %path) nounwind {
entry:
  %sum = alloca i64, align 8
  %checked = load atomic i8, ptr @ansorlite_checked acquire, align 1
  %known = icmp ne i8 %checked, 0
  br i1 %known, label %make, label %check
check:
  call void @$checksum(ptr @$weights, i64 $bytes, ptr %sum)
  %found = load i64, ptr %sum, align 8
  %right = icmp eq i64 %found, $expected
  br i1 %right, label %remember, label %damaged
remember:
  store atomic i8 1, ptr @ansorlite_checked release, align 1
  br label %make
make:
  %model = call ptr @${prefix}make(i32 %device, ptr @$weights)
  ret ptr %model
damaged:
  call void @ansorlite_say(ptr @ansorlite_damaged)
  ret ptr null
}

define ptr @${name}_create(i32 %device) nounwind {
  %model = call ptr @ansorlite_create(i32 %device, ptr null)
  ret ptr %model
}
""")

_BESIDE: Final = Template(f"""define internal ptr @ansorlite_create(i32 %device, ptr %path) nounwind {{
{MAPPED}make:
  %model = call ptr @${{prefix}}make(i32 %device, ptr %weights)
  call i32 @munmap(ptr %weights, i64 $bytes)
  ret ptr %model
lacking:
  call void @ansorlite_say(ptr @ansorlite_lacking)
  ret ptr null
damaged:
  call void @ansorlite_say(ptr @ansorlite_damaged)
  ret ptr null
}}

define ptr @${{name}}_create(i32 %device, ptr %path) nounwind {{
  %model = call ptr @ansorlite_create(i32 %device, ptr %path)
  ret ptr %model
}}

{MAPPING_CALLS}""")

_REST: Final = Template("""declare void @$checksum(ptr, i64, ptr)
@ansorlite_damaged = internal constant [52 x i8] c"the weights are damaged or those of another model\\00\\00\\00"
@ansorlite_lacking = internal constant [42 x i8] c"the file of the weights cannot be read\\00\\00\\00\\00"
@ansorlite_form = internal constant [3 x i8] c"%s\\00"

define internal void @ansorlite_say(ptr %text) nounwind {
  store i32 -1, ptr @${prefix}code, align 4
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr @${prefix}message, i64 $message, ptr @ansorlite_form, ptr %text)
  ret void
}

define void @${name}_destroy(ptr %model) nounwind {
  call void @${prefix}unmake(ptr %model)
  ret void
}

define ptr @${name}_error() nounwind {
  ret ptr @${prefix}message
}

define internal i32 @ansorlite_code() nounwind {
  %code = load i32, ptr @${prefix}code, align 4
  ret i32 %code
}

define i32 @${name}_run(ptr %model$parameters) nounwind {
  %given = alloca [$count x ptr], align 16
$stores
  %code = call i32 @${prefix}go(ptr %model, ptr null, i32 1, ptr %given)
  ret i32 %code
}

define i32 @${name}_enqueue(ptr %model, ptr %stream$parameters) nounwind {
  %given = alloca [$count x ptr], align 16
$stores
  %code = call i32 @${prefix}go(ptr %model, ptr %stream, i32 0, ptr %given)
  ret i32 %code
}

@description = private constant [$length x i8] c"$description"
@$model = constant { ptr, ptr, ptr, ptr, ptr, ptr, ptr } {
  ptr @description, ptr @ansorlite_create, ptr @${prefix}go, ptr @${name}_destroy, ptr @${name}_error, ptr @ansorlite_code,
  ptr @${prefix}go_profiled
}
""")


def functions(name: str) -> tuple[str, ...]:
    """The C functions of a model of that name."""
    return tuple(f"{name}_{what}" for what in ("create", "run", "enqueue", "destroy", "error"))


def text(description: Description, model: GpuModel, host: Target) -> str:
    """The LLVM IR of the library. Where the weights are inside, they are the symbol ``public_side.WEIGHTS``."""
    encoded = [*description.text().encode(), 0]
    count = len(model.values)
    facts = {
        "name": description.name,
        "prefix": PREFIX,
        "weights": WEIGHTS,
        "bytes": description.weight_bytes,
        "checksum": checksum.CHECKSUM,
        "expected": int(description.checksum, 16),
        "suits": "",
        "message": MESSAGE,
    }
    life = (_INSIDE if description.weights is None else _BESIDE).substitute(facts)
    stores = [
        f"  %slot{n} = getelementptr ptr, ptr %given, i64 {n}\n  store ptr %p{n}, ptr %slot{n}, align 8" for n in range(count)
    ]
    rest = _REST.substitute(
        facts,
        parameters="".join(f", ptr %p{n}" for n in range(count)),
        count=max(1, count),
        stores="\n".join(stores),
        length=len(encoded),
        description="".join(f"\\{byte:02X}" for byte in encoded),
        model=MODEL,
    )
    return driver.text(model, host) + life + rest

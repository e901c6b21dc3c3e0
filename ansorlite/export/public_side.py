"""The public side of an exported model: the C functions of a shared library, and what is known about it, as LLVM IR.

``NAME *NAME_create(void)`` makes an instance: the temporaries of one call at a time. ``void NAME_run(NAME *, inputs...,
outputs...)`` runs it, ``void NAME_destroy(NAME *)`` frees it. Where the weights lie in a file of their own,
``NAME_create(const char *weights)`` maps that file. Both look at the weights' checksum first. For Python there is one symbol
more, ``ansorlite_model``: the addresses of a description (JSON), of the entry and its profiled twin (``codegen/entry.py``), of
the weights, if those are inside, of the way from Python's arrays to the entry (``codegen/direct.py``), and of the checksum
(``codegen/checksum.py``).
"""

from __future__ import annotations

from string import Template
from typing import Final

from ansorlite.codegen import checksum, direct, entry, team
from ansorlite.export.description import MODEL, Description
from ansorlite.runtime.pages import LARGE_PAGE
from ansorlite.target import Target

#: The entry's symbol, hidden in the library.
ENTRY: Final = "ansorlite_entry"

#: Bytes of an instance before its temporaries: room for the address of its weights, and the temporaries stay aligned.
HEAD: Final = 64

#: The symbol of weights inside of the library.
WEIGHTS: Final = "ansorlite_weights"

_INSIDE: Final = Template("""@ansorlite_weights = external hidden constant i8

@ansorlite_checked = internal global i8 0

define ptr @${name}_create() nounwind {
entry:
$suits  %checked = load atomic i8, ptr @ansorlite_checked acquire, align 1
  %known = icmp ne i8 %checked, 0
  br i1 %known, label %make, label %check
check:
  %sum = alloca i64, align 8
  call void @$checksum(ptr @ansorlite_weights, i64 $bytes, ptr %sum)
  %found = load i64, ptr %sum, align 8
  %right = icmp eq i64 %found, $expected
  br i1 %right, label %remember, label %none
remember:
  store atomic i8 1, ptr @ansorlite_checked release, align 1
  br label %make
make:
  %model = call ptr @aligned_alloc(i64 $alignment, i64 $instance)
  %lacking = icmp eq ptr %model, null
  br i1 %lacking, label %none, label %fill
fill:
$advise  store ptr @ansorlite_weights, ptr %model
  ret ptr %model
none:
  ret ptr null
}

define void @${name}_destroy(ptr %model) nounwind {
  call void @free(ptr %model)
  ret void
}
""")

#: The beginning of a function that maps the file of weights ``%path``, and looks at their checksum: it goes on at ``make`` with
#: ``%weights``; at ``lacking`` where the file cannot be read; at ``damaged`` where it is another one. What fails in ``make`` may
#: go to ``unmap``.
MAPPED: Final = """entry:
  %sum = alloca i64, align 8
$suits  %file = call i32 (ptr, i32, ...) @open(ptr %path, i32 0)
  %closed = icmp slt i32 %file, 0
  br i1 %closed, label %lacking, label %size
size:
  %bytes = call i64 @lseek(i32 %file, i64 0, i32 2)
  %whole = icmp eq i64 %bytes, $bytes
  br i1 %whole, label %map, label %other
other:
  call i32 @close(i32 %file)
  br label %damaged
map:
  %weights = call ptr @mmap(ptr null, i64 $bytes, i32 1, i32 1, i32 %file, i64 0)
  call i32 @close(i32 %file)
  %address = ptrtoint ptr %weights to i64
  %failed = icmp eq i64 %address, -1
  br i1 %failed, label %lacking, label %check
check:
  call void @$checksum(ptr %weights, i64 $bytes, ptr %sum)
  %found = load i64, ptr %sum, align 8
  %right = icmp eq i64 %found, $expected
  br i1 %right, label %make, label %unmap
unmap:
  call i32 @munmap(ptr %weights, i64 $bytes)
  br label %damaged
"""
#: What that calls.
MAPPING_CALLS: Final = """declare i32 @open(ptr, i32, ...)
declare i64 @lseek(i32, i64, i32)
declare i32 @close(i32)
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
"""

_BESIDE: Final = Template(f"""define ptr @${{name}}_create(ptr %path) nounwind {{
{MAPPED}make:
  %model = call ptr @aligned_alloc(i64 $alignment, i64 $instance)
  %full = icmp eq ptr %model, null
  br i1 %full, label %unmap, label %fill
fill:
$advise  store ptr %weights, ptr %model
  ret ptr %model
lacking:
  br label %none
damaged:
  br label %none
none:
  ret ptr null
}}

define void @${{name}}_destroy(ptr %model) nounwind {{
  %none = icmp eq ptr %model, null
  br i1 %none, label %end, label %free
free:
  %weights = load ptr, ptr %model
  call i32 @munmap(ptr %weights, i64 $bytes)
  call void @free(ptr %model)
  br label %end
end:
  ret void
}}

{MAPPING_CALLS}""")

#: A large instance lies in large pages (MADV_HUGEPAGE), where the system has some.
_ADVISE: Final = Template("""  call i32 @madvise(ptr %model, i64 $large, i32 14)
""")

#: The beginning of ``NAME_create`` where registers of SVE have to be of one length: with others, results would be wrong without a
#: word. Linux has a bit for SVE in its word 16 for programs.
_SUITS: Final = Template("""  %processor = call i64 @getauxval(i64 16)
  %sve = and i64 %processor, 4194304
  %has = icmp ne i64 %sve, 0
  br i1 %has, label %look, label %none
look:
  %length = call i64 @llvm.vscale.i64()
  %suits = icmp eq i64 %length, $vscale
  br i1 %suits, label %suited, label %none
suited:
""")
_SUITS_CALLS: Final = """declare i64 @getauxval(i64)
declare i64 @llvm.vscale.i64()
"""

# In the child of a fork there are no helpers: that is told to the team as soon as the library is loaded.
_REST: Final = Template("""%constructor = type { i32, ptr, ptr }
@llvm.global_ctors = appending global [1 x %constructor] [%constructor { i32 65535, ptr @started, ptr null }]
define internal void @started() nounwind {
  call i32 @__register_atfork(ptr null, ptr null, ptr @$forget, ptr null)
  ret void
}

@description = private constant [$length x i8] c"$description"
@$model = constant { ptr, ptr, ptr, ptr, ptr, ptr } {
  ptr @description, ptr @$entry, ptr @$profile, ptr $weights, ptr @$direct, ptr @$checksum
}

define void @${name}_run($parameters) nounwind {
  %bases = alloca [$count x ptr], align 64
  %weights = load ptr, ptr %model
  %temporaries = getelementptr i8, ptr %model, i64 $head
$stores
  call void @$entry(ptr %bases)
  ret void
}

declare void @$entry(ptr)
declare void @$profile(ptr, ptr)
declare ptr @$direct(ptr, ptr, i64)
declare void @$checksum(ptr, i64, ptr)
declare void @$forget()
declare i32 @__register_atfork(ptr, ptr, ptr, ptr)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
$declared""")


def functions(name: str) -> tuple[str, ...]:
    """The C functions of a model of that name."""
    return (f"{name}_create", f"{name}_run", f"{name}_destroy")


def text(description: Description, target: Target) -> str:
    """The LLVM IR of the library's public side. Where the weights are inside, they are the symbol :data:`WEIGHTS`."""
    inside = description.weights is None
    arguments = range(len(description.inputs) + len(description.outputs))
    pointers = ["%temporaries", "%weights", *(f"%p{n}" for n in arguments)]
    stores = [
        line
        for n, pointer in enumerate(pointers)
        for line in (f"  %slot{n} = getelementptr ptr, ptr %bases, i64 {n}", f"  store ptr {pointer}, ptr %slot{n}")
    ]
    encoded = [*description.text().encode(), 0]
    instance = -(-(HEAD + description.temporaries) // 64) * 64
    large = instance // LARGE_PAGE * LARGE_PAGE
    facts = {
        "name": description.name,
        "instance": instance,
        "alignment": LARGE_PAGE if large else 64,
        "advise": _ADVISE.substitute(large=large) if large else "",
        "bytes": description.weight_bytes,
        "checksum": checksum.CHECKSUM,
        "expected": int(description.checksum, 16),
        "suits": "" if target.sve_bytes is None else _SUITS.substitute(vscale=target.sve_bytes // 16),
    }
    life = (_INSIDE if inside else _BESIDE).substitute(facts)
    rest = _REST.substitute(
        facts,
        forget=team.FORGET,
        length=len(encoded),
        description="".join(f"\\{byte:02X}" for byte in encoded),
        model=MODEL,
        direct=direct.DIRECT,
        entry=ENTRY,
        profile=entry.profiled(ENTRY),
        weights=f"@{WEIGHTS}" if inside else "null",
        parameters=", ".join(["ptr %model", *(f"ptr %p{n}" for n in arguments)]),
        count=len(pointers),
        head=HEAD,
        stores="\n".join(stores),
        declared="" if target.sve_bytes is None else _SUITS_CALLS,
    )
    return f'target triple = "{target.triple}"\n{life}{rest}'

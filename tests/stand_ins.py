"""Kernels for an x86 processor with more instruction sets than this one: the same LLVM IR, compiled for this processor.

LLVM cuts vectors and masks into what is here. An intrinsic that is one instruction there is a function here that computes the
same, as Intel's manual has it: :data:`_DEFINED`. So all that ansorlite writes is run, and of what LLVM makes of it only the
choice of instructions is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from string import Template
from typing import Final

from ansorlite import processor
from ansorlite.codegen.machine import machine, optimise
from ansorlite.codegen.object import Object
from ansorlite.llvm_option import options_for_emitted_code
from ansorlite.target import Target

_DECLARED: Final = re.compile(r"^declare (.+?) @(llvm\.x86\.(\S+?)\.(\d+))\(([^()]*)\)$", re.MULTILINE)
_ATTRIBUTES: Final = re.compile(r'"target-cpu"="[^"]*" "target-features"="[^"]*"')

#: Writes the body of a function of operands ``%0``, ``%1``, ...; given its result type, and 32-bit lanes.
Body = Callable[[str, int], list[str]]


def obstacle(target: Target, here: Target) -> str | None:
    """Why what is made for ``target`` cannot be compiled for ``here``, as the end of a sentence; ``None``: it can."""
    if not target.architecture == processor.ARCHITECTURE == here.architecture == "x86_64":
        return "only x86 has stand-ins for instructions, on x86"
    return None


def compiled_here(compiled: Object, here: Target) -> Object:
    """The kernel ``compiled``, for this processor.

    Args:
        here: what it is compiled for.
    """
    text = _ATTRIBUTES.sub(f'"target-cpu"="{here.cpu}" "target-features"="{here.features}"', compiled.llvm)
    text = re.sub(r'^target triple = "[^"]*"$', f'target triple = "{here.triple}"', text, count=1, flags=re.MULTILINE)
    for found in list(_DECLARED.finditer(text)):
        result, name, kind, bits, operands = found.groups()
        if kind in _DEFINED:
            given = ", ".join(f"{each} %{number}" for number, each in enumerate(operands.split(", ")))
            body = "\n".join(f"  {line}" for line in _DEFINED[kind](result, int(bits) // 32))
            text = text.replace(found[0], f"define internal {result} @{name}({given}) #0 {{\n{body}\n}}")
            text = text.replace(f"@{name}(", f"@{name.replace('llvm.x86.', 'stand_in.')}(")
        else:
            # LLVM ends the process on an intrinsic that the processor has no instruction for.
            assert f"{kind}.{bits}" in _HERE, f"{name} has no stand-in"
    # Without instructions for bfloat16, LLVM may take vectors of them apart by conversions, which are functions of a library.
    text = re.sub(r"<(\d+) x bfloat>", r"<\1 x i16>", _without_tiles(_in_halves(text, here)))
    with options_for_emitted_code(here.architecture):
        code = machine(here).emit_object(optimise(text, here, compiled.promotes))
    return replace(compiled, code=code, target=here.key)


_MASKED: Final = re.compile(r"^declare .+ @llvm\.masked\.(load|store)\.v(\d+)(\w+)\.p0\(.*\)$", re.MULTILINE)
_ELEMENTS: Final = {"f32": "float", "f64": "double", "f16": "half", "bf16": "bfloat"}


def _in_halves(text: str, here: Target) -> str:
    """Masked accesses of more than a register, half by half.

    LLVM 22 loads the upper half whole where it knows that no lane of it is on, though the lanes were to be of another value.
    """
    for found in list(_MASKED.finditer(text)):
        access, lanes, kind = found[1], int(found[2]), found[3]
        element = _ELEMENTS.get(kind, kind)
        if lanes * int(re.sub(r"\D+", "", kind)) <= 8 * here.vector_bytes:
            continue
        name, half, vector = f"{access}.v{lanes}{kind}", lanes // 2, f"<{lanes} x {element}>"
        part, bits, all_bits = f"<{half} x {element}>", f"<{half} x i1>", f"<{lanes} x i1>"
        given = (
            f"ptr %p, i32 %align, {all_bits} %m, {vector} %v"
            if access == "load"
            else f"{vector} %v, ptr %p, i32 %align, {all_bits} %m"
        )
        lines = [f"%p1 = getelementptr {element}, ptr %p, i64 {half}"]
        for number, pointer in enumerate(("%p", "%p1")):
            places = ", ".join(f"i32 {number * half + lane}" for lane in range(half))
            lines.append(f"%m{number} = shufflevector {all_bits} %m, {all_bits} poison, <{half} x i32> <{places}>")
            lines.append(f"%v{number} = shufflevector {vector} %v, {vector} poison, <{half} x i32> <{places}>")
            if access == "load":
                call = (
                    f"call {part} @llvm.masked.load.v{half}{kind}.p0(ptr {pointer}, i32 1, {bits} %m{number}, {part} %v{number})"
                )
                lines.append(f"%l{number} = {call}")
            else:
                lines.append(
                    f"call void @llvm.masked.store.v{half}{kind}.p0({part} %v{number}, ptr {pointer}, i32 1, {bits} %m{number})"
                )
        if access == "load":
            places = ", ".join(f"i32 {lane}" for lane in range(lanes))
            lines += [f"%r = shufflevector {part} %l0, {part} %l1, <{lanes} x i32> <{places}>", f"ret {vector} %r"]
            declared = f"declare {part} @llvm.masked.load.v{half}{kind}.p0(ptr, i32, {bits}, {part})"
        else:
            lines.append("ret void")
            declared = f"declare void @llvm.masked.store.v{half}{kind}.p0({part}, ptr, i32, {bits})"
        result, body = (vector if access == "load" else "void"), "\n".join(f"  {line}" for line in lines)
        text = text.replace(found[0], f"define internal {result} @stand_in.{name}({given}) noinline #0 {{\n{body}\n}}")
        text = text.replace(f"@llvm.masked.{name}.p0(", f"@stand_in.{name}(")
        if f"@llvm.masked.{access}.v{half}{kind}.p0" not in "".join(each[0] for each in _MASKED.finditer(text)):
            text += f"\n{declared}\n"
    return text


_TILES: Final = re.compile(
    r"^declare void @llvm\.x86\.(ldtilecfg|tilerelease|tilezero|tileloadd64|tilestored64|tdp\w+)\(.*\)$", re.MULTILINE
)
_FUNCTION: Final = re.compile(r"^(define .*\{\nentry:\n)((?:.*\n)*?)\}$", re.MULTILINE)

#: The state of the registers: their configuration, then each with its 16 rows of 64 bytes.
_STATE: Final = "[9 x [1024 x i8]]"

#: Bytes of a row, and rows, of a register.
_SHAPE: Final = """  %s = getelementptr i8, ptr %state, i64 16
  %wide = zext i8 %register to i64
  %pb = getelementptr i16, ptr %s, i64 %wide
  %bytes = load i16, ptr %pb
  %length = zext i16 %bytes to i64
  %t = getelementptr i8, ptr %state, i64 48
  %pr = getelementptr i8, ptr %t, i64 %wide
  %rows = load i8, ptr %pr
  %last = zext i8 %rows to i64
  %after = add i64 %wide, 1
  %offset = mul i64 %after, 1024
  %tile = getelementptr i8, ptr %state, i64 %offset"""

#: A tile is copied row by row; what is loaded is 0 beyond its shape.
_TILE_COPY: Final = Template("""define internal void @stand_in.$name(ptr %state, i8 %register, ptr %p, i64 %stride) noinline #0 {
entry:
$shape
  $clear
  br label %loop
loop:
  %row = phi i64 [ 0, %entry ], [ %next, %loop ]
  %inside = mul i64 %row, 64
  %outside = mul i64 %row, %stride
  %a = getelementptr i8, ptr %tile, i64 %inside
  %b = getelementptr i8, ptr %p, i64 %outside
  call void @llvm.memcpy.p0.p0.i64(ptr $to, ptr $source, i64 %length, i1 false)
  %next = add i64 %row, 1
  %again = icmp ult i64 %next, %last
  br i1 %again, label %loop, label %done
done:
  ret void
}""")

#: Of every row, word and column: the products of the pieces of two words are added, one after the other.
_TILE_PRODUCT: Final = Template("""define internal void @stand_in.$name(ptr %state, i8 %register, i8 %x_, i8 %y_) noinline #0 {
entry:
$shape
  %ns = udiv i64 %length, 4
  %xw = zext i8 %x_ to i64
  %xb = getelementptr i16, ptr %s, i64 %xw
  %xn = load i16, ptr %xb
  %kb = zext i16 %xn to i64
  %ks = udiv i64 %kb, 4
  %xa = add i64 %xw, 1
  %xo = mul i64 %xa, 1024
  %left = getelementptr i8, ptr %state, i64 %xo
  %yw = zext i8 %y_ to i64
  %ya = add i64 %yw, 1
  %yo = mul i64 %ya, 1024
  %right = getelementptr i8, ptr %state, i64 %yo
  %some = mul i64 %ns, %ks
  %all = mul i64 %last, %some
  br label %loop
loop:
  %step = phi i64 [ 0, %entry ], [ %next, %loop ]
  %m = udiv i64 %step, %some
  %inner = urem i64 %step, %some
  %k = udiv i64 %inner, %ns
  %n = urem i64 %inner, %ns
  %m16 = mul i64 %m, 16
  %k16 = mul i64 %k, 16
  %at = add i64 %m16, %n
  %mk = add i64 %m16, %k
  %kn = add i64 %k16, %n
  %pt = getelementptr i32, ptr %tile, i64 %at
  %px = getelementptr i32, ptr %left, i64 %mk
  %py = getelementptr i32, ptr %right, i64 %kn
  %x = load <$count x $piece>, ptr %px, align 4
  %y = load <$count x $piece>, ptr %py, align 4
  %total = load $sums, ptr %pt, align 4
$terms
  store $sums %sum, ptr %pt, align 4
  %next = add i64 %step, 1
  %again = icmp ult i64 %next, %all
  br i1 %again, label %loop, label %done
done:
  ret void
}""")

#: What extends the pieces of the two factors to 32 bits.
_SIGNS: Final = {"s": "sext", "u": "zext"}


def _without_tiles(text: str) -> str:
    """Matrix registers as memory of each function that uses some, which is handed to functions in place of instructions."""
    names = {found[1]: found[0] for found in _TILES.finditer(text)}
    if not names:
        return text

    def with_state(found: re.Match[str]) -> str:
        head, body = found.groups()
        own = "" if "@llvm.x86.tile" not in body else f"  %state = alloca {_STATE}, align 64\n"
        return f"{head}{own}{body}}}"

    text = _FUNCTION.sub(with_state, text)
    for name, declared in names.items():
        text = text.replace(declared, _TILE_MEANING[name]() if name in _TILE_MEANING else _tile_product(name))
        text = re.sub(rf"@llvm\.x86\.{name}\((?=.)", f"@stand_in.{name}(ptr %state, ", text)
        text = text.replace(f"@stand_in.{name}(ptr %state, )", f"@stand_in.{name}(ptr %state)")
    return text + "\n".join(
        (
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
            "declare float @llvm.fma.f32(float, float, float)",
            "",
        )
    )


def _tile_copy(name: str, clear: str, to: str, source: str) -> Callable[[], str]:
    return lambda: _TILE_COPY.substitute(name=name, shape=_SHAPE, clear=clear, to=to, source=source)


_TILE_MEANING: Final[dict[str, Callable[[], str]]] = {
    "ldtilecfg": lambda: (
        "define internal void @stand_in.ldtilecfg(ptr %state, ptr %p) noinline #0 {\n"
        "  call void @llvm.memcpy.p0.p0.i64(ptr %state, ptr %p, i64 64, i1 false)\n  ret void\n}"
    ),
    "tilerelease": lambda: "define internal void @stand_in.tilerelease(ptr %state) noinline #0 {\n  ret void\n}",
    "tilezero": lambda: (
        f"define internal void @stand_in.tilezero(ptr %state, i8 %register) noinline #0 {{\n{_SHAPE}\n"
        "  call void @llvm.memset.p0.i64(ptr %tile, i8 0, i64 1024, i1 false)\n  ret void\n}"
    ),
    "tileloadd64": _tile_copy(
        "tileloadd64", "call void @llvm.memset.p0.i64(ptr %tile, i8 0, i64 1024, i1 false)", to="%a", source="%b"
    ),
    "tilestored64": _tile_copy("tilestored64", "", to="%b", source="%a"),
}


def _tile_product(name: str) -> str:
    floats = name == "tdpbf16ps"
    lines = []
    total = "%total"
    for number in range(2 if floats else 4):
        for factor, sign in zip("xy", name[4:6], strict=True):
            kind = "<2 x i16>" if floats else "<4 x i8>"
            lines.append(f"%{factor}{number} = extractelement {kind} %{factor}, i64 {number}")
            if floats:
                # A bfloat16 is the upper half of a float; what is subnormal is 0.
                lines += [
                    f"%{factor}e{number} = and i16 %{factor}{number}, {0x7F80}",
                    f"%{factor}z{number} = icmp eq i16 %{factor}e{number}, 0",
                    f"%{factor}n{number} = select i1 %{factor}z{number}, i16 0, i16 %{factor}{number}",
                    f"%{factor}w{number} = zext i16 %{factor}n{number} to i32",
                    f"%{factor}u{number} = shl i32 %{factor}w{number}, 16",
                    f"%{factor}v{number} = bitcast i32 %{factor}u{number} to float",
                ]
            else:
                lines.append(f"%{factor}v{number} = {_SIGNS[sign]} i8 %{factor}{number} to i32")
        if floats:
            fused = f"float %xv{number}, float %yv{number}, float {total}"
            lines.append(f"%s{number} = call float @llvm.fma.f32({fused})")
        else:
            lines += [f"%p{number} = mul i32 %xv{number}, %yv{number}", f"%s{number} = add i32 {total}, %p{number}"]
        total = f"%s{number}"
    sums = "float" if floats else "i32"
    lines.append(f"%sum = bitcast {sums} {total} to {sums}")
    return _TILE_PRODUCT.substitute(
        name=name,
        shape=_SHAPE,
        count=2 if floats else 4,
        piece="i16" if floats else "i8",
        sums=sums,
        terms="\n".join(f"  {line}" for line in lines),
    )


#: Intrinsics that every processor with AVX2 has instructions for.
_HERE: Final = frozenset(
    {"avx.cvt.ps2dq.256", "avx.cvtt.ps2dq.256", "avx2.pmadd.wd", "avx2.pmadd.ub.sw", "ssse3.pmadd.ub.sw.128"}
)


def _dot(first: str, second: str, count: int, adds: bool = True) -> Body:
    """Sums of ``count`` products of integers, which are extended by ``first`` and ``second``, and of what operand 0 holds."""

    def body(result: str, lanes: int) -> list[str]:
        pieces = count * lanes
        bits = 32 // count
        x, y = ("%1", "%2") if adds else ("%0", "%1")
        narrow, wide = f"<{pieces} x i{bits}>", f"<{pieces} x i32>"
        lines = [f"%x = {first} {narrow} {x} to {wide}", f"%y = {second} {narrow} {y} to {wide}", f"%p = mul {wide} %x, %y"]
        total = "%0" if adds else "zeroinitializer"
        for number in range(count):
            places = ", ".join(f"i32 {count * lane + number}" for lane in range(lanes))
            lines.append(f"%p{number} = shufflevector {wide} %p, {wide} poison, <{lanes} x i32> <{places}>")
            lines.append(f"%s{number} = add {result} {total}, %p{number}")
            total = f"%s{number}"
        return [*lines, f"ret {result} {total}"]

    return body


def _pairs_of_bytes(result: str, lanes: int) -> list[str]:
    """Sums of two products of bytes, kept within 16 bits."""
    count = 2 * lanes
    narrow, wide, sums = f"<{2 * count} x i8>", f"<{2 * count} x i32>", f"<{count} x i32>"
    lines = [f"%x = zext {narrow} %0 to {wide}", f"%y = sext {narrow} %1 to {wide}", f"%p = mul {wide} %x, %y"]
    for number in range(2):
        places = ", ".join(f"i32 {2 * lane + number}" for lane in range(count))
        lines.append(f"%p{number} = shufflevector {wide} %p, {wide} poison, {sums} <{places}>")
    lines.append(f"%s = add {sums} %p0, %p1")
    for name, source, relation, limit in (("high", "%s", "slt", 32767), ("low", "%high", "sgt", -32768)):
        lines.append(f"%c{name} = icmp {relation} {sums} {source}, splat (i32 {limit})")
        lines.append(f"%{name} = select <{count} x i1> %c{name}, {sums} {source}, {sums} splat (i32 {limit})")
    return [*lines, f"%r = trunc {sums} %low to {result}", f"ret {result} %r"]


def _bfloat16(result: str, lanes: int) -> list[str]:
    """Two multiply-adds, the upper piece's first; what is subnormal is 0, before and after each."""
    words, bits = f"<{lanes} x i32>", f"<{lanes} x i1>"
    lines: list[str] = []

    def flushed(name: str, value: str) -> str:
        lines.append(f"%{name}e = and {words} {value}, splat (i32 {0x7F80_0000})")
        lines.append(f"%{name}z = icmp eq {words} %{name}e, zeroinitializer")
        lines.append(f"%{name}s = and {words} {value}, splat (i32 {-(1 << 31)})")
        lines.append(f"%{name}k = select {bits} %{name}z, {words} %{name}s, {words} {value}")
        lines.append(f"%{name} = bitcast {words} %{name}k to {result}")
        return f"%{name}"

    for number, name in ((1, "x"), (2, "y")):
        lines.append(f"%{name}w = bitcast <{2 * lanes} x bfloat> %{number} to {words}")
        lines.append(f"%{name}h = and {words} %{name}w, splat (i32 -65536)")
        lines.append(f"%{name}l = shl {words} %{name}w, splat (i32 16)")
    lines.append(f"%t = bitcast {result} %0 to {words}")
    total = flushed("total", "%t")
    for part in ("h", "l"):
        x, y = flushed(f"fx{part}", f"%x{part}"), flushed(f"fy{part}", f"%y{part}")
        lines.append(f"%m{part} = call {result} @llvm.fma.v{lanes}f32({result} {x}, {result} {y}, {result} {total})")
        lines.append(f"%b{part} = bitcast {result} %m{part} to {words}")
        total = flushed(f"sum{part}", f"%b{part}")
    return [*lines, f"ret {result} {total}"]


def _truncated(result: str, lanes: int, x: str = "%0") -> list[str]:
    """float32 to int32, all lanes; what does not fit is the least integer."""
    kinds = f"<{lanes} x float>"
    lines = [
        f"%c{number} = fcmp {relation} {kinds} {x}, splat (float {limit})"
        for number, (relation, limit) in enumerate((("oge", "0xC1E0000000000000"), ("olt", "0x41E0000000000000")))
    ]
    return [
        *lines,
        f"%fits = and <{lanes} x i1> %c0, %c1",
        f"%inside = select <{lanes} x i1> %fits, {kinds} {x}, {kinds} zeroinitializer",
        f"%whole = fptosi {kinds} %inside to {result}",
        f"%r = select <{lanes} x i1> %fits, {result} %whole, {result} splat (i32 {-(1 << 31)})",
        f"ret {result} %r",
    ]


def _rounded(result: str, lanes: int) -> list[str]:
    """The same of the nearest whole numbers, halves to even."""
    kinds = f"<{lanes} x float>"
    return [f"%near = call {kinds} @llvm.rint.v{lanes}f32({kinds} %0)", *_truncated(result, lanes, "%near")]


def _scaled(integer: str, mantissa: int, bias: int) -> Body:
    """Numbers times 2 to whole numbers, all lanes: by two powers of two, each of which is a normal number."""

    def body(result: str, lanes: int) -> list[str]:
        del lanes
        count = result.split()[0][1:]
        words, bits = f"<{count} x {integer}>", f"<{count} x i1>"
        lines = [f"%known = fcmp ord {result} %1, %1", f"%whole = select {bits} %known, {result} %1, {result} zeroinitializer"]
        lines += [f"%n = fptosi {result} %whole to {words}", f"%half = ashr {words} %n, splat ({integer} 1)"]
        lines.append(f"%other = sub {words} %n, %half")
        for number, exponent in enumerate(("%half", "%other")):
            lines.append(f"%e{number} = add {words} {exponent}, splat ({integer} {bias})")
            lines.append(f"%s{number} = shl {words} %e{number}, splat ({integer} {mantissa})")
            lines.append(f"%f{number} = bitcast {words} %s{number} to {result}")
        return [*lines, f"%once = fmul {result} %0, %f0", f"%twice = fmul {result} %once, %f1", f"ret {result} %twice"]

    return body


#: Of an intrinsic's name, what comes between ``llvm.x86.`` and the bits of its vectors → what it computes.
_DEFINED: Final[dict[str, Body]] = {
    "avx512.vpdpbusd": _dot("zext", "sext", 4),
    "avx512.vpdpwssd": _dot("sext", "sext", 2),
    "avx2.vpdpbssd": _dot("sext", "sext", 4),
    "avx2.vpdpbuud": _dot("zext", "zext", 4),
    "avx512.pmaddw.d": _dot("sext", "sext", 2, adds=False),
    "avx512.pmaddubs.w": _pairs_of_bytes,
    "avx512bf16.dpbf16ps": _bfloat16,
    "avx512.mask.cvttps2dq": _truncated,
    "avx512.mask.cvtps2dq": _rounded,
    "avx512.mask.scalef.ps": _scaled("i32", mantissa=23, bias=127),
    "avx512.mask.scalef.pd": _scaled("i64", mantissa=52, bias=1023),
}

"""The machines that have names: kinds of CPUs, processors that constants are shipped for, and GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ansorlite.machine.families import FAMILIES, MIDDLE, NARROW, WIDE
from ansorlite.machine.gpu import A100, H100, H100_PLAIN, MALI, Gpu
from ansorlite.target.facts import Target

_V2: Final = "+cx16,+popcnt,+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2"
_V3: Final = f"{_V2},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"
_V4: Final = f"{_V3},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"
_BF16: Final = f"{_V4},+avx512vnni,+avx512bf16"
_DOTPROD: Final = "+neon,+dotprod,+fullfp16,+lse,+rdm"
_ARM_BF16: Final = f"{_DOTPROD},+bf16,+i8mm"

_X86: Final = Target("llvm", "x86_64-unknown-linux-gnu", "x86-64-v2", _V2, 16, 16, 1, 32 << 10, 1 << 20, 8 << 20, NARROW)
_ARM: Final = Target("llvm", "aarch64-unknown-linux-gnu", "generic", "+neon", 16, 32, 1, 64 << 10, 512 << 10, 2 << 20, NARROW)

#: Kinds of processors by name: the levels of x86-64 that its vendors agreed on, the last one also with dot products of bytes and
#: of bfloat16; 64-bit Arm, with dot products of bytes, with those of bfloat16 too, and with vectors of 32 bytes.
LEVELS: Final[Mapping[str, Target]] = {
    "x86-64-v2": _X86,
    "x86-64-v3": replace(_X86, cpu="x86-64-v3", features=_V3, vector_bytes=32, machine=MIDDLE),
    "x86-64-v4": replace(_X86, cpu="x86-64-v4", features=_V4, vector_bytes=64, vector_registers=32, machine=WIDE),
    "x86-64-v4+bf16": replace(_X86, cpu="cooperlake", features=_BF16, vector_bytes=64, vector_registers=32, machine=WIDE),
    "aarch64": _ARM,
    "aarch64+dotprod": replace(_ARM, cpu="cortex-a76", features=_DOTPROD),
    "aarch64+bf16": replace(_ARM, cpu="cortex-a78", features=_ARM_BF16),
    "aarch64+sve": replace(_ARM, features=f"{_DOTPROD},+sve", vector_bytes=32, machine=MIDDLE),
}


def _processor(name: str, level: str, features: str, l1: int, l2: int, l3: int) -> Target:
    """One that LLVM knows by this name: of a level, with more features; KiB, KiB and MiB of cache."""
    base = LEVELS[level]
    every = f"{base.features},{features}" if features else base.features
    return replace(base, cpu=name, features=every, l1=l1 << 10, l2=l2 << 10, l3=l3 << 20, machine=FAMILIES[name])


_ICE: Final = "+avx512bitalg,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vnni,+avx512vpopcntdq,+gfni"
_SAPPHIRE: Final = f"{_ICE},+amx-tile,+amx-bf16,+amx-int8,+avx512bf16,+avx512fp16,+avxvnni"

#: Processors by LLVM's names: all that constants are shipped for. The last cache is that of a common model.
PROCESSORS: Final[Mapping[str, Target]] = {
    target.cpu: target
    for target in (
        _processor("haswell", "x86-64-v3", "", 32, 256, 8),
        _processor("broadwell", "x86-64-v3", "", 32, 256, 8),
        _processor("skylake", "x86-64-v3", "", 32, 256, 8),
        _processor("skylake-avx512", "x86-64-v4", "", 32, 1024, 24),
        _processor("cascadelake", "x86-64-v4", "+avx512vnni", 32, 1024, 32),
        _processor("icelake-server", "x86-64-v4", _ICE, 48, 1280, 48),
        _processor("sapphirerapids", "x86-64-v4", _SAPPHIRE, 48, 2048, 60),
        _processor("znver2", "x86-64-v3", "", 32, 512, 16),
        _processor("znver3", "x86-64-v3", "", 32, 512, 32),
        _processor("znver4", "x86-64-v4", f"{_ICE},+avx512bf16", 32, 1024, 32),
        _processor("znver5", "x86-64-v4", f"{_ICE},+avx512bf16,+avxvnni", 48, 1024, 32),
        _processor("neoverse-n1", "aarch64+dotprod", "", 64, 1024, 32),
        _processor("neoverse-v1", "aarch64+sve", "+bf16,+fp16fml,+i8mm", 64, 1024, 32),
        _processor("apple-m1", "aarch64+dotprod", "+fp16fml,+sha3", 128, 3072, 8),
    )
}


def nvidia(processor: str, gpu: Gpu, features: str = "+ptx80", ordinal: int = 0) -> Target:
    """By LLVM's name. Drivers since 2022 read PTX of version 8.0."""
    return _gpu("cuda", "nvptx64-nvidia-cuda", processor, features, gpu, ordinal)


def opencl(gpu: Gpu, ordinal: int = 0) -> Target:
    """Its programs are made without LLVM, which has only the name of their architecture."""
    return _gpu("opencl", "spir64-unknown-unknown", gpu.name.replace(" ", "-"), "", gpu, ordinal)


def _gpu(kind: str, triple: str, processor: str, features: str, gpu: Gpu, ordinal: int) -> Target:
    caches = (gpu.shared, gpu.l2, gpu.l2)
    registers = min(64, gpu.thread_registers)
    return Target(kind, triple, processor, features, gpu.load_bytes, registers, 1, *caches, gpu=gpu, ordinal=ordinal)


#: GPUs by LLVM's names and by people's, with the facts of the common model. Programs are made for them; they run where one is.
GPUS: Final[Mapping[str, Target]] = {
    "sm_80": nvidia("sm_80", A100),
    "sm_90": nvidia("sm_90", H100_PLAIN),
    "a100": nvidia("sm_80", A100),
    "h100": nvidia("sm_90a", H100),
    "mali-g710": opencl(MALI),
}

#: Every CPU that has a name.
NAMED: Final[Mapping[str, Target]] = {**LEVELS, **PROCESSORS}

"""The machine that programs are made for: one row of facts, read from the machine itself or written down here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm

from ansorlite import processor
from ansorlite.errors import TargetError
from ansorlite.machine import cuda, opencl
from ansorlite.machine.constants import MachineConstants
from ansorlite.machine.families import FAMILIES, MIDDLE, NARROW, WIDE
from ansorlite.machine.gpu import A100, EMULATED, H100, H100_PLAIN, MALI, Gpu
from ansorlite.machine.kept import kept, machine_of
from ansorlite.te import dtypes
from ansorlite.te.ops import BinaryOp

#: Environment variable: the name of the target that programs are made for where nothing else is asked for.
TARGET_VARIABLE: Final = "ANSORLITE_TARGET"

#: SVE's registers of these lengths are used: powers of two, which lanes come in.
_SVE_BYTES: Final = (32, 64, 128, 256)

#: Which features of LLVM's give which dot products of words; of those that add up in one dtype, the one with most products first.
_DOTS: Final[tuple[tuple[str, BinaryOp], ...]] = (
    ("avx512bf16", BinaryOp.DOT_BF16),
    ("bf16", BinaryOp.DOT_BF16),
    ("avx512vnni", BinaryOp.DOT_U8S8),
    ("avxvnni", BinaryOp.DOT_U8S8),
    ("avxvnniint8", BinaryOp.DOT_S8S8),
    ("avxvnniint8", BinaryOp.DOT_U8U8),
    ("dotprod", BinaryOp.DOT_S8S8),
    ("dotprod", BinaryOp.DOT_U8U8),
    ("i8mm", BinaryOp.DOT_U8S8),
    ("ssse3", BinaryOp.DOT_U8S7),
    ("sse2", BinaryOp.DOT_S16S16),
)
#: Which features of LLVM's give which dot products on matrix units (``loops/matrix_tile.py``), besides the registers themselves.
_MATRIX: Final = "+amx-tile"
_MATRIX_DOTS: Final[Mapping[BinaryOp, str]] = {
    BinaryOp.DOT_BF16: "+amx-bf16",
    BinaryOp.DOT_U8S8: "+amx-int8",
    BinaryOp.DOT_U8S7: "+amx-int8",
    BinaryOp.DOT_S8S8: "+amx-int8",
    BinaryOp.DOT_U8U8: "+amx-int8",
}


@dataclass(frozen=True)
class Target:
    """A machine as the search and the code generator see it.

    Attributes:
        kind: ``"llvm"``: a CPU through LLVM; ``"cuda"``: an NVIDIA GPU; ``"opencl"``: what an OpenCL driver runs programs on;
            ``"emulated"``: a CPU that stands in for a small GPU.
        triple, cpu, features: LLVM's names for the machine.
        vector_bytes: width of one vector register.
        vector_registers: how many of them there are.
        threads: how many threads a kernel runs on.
        l1, l2: bytes of data cache of one core.
        l3: bytes of the last-level cache.
        machine: what instructions, caches and memory cost there, for the analytical cost model.
        gpu: what a GPU has; ``None`` of CPUs. Of GPUs the rest is said per thread, and caches are those of one multiprocessor.
        ordinal: which of this machine's devices of the kind programs run on. Records do not tell devices of one name apart.
    """

    kind: str
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    vector_registers: int
    threads: int
    l1: int
    l2: int
    l3: int
    machine: MachineConstants = WIDE
    gpu: Gpu | None = None
    ordinal: int = 0

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Target:
        """The inverse of ``dataclasses.asdict``."""
        gpu = facts.get("gpu")
        machine = MachineConstants.of(facts["machine"])
        return Target(**{**facts, "machine": machine, "gpu": None if gpu is None else Gpu.of(gpu)})

    @property
    def reach(self) -> tuple[float, float, float]:
        """Bytes of each cache that a sweep can fill before it slows down."""
        m = self.machine
        return self.l1 * m.l1_share, self.l2 * m.l2_share, self.l3 * m.l3_share

    def lanes(self, dtype: str) -> int:
        """How many elements of ``dtype`` one vector register holds."""
        return max(1, self.vector_bytes // dtypes.size(dtype))

    @cached_property
    def sve_bytes(self) -> int | None:
        """How many bytes SVE's registers must have for the code to be right; ``None``: it does not depend on that.

        Vectors of 16 bytes are in NEON's registers, whatever the length of SVE's.
        """
        return self.vector_bytes if self.vector_bytes > 16 and "+sve" in self.features.split(",") else None

    @property
    def dots(self) -> tuple[BinaryOp, ...]:
        """The dot products of words that are instructions here, the best first."""
        features = set(self.features.split(","))
        return tuple(dict.fromkeys(op for feature, op in _DOTS if f"+{feature}" in features))

    @cached_property
    def matrix_dots(self) -> frozenset[BinaryOp]:
        """The dot products of words that matrix units do."""
        features = self.features.split(",")
        return frozenset(op for op, feature in _MATRIX_DOTS.items() if _MATRIX in features and feature in features)

    @property
    def key(self) -> str:
        """A readable name under which records are kept: measurements of one target say nothing about another."""
        machine = f"{self.kind} {self.architecture} {self.cpu} v{self.vector_bytes} t{self.threads}"
        return machine if self.gpu is None else f"{machine} {self.gpu.name.replace(' ', '-')} {self.gpu.processors}"

    @cached_property
    def architecture(self) -> str:
        """LLVM's name of the instruction set: the first word of its triple."""
        return self.triple.split("-")[0]

    @property
    def platform(self) -> tuple[str, str]:
        """Which row of ``platforms.PLATFORMS`` says how programs for it are made and run."""
        return self.kind, self.architecture


def _vectors(triple: str, features: dict[str, bool]) -> tuple[int, int]:
    """(bytes, count) of the vector registers."""
    if triple.startswith("x86_64"):
        if features.get("avx512f"):
            return 64, 32
        return (32, 16) if features.get("avx2") else (16, 16)
    length = processor.sve_bytes() if features.get("sve") else None
    return (length if length in _SVE_BYTES else 16), 32


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


def _nvidia(processor: str, gpu: Gpu, features: str = "+ptx80", ordinal: int = 0) -> Target:
    """By LLVM's name. Drivers since 2022 read PTX of version 8.0."""
    return _gpu("cuda", "nvptx64-nvidia-cuda", processor, features, gpu, ordinal)


def _opencl(gpu: Gpu, ordinal: int = 0) -> Target:
    """Its programs are made without LLVM, which has only the name of their architecture."""
    return _gpu("opencl", "spir64-unknown-unknown", gpu.name.replace(" ", "-"), "", gpu, ordinal)


def _gpu(kind: str, triple: str, processor: str, features: str, gpu: Gpu, ordinal: int) -> Target:
    caches = (gpu.shared, gpu.l2, gpu.l2)
    registers = min(64, gpu.thread_registers)
    return Target(kind, triple, processor, features, gpu.load_bytes, registers, 1, *caches, gpu=gpu, ordinal=ordinal)


#: GPUs by LLVM's names and by people's, with the facts of the common model. Programs are made for them; they run where one is.
GPUS: Final[Mapping[str, Target]] = {
    "sm_80": _nvidia("sm_80", A100),
    "sm_90": _nvidia("sm_90", H100_PLAIN),
    "a100": _nvidia("sm_80", A100),
    "h100": _nvidia("sm_90a", H100),
    "mali-g710": _opencl(MALI),
}

#: Every CPU that has a name.
NAMED: Final[Mapping[str, Target]] = {**LEVELS, **PROCESSORS}


def host(threads: int | None = None) -> Target:
    """The machine that programs are made for: this one, or the one that ``ANSORLITE_TARGET`` names.

    Args:
        threads: how many a kernel runs on; by default one for each core that this process may use.

    Raises:
        TargetError: ``threads`` is no integer, or less than 1; or the variable names no target.
    """
    forced = os.environ.get(TARGET_VARIABLE, "")
    if forced in ("", "llvm"):
        return this_machine(threads)
    if forced not in NAMED:
        raise TargetError(f"{TARGET_VARIABLE} is {forced!r}; the targets are: {', '.join(('llvm', *NAMED))}")
    return _named(forced, threads)


def process_target() -> Target:
    """The machine that this process compiles its own functions for: :func:`host` if it can run them, else the one it runs on."""
    wanted = host()
    return this_machine(None) if obstacle(wanted) else wanted


def resolve(target: str | Target) -> Target:
    """The target of a name.

    Args:
        target: ``"llvm"`` (see :func:`host`), a name in :data:`NAMED` or :data:`GPUS`, or a :class:`Target` as it is; ``"cuda"``
            or ``"opencl"``: a device of this machine, the first one, or by number as ``"cuda:1"``; ``"emulated"``: this machine
            in the place of a GPU; or the path of a file that ``ansorlite target`` wrote.

    Raises:
        TargetError: another name, or a file with something else in it; or there is no such device, or nothing to reach it by.
    """
    if isinstance(target, Target):
        return target
    if target == "llvm":
        return host()
    if isinstance(target, str) and target in NAMED:
        return _named(target, None)
    if isinstance(target, str) and target in GPUS:
        return GPUS[target]
    if target == "emulated":
        return replace(this_machine(None), kind="emulated", gpu=EMULATED)
    if isinstance(target, str) and (found := _DEVICE.fullmatch(target)):
        return _device(found["kind"], int(found["number"] or 0))
    if isinstance(target, str) and Path(target).is_file():
        return _from_file(Path(target))
    names = ", ".join(("llvm", *LEVELS, *GPUS, "emulated", "cuda[:N]", "opencl[:N]"))
    raise TargetError(
        f"unknown target {target!r}; the targets are: {names}, LLVM's names of processors, such as znver4, "
        "and files that `ansorlite target` writes"
    )


def recorded(key: str) -> Target:
    """The target whose records have ``key``, as far as this machine can make its programs: a device that is here, or a named one;
    of a CPU that this one is not, and cannot stand for, this one.

    Raises:
        TargetError: it is a device that is neither here nor named.
    """
    kind, _, cpu, *_ = [*key.split(), "", "", ""]
    if kind == "emulated":
        return resolve("emulated")
    if kind == "llvm":
        named = resolve(cpu) if cpu in NAMED else host()
        return host() if obstacle(named) else named
    try:
        for number in range(_DEVICES):
            if (here := _device(kind, number)).key == key:
                return here
    except TargetError:
        pass  # there are no more
    if found := [target for target in GPUS.values() if target.key == key]:
        return found[0]
    raise TargetError(f"the record is of {key}, which is not here")


#: More of one kind no machine has.
_DEVICES: Final = 64

#: Numbers of a target that a file may say: which, and up to what.
_NUMBERS: Final[Mapping[str, int]] = {"threads": 1 << 12, "l1": 1 << 40, "l2": 1 << 40, "l3": 1 << 40}
#: Such a file has not more bytes.
_LARGEST: Final = 1 << 12


def to_file(name: str, target: Target) -> str:
    """What a file says of the target of that name, with the threads and caches of ``target``."""
    numbers = {key: getattr(target, key) for key in _NUMBERS}
    return json.dumps({"kind": "target", "name": name, **numbers}, indent=2) + "\n"


def _from_file(path: Path) -> Target:
    try:
        with path.open("rb") as file:
            said = json.loads(file.read(_LARGEST))
        if said["kind"] != "target" or said["name"] not in NAMED or set(said) != {"kind", "name", *_NUMBERS}:
            raise ValueError
        if not all(type(said[key]) is int and 1 <= said[key] <= most for key, most in _NUMBERS.items()):
            raise ValueError
    except OSError as error:
        raise TargetError(f"{path} cannot be read ({error.strerror})") from error
    except (ValueError, TypeError, KeyError, RecursionError):
        raise TargetError(f"{path} does not say what a target is; `ansorlite target -o {path.name}` writes such a file") from None
    return replace(NAMED[said["name"]], **{key: said[key] for key in _NUMBERS})


#: A device of this machine, by its number among those of its kind.
_DEVICE: Final = re.compile(r"(?P<kind>cuda|opencl)(:(?P<number>\d{1,3}))?")


def _device(kind: str, number: int) -> Target:
    if kind == "opencl":
        return _opencl(opencl.facts(number), number)
    gpu, processor, features = cuda.facts(number)
    return _nvidia(processor, gpu, features, number)


def obstacle(target: Target) -> str | None:
    """Why code for ``target`` cannot run in this process, as the end of a sentence; ``None``: it can."""
    if target.kind not in ("cuda", "opencl"):
        return _obstacle(target)
    try:
        here = _device(target.kind, target.ordinal)
    except TargetError as error:
        return str(error)
    return None if here.key == target.key else f"device {target.kind}:{target.ordinal} is {here.key}"


@cache
def _obstacle(target: Target) -> str | None:
    """Of a CPU."""
    if target.architecture != processor.ARCHITECTURE:
        return f"this processor is {processor.ARCHITECTURE}, not {target.architecture}"
    named = NAMED.get(target.cpu)
    # LLVM takes a processor to have its features, but for those that are said to be missing.
    features = f"{named.features if named else ''},{target.features}".split(",")
    wanted = {feature[1:]: feature.startswith("+") for feature in features if feature}
    lacking = processor.missing([feature for feature, used in wanted.items() if used])
    if lacking:
        return f"this processor has no {', '.join(lacking)}"
    return processor.other_vectors(target.sve_bytes)


def check_runs(target: Target) -> None:
    """Raises:
    TargetError: code for ``target`` cannot run in this process.
    """
    if reason := obstacle(target):
        raise TargetError(f"code for {target.key} cannot run here: {reason}; run it on such a machine, or compile for this one")


def this_machine(threads: int | None = None) -> Target:
    """The machine that this process runs on, whatever target is asked for. ``threads`` as for :func:`host`."""
    triple = llvm.get_process_triple()
    features = llvm.get_host_cpu_features()
    vector_bytes, vector_registers = _vectors(triple, features)
    return Target(
        kind="llvm",
        triple=triple,
        cpu=llvm.get_host_cpu_name(),
        features=features.flatten(),
        vector_bytes=vector_bytes,
        vector_registers=vector_registers,
        threads=_threads(threads),
        l1=processor.cache_bytes(1, 32 << 10),
        l2=processor.cache_bytes(2, 1 << 20),
        l3=processor.cache_bytes(3, 8 << 20),
        machine=machine_of(llvm.get_host_cpu_name(), vector_bytes),
    )


def _named(name: str, threads: int | None) -> Target:
    """The machine of that name, with the threads of this one; this one, if it is its name.

    A level of this architecture has this machine's caches, too, and what was measured of it.
    """
    found, here = NAMED[name], this_machine(threads)
    if name == here.cpu:
        return here
    if name in PROCESSORS or found.architecture != here.architecture:
        return replace(found, threads=here.threads)
    machine = kept(found.cpu) or found.machine
    return replace(found, threads=here.threads, l1=here.l1, l2=here.l2, l3=here.l3, machine=machine)


def _threads(wanted: int | None) -> int:
    if wanted is not None and (not isinstance(wanted, int) or wanted < 1):
        raise TargetError(f"threads is {wanted!r}; it must be an integer, 1 or more")
    return wanted or len(os.sched_getaffinity(0))

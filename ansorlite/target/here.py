"""The machine that this process runs on, and the one that programs are made for where nothing else is asked for."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from typing import Final

import llvmlite.binding as llvm

from ansorlite import processor
from ansorlite.errors import TargetError
from ansorlite.machine import cuda
from ansorlite.machine import opencl as opencl_facts
from ansorlite.machine.kept import kept, machine_of
from ansorlite.target.facts import Target
from ansorlite.target.named import NAMED, PROCESSORS, nvidia, opencl

#: Environment variable: the name of the target that programs are made for where nothing else is asked for.
TARGET_VARIABLE: Final = "ANSORLITE_TARGET"

#: SVE's registers of these lengths are used: powers of two, which lanes come in.
_SVE_BYTES: Final = (32, 64, 128, 256)


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
    return cpu_of(forced, threads)


def process_target() -> Target:
    """The machine that this process compiles its own functions for: :func:`host` if it can run them, else the one it runs on."""
    wanted = host()
    return this_machine(None) if obstacle(wanted) else wanted


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
        machine=machine_of(llvm.get_host_cpu_name(), features.flatten(), vector_bytes),
    )


def cpu_of(name: str, threads: int | None) -> Target:
    """The CPU of that name, with the threads of this one; this one, if it is its name.

    A level of this architecture has this machine's caches, too, and what was measured of it.
    """
    found, here = NAMED[name], this_machine(threads)
    if name == here.cpu:
        return here
    if name in PROCESSORS or found.architecture != here.architecture:
        return replace(found, threads=here.threads)
    machine = kept(found.cpu) or found.machine
    return replace(found, threads=here.threads, l1=here.l1, l2=here.l2, l3=here.l3, machine=machine)


def device(kind: str, number: int) -> Target:
    """A device of this machine, by its number among those of its kind.

    Raises:
        TargetError: there is none, or nothing to reach it by.
    """
    if kind == "opencl":
        return opencl(opencl_facts.facts(number), number)
    gpu, processor, features = cuda.facts(number)
    return nvidia(processor, gpu, features, number)


def obstacle(target: Target) -> str | None:
    """Why code for ``target`` cannot run in this process, as the end of a sentence; ``None``: it can."""
    if target.kind not in ("cuda", "opencl"):
        return _obstacle(target)
    try:
        here = device(target.kind, target.ordinal)
    except TargetError as error:
        return str(error)
    return None if here.key == target.key else f"device {target.kind}:{target.ordinal} is {here.key}"


@cache
def _obstacle(target: Target) -> str | None:
    """Of a CPU."""
    if target.architecture != processor.ARCHITECTURE:
        return f"this processor is {processor.ARCHITECTURE}, not {target.architecture}"
    known = NAMED.get(target.cpu)
    # LLVM takes a processor to have its features, but for those that are said to be missing.
    features = f"{known.features if known else ''},{target.features}".split(",")
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


def _vectors(triple: str, features: dict[str, bool]) -> tuple[int, int]:
    """(bytes, count) of the vector registers."""
    if triple.startswith("x86_64"):
        if features.get("avx512f"):
            return 64, 32
        return (32, 16) if features.get("avx2") else (16, 16)
    length = processor.sve_bytes() if features.get("sve") else None
    return (length if length in _SVE_BYTES else 16), 32


def _threads(wanted: int | None) -> int:
    if wanted is not None and (not isinstance(wanted, int) or wanted < 1):
        raise TargetError(f"threads is {wanted!r}; it must be an integer, 1 or more")
    return wanted or len(os.sched_getaffinity(0))

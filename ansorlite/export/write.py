"""Writing a model as a shared library: kernels, the entry that calls them, the thread team, the C functions, the weights."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm

from ansorlite import processor
from ansorlite.codegen import checksum, direct, entry, team
from ansorlite.codegen.driver_tables import GpuModel
from ansorlite.codegen.machine import machine, optimise
from ansorlite.errors import ArgumentError
from ansorlite.export import gpu_side, header, public_side
from ansorlite.export.description import MODEL, Description
from ansorlite.export.link import link
from ansorlite.export.seal import seal
from ansorlite.runtime.arguments import Array
from ansorlite.runtime.team import spin
from ansorlite.target import LEVELS, Target
from ansorlite.temporary import TemporaryFolder
from ansorlite.writing import replacing, writing

#: Code and its data must lie within 2 GiB of each other, and this much is left for all that is not weights.
_INSIDE_AT_MOST = (2 << 30) - (64 << 20)


@dataclass(frozen=True, eq=False)
class NativeModel:
    """A whole model as native code.

    Attributes:
        steps: in order; blocks of memory by the numbers of ``graph/layout.py``.
        objects: symbol of each kernel that the steps call → the object file that defines it.
        weights: the block of weights.
        target: that the kernels were compiled for.
    """

    steps: Sequence[entry.EntryStep]
    objects: Mapping[str, bytes]
    weights: Array
    target: Target


def write_library(model: NativeModel, description: Description, path: Path) -> None:
    """Write ``path``, the header beside it, and beside it too the weights, if the description names a file for them.

    Raises:
        ArgumentError: the weights are too large to be inside, or a file cannot be written.
        TargetError: there is no linker, or it fails.
    """
    target = model.target
    codes = [
        *model.objects.values(),
        _assembled(entry.text(public_side.ENTRY, model.steps, target), target),
        _assembled(direct.text(target, description.object_head), target),
        machine(target).emit_object(optimise(team.text(target, spin()), target)),
        machine(target).emit_object(optimise(checksum.text(target), target)),
        _assembled(public_side.text(description, target), target),
    ]
    _write(codes, public_side.functions(description.name), model.weights, description, path, target)


def write_gpu_library(model: GpuModel, weights: Array, description: Description, path: Path) -> None:
    """The same of a model for an NVIDIA GPU: the library is for processors of this one's architecture.

    Raises:
        ArgumentError, TargetError: as :func:`write_library`.
    """
    host = LEVELS[_HOSTS[processor.ARCHITECTURE]]
    codes = [
        machine(host).emit_object(optimise(checksum.text(host), host)),
        _assembled(gpu_side.text(description, model, host), host),
    ]
    _write(codes, gpu_side.functions(description.name), weights, description, path, host)


#: What the host's side of a model on a GPU is compiled for, by this machine's architecture: any processor of it.
_HOSTS: Final = {"x86_64": "x86-64-v2", "aarch64": "aarch64"}


def _write(
    codes: Sequence[bytes], functions: Sequence[str], weights: Array, description: Description, path: Path, target: Target
) -> None:
    """Link ``codes``, and write all files.

    Args:
        target: of the processor that runs the library.
    """
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder; give the path of the library to be written, as {path / 'model.so'}")
    if description.weights is None and weights.nbytes > _INSIDE_AT_MOST:
        raise ArgumentError("these weights are too large to be inside of a library; export with weights='beside'")
    with TemporaryFolder() as folder:
        objects = [folder / f"{number}.o" for number in range(len(codes))]
        with writing(folder):
            for file, code in zip(objects, codes, strict=True):
                file.write_bytes(code)
        if description.weights is None:
            objects.append(folder / "weights.o")
            _write_weights(weights, objects[-1], target)
        linked = folder / path.name
        link(objects, linked, (*functions, MODEL), folder, target)
        seal(linked)
        if description.weights is not None:
            with replacing(path.with_name(description.weights)) as new:
                weights.tofile(new)
        with replacing(path) as new:
            shutil.move(linked, new)
        with replacing(path.with_suffix(".h")) as new:
            new.write_text(header.text(description))


def checksum_of(weights: Array) -> str:
    """As :class:`Description` has it."""
    return f"{checksum.checksum(weights):016x}"


def _write_weights(weights: Array, file: Path, target: Target) -> None:
    """Write an object file with the weights, and with a byte behind them: a place in memory even where there are none.

    LLVM writes one with a mark and zeros, which the weights then take the place of: there is no assembler for all architectures,
    and as text they would be several times as large.
    """
    mark = secrets.token_bytes(32)
    zeros = max(0, weights.nbytes - len(mark)) + 1
    kind, text = f"<{{ [{len(mark)} x i8], [{zeros} x i8] }}>", "".join(f"\\{byte:02X}" for byte in mark)
    value = f'<{{ [{len(mark)} x i8] c"{text}", [{zeros} x i8] zeroinitializer }}>'
    place = 'section ".rodata.weights", align 4096'
    code = _assembled(
        f'target triple = "{target.triple}"\n@{public_side.WEIGHTS} = hidden constant {kind} {value}, {place}\n', target
    )
    begin = code.index(mark)
    view = memoryview(code)
    with writing(file), file.open("wb") as output:
        output.write(view[:begin])
        weights.tofile(output)
        output.write(bytes(max(0, len(mark) - weights.nbytes)))
        output.write(view[begin + max(len(mark), weights.nbytes) :])


def _assembled(text: str, target: Target) -> Any:
    """Object code of a module that has nothing to optimise."""
    return machine(target).emit_object(llvm.parse_assembly(text, llvm.create_context()))

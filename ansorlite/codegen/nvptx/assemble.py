"""From LLVM IR to PTX, and to what a GPU runs: by ``ptxas``, or by the library nvJitLink.

The driver takes PTX, too, and then compiles it itself.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm

from ansorlite.codegen.machine import machine
from ansorlite.codegen.nvptx import nvjitlink
from ansorlite.codegen.object import Report
from ansorlite.errors import TargetError
from ansorlite.target import Target
from ansorlite.temporary import TemporaryFolder

#: Environment variable: the ``ptxas`` to use.
PTXAS_VARIABLE: Final = "ANSORLITE_PTXAS"
#: Environment variable: which of :data:`ASSEMBLERS` to use; by default the first that is there.
ASSEMBLER_VARIABLE: Final = "ANSORLITE_ASSEMBLER"
#: What turns PTX into machine code. The driver does when the program is loaded, and tells nothing of registers.
ASSEMBLERS: Final = ("ptxas", "nvjitlink", "driver")
#: Where the wheels nvidia-cuda-nvcc and nvidia-cuda-nvcc-cu12 have it, in the package ``nvidia``.
_IN_WHEELS: Final = ("cu13/bin/ptxas", "cuda_nvcc/bin/ptxas")
#: Seconds after which it is taken to hang.
_LIMIT: Final = 120

_INFO: Final = re.compile(
    r"Compiling entry function '(?P<symbol>\w+)'.*?"
    r"(?P<frame>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads.*?"
    r"Used (?P<registers>\d+) registers",
    re.S,
)


_ELSEWHERE: Final = re.compile(r"^\.extern \.func\b.*?(?P<name>llvm\.[\w.]+)", re.M)


@dataclass(frozen=True)
class Assembled:
    """
    Attributes:
        cubin: what a GPU runs.
        reports: by kernel.
    """

    cubin: bytes
    reports: dict[str, Report]


def to_ptx(text: str, target: Target) -> str:
    """The PTX of an LLVM module.

    Raises:
        TargetError: the installed LLVM does not know the GPU's kind, or an operation of it that the module uses.
    """
    if not _known(target):
        raise TargetError(f"the installed LLVM ({_version()}) makes no code for {target.cpu}; install a newer llvmlite")
    module = llvm.parse_assembly(text, llvm.create_context())
    back_end = machine(target)
    module.data_layout = str(back_end.target_data)
    module.verify()
    _passes().run(module, llvm.create_pass_builder(back_end, llvm.create_pipeline_tuning_options(speed_level=2)))
    ptx = str(back_end.emit_assembly(module))
    # An operation that LLVM does not know it takes for somebody else's function, which nobody has.
    if unknown := _ELSEWHERE.search(ptx):
        raise TargetError(f"the installed LLVM ({_version()}) does not know {unknown['name']}; install a newer llvmlite")
    return ptx


@cache
def _known(target: Target) -> bool:
    """Whether the installed LLVM knows the GPU's kind.

    One that it does not know it takes for the oldest, and ends the process where that lacks an operation. It has no list to be
    asked for, but adds numbers of 16 bits in 32 where the oldest is meant; all that code is made for have an operation for it.
    """
    probe = "define half @probe(half %a, half %b) {\n  %sum = fadd half %a, %b\n  ret half %sum\n}"
    module = llvm.parse_assembly(f'target triple = "{target.triple}"\n{probe}', llvm.create_context())
    return re.search(r"\badd(\.rn)?\.f16\b", machine(target).emit_assembly(module)) is not None


def _version() -> str:
    return ".".join(map(str, llvm.llvm_version_info))


@cache
def _passes() -> Any:
    """Few, as the emitter itself hoists, shares and unrolls. Functions become parts of the kernels that call them."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    return passes


def _candidates() -> Iterator[str]:
    if given := os.environ.get(PTXAS_VARIABLE):
        yield given
        return
    if found := shutil.which("ptxas"):
        yield found
    package = importlib.util.find_spec("nvidia")
    for folder in (package.submodule_search_locations or ()) if package else ():
        yield from (str(Path(folder) / name) for name in _IN_WHEELS if (Path(folder) / name).is_file())


@cache
def ptxas() -> str | None:
    """The program's path; ``None`` where there is none."""
    return next(_candidates(), None)


def assemble(ptx: str, processor: str) -> Assembled:
    """Assemble ``ptx`` for ``processor``: ``"sm_90a"``.

    Raises:
        TargetError: there is no ``ptxas``, or it refuses the program.
    """
    program = ptxas()
    if program is None:
        raise TargetError(f"there is no ptxas: install nvidia-cuda-nvcc, or say where it is by {PTXAS_VARIABLE}")
    with TemporaryFolder() as folder:  # a builder is killed where this takes too long
        source, result = folder / "kernel.ptx", folder / "kernel.cubin"
        source.write_text(ptx)
        command = [program, f"-arch={processor}", "-v", str(source), "-o", str(result)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TargetError(f"ptxas did not run: {error}") from error
        if done.returncode or not result.is_file():
            raise TargetError(f"ptxas refuses the program: {(done.stderr or done.stdout).strip()[:500]}")
        return Assembled(result.read_bytes(), reports(done.stderr + done.stdout))


def link(ptx: str, processor: str) -> Assembled:
    """As :func:`assemble`, by nvJitLink.

    Raises:
        TargetError: there is no such library, or it refuses the program.
    """
    cubin, told = nvjitlink.link(ptx.encode(), processor)
    return Assembled(cubin, reports(told))


def assembler() -> str:
    """Which of :data:`ASSEMBLERS` is used here.

    Raises:
        TargetError: the environment names another one.
    """
    wanted = os.environ.get(ASSEMBLER_VARIABLE, "")
    if wanted and wanted not in ASSEMBLERS:
        raise TargetError(f"{ASSEMBLER_VARIABLE} is {wanted!r}; it must be one of {', '.join(ASSEMBLERS)}, or unset")
    return wanted or ("ptxas" if ptxas() else "nvjitlink" if nvjitlink.library() else "driver")


def reports(told: str) -> dict[str, Report]:
    """What an assembler that was asked to be verbose says of each kernel."""
    return {
        found["symbol"]: Report(int(found["registers"]), int(found["stores"]) + int(found["loads"]), int(found["frame"]))
        for found in _INFO.finditer(told)
    }

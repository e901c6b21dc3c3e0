"""LLVM's machine for a target, and its passes over a module's text."""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

from ansorlite.target import Target


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@cache
def machine(target: Target) -> Any:
    """llvmlite's target machine for ``target``."""
    _initialize()
    backend = llvm.Target.from_triple(target.triple)
    return backend.create_target_machine(cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel="default")


def optimise(text: str, target: Target, promotes: bool = False) -> Any:
    """The llvmlite module of ``text`` after LLVM's passes.

    They are few: the emitter itself hoists, shares and unrolls. Stack slots become registers, instructions take the form that
    instruction selection knows, empty blocks go.

    Args:
        promotes: run LLVM's whole pipeline, which keeps in a register what a loop adds to in memory.
    """
    module = llvm.parse_assembly(text, llvm.create_context())
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine(target), options)
    if not promotes:
        _few_passes().run(module, builder)
        return module
    pipeline = builder.getModulePassManager()
    try:
        pipeline.run(module, builder)
    finally:
        _free(pipeline)
    return module


@cache
def _few_passes() -> Any:
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    return passes


def _free(passes: Any) -> None:
    """Free a pass manager: llvmlite does not, as ``ObjectRef``'s method, which does nothing, hides the one that would."""
    NewPassManager._dispose(passes)
    passes.detach()

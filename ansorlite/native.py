"""Native functions of the search itself, compiled once a process: what they share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite import ir

from ansorlite.llvm_option import options_for_emitted_code

I32, I64, F32, F64, PTR = ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType(), ir.PointerType()
_CTYPES: Final = {I64: ctypes.c_int64, PTR: ctypes.c_void_p}


def declare(name: str, arguments: Sequence[tuple[str, ir.Type]]) -> tuple[ir.Function, dict[str, ir.Value]]:
    """A function of a module of its own that returns nothing, and its arguments by name."""
    function = ir.Function(ir.Module(name), ir.FunctionType(ir.VoidType(), [kind for _, kind in arguments]), name)
    function.attributes.add("nounwind")
    return function, dict(zip((argument for argument, _ in arguments), function.args, strict=True))


def compiled(function: ir.Function) -> tuple[Any, Callable[..., None]]:
    """The engine that owns the machine code of ``function``, and the function in it, which takes ints and addresses."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Whatever machine programs are for, the search runs on this one.
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    backend = llvm.Target.from_triple(llvm.get_process_triple())
    machine = backend.create_target_machine(cpu=cpu, features=features, opt=2, jit=True)
    module = llvm.parse_assembly(str(function.module))
    module.verify()
    # Written as it should run: of the whole pipeline these passes do nine tenths of the good in a tenth of the time.
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_loop_rotate_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2)))
    engine = llvm.create_mcjit_compiler(module, machine)
    with options_for_emitted_code(llvm.get_process_triple().split("-")[0]):
        engine.finalize_object()
    types = [_CTYPES[argument.type] for argument in function.args]
    return engine, ctypes.CFUNCTYPE(None, *types)(engine.get_function_address(function.name))


def load(b: ir.IRBuilder, array: ir.Value, index: ir.Value, kind: ir.Type) -> ir.Value:
    """``array[index]``, for elements of ``kind``."""
    return b.load(b.gep(array, [index], source_etype=kind), typ=kind)


def splat(b: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """A vector of one value."""
    vector = ir.VectorType(value.type, lanes)
    one = b.insert_element(ir.Constant(vector, ir.Undefined), value, I32(0))
    return b.shuffle_vector(one, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))


def gather(b: ir.IRBuilder, array: ir.Value, indices: ir.Value, kind: ir.Type) -> ir.Value:
    """``kind`` elements of ``array`` at a vector of ``indices``."""
    lanes = indices.type.count
    result: ir.Value = ir.Constant(ir.VectorType(kind, lanes), ir.Undefined)
    for lane in range(lanes):
        result = b.insert_element(result, load(b, array, b.extract_element(indices, I32(lane)), kind), I32(lane))
    return result


@contextmanager
def loop(b: ir.IRBuilder, begin: ir.Value, end: ir.Value, step: int = 1) -> Iterator[ir.Value]:
    """``for index in range(begin, end, step)`` around what the ``with`` block emits."""
    entered = b.block
    head, body, done = (b.function.append_basic_block(name) for name in ("head", "body", "done"))
    b.branch(head)
    b.position_at_end(head)
    index = b.phi(I64)
    index.add_incoming(begin, entered)
    b.cbranch(b.icmp_signed("<", index, end), body, done)
    b.position_at_end(body)
    yield index
    index.add_incoming(b.add(index, I64(step)), b.block)
    b.branch(head)
    b.position_at_end(done)

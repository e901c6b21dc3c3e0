"""A compiled computation as a Python callable: numpy arrays in, numpy arrays out."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, Final, Literal

import numpy as np

from ansorlite import codegen
from ansorlite.alignment import aligned
from ansorlite.codegen.object import Compiled, DeviceObject
from ansorlite.errors import ArgumentError, MemoryLimitError
from ansorlite.loops.nodes import Buffer, Scope
from ansorlite.runtime.arguments import Array
from ansorlite.runtime.builtin import Argument, Direct, DirectCalls, Role
from ansorlite.runtime.device import LoadedKernel
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.memory import check_fits, no_room
from ansorlite.runtime.not_copied import NotCopied
from ansorlite.runtime.timing import Timing, TimingSettings, measure
from ansorlite.runtime.workspace import WorkspacePool, workspace, workspace_shape
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target
from ansorlite.te import dtypes

# numpy's flag bits.
_CONTIGUOUS: Final = 0x1
_ALIGNED: Final = 0x100
_WRITEABLE: Final = 0x400
_READABLE: Final = _CONTIGUOUS | _ALIGNED


@dataclass(frozen=True)
class _Bound:
    """A kernel on fixed arrays; keeps alive whatever their addresses point to."""

    loaded: LoadedKernel
    packed: bytes
    owners: tuple[object, ...]

    def __call__(self, count: int) -> None:
        self.loaded.repeat(self.packed, count)


class _Template:
    """The addresses that a kernel takes, but for some that change from call to call."""

    def __init__(self, addresses: Sequence[int], left: Sequence[int]) -> None:
        """
        Args:
            left: the positions of those that change.
        """
        self._addresses = list(addresses)
        self._left = left
        self._struct = struct.Struct(f"{len(addresses)}P")

    def pack(self, *given: int) -> bytes:
        addresses = self._addresses.copy()
        for position, address in zip(self._left, given, strict=True):
            addresses[position] = address
        return self._struct.pack(*addresses)


def _nothing(_: bytes) -> None:
    """What a prepared kernel has left to prepare."""


@dataclass(frozen=True)
class Origin:
    """Where a kernel comes from.

    Attributes:
        candidate: the program.
        latency: seconds of the record that it was chosen for; ``None`` for a default program.
    """

    candidate: Candidate
    latency: float | None


class Kernel(NotCopied):
    """A compiled computation. Any number of Python threads may call it at once.

    Constant inputs are prepared (packed, transformed) before they are used: by a call each time, by :meth:`bind` and
    :meth:`benchmark` once. :meth:`prepare` does it once for any number of calls, which then take the other inputs only.
    """

    elsewhere = "compile the task, which can be pickled"

    def __init__(self, compiled: Compiled, params: Sequence[Buffer], target: Target, origin: Origin | None = None) -> None:
        """Load ``compiled`` on the device of its target.

        Args:
            params: of the function that it was compiled from: inputs, then outputs.
            target: that it was compiled for.
            origin: which program it is, for people.

        Raises:
            TargetError: it is for another target, or a library that it needs is missing.
            MemoryLimitError: this machine has less memory than a call needs.
        """
        self.origin = origin
        self._compiled = compiled
        self._target = target
        self._device = device_of(target)
        self._loaded = self._device.load(compiled)
        self._entry = self._loaded.call
        inputs = len(params) - compiled.outputs
        self.inputs = tuple(params[:inputs])
        self.outputs = tuple(params[inputs:])
        self._params = tuple(params)
        self._checks = [(buffer.shape, dtypes.NUMPY[buffer.dtype]) for buffer in params]
        self._new = self._checks[inputs:]
        self._empty = self._device.maker(max(buffer.nbytes for buffer in self.outputs))
        self._prepare = self._loaded.prepare
        room = max(compiled.workspace, compiled.prepare_workspace) + compiled.prepared
        check_fits({**{buffer.name: buffer.nbytes for buffer in self.outputs}, "temporaries": room})
        self._pack: Callable[..., bytes] = struct.Struct(f"{len(params) + 1}P").pack
        self._workspace_bytes = compiled.workspace
        self._owners: tuple[object, ...] = ()
        if compiled.prepared:
            # What a call prepares lies behind its workspace.
            begin = aligned(max(compiled.workspace, compiled.prepare_workspace))
            pack = struct.Struct(f"{len(params) + 2}P").pack
            self._pack = lambda *addresses: pack(*addresses, addresses[-1] + begin)
            self._entry = self._prepare_and_run
            self._workspace_bytes = begin + compiled.prepared
        self._workspaces = WorkspacePool(self._device, self._workspace_bytes)
        self._direct = None if compiled.prepared else self._directly([0] * (len(params) + 2), range(len(params)))

    def __call__(self, *arrays: Array, out: Array | Sequence[Array] | None = None) -> Any:
        """Run it.

        Args:
            arrays: one per input, of its shape and dtype. One that is not contiguous is copied, as is one that overlaps
                ``out``.
            out: where to write: an array, or one per output; contiguous. New arrays by default.

        Returns:
            The output, or a tuple of them if there are several.

        Raises:
            ArgumentError: a wrong number of arrays, or one of another shape, dtype or layout.
            MemoryLimitError: there is no room for the outputs or temporaries.
        """
        direct = self._direct
        if out is None and direct is not None and direct.making is not None:
            made = self._called(direct.making, arrays)
            if made is not None:
                return made[0] if len(made) == 1 else made
            direct = None  # which fits no better where outputs are given
        if out is None:
            try:
                outputs = list(starmap(self._empty, self._new))
            except MemoryError:
                raise self._no_room() from None
        else:
            outputs = list(out) if isinstance(out, Sequence) else [out]
        if direct is None or len(arrays) != len(self.inputs) or self._called(direct.given, (*arrays, *outputs)) is None:
            self._call(arrays, outputs, given=out is not None)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _called(self, direct: Direct, arrays: Sequence[Array]) -> tuple[Array, ...] | None:
        """What ``direct`` makes; ``None``: some of ``arrays`` must be refused or copied, and it has not run."""
        block = self._workspaces.take() if self._workspace_bytes else None
        try:
            made = direct(*arrays) if block is None else direct(block.array, *arrays)
        except MemoryError:
            raise self._no_room() from None
        if block is not None:
            self._workspaces.give(block)
        return made

    def _no_room(self) -> MemoryLimitError:
        return no_room("outputs", sum(buffer.nbytes for buffer in self.outputs))

    def _call(self, arrays: Sequence[Array], outputs: Sequence[Array], given: bool) -> None:
        """Run it on arrays of any kind: refuse some, copy others."""
        if len(arrays) != len(self.inputs):
            names = ", ".join(buffer.name for buffer in self.inputs)
            raise ArgumentError(f"the kernel takes {len(self.inputs)} arrays ({names}), not {len(arrays)}")
        if given:
            self._check_outputs(outputs)
        ready = []
        for position, array in enumerate(arrays):
            shape, dtype = self._checks[position]
            if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
                array = self._checked(position, array)
            ready.append(array if array.flags.num & _READABLE == _READABLE else np.array(array, order="C"))
        if given:
            ready = [array.copy() if any(np.may_share_memory(array, output) for output in outputs) else array for array in ready]
        addresses, memories = self._device.place([*ready, *outputs])
        block = self._workspaces.take()
        self._entry(self._pack(*addresses, block.address))
        self._workspaces.give(block)
        for memory in memories[len(ready) :]:
            self._device.copy_out(memory)

    def prepare(self, **constants: Array) -> Kernel:
        """This kernel with its constant inputs fixed and prepared; its calls take the other inputs only.

        What is prepared is not updated when an array changes later.

        Args:
            constants: all constant inputs, by name.

        Raises:
            ArgumentError: a constant that is missing or unknown, or of another shape or dtype.
        """
        number = {buffer.name: position for position, buffer in enumerate(self.inputs) if buffer.scope is Scope.CONSTANT}
        if constants.keys() != number.keys():
            if not number:
                raise ArgumentError("this kernel has no constant inputs; declare some: te.placeholder(..., constant=True)")
            cure = ", ".join(f"{name}=..." for name in number)
            given = ", ".join(constants) or "none"
            raise ArgumentError(f"prepare takes all constant inputs, kernel.prepare({cure}); got {given}")
        fixed = [np.array(self._checked(number[name], array), order="C") for name, array in constants.items()]
        needed = (self._compiled.prepare_workspace, self._compiled.prepared)
        temporaries, block = (workspace(self._device, nbytes) for nbytes in needed)
        places, kept = self._device.place(fixed)
        addresses = [0] * len(self._params) + [temporaries.address, block.address]
        for name, address in zip(constants, places, strict=True):
            addresses[number[name]] = address
        self.prepare_at(addresses)
        left = [position for position in range(len(self._params)) if position not in number.values()]
        result = object.__new__(Kernel)
        result.__dict__.update(self.__dict__)
        result._params = tuple(self._params[position] for position in left)
        result._checks = [self._checks[position] for position in left]
        result.inputs = result._params[: len(left) - len(self.outputs)]
        result._owners = (fixed, kept, block)
        result._entry, result._prepare = self._loaded.call, _nothing
        result._pack = _Template(addresses, [*left, len(self._params)]).pack
        result._workspace_bytes = self._compiled.workspace
        result._workspaces = WorkspacePool(self._device, result._workspace_bytes)
        result._direct = result._directly(addresses, left)
        return result

    def prepare_at(self, addresses: Sequence[int]) -> None:
        """Prepare the constants among the parameters, once for all calls that are given the last of the addresses too.

        Args:
            addresses: of the parameters (only constants' matter), of ``compiled.prepare_workspace`` bytes for temporaries, and of
                ``compiled.prepared`` bytes to fill; the latter two aligned to 64 bytes.
        """
        self._loaded.prepare(struct.pack(f"{len(addresses)}P", *addresses))

    def bind(self, *arrays: Array) -> Callable[[], None]:
        """A call on these arrays, inputs then outputs, that checks nothing any more: the least overhead there is.

        Constants are prepared now; the call does not see them change.

        Raises:
            ArgumentError: a wrong number of arrays, or one of another shape, dtype or layout, or not contiguous.
        """
        run = self._bound(arrays)
        return lambda: run(1)

    def benchmark(self, *arrays: Array, settings: TimingSettings | None = None) -> Timing:
        """Time it on these inputs: seconds per call, without Python's overhead and without preparing constants.

        Raises:
            ArgumentError: as for a call; or ``settings`` are none.
        """
        if settings is not None and not isinstance(settings, TimingSettings):
            raise ArgumentError(f"settings is {settings!r}; it must be ansorlite.runtime.timing.TimingSettings(...), or left out")
        if len(arrays) != len(self.inputs):
            self(*arrays)
        ready = [np.array(self._checked(position, array), order="C") for position, array in enumerate(arrays)]
        outputs = list(starmap(self._empty, self._new))
        run = self._bound([*ready, *outputs])
        return measure(lambda calls: self._device.time(run, calls), settings, self._device.sweeper)

    @property
    def compiled(self) -> Compiled:
        """What it was linked from."""
        return self._compiled

    @property
    def loaded(self) -> LoadedKernel:
        """Its functions on the device."""
        return self._loaded

    @property
    def trace(self) -> str:
        """The schedule of the program, as Python: ``def schedule(s): ...`` with all decisions made.

        :func:`ansorlite.replay` makes the same program of it.

        Raises:
            ArgumentError: the kernel was not made of a schedule.
        """
        if self.origin is None:
            raise ArgumentError("this kernel was not made of a schedule, so it has no trace")
        return self.origin.candidate.trace

    def source(self, form: Literal["loops", "llvm", "asm"] = "loops") -> str:
        """The program as text: the loops that run, its LLVM IR before optimisation, or its machine code.

        The loops are those of each of its functions, what prepares constants first, after the passes of its platform.

        Raises:
            ArgumentError: another form.
        """
        if form == "loops":
            return self._compiled.loops
        if form == "llvm":
            if isinstance(self._compiled, DeviceObject) and not self._compiled.llvm:
                raise ArgumentError("this kernel is made without LLVM; ask for loops, or for asm: what its driver is given")
            return self._compiled.llvm
        if form == "asm":
            return codegen.assembly(self._compiled, self._target)
        raise ArgumentError(f"a kernel has no source {form!r}; ask for loops, llvm or asm")

    def _prepare_and_run(self, packed: bytes) -> None:
        self._loaded.prepare(packed)
        self._loaded.call(packed)

    def _bound(self, arrays: Sequence[Array]) -> Callable[[int], None]:
        """``run(count)`` on these arrays, inputs then outputs."""
        params = self._params
        if len(arrays) != len(params):
            raise ArgumentError(f"the kernel takes {len(params)} arrays, inputs then outputs, not {len(arrays)}")
        for position, array in enumerate(arrays):
            needed = _READABLE if position < len(self.inputs) else _READABLE | _WRITEABLE
            if self._checked(position, array).flags.num & needed != needed:
                raise ArgumentError(f"{params[position].name} is not a contiguous array that can be used in place; copy it first")
        block = workspace(self._device, self._workspace_bytes)
        addresses, memories = self._device.place(arrays)
        packed = self._pack(*addresses, block.address)
        self._prepare(packed)
        return _Bound(self._loaded, packed, (block, self._owners, memories, *arrays))

    def _checked(self, position: int, array: Any) -> Array:
        """``array`` if it fits parameter ``position``.

        Raises:
            ArgumentError: it does not.
        """
        buffer = self._params[position]
        shape, dtype = self._checks[position]
        if isinstance(array, np.generic):
            array = np.asarray(array)
        if not isinstance(array, np.ndarray):
            raise ArgumentError(f"{buffer.name} is a {type(array).__name__}, not a numpy array; convert it with numpy.asarray")
        if array.shape != shape:
            raise ArgumentError(
                f"{buffer.name} has shape {array.shape}, but the kernel was compiled for {shape}; "
                "reshape it, or compile a task of the other shape"
            )
        if array.dtype != dtype:
            raise ArgumentError(f"{buffer.name} is {array.dtype}, not {buffer.dtype}; convert it with .astype({buffer.dtype!r})")
        return array

    def _check_outputs(self, outputs: Sequence[Array]) -> None:
        if len(outputs) != len(self.outputs):
            raise ArgumentError(f"out has {len(outputs)} arrays, but the kernel has {len(self.outputs)} outputs")
        for number, output in enumerate(outputs):
            name = self.outputs[number].name
            self._checked(len(self.inputs) + number, output)
            if output.flags.num & (_READABLE | _WRITEABLE) != _READABLE | _WRITEABLE:
                raise ArgumentError(f"out for {name} must be a contiguous, aligned, writeable array; pass one from numpy.empty")
            if any(np.may_share_memory(output, other) for other in outputs[:number]):
                raise ArgumentError(f"out for {name} overlaps another output; pass separate arrays")

    def _directly(self, fixed: Sequence[int], slots: Sequence[int]) -> DirectCalls | None:
        """Calls of the entry for a workspace, if it needs one, and arrays that fit.

        Args:
            fixed: the addresses that it gets, but for these.
            slots: which of them are the parameters' places; the workspace's is last but one.
        """
        arguments = []
        if self._workspace_bytes:
            block = workspace_shape(self._workspace_bytes)
            arguments.append(Argument(block, dtypes.NUMPY["uint8"], len(fixed) - 2, Role.READ))
        roles = [Role.READ] * len(self.inputs) + [Role.WRITTEN] * len(self.outputs)
        arguments += [Argument(*check, slot, role) for check, slot, role in zip(self._checks, slots, roles, strict=True)]
        return self._loaded.direct(fixed, arguments)

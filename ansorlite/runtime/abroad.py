"""A compiled computation of a machine that this one is not: it is written to files, not run."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NoReturn

from ansorlite.codegen.object import Compiled, DeviceObject, Form, Object
from ansorlite.errors import ArgumentError, TargetError
from ansorlite.runtime.arguments import Array
from ansorlite.runtime.kernel import Origin
from ansorlite.runtime.load import Loaded
from ansorlite.target import Target


def check_exported(compiled: Compiled, target: Target) -> None:
    """
    Raises:
        ArgumentError: no model of kernels like ``compiled`` is exported: an OpenCL driver compiles them when it loads them.
    """
    if isinstance(compiled, DeviceObject) and compiled.form is Form.OPENCL:
        raise ArgumentError(f"models for {target.kind} are not exported; compile it for a CPU, target='llvm', or for CUDA")


class KernelAbroad:
    """A kernel for another machine. Only what prepares its constants runs here, compiled for here.

    Attributes:
        compiled: for that machine.
        origin: which program it is.
    """

    def __init__(self, compiled: Compiled, origin: Origin, preparing: Object | None, here: Target) -> None:
        """
        Args:
            preparing: what fills the block that ``compiled`` reads, for ``here``; ``None`` if nothing is prepared.
        """
        self.compiled = compiled
        self.origin = origin
        self._preparing = None if preparing is None else Loaded(preparing, here)

    def prepare_at(self, addresses: Sequence[int]) -> None:
        """As :meth:`ansorlite.runtime.kernel.Kernel.prepare_at`."""
        if self._preparing is not None:
            self._preparing.prepare(struct.pack(f"{len(addresses)}P", *addresses))

    def bind(self, *arrays: Array) -> Callable[[], None]:  # noqa: ARG002
        """
        Raises:
            TargetError: always.
        """
        return self._refuse()

    def _refuse(self) -> NoReturn:
        raise TargetError(f"code for {self.compiled.target} cannot run here; export it, and load it there")

"""Whether a kernel is one that a device can load."""

from __future__ import annotations

from collections.abc import Collection

from ansorlite.codegen.object import Compiled, DeviceObject, Form, Object
from ansorlite.errors import TargetError
from ansorlite.target import Target


def own_object(compiled: Compiled, target: Target) -> Object:
    """``compiled``, if it is for a CPU.

    Raises:
        TargetError: it is not.
    """
    if not isinstance(compiled, Object):
        raise _of_another(compiled, target)
    return compiled


def own_device_object(compiled: Compiled, target: Target, forms: Collection[Form]) -> DeviceObject:
    """``compiled``, if it is for this very target, and of one of ``forms``.

    Raises:
        TargetError: it is not.
    """
    if not isinstance(compiled, DeviceObject) or compiled.form not in forms or compiled.target != target.key:
        raise _of_another(compiled, target)
    return compiled


def _of_another(compiled: Compiled, target: Target) -> TargetError:
    return TargetError(f"this kernel was compiled for {compiled.target}, not for {target.key}; compile it again")

"""A compiled program as bytes: what workers hand over, and what the cache keeps."""

from __future__ import annotations

import json
from dataclasses import astuple

from ansorlite.codegen.object import (
    Compiled,
    CompiledLaunch,
    DeviceLaunch,
    DeviceObject,
    Form,
    Object,
    Report,
    Slot,
)
from ansorlite.loops.kernel_module import When


def pack(compiled: Compiled) -> bytes:
    """The fields as one line of JSON, then the machine code."""
    fields = {name: value for name, value in vars(compiled).items() if name != "code"}
    fields["launches"] = [_packed(launch) for launch in compiled.launches]
    if isinstance(compiled, DeviceObject):
        fields["form"] = compiled.form.name
    return json.dumps(fields).encode() + b"\n" + compiled.code


def unpack(data: bytes) -> Compiled:
    """The inverse of :func:`pack`.

    Raises:
        ValueError, TypeError, KeyError: ``data`` is something else.
    """
    line, _, code = data.partition(b"\n")
    fields = json.loads(line)
    fields["unread"] = tuple(fields["unread"])
    if "form" not in fields:
        launches = tuple(CompiledLaunch(symbol, When[when], nbytes) for symbol, when, nbytes in fields["launches"])
        return Object(**{**fields, "launches": launches}, code=code)
    launches = tuple(_device_launch(*launch) for launch in fields["launches"])
    return DeviceObject(**{**fields, "launches": launches, "form": Form[fields["form"]]}, code=code)


def _packed(launch: CompiledLaunch) -> tuple[object, ...]:
    common = (launch.symbol, launch.when.name, launch.workspace)
    if not isinstance(launch, DeviceLaunch):
        return common
    arguments = [(slot.base, slot.offset) for slot in launch.arguments]
    report = None if launch.report is None else astuple(launch.report)
    return (*common, launch.grid, launch.threads, launch.shared, arguments, report)


def _device_launch(
    symbol: str,
    when: str,
    workspace: int,
    grid: int,
    threads: int,
    shared: int,
    arguments: list[tuple[int, int]],
    report: tuple[int, int, int] | None,
) -> DeviceLaunch:
    slots = tuple(Slot(*slot) for slot in arguments)
    told = None if report is None else Report(*report)
    return DeviceLaunch(symbol, When[when], workspace, grid, threads, shared, slots, told)

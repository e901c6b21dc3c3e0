"""From what a user, a record or a file calls a machine to its facts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from ansorlite.errors import TargetError
from ansorlite.machine.gpu import EMULATED
from ansorlite.target.facts import Target
from ansorlite.target.here import cpu_of, device, host, obstacle, this_machine
from ansorlite.target.named import GPUS, LEVELS, NAMED

#: A device of this machine, by its number among those of its kind.
_DEVICE: Final = re.compile(r"(?P<kind>cuda|opencl)(:(?P<number>\d{1,3}))?")
#: More of one kind no machine has.
_DEVICES: Final = 64

#: Numbers of a target that a file may say: which, and up to what.
_NUMBERS: Final[Mapping[str, int]] = {"threads": 1 << 12, "l1": 1 << 40, "l2": 1 << 40, "l3": 1 << 40}
#: Such a file has not more bytes.
_LARGEST: Final = 1 << 12


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
        return cpu_of(target, None)
    if isinstance(target, str) and target in GPUS:
        return GPUS[target]
    if target == "emulated":
        return replace(this_machine(None), kind="emulated", gpu=EMULATED)
    if isinstance(target, str) and (found := _DEVICE.fullmatch(target)):
        return device(found["kind"], int(found["number"] or 0))
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
        known = resolve(cpu) if cpu in NAMED else host()
        return host() if obstacle(known) else known
    try:
        for number in range(_DEVICES):
            if (here := device(kind, number)).key == key:
                return here
    except TargetError:
        pass  # there are no more
    if found := [target for target in GPUS.values() if target.key == key]:
        return found[0]
    raise TargetError(f"the record is of {key}, which is not here")


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

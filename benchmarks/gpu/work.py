"""What one case asks for, and doing it."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ansorlite.calibration.gpu import calibrate_gpu
from ansorlite.machine.kept_gpu import keep
from ansorlite.runtime.cuda import Cuda
from ansorlite.runtime.devices import device_of
from ansorlite.target import Target, resolve
from benchmarks.gpu import right
from benchmarks.gpu.cases import families
from benchmarks.gpu.model_cases import ModelCase
from benchmarks.gpu.models import run_model
from benchmarks.gpu.row import Row, reason
from benchmarks.gpu.session import run, torch_here

#: Of the rows of what the device is.
DEVICE: Final = "device"
CALIBRATION: Final = "calibration"
COPY: Final = "copy"


@dataclass(frozen=True)
class Order:
    """
    Attributes:
        target: its name. What is measured of a device is known to targets that are made afterwards.
        device: its key.
        small: whether the case is one of the small ones.
        trials: of its tuning, for each task.
        limit: seconds of its tuning.
    """

    family: str
    case: str
    target: str
    device: str
    small: bool
    trials: int
    limit: float
    database: Path


def work(order: Order) -> Row:
    """Do it. Whatever goes wrong is in the row."""
    target = resolve(order.target)
    if order.family == right.FAMILY:
        return right.check(order.case, target)
    if order.family == DEVICE:
        return _of_device(order.case, target)
    (case,) = (
        case
        for family in families(small=order.small)
        for case in family.cases
        if (case.family, case.name) == (order.family, order.case)
    )
    one = run_model if isinstance(case, ModelCase) else run
    return one(case, target, order.trials, order.limit, order.database)


def _of_device(name: str, target: Target) -> Row:
    start = time.time()
    bandwidth, said, wrong = 0.0, "", ""
    try:
        bandwidth, said = ABOUT[name](target)
    except Exception as error:
        wrong = reason(error)
    return Row(DEVICE, name, target.key, wrong, bandwidth=bandwidth, seconds=time.time() - start, reference=said, when=start)


def _copy(target: Target) -> tuple[float, str]:
    """What a copy moves, both ways counted, and whose figures stand here."""
    device, said = device_of(target), []
    if isinstance(device, Cuda):
        said = [f"CUDA {device.cupy.cuda.runtime.driverGetVersion()} (driver)", f"CuPy {device.cupy.__version__}"]
        if (torch := torch_here()) is not None:
            said.append(f"PyTorch {torch.__version__} with cuDNN {torch.backends.cudnn.version()}")
            said.append(f"Triton {importlib.import_module('triton').__version__}")
    return device.peaks(target.threads).levels[-1].copy, ", ".join(said)


def _calibration(target: Target) -> tuple[float, str]:
    """The constants of the estimate; programs that are made from now on are estimated with them."""
    if target.gpu is None or target.kind == "emulated":
        return 0.0, "not measured: this is no GPU"
    rates = calibrate_gpu(target)
    keep(target.gpu.name, rates)
    return rates.bandwidth, ", ".join(f"{name} {value:.4g}" for name, value in vars(rates).items())


#: What is asked of a device before anything else.
ABOUT: Final[Mapping[str, Callable[[Target], tuple[float, str]]]] = {CALIBRATION: _calibration, COPY: _copy}

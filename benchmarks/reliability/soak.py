"""Minutes of calls from several threads over hundreds of kernels, compiled and deleted again: right values, flat memory."""

from __future__ import annotations

import resource
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

import ansorlite as al
from ansorlite.runtime.kernel import Kernel
from benchmarks.reliability.results import Attempt, Findings
from benchmarks.reliability.workload import product, scale

CALLS: Final = "calls"
CYCLES: Final = "compiled anew"
THREADS: Final = 4
KERNELS: Final = 300
#: Calls of a thread between two compilations.
_CALLS_A_CYCLE: Final = 200
#: MiB that the process may grow by after its first third: pools fill, allocators round up.
_GROWTH: Final = 24.0


def attempt_with(minutes: float, kernels: int = KERNELS) -> Attempt:
    """An attempt that calls so many kernels for so long."""
    return partial(_attempt, minutes=minutes, kernels=kernels)


@dataclass
class _Shared:
    """What the threads share.

    Attributes:
        kernels: by number; a thread replaces one by one that it has compiled anew.
    """

    kernels: list[Kernel]
    end: float
    failures: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)


def _task(number: int) -> al.Task:
    """Each another one: half of them products of two matrices, some of these parallel."""
    if number % 2:
        return scale(float(number), extent=64 + number)
    return product(4 + number % 29, 8 + number % 37, 3 + number % 31)


def _attempt(number: int, _: Path, minutes: float, kernels: int) -> Findings:
    shared = _Shared([al.compile(_task(position)) for position in range(kernels)], time.monotonic() + 60 * minutes)
    threads = [threading.Thread(target=_work, args=(shared, (number, thread))) for thread in range(THREADS)]
    sizes: list[tuple[float, float]] = []
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        sizes.append((time.monotonic(), _resident()))
        time.sleep(min(1.0, minutes))
    for thread in threads:
        thread.join()
    failures = shared.failures[:20]
    after = np.array(sizes[len(sizes) // 3 :])
    tenth = max(1, len(after) // 10)
    growth = float(np.median(after[-tenth:, 1]) - np.median(after[:tenth, 1]))
    if growth > _GROWTH:
        failures.append(
            f"attempt {number}: memory grew by {growth:.1f} MiB, while {shared.counts[CYCLES]} kernels were compiled anew"
        )
    slope = float(np.polyfit(after[:, 0] / 60, after[:, 1], 1)[0]) if len(after) > 2 else 0.0
    figures = {"minutes": minutes, "kernels": float(kernels), "threads": float(THREADS), "MiB": float(after[-1, 1])}
    return Findings(shared.counts, tuple(failures), figures | {"MiB more": growth, "MiB a minute": slope})


def _work(shared: _Shared, seed: tuple[int, int]) -> None:
    """What a thread does."""
    rng = np.random.default_rng(seed)
    counts: Counter[str] = Counter()
    try:
        while time.monotonic() < shared.end:
            for _ in range(_CALLS_A_CYCLE):
                number = int(rng.integers(len(shared.kernels)))
                if problem := _called(shared.kernels[number], number, rng):
                    shared.failures.append(problem)
                counts[CALLS] += 1
            number = int(rng.integers(len(shared.kernels)))
            shared.kernels[number] = al.compile(_task(number))
            counts[CYCLES] += 1
    except Exception as error:
        shared.failures.append(f"a thread ended with {error!r}")
    with shared.lock:
        shared.counts.update(counts)


def _called(kernel: Kernel, number: int, rng: np.random.Generator) -> str:
    """What is wrong with the result of a call on small whole numbers, which are exact in float32."""
    inputs = [rng.integers(-3, 4, buffer.shape).astype(np.float32) for buffer in kernel.inputs]
    expected = inputs[0] @ inputs[1] if len(inputs) == 2 else inputs[0] * np.float32(number)
    return "" if np.array_equal(kernel(*inputs), expected) else f"kernel {number} gave a wrong value"


def _resident() -> float:
    """MiB of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20

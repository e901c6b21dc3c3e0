"""docs/performance.md, from the rows of a results file."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from benchmarks.kernels import tables
from benchmarks.kernels.results import Machine, Timing
from benchmarks.kernels.tables import Table

_HEAD = """# Performance

Made by

```
{command}
```

which tunes, checks every output against numpy's, times, and writes this page; what is tuned already is kept in the database,
what is timed already in the file beside it. `--suite NAME` and `--case TEXT` run a part.

**How to read it.** *Call* is what a user sees: numpy arrays in, a new array out, from Python; *kernel* is the program on arrays
bound beforehand. `÷ torch` is how many times as fast as PyTorch a call of ours is: 1.30 is faster, 0.80 slower. All systems of a
row take short turns of 15 ms with 30 ms of rest between; a ratio is taken within each round of turns, and what stands here is
the median, with quartiles in brackets, over that half of the rounds beside which other processes took least of the machine. Of a
turn those calls count during which no thread lost its core to another process, where there are any. On one thread the time
is the thread's processor time.

PyTorch runs eagerly without gradients on tensors that are ready; onnxruntime has the weights as inputs, as ours does, or as
constants, which it packs beforehand. *Of roofline* is the least time by the peaks below, over ours; it may exceed 100 % where
data stay in a faster cache than the one that holds all of them. *Untuned* is the speed of `al.compile` without any trial, as a
share of the tuned kernel's; *ready in* is how long that compilation takes, with nothing cached.
"""


def page(machine: Machine, command: str, timings: Sequence[Timing], found: Sequence[Table]) -> str:
    """The page's text."""
    parts = [_HEAD.format(command=command), _machine(machine, timings)]
    parts += [f"## {table.title[0].upper()}{table.title[1:]}\n\n{tables.markdown(table)}" for table in found]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _machine(machine: Machine, timings: Sequence[Timing]) -> str:
    busy = statistics.median(timing.busy for timing in timings) if timings else 0.0
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    day = time.strftime("%Y-%m-%d", time.gmtime(machine.when))
    return f"""## The machine

{machine.cpu} ({machine.target}), {_threads(machine.threads)}, {machine.memory / 2**30:.0f} GiB; {day}; {versions}.
Beside the rounds that count, other work took {busy:.0%} of the machine (median over cases){_warning(busy)}.

{tables.markdown(_peaks(machine))}"""


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _warning(busy: float) -> str:
    return ": **it was a busy machine, and the figures are to be taken again on a quiet one**" if busy > 0.1 else ""


def _peaks(machine: Machine) -> Table:
    peaks = {"one core": machine.one} | ({} if machine.threads == 1 else {f"{machine.threads} cores": machine.all})
    levels = [level.name for level in next(iter(peaks.values())).levels]
    rows = [
        (name, f"{peak.flops / 1e9:.0f} GFLOP/s", *(f"{v.read / 1e9:.1f} / {v.copy / 1e9:.1f}" for v in peak.levels))
        for name, peak in peaks.items()
    ]
    return Table("peaks", ("measured peaks", "multiply-adds", *(f"{name}, GB/s read / copy" for name in levels)), tuple(rows))

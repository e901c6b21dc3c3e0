"""docs/performance.md, from the rows of a results file."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.common.machine import Machine, describe
from benchmarks.common.tables import Table, markdown
from benchmarks.kernels.results import Timing

_HEAD = """# {title}

Made by

```
{command}
```

which tunes, checks every output against numpy's, times, and writes this page; what is tuned already is kept in the database,
what is timed already in the file beside it. `--suite NAME` and `--case TEXT` run a part.

**How to read it.** *Call* is what a user sees: numpy arrays in, a new array out, from Python (of 32 MiB or more in memory of an
earlier one that is gone); *kernel* is the program on arrays bound beforehand. `÷ torch` is how many times as fast as PyTorch a
call of ours is: 1.30 is faster, 0.80 slower. All systems of a row take short turns of 15 ms with 30 ms of rest between, in which
every other thread, whosever pool it is of, is kept off the caller's core (`ansorlite/report/cores.py`); a ratio is taken within
each round of turns, and what stands here is the median, with quartiles in brackets, over that half of the rounds beside which
other processes took least of the machine. Of a turn those calls count during which no thread lost its core to another process,
where there are any. On one thread the time is the thread's processor time.

PyTorch runs eagerly without gradients on tensors that are ready; onnxruntime has the weights as inputs, as ours does, or as
constants, which it packs beforehand. *Of roofline* is the least time by the peaks below, over ours; it may exceed 100 % where
data stay in a faster cache than the one that holds all of them. *Of peak* is operations a second as a share of the multiply-adds
that all threads did in the same rounds, whatever the neighbours of a virtual machine left of them. *Untuned* is the speed of
`al.compile` without any trial, as a share of the tuned kernel's; *ready in* is how long that compilation takes, with nothing
cached.
"""


def page(
    machine: Machine,
    command: str,
    timings: Sequence[Timing],
    found: Sequence[Table],
    *,
    title: str = "Performance",
    remark: str = "",
) -> str:
    """The page's text.

    Args:
        remark: of the machine, and of what was run on it.
    """
    busy = statistics.median(timing.busy for timing in timings) if timings else 0.0
    parts = [_HEAD.format(title=title, command=command), f"## The machine\n\n{remark}", describe(machine, busy)]
    parts += [f"## {table.title[0].upper()}{table.title[1:]}\n\n{markdown(table)}" for table in found]
    return "\n\n".join(part.strip() for part in parts) + "\n"

"""docs/models_performance.md, from the rows of a results file."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from ansorlite.report.text import duration
from benchmarks.common.machine import Machine, describe
from benchmarks.common.tables import DASH, Table, against, geometric_mean, markdown, spread, times
from benchmarks.models.results import FEW, NEARLY, OURS, UNTUNED, Timing

_HEAD = """# Performance of whole models

Made by

```
{command}
```

which tunes, checks every output, times, and writes this page; what is tuned already is kept in the database, what is timed
already in the file beside it. `--model NAME` runs one.

**How to read it.** *Ours* is what a user sees: a mapping of numpy arrays in, new arrays out, from Python. `÷ onnxruntime` is
how many times as fast as onnxruntime ours is: 1.30 is faster, 0.80 slower. All systems of a row take short turns with rest
between; a ratio is taken within each round of turns, and what stands here is the median, with quartiles in brackets, over that
half of the rounds beside which other processes took least of the machine. On one thread the time is processor time.

onnxruntime has its default graph optimisations, OpenVINO the latency hint and float32, PyTorch runs the module eagerly in
inference mode; all use as many threads as ours. With `--precision bfloat16` products multiply that in ours, in OpenVINO, and in
PyTorch under autocast; onnxruntime stays with float32. *Untuned* is how fast the programs of `al.compile` without any trial are,
as a share of the tuned ones', *few trials* the same after as few trials for each task as `--few` says; *ready in* is how long it
takes from the ONNX model to these, with nothing cached; *90% after* says when tuning had programs of nine tenths of the final
speed, by the latencies that it measured; *difference* is the largest relative difference of an output from onnxruntime's
without graph optimisations (with them it does not compute the integers that the model says), where an element below its
output's root mean square counts as large as that.

The models `light_*` come with the onnx package. The others are written in PyTorch in `benchmarks/models/zoo`, get random
weights, and are exported by PyTorch's own exporter; `int8_*` are quantised by onnxruntime's quantiser, and a single integer
that is off by one would show as a difference of some 1e-3. `*_qdq` say that in floats, which all systems but the one compared
with compute as integers: what lies in the middle of two is rounded one way or the other. Such a model is wrong here if it
differs by more than onnxruntime with its optimisations does.
"""

#: By precision: a larger difference is wrong, unless onnxruntime's own optimisations make one as large. Operands of 8 bits, layer
#: after layer, put single elements off by some hundredths of an output's size.
TOLERANCES = {"float32": 1e-4, "bfloat16": 0.1}


def is_wrong(timing: Timing) -> bool:
    """Whether the outputs differ by more than numbers are rounded by."""
    return timing.differences[OURS] > max(TOLERANCES[timing.run.precision], timing.differences.get("onnxruntime", 0.0))


def results(timings: Mapping[str, Timing], tuning: Mapping[str, float], nearly: Mapping[str, float]) -> Table:
    """One row a model, and geometric means."""
    found = list(timings.values())
    own = [who for who in (UNTUNED, FEW) if any(who in timing.ratios for timing in found)]
    peers = list(dict.fromkeys(peer for timing in found for peer in timing.ratios if peer not in own))
    rows = [
        (
            timing.model + (" **wrong**" if is_wrong(timing) else ""),
            duration(timing.seconds[OURS]),
            *(spread(timing.ratios.get(peer)) for peer in peers),
            *(times(1 / timing.ratios[who].median) if who in timing.ratios else DASH for who in own),
            duration(timing.compile_seconds),
            duration(tuning.get(timing.model)),
            duration(nearly.get(timing.model)),
            f"{timing.differences[OURS]:.0e}",
        )
        for timing in found
    ]
    total = (
        "geometric mean",
        DASH,
        *(_mean(timing.ratios[peer].median for timing in found if peer in timing.ratios) for peer in peers),
        *(_mean(1 / timing.ratios[who].median for timing in found if who in timing.ratios) for who in own),
        *[DASH] * 4,
    )
    header = ("model", OURS, *map(against, peers), *own, "ready in", "tuned in", f"{NEARLY:.0%} after", "difference")
    notes = [
        f"{timing.model}: {who} differs from onnxruntime by {difference:.0e}."
        for timing in found
        for who, difference in timing.differences.items()
        if difference > TOLERANCES[timing.run.precision]
    ]
    return Table("models", header, (*rows, total), tuple(notes))


def page(machine: Machine, command: str, timings: Sequence[Timing], table: Table) -> str:
    """The page's text."""
    busy = statistics.median(timing.busy for timing in timings) if timings else 0.0
    parts = (_HEAD.format(command=command), f"## The machine\n\n{describe(machine, busy)}", f"## Results\n\n{markdown(table)}")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _mean(values: Iterable[float]) -> str:
    return times(geometric_mean(values))

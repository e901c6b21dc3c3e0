"""The page of results: device, date, commit; what was reached, and what was not."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from benchmarks.gpu.cases import Family
from benchmarks.gpu.session import Row


def page(families: Sequence[Family], rows: Mapping[tuple[str, str], Row], device: str, commit: str, copy: float) -> str:
    """
    Args:
        rows: by family and case.
        copy: bandwidth of a copy, counted both ways; bytes a second.
    """
    when = time.strftime("%Y-%m-%d", time.gmtime(max((row.when for row in rows.values()), default=0)))
    lines = [
        "# Performance on GPUs",
        "",
        f"Made by `python -m benchmarks.gpu` on {device}, {when}, commit {commit}.",
        f"A copy moves {copy / 1e9:.0f} GB/s, both ways counted.",
        "",
        "`ours` and `PyTorch` are microseconds of one call, by the GPU's clock, many calls in a row as one graph: what fits into",
        "the L2 cache is warm for both. `×` is how many times as fast as PyTorch ours is; tf32 is off. Of models, PyTorch's is",
        "torch.compile (inductor) as a CUDA graph, ours the graph that calls on the same arrays are.",
        "",
    ]
    for family in families:
        found = [rows[family.name, case.name] for case in family.cases if (family.name, case.name) in rows]
        ratios = [row.theirs / row.ours for row in found if not row.wrong and row.ours and row.theirs]
        mean = f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}" if ratios else "not known"
        lines += [f"## {family.name}", "", f"Geometric mean × {mean}; to be reached: {family.bar}.", ""]
        lines += ["| case | ours | PyTorch | × | of a copy | checked against |", "|---|---|---|---|---|---|"]
        for case in family.cases:
            row = rows.get((family.name, case.name))
            lines.append(_line(case.name, row, copy))
        lines.append("")
    return "\n".join(lines)


def _line(name: str, row: Row | None, copy: float) -> str:
    if row is None:
        return f"| {name} | not reached | | | | |"
    if row.wrong:
        return f"| {name} | {row.wrong.replace('|', '/')} | | | | {row.reference} |"
    told = f"{row.reference}, {row.trials} trials so far" if row.unfinished else row.reference
    ratio = f"{row.theirs / row.ours:.2f}" if row.theirs else ""
    theirs = f"{1e6 * row.theirs:.1f}" if row.theirs else ""
    share = f"{row.bandwidth / copy:.2f}" if copy and row.bandwidth else ""
    return f"| {name} | {1e6 * row.ours:.1f} | {theirs} | {ratio} | {share} | {told} |"

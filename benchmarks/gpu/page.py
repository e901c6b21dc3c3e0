"""The page of results: device, date, commit; what was reached, and what was not."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import geometric_mean

from benchmarks.gpu import right
from benchmarks.gpu.cases import Family
from benchmarks.gpu.row import Row
from benchmarks.gpu.work import CALIBRATION, COPY, DEVICE

Rows = Mapping[tuple[str, str], Row]


def page(families: Sequence[Family], rows: Rows, device: str, commit: str) -> str:
    """
    Args:
        rows: by family and case.
    """
    when = time.strftime("%Y-%m-%d", time.gmtime(max((row.when for row in rows.values()), default=0)))
    told, calibrated = rows.get((DEVICE, COPY)), rows.get((DEVICE, CALIBRATION))
    copy = told.bandwidth if told else 0.0
    lines = [
        "# Performance on GPUs",
        "",
        f"Made by `python -m benchmarks.gpu` on {device}, {when}, commit {commit}.",
        f"A copy moves {copy / 1e9:.0f} GB/s, both ways counted." if copy else "What a copy moves is not known.",
        *([f"There: {told.reference}."] if told and told.reference else []),
        *([f"Measured for the estimate: {calibrated.wrong or calibrated.reference}."] if calibrated else []),
        "",
        *_right(rows),
        "",
        "`ours` and `PyTorch` are microseconds of one call, by the GPU's clock, many calls in a row as one graph: what fits into",
        "the L2 cache is warm for both. `×` is how many times as fast as PyTorch ours is; tf32 is off. Of models, PyTorch's is",
        "torch.compile (inductor) as a CUDA graph, ours the graph that calls on the same arrays are. `64 trials` is how many",
        "seconds of tuning they take, at the pace of those that were made.",
        "",
    ]
    for family in families:
        lines += [f"## {family.name}", "", *_bars(family, rows, copy), ""]
        lines += ["| case | ours | PyTorch | × | of a copy | trials | 64 trials | checked against |"]
        lines += ["|---|---|---|---|---|---|---|---|"]
        lines += [_line(case.name, rows.get((family.name, case.name)), copy) for case in family.cases]
        lines.append("")
    cases = [(family.name, case.name) for family in families for case in family.cases]
    missing = [" ".join(each) for each in cases if each not in rows]
    lines += ["## Not reached", "", ", ".join(missing) or "Nothing.", ""]
    return "\n".join(lines)


def _right(rows: Rows) -> list[str]:
    """Which programs were right."""
    found = [rows[right.FAMILY, name] for name in right.NAMES if (right.FAMILY, name) in rows]
    wrong = [row for row in found if row.wrong]
    programs = sum(row.trials for row in found if not row.wrong)
    said = f"Right beside numpy: {len(found) - len(wrong)} of {len(right.NAMES)} computations, {programs} programs"
    if len(found) < len(right.NAMES):
        said += f"; {len(right.NAMES) - len(found)} were not reached"
    return [f"{said}.", *(f"- {row.case}: {row.wrong}" for row in wrong)]


def _bars(family: Family, rows: Rows, copy: float) -> list[str]:
    names = [case.name for case in family.cases]
    lines = [f"Geometric mean × {_mean(family, names, rows)}; to be reached: {family.bar}."]
    if family.large:
        mean = _mean(family, family.large, rows)
        lines.append(f"Of {', '.join(family.large)}: × {mean}; to be reached: {family.bar_of_large}.")
    shares = [row.bandwidth / copy for row in _timed(family, names, rows) if copy]
    if family.of_copy:
        mean = f"{geometric_mean(shares):.2f}" if shares else "not known"
        lines.append(f"Of a copy's bandwidth: {mean}; to be reached: {family.of_copy}.")
    return lines


def _timed(family: Family, names: Sequence[str], rows: Rows) -> list[Row]:
    found = [rows[family.name, name] for name in names if (family.name, name) in rows]
    return [row for row in found if not row.wrong and row.ours]


def _mean(family: Family, names: Sequence[str], rows: Rows) -> str:
    ratios = [row.theirs / row.ours for row in _timed(family, names, rows) if row.theirs]
    if not ratios:
        return "not known"
    return f"{geometric_mean(ratios):.2f} ({len(ratios)} of {len(names)} cases)"


def _line(name: str, row: Row | None, copy: float) -> str:
    if row is None:
        return f"| {name} | not reached | | | | | | |"
    if row.wrong:
        return f"| {name} | {row.wrong.replace('|', '/')} | | | | {row.trials} | | {row.reference} |"
    ratio = f"{row.theirs / row.ours:.2f}" if row.theirs else ""
    theirs = f"{1e6 * row.theirs:.1f}" if row.theirs else ""
    share = f"{row.bandwidth / copy:.2f}" if copy and row.bandwidth else ""
    trials = f"{row.trials} so far" if row.unfinished else str(row.trials)
    pace = f"{row.pace:.0f} s" if row.pace else ""
    return f"| {name} | {1e6 * row.ours:.1f} | {theirs} | {ratio} | {share} | {trials} | {pace} | {row.reference} |"

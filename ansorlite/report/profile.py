"""The table of a model's profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from ansorlite.graph.profile import Profile, StepProfile
from ansorlite.report.tables import cropped
from ansorlite.report.text import duration


def table(profile: Profile, room: int, wide: bool) -> Table:
    """A row a step, in running order; of more steps than ``room``, those that take longest.

    *Task* is the task's number, in order of first use, as ``ansorlite tasks`` counts them. *Roofline* is the least time that the
    machine could take over the time in place; *of record*, the time in place over the one that was measured when the step was
    tuned, by itself.

    Args:
        wide: whether there is room for the names of the programs.
    """
    result = Table(box=None, pad_edge=False, header_style="dim")
    result.add_column("step")
    titles = ("task", "time", "share", "GFLOP/s", "GB/s", "roofline", "of record", "program")
    for name in titles if wide else titles[:-1]:
        result.add_column(name, justify="right", no_wrap=True)
    number_of = {key: n for n, key in enumerate(dict.fromkeys(s.facts.task for s in profile.steps if s.facts.task), 1)}
    longest = sorted(range(len(profile.steps)), key=lambda number: -profile.steps[number].seconds)[:room]
    for number in sorted(longest):
        step = profile.steps[number]
        result.add_row(
            cropped(f"{number:3} {step.facts.name}"),
            *_cells(step, number_of)[: len(result.columns) - 1],
        )
    hidden = len(profile.steps) - len(longest)
    if hidden:
        rest = profile.seconds - sum(profile.steps[number].seconds for number in longest)
        result.add_row(f"    {hidden} more", "", duration(rest), f"{rest / profile.seconds:.0%}")
    result.add_section()
    result.add_row("    all", "", duration(profile.seconds), *_totals(profile))
    return result


def _cells(step: StepProfile, number_of: Mapping[str, int]) -> tuple[str, ...]:
    facts = step.facts
    return (
        f"{number_of[facts.task]}" if facts.task else "",
        duration(step.seconds),
        f"{step.share:.1%}",
        f"{step.flops_per_second / 1e9:.1f}" if facts.flops else "",
        f"{step.bytes_per_second / 1e9:.1f}",
        f"{step.roofline:.0%}",
        f"{step.seconds / facts.latency:.2f}x" if facts.latency else "",
        facts.candidate.partition(" ")[0],
    )


def _totals(profile: Profile) -> tuple[str, ...]:
    flops = sum(step.facts.flops for step in profile.steps)
    nbytes = sum(step.facts.bytes for step in profile.steps)
    least = sum(step.roofline * step.seconds for step in profile.steps)
    return (
        "100%",
        f"{flops / profile.seconds / 1e9:.1f}",
        f"{nbytes / profile.seconds / 1e9:.1f}",
        f"{least / profile.seconds:.0%}",
    )


def as_json(profile: Profile) -> list[dict[str, Any]]:
    """One object a step, in SI units."""
    return [
        {
            "step": step.facts.name,
            "task": step.facts.task,
            "candidate": step.facts.candidate,
            "seconds": step.seconds,
            "share": step.share,
            "flops_per_second": step.flops_per_second,
            "bytes_per_second": step.bytes_per_second,
            "roofline": step.roofline,
            "record": step.facts.latency,
        }
        for step in profile.steps
    ]

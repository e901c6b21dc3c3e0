"""How far the building of candidates scales, and what a cluster survives.

    python -m benchmarks.cluster builds [--json]
    python -m benchmarks.cluster survive [--trials 200]
    python -m benchmarks.cluster long [--candidates 10000]

The latter two need the extra ``ray``.
"""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Table

from ansorlite import lazy
from benchmarks.cluster import builds as building

_on_ray = lazy.module("benchmarks.cluster.on_ray")


@click.group(help=__doc__.partition("\n")[0])
def main() -> None:
    pass


@main.command()
@click.option("--seconds", default=0.5, show_default=True, help="That the compiler sleeps.")
@click.option("--each", default=8, show_default=True, help="Candidates a builder.")
@click.option("--json", "as_json", is_flag=True)
def builds(seconds: float, each: int, as_json: bool) -> None:
    """Candidates a second, by the number of builders: 1 to 16 processes; 64 simulated ones, and a runner that is the limit."""
    rates = [building.processes(builders, seconds, each) for builders in (1, 2, 4, 8, 16)]
    rates += [building.simulated(builders, seconds, 3 * each, 0.0) for builders in (16, 64)]
    rates += [building.simulated(builders, seconds, 3 * each, 0.02) for builders in (16, 64)]
    overhead = building.simulated(64, 0.0, 64, 0.0)
    if as_json:
        said = [{**asdict(rate), "efficiency": rate.efficiency} for rate in rates]
        click.echo(json.dumps({"rates": said, "most_a_second": overhead.rate, "overhead": overhead.overhead}))
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("builders", "", "candidates/s", "ideal", "efficiency", "CPU ms each"):
        table.add_column(title, justify="right")
    for rate in rates:
        numbers = (f"{rate.rate:.1f}", f"{rate.ideal:.1f}", f"{rate.efficiency:.2f}", f"{1e3 * rate.overhead:.2f}")
        table.add_row(str(rate.builders), rate.what, *numbers)
    console = Console()
    console.print(table)
    console.print(
        f"of a compiler that takes no time: {overhead.rate:.0f} candidates/s, {1e3 * overhead.overhead:.2f} CPU ms each"
    )


@main.command()
@click.option("--trials", default=200, show_default=True)
def survive(trials: int) -> None:
    """Tune on three nodes, of which one is killed; a worker is stopped, too."""
    for builders, runners in ((2, 1), (1, 2)):
        found = _on_ray.survive(builders, runners, trials)
        click.echo(
            f"{builders} builders, {runners} runners: {found.records} records of {found.different} programs for {trials} trials, "
            f"{found.lost} lost; the best takes {found.ratio:.2f} times as long as the best found on this machine alone"
        )


@main.command("long")
@click.option("--candidates", default=10_000, show_default=True)
@click.option("--bytes", "nbytes", default=200_000, show_default=True, help="Of code of each.")
def long_run(candidates: int, nbytes: int) -> None:
    """Measure for long, and see whether Ray's object store grows."""
    found = _on_ray.long_run(candidates, nbytes)
    click.echo(f"object store: {found.early / 1e6:.1f} MB after 100 candidates, {found.late / 1e6:.1f} MB after {candidates}")


if __name__ == "__main__":
    main()

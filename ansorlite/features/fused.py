"""Facts of statements in fused loops: the loops that these walk the iterations of are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from ansorlite.columns.arithmetic import both, either, product
from ansorlite.columns.tape import Number
from ansorlite.features.facts import AccessFacts, Numbers, StatementFacts
from ansorlite.schedule.fusing import runs
from ansorlite.schedule.refs import LoopRef


def joined(facts: StatementFacts, fused: Sequence[LoopRef | None]) -> StatementFacts:
    """The facts with the loops of one fused loop as one; ``fused``: by loop which one that is."""
    if not any(fused):
        return facts
    parts = list(runs(range(len(fused)), fused))
    real = [trip > 1 for trip in facts.trips]

    def flags(of: Numbers) -> list[Number]:
        """What is so of a real part is so of the fused loop."""
        return [of[run[0]] if len(run) == 1 else reduce(either, (both(of[depth], real[depth]) for depth in run)) for run in parts]

    def by_depth(of: Numbers) -> list[Number]:
        return [*(of[run[0]] for run in parts), of[-1]]

    def access(of: AccessFacts) -> AccessFacts:
        return replace(of, widths=tuple(map(by_depth, of.widths)), moves=flags(of.moves), renewed=flags(of.renewed))

    known = {of: access(of) for of in facts.accesses}
    return replace(
        facts,
        trips=[product(facts.trips[depth] for depth in run) for run in parts],
        parallel=flags(facts.parallel),
        unrolled=flags(facts.unrolled),
        vector=flags(facts.vector),
        reduce=flags(facts.reduce),
        accesses=tuple(known[of] for of in facts.accesses),
    )

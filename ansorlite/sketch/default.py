"""The program to use when nothing has been measured: the draft model's favourite of a fixed sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansorlite.cost_model.draft import Draft
from ansorlite.features import extract
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.task import Task

#: Rows sampled of each sketch, in a first round and around the best of it.
_SAMPLE = 1024
_ROUNDS = 3


def default_candidate(task: Task, sketches: Sequence[Sketch]) -> Candidate:
    """A good program of ``task`` at once, always the same one."""
    draft = Draft(task.target)
    best, best_score = NAIVE, -np.inf
    for sketch in sketches:
        rng = np.random.default_rng(0)
        space = TileSpace(sketch)
        rows = space.sample(_SAMPLE, rng)
        for _ in range(_ROUNDS):
            scores = draft(extract(sketch, rows))
            order = np.argsort(-scores, kind="stable")
            if scores[order[0]] > best_score:
                best_score = float(scores[order[0]])
                best = Candidate(sketch.signature, tuple(int(v) for v in rows[order[0]]))
            parents = rows[order[: _SAMPLE // 16]]
            rows = space.mutate(np.repeat(parents, 8, axis=0), rng)
    return best

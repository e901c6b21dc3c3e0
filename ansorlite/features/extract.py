"""The features of a population: one numpy pass over the columns of the fold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ansorlite.features.assemble import assemble
from ansorlite.features.population import population_facts
from ansorlite.sketch.sketch import Sketch


def extract(sketch: Sketch, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n, statements, NUM_FEATURES) float64: one feature vector for each statement of each program.

    Statements and their order depend on the sketch alone. Equal to what ``features.reference`` reads off the lowered
    loop IR of each row.
    """
    return assemble(population_facts(sketch.fold(rows)), sketch.target)

"""The features of a population: what computes them is written down once a sketch, and run on its rows."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ansorlite.columns.program import ColumnProgram
from ansorlite.columns.tape import Number
from ansorlite.features.assemble import program_features
from ansorlite.features.gpu import GPU_NAMES, gpu_features
from ansorlite.features.names import NUM_FEATURES
from ansorlite.features.population import population_facts
from ansorlite.schedule.nest import Program
from ansorlite.sketch.sketch import Sketch

_PROGRAMS: WeakKeyDictionary[Sketch, ColumnProgram] = WeakKeyDictionary()


def extract(sketch: Sketch, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n, statements, NUM_FEATURES) float64: one feature vector for each statement of each program, of what ``features/names.py``
    says; for GPUs (n, stages, len(GPU_NAMES)), of what ``features/gpu.py`` says.

    Statements and their order depend on the sketch alone. Equal to what ``features.reference`` reads off the lowered
    loop IR of each row. In memory, each feature of a statement is contiguous.
    """
    program, gpu = _PROGRAMS.get(sketch), sketch.target.gpu
    width = NUM_FEATURES if gpu is None else len(GPU_NAMES)
    if program is None:

        def features(folded: Program) -> list[Number]:
            if gpu is not None:
                return gpu_features(folded, gpu)
            statements = list(population_facts(folded, sketch.target.matrix_dots))
            return [number for each in program_features(statements, sketch.target) for number in each]

        program = _PROGRAMS[sketch] = sketch.columns(features)
    columns = program.run(rows)
    return columns.reshape(len(columns) // width, width, columns.shape[1]).transpose(2, 0, 1)

"""The living definition of the loop IR: runs a function on numpy arrays, one scalar at a time.

Every back end, pass and schedule is held against this, and this against ``te.evaluate``. It is for tests and for
checking, not for speed: about a million stores a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ansorlite.errors import ArgumentError
from ansorlite.loops.kernel_module import KernelModule
from ansorlite.loops.nodes import Buffer, Function
from ansorlite.loops.python_source import OutOfBoundsError, translate
from ansorlite.te import dtypes
from ansorlite.te.words import WORD

__all__ = ["OutOfBoundsError", "interpret", "interpret_module"]

_translate = lru_cache(maxsize=16)(translate)


def interpret(
    function: Function,
    arrays: Sequence[np.ndarray],
    *,
    check: bool = True,
    reorder: np.random.Generator | None = None,
) -> None:
    """Run ``function``; the last ``function.outputs`` arrays are written in place.

    Args:
        arrays: one per param, of its dtype and number of elements. The elements are taken in row-major order, so that
            a schedule may have merged neighbouring dimensions of an argument; and what words are made of may be given for them.
        check: raise on an index outside of its buffer. Without it, such an access is undefined.
        reorder: if given, the promises of the loop kinds are put to the test: PARALLEL and bound loops run in an order
            drawn from it, VECTORIZED loops in lockstep, ``lanes`` iterations at a time, and what is fetched lands as late as an
            Await allows. The results of a legal function are the same.

    Raises:
        ArgumentError: wrong number, size or dtype of arrays.
        OutOfBoundsError: an access outside of a buffer, naming it, the index and the loop variables' values.
    """
    if len(arrays) != len(function.params):
        raise ArgumentError(f"{function.name} takes {len(function.params)} arrays, not {len(arrays)}")
    flat = [list(_elements(buffer, array)) for buffer, array in zip(function.params, arrays, strict=True)]
    run = _translate(function, check=check, lockstep=reorder is not None)
    with np.errstate(all="ignore"):
        run(*flat, range if reorder is None else _shuffled(reorder))
    for buffer, array, values in list(zip(function.params, arrays, flat, strict=True))[len(arrays) - function.outputs :]:
        array[...] = np.array(values, dtypes.NUMPY[buffer.dtype]).reshape(array.shape)


def interpret_module(module: KernelModule, arrays: Sequence[np.ndarray], *, reorder: np.random.Generator | None = None) -> None:
    """Make all launches of a kernel in order; the last ``module.outputs`` arrays are written in place.

    Args:
        arrays: one per param.
        reorder: as for :func:`interpret`.

    Raises:
        ArgumentError, OutOfBoundsError: as :func:`interpret`.
    """
    given = dict(zip(module.params, arrays, strict=True))
    given |= {buffer: np.empty(buffer.size, dtypes.NUMPY[buffer.dtype]) for buffer in module.handed}
    for launch in module.launches:
        interpret(launch.function, [given[buffer] for buffer in launch.function.params], reorder=reorder)


def _elements(buffer: Buffer, array: np.ndarray) -> np.ndarray:
    flat = array.ravel()
    if buffer.dtype == WORD and array.itemsize < dtypes.size(WORD) and array.nbytes == buffer.nbytes:
        flat = flat.view(WORD)
    if flat.size != buffer.size or flat.dtype != dtypes.NUMPY[buffer.dtype]:
        raise ArgumentError(f"{buffer.name} is {buffer.dtype}{list(buffer.shape)}, not {array.dtype}{list(array.shape)}")
    return flat


def _shuffled(rng: np.random.Generator) -> Callable[[int], list[int]]:
    def order(extent: int) -> list[int]:
        result: list[int] = rng.permutation(extent).tolist()
        return result

    return order

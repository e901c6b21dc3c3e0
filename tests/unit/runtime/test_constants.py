"""Kernels with constant inputs: prepared by each call, or once for many."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite import te
from ansorlite.errors import ArgumentError
from ansorlite.programs.kernels import compile_candidate
from ansorlite.programs.packing import pack, unpack
from ansorlite.runtime.kernel import Kernel
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import host
from ansorlite.task import Task


def product() -> Task:
    """``A @ B + C``, B and C constant."""
    a, b = te.placeholder((5, 24), name="A"), te.placeholder((24, 40), name="B", constant=True)
    c = te.placeholder((40,), name="C", constant=True)
    k = te.reduce_axis(24, name="k")
    d = te.compute((5, 40), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="D")
    return Task([a, b, c, te.compute((5, 40), lambda i, j: d[i, j] + c[j], name="E")], host(threads=2))


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    task = product()
    sketch = next(sketch for sketch in derive(task) if 's.cache_read(D, "B"' in sketch.text)
    row = TileSpace(sketch).sample(1, np.random.default_rng(0))[0]
    return compile_candidate(task, sketch.candidate(row))


@pytest.fixture
def arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((5, 24), (24, 40), (40,))]


def close(found: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    np.testing.assert_allclose(found, a @ b + c, rtol=1e-4, atol=1e-5)


def test_each_call_prepares(kernel: Kernel, arrays: list[np.ndarray]) -> None:
    a, b, c = arrays
    assert kernel.compiled.prepared >= b.nbytes
    assert kernel.compiled.unread == (1,)
    close(kernel(a, b, c), a, b, c)
    b *= 2
    close(kernel(a, b, c), a, b, c)


def test_a_prepared_kernel_takes_the_other_inputs(kernel: Kernel, arrays: list[np.ndarray]) -> None:
    a, b, c = arrays
    prepared = kernel.prepare(C=c, B=b)
    assert [buffer.name for buffer in prepared.inputs] == ["A"]
    other = kernel.prepare(B=b + 1, C=c)
    before = b.copy()
    b[...] = 0
    for x in (a, a[::-1]):
        close(prepared(x), x, before, c)
        close(other(x), x, before + 1, c)
    out = np.empty((5, 40), np.float32)
    prepared.bind(a, out)()
    close(out, a, before, c)
    assert prepared.benchmark(a).best > 0
    with pytest.raises(ArgumentError, match=r"takes 1 arrays \(A\), not 3"):
        prepared(a, b, c)


def test_binding_prepares_once(kernel: Kernel, arrays: list[np.ndarray]) -> None:
    a, b, c = arrays
    out = np.empty((5, 40), np.float32)
    run = kernel.bind(a, b, c, out)
    before = b.copy()
    b[...] = 0
    run()
    close(out, a, before, c)


@pytest.mark.parametrize("names", ["", "B", "ABC"])
def test_prepare_wants_all_constants_and_nothing_else(kernel: Kernel, arrays: list[np.ndarray], names: str) -> None:
    given = {name: array for name, array in zip("ABC", arrays, strict=True) if name in names}
    with pytest.raises(ArgumentError, match=rf"kernel.prepare\(B=\.\.\., C=\.\.\.\); got {', '.join(names) or 'none'}$"):
        kernel.prepare(**given)


def test_the_source_shows_both_parts(kernel: Kernel) -> None:
    heads = [line for line in kernel.source("loops").splitlines() if line.startswith("def")]
    assert [head.partition("(")[0] for head in heads] == [
        f"def {heads[1].split()[1].partition('(')[0]}_prepare",
        heads[1].partition("(")[0],
    ]
    assert "constant" in heads[0]


def test_objects_survive_as_bytes(kernel: Kernel) -> None:
    assert unpack(pack(kernel.compiled)) == kernel.compiled

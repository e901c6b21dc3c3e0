"""How close the code generator comes to BLAS when it is handed a good loop nest.

The nest is written by hand, as BLIS does it: panels of B packed, a register tile of rows x columns whose loops are
unrolled and vectorized, k around it. What the search reaches can be compared with this ceiling.

    python benchmarks/matmul_ceiling.py [--threads N] [--sizes 512 1024] [--tile 12 32] [--block 256]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from ansorlite import target as targets
from ansorlite.codegen import build
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, Load, LoopKind, Scope, Stmt, Store, block, index
from ansorlite.runtime.kernel import Kernel
from ansorlite.te.expr import Expr, Var, const
from ansorlite.te.functions import if_then_else, minimum


def _loop(name: str, extent: int, kind: LoopKind, body: Callable[[Var], Stmt], lanes: int = 1) -> For:
    var = Var(name)
    return For(var, index(extent), kind, body(var), lanes)


def _load(buffer: Buffer, *indices: Expr) -> Load:
    return Load(buffer, indices, buffer.dtype)


def matmul(m: int, n: int, k: int, rows: int, columns: int, depth: int, lanes: int) -> Function:
    """C = A B in float32. ``columns`` divides n, and ``depth`` divides k; the last tile of rows is shifted inwards."""
    a = Buffer("A", (m, k), "float32", Scope.ARGUMENT)
    b = Buffer("B", (k, n), "float32", Scope.ARGUMENT)
    c = Buffer("C", (m, n), "float32", Scope.ARGUMENT)
    packed = Buffer("packed", (n // columns, k, columns), "float32", Scope.GLOBAL)
    acc = Buffer("acc", (rows, columns), "float32", Scope.REGISTER)

    def pack(panel: Var) -> Stmt:
        def row(r: Var) -> Stmt:
            return _loop(
                "v",
                columns,
                LoopKind.VECTORIZED,
                lambda v: Store(packed, (panel, r, v), _load(b, r, panel * columns + v)),
                lanes,
            )

        return _loop("r", k, LoopKind.SERIAL, row)

    def tile(body: Callable[[Var, Var], Stmt]) -> For:
        return _loop(
            "i", rows, LoopKind.UNROLLED, lambda i: _loop("j", columns, LoopKind.VECTORIZED, lambda j: body(i, j), lanes)
        )

    def micro(panel: Expr, kb: Var, it: Var) -> Stmt:
        top = minimum(it * rows, index(m - rows))

        def step(kk: Var) -> Stmt:
            r = kb * depth + kk
            return tile(lambda i, j: Store(acc, (i, j), _load(acc, i, j) + _load(a, top + i, r) * _load(packed, panel, r, j)))

        def first(i: Var, j: Var) -> Stmt:
            return Store(acc, (i, j), if_then_else(kb == 0, const(0.0, "float32"), _load(c, top + i, panel * columns + j)))

        last = tile(lambda i, j: Store(c, (top + i, panel * columns + j), _load(acc, i, j)))
        return Alloc(acc, block(tile(first), _loop("kk", depth, LoopKind.SERIAL, step), last))

    def panel_of(panel: Var) -> Stmt:
        def rows_of(kb: Var) -> Stmt:
            return _loop("it", -(-m // rows), LoopKind.SERIAL, lambda it: micro(panel, kb, it))

        return block(pack(panel), _loop("kb", k // depth, LoopKind.SERIAL, rows_of))

    body = _loop("panel", n // columns, LoopKind.PARALLEL, panel_of)
    return Function(f"matmul_{m}_{n}_{k}", (a, b, c), 1, Alloc(packed, body))


def _seconds(run: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def compare(size: int, tile: tuple[int, int], depth: int, threads: int, repeats: int) -> dict[str, float]:
    """Medians in seconds of ours and numpy's, taken in turns."""
    target = targets.host(threads)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    out, reference = np.empty_like(a), np.empty_like(a)
    # A shifted tile may not run twice over the same accumulating rows: with several blocks of k the rows must divide.
    blocks = depth if size % tile[0] == 0 else size
    function = matmul(size, size, size, *tile, blocks, target.lanes("float32"))
    start = time.perf_counter()
    compiled = build(function, target)
    compile_seconds = time.perf_counter() - start
    ours = Kernel(compiled, function.params, target).bind(a, b, out)
    with threadpool_limits(threads):
        ours()
        np.matmul(a, b, out=reference)
        np.testing.assert_allclose(out, reference, rtol=1e-3, atol=1e-3)
        calls = max(1, round(0.02 / _seconds(ours, 3)))
        pairs = [(_seconds(ours, calls), _seconds(lambda: np.matmul(a, b, out=reference), calls)) for _ in range(repeats)]
    mine, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(theirs / mine for mine, theirs in pairs)
    gflops = 2e-9 * size**3
    return {
        "size": size,
        "ours": mine,
        "numpy": theirs,
        "ratio": ratio,
        "ours_gflops": gflops / mine,
        "numpy_gflops": gflops / theirs,
        "compile_seconds": compile_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=targets.host().threads)
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 1024])
    parser.add_argument("--tile", type=int, nargs=2, default=[12, 32], metavar=("ROWS", "COLUMNS"))
    parser.add_argument("--block", type=int, default=256, help="k per block, where the rows of a tile divide the size")
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    for size in arguments.sizes:
        print(json.dumps(compare(size, tuple(arguments.tile), arguments.block, arguments.threads, arguments.repeats)))


if __name__ == "__main__":
    main()

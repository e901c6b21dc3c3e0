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
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, If, Load, LoopKind, Scope, Stmt, Store, block, index
from ansorlite.platforms import build
from ansorlite.runtime.kernel import Kernel
from ansorlite.te.expr import Expr, Var, const
from ansorlite.te.functions import if_then_else, minimum


def _loop(name: str, extent: int, kind: LoopKind, body: Callable[[Var], Stmt], lanes: int = 1) -> For:
    var = Var(name)
    return For(var, index(extent), kind, body(var), lanes)


def _load(buffer: Buffer, *indices: Expr) -> Load:
    return Load(buffer, indices, buffer.dtype)


def matmul(m: int, n: int, k: int, rows: int, columns: int, depth: int, group: int, lanes: int) -> Function:
    """C = A B in float32. ``columns`` divides n; ``depth`` and ``lanes`` divide k; the last tile of rows is padded with 0.

    Args:
        rows, columns: of the register tile.
        depth: k per block.
        group: tiles of rows per block.
        lanes: of a vector.
    """
    a = Buffer("A", (m, k), "float32", Scope.ARGUMENT)
    b = Buffer("B", (k, n), "float32", Scope.ARGUMENT)
    c = Buffer("C", (m, n), "float32", Scope.ARGUMENT)
    tiles, panels = -(-m // rows), n // columns
    packed_a = Buffer("packed_a", (tiles, k, rows), "float32", Scope.GLOBAL)
    packed_b = Buffer("packed_b", (panels, k, columns), "float32", Scope.GLOBAL)
    acc = Buffer("acc", (rows, columns), "float32", Scope.REGISTER)
    serial, unrolled, vectorized, parallel = LoopKind.SERIAL, LoopKind.UNROLLED, LoopKind.VECTORIZED, LoopKind.PARALLEL

    def pack_a(it: Var, r: Expr, i: Var) -> Stmt:
        row = it * rows + i
        value = if_then_else(row < m, _load(a, row, r), const(0.0, "float32")) if m % rows else _load(a, row, r)
        return Store(packed_a, (it, r, i), value)

    def pack_b(panel: Var, r: Var, j: Var) -> Stmt:
        return Store(packed_b, (panel, r, j), _load(b, r, panel * columns + j))

    def tile(body: Callable[[Var, Var], Stmt], guard: Callable[[Var], Expr] | None = None) -> For:
        def row(i: Var) -> Stmt:
            inner = _loop("j", columns, vectorized, lambda j: body(i, j), lanes)
            return inner if guard is None else If(guard(i), inner)

        return _loop("i", rows, unrolled, row)

    def micro(panel: Var, kb: Var, it: Expr) -> Stmt:
        def within(i: Var) -> Expr:
            return it * rows + i < m

        def step(kk: Var) -> Stmt:
            r = kb * depth + kk
            return tile(lambda i, j: Store(acc, (i, j), _load(acc, i, j) + product(r, i, j)))

        def product(r: Expr, i: Var, j: Var) -> Expr:
            return _load(packed_a, it, r, i) * _load(packed_b, panel, r, j)

        def into_c(i: Var, j: Var) -> Stmt:
            at = (it * rows + i, panel * columns + j)
            before = if_then_else(kb == index(0), const(0.0, "float32"), _load(c, *at)) if k > depth else const(0.0, "float32")
            return Store(c, at, before + _load(acc, i, j))

        clear = tile(lambda i, j: Store(acc, (i, j), const(0.0, "float32")))
        out = tile(into_c, within if m % rows else None)
        return Alloc(acc, block(clear, _loop("kk", depth, serial, step), out))

    def row_block(block_: Var) -> Stmt:
        """A block of A stays in L2 while all of B passes by; a panel of B serves all tiles of the block."""
        count = minimum(index(group), tiles - block_ * group)

        def panel_of(kb: Var, panel: Var) -> Stmt:
            it = Var("it")
            return For(it, count, serial, micro(panel, kb, block_ * group + it))

        return _loop("kb", k // depth, serial, lambda kb: _loop("panel", panels, serial, lambda panel: panel_of(kb, panel)))

    def rows_of_a(it: Var) -> Stmt:
        # A whole cache line of each row at a time: rows a power of two apart push each other out of the cache.
        def line(r0: Var) -> Stmt:
            def row(i: Var) -> Stmt:
                return _loop("v", lanes, vectorized, lambda v: pack_a(it, r0 * lanes + v, i), lanes)

            return _loop("i", rows, unrolled, row)

        return _loop("r", k // lanes, serial, line)

    def rows_of_b(panel: Var) -> Stmt:
        return _loop("r", k, serial, lambda r: _loop("j", columns, vectorized, lambda j: pack_b(panel, r, j), lanes))

    body = block(
        _loop("it", tiles, parallel, rows_of_a),
        _loop("panel", panels, parallel, rows_of_b),
        _loop("block", -(-tiles // group), parallel, row_block),
    )
    return Function(f"matmul_{m}_{n}_{k}", (a, b, c), 1, Alloc(packed_a, Alloc(packed_b, body)))


def _seconds(run: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def compare(size: int, tile: tuple[int, int], depth: int, group: int, threads: int, repeats: int) -> dict[str, float]:
    """Medians in seconds of ours and numpy's, taken in turns."""
    target = targets.host(threads)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    out, reference = np.empty_like(a), np.empty_like(a)
    function = matmul(size, size, size, *tile, depth, group, target.lanes("float32"))
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
    parser.add_argument("--tile", type=int, nargs=2, default=[14, 32], metavar=("ROWS", "COLUMNS"))
    parser.add_argument("--block", type=int, default=512, help="k per block")
    parser.add_argument("--group", type=int, default=8, help="tiles of rows per block")
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    for size in arguments.sizes:
        result = compare(size, tuple(arguments.tile), arguments.block, arguments.group, arguments.threads, arguments.repeats)
        print(json.dumps(result))


if __name__ == "__main__":
    main()

"""What the model says bounds a program, for a processor that is not at hand: as one would work it out with pencil and paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from ansorlite import te
from ansorlite.cost_model.explain import Explanation, Statement, explain
from ansorlite.machine.families import WIDE
from ansorlite.search.default import default_candidate
from ansorlite.spaces.derivation import derive
from ansorlite.target import PROCESSORS
from ansorlite.task import Task
from ansorlite.topi.conv import conv
from ansorlite.topi.softmax import softmax
from tests import workloads

#: 2.6 GHz, two multiply-adds of 16 bytes a cycle; 64 KiB, 1 MiB and 32 MiB of cache.
N1: Final = PROCESSORS["neoverse-n1"]
#: Of one core, in operations a second.
PEAK: Final = 2.6e9 * 2 * 4 * 2


def twice(n: int) -> list[te.Tensor]:
    a = te.placeholder((n,), name="A")
    return [a, te.compute((n,), lambda i: a[i] * 2.0, name="B")]


def sums_of_columns(rows: int, columns: int) -> list[te.Tensor]:
    a, k = te.placeholder((rows, columns), name="A"), te.reduce_axis(rows, name="k")
    return [a, te.compute((columns,), lambda i: te.sum(a[k, i], axis=k), name="B")]


def sum_of_all(n: int) -> list[te.Tensor]:
    a, k = te.placeholder((n,), name="A"), te.reduce_axis(n, name="k")
    return [a, te.compute((1,), lambda _: te.sum(a[k], axis=k), name="B")]


def softmax_of_rows(rows: int, columns: int) -> list[te.Tensor]:
    a = te.placeholder((rows, columns), name="A")
    return [a, softmax(a)]


def strided_convolution() -> list[te.Tensor]:
    x, w = te.placeholder((1, 64, 56, 56), name="x"), te.placeholder((128, 64, 3, 3), name="w")
    return [x, w, conv(x, w, strides=(2, 2), before=(1, 1), after=(1, 1))]


def of(tensors: list[te.Tensor], threads: int = 1) -> Explanation:
    task = Task(tensors, replace(N1, threads=threads))
    return explain(task, default_candidate(task, derive(task)))


def longest(found: Explanation) -> Statement:
    return max(found.statements, key=lambda each: each.total)


#: What it is → the computation, threads, and the causes that may bound the statement that takes longest.
CASES: Final[dict[str, tuple[Callable[[], list[te.Tensor]], int, set[str]]]] = {
    "product": (lambda: workloads.matmul(1024, 1024, 1024), 1, {"arithmetic"}),
    "product on four cores": (lambda: workloads.matmul(1024, 1024, 1024), 4, {"arithmetic"}),
    "small product": (lambda: workloads.matmul(32, 32, 32), 1, {"arithmetic", "issue"}),
    "strided convolution": (strided_convolution, 1, {"arithmetic", "issue", "loads"}),
    "exponentials of softmax": (lambda: softmax_of_rows(1024, 512), 1, {"arithmetic"}),
    "256 MiB": (lambda: twice(1 << 25), 1, {"memory"}),
    "256 MiB on four cores": (lambda: twice(1 << 25), 4, {"memory"}),
    "8 MiB, in the third cache": (lambda: twice(1 << 20), 1, {"l3"}),
    "160 KiB, in the second cache": (lambda: twice(20_000), 1, {"l2", "stores"}),
    "8 KiB": (lambda: twice(1024), 1, {"l2", "stores"}),
    "sum of 16 MiB": (lambda: sum_of_all(1 << 22), 1, {"l3"}),
    "sum of 128 MiB": (lambda: sum_of_all(1 << 25), 1, {"memory"}),
    "one sum of a vector after the other": (lambda: sums_of_columns(4096, 4), 1, {"latency"}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_the_sensible_one(name: str) -> None:
    make, threads, wanted = CASES[name]
    found = longest(of(make(), threads))
    assert found.bound in wanted, found


@pytest.mark.parametrize("threads", [1, 4])
def test_arithmetic_takes_as_long_as_its_units_do(threads: int) -> None:
    found = of(workloads.matmul(1024, 1024, 1024), threads)
    least = 1e6 * 2 * 1024**3 / PEAK / threads
    assert least <= longest(found).microseconds["arithmetic"] <= 1.05 * least
    assert least < found.total < 1.5 * least


def test_tiles_of_four_sums_are_bound_by_matrix_units() -> None:
    """By public figures of Sapphire Rapids: 16 cycles a product of 16 x 16 x 16 words, of four pieces each."""
    target = replace(PROCESSORS["sapphirerapids"], threads=1, machine=WIDE)
    task = Task(workloads.quantised_matmul(512, 512, 512), target)
    found = longest(explain(task, default_candidate(task, derive(task))))
    assert found.bound == "tiles", found
    assert found.microseconds["tiles"] == pytest.approx(1e6 * 16 * (512 // 16) ** 2 * (512 // 64) / target.machine.clock)
    # Without them the same words take vectors.
    without = replace(target, features=target.features.replace("+amx-tile,", ""))
    plain = Task(workloads.quantised_matmul(512, 512, 512), without)
    vectors = longest(explain(plain, default_candidate(plain, derive(plain))))
    assert vectors.microseconds["tiles"] == 0.0
    assert vectors.total > 4 * found.total


def test_memory_takes_as_long_as_its_rate_allows() -> None:
    nbytes = 2 * 4 * (1 << 25)
    for threads in (1, 4, 64):
        machine = N1.machine
        rate = min(threads * machine.memory_bytes, machine.memory_all) * machine.clock
        assert longest(of(twice(1 << 25), threads)).microseconds["memory"] == pytest.approx(1e6 * nbytes / rate, rel=0.01)


def test_a_parallel_loop_may_be_what_takes_longest() -> None:
    """Entering it is a cause of the statement's, once each; the first wakes the team."""
    found = of(sum_of_all(1 << 18), 64)
    regions = [each.microseconds["region"] for each in found.statements]
    assert sum(regions) == pytest.approx(found.regions)
    assert longest(found).bound == "region"
    assert sum(each.total for each in found.statements) == pytest.approx(found.total)
    assert not any(each.microseconds["region"] for each in of(sum_of_all(1 << 18)).statements)

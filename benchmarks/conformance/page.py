"""``docs/onnx.md``: what ONNX's node tests say of every operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import onnx

from ansorlite.frontends.onnx.contrib.table import DEFINITIONS
from ansorlite.frontends.onnx.operators.table import MICROSOFT as OWN
from benchmarks.conformance.result import Result, Way

_HEAD: Final = """\
# ONNX operators

`python -m benchmarks.conformance --write` made this page with onnx {version}: it runs every node test of ONNX's own backend test
suite through `ansorlite.frontends.onnx.backend.Backend`. The test suite holds every change to what is said here
(`tests/onnx/test_conformance.py`).

*Native*: the whole test is tensor expressions, which are tuned and compiled. *Fallback*: at least one node runs in Python,
through `onnx.reference`, between native segments; `ansorlite tasks model.onnx` names such nodes of a model, with the reason.
*Failing*: a wrong result, or none.

Native nodes ran as the numpy meaning of their tensor expressions, which is quick; the test suite runs the default programs of all
tests, compiled, and so does `--kernels default`.

Operators that ONNX defines by others ("expanded" tests run the bodies as models) are native if those are. Inputs that decide
shapes (axes, pads, sizes, trip counts) are specialised by value when they are seen. Where that leaves nothing to compute, a test
is native without a kernel, and counted apart below.
"""


def page(results: Sequence[Result], excluded: Mapping[str, str]) -> str:
    """The page in Markdown."""
    parts = [
        _HEAD.format(version=onnx.__version__),
        "## Totals\n",
        _totals(results),
        "## Not expected to pass\n",
        _exclusions(results, excluded),
        "## By operator\n",
        _by_operator(results),
        "## Why nodes fall back\n",
        _reasons(results),
        "## Operators of onnxruntime's own\n",
        _contrib(),
    ]
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    rule = ["---" if n == 0 else "---:" for n in range(len(head))]
    lines = [head, rule, *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.1f} %)" if whole else "0"


def _totals(results: Sequence[Result]) -> str:
    groups = {
        "all": results,
        "inputs and outputs float32, int32, int64, bool only": [r for r in results if r.plain],
        "others": [r for r in results if not r.plain],
    }
    rows = []
    for name, group in groups.items():
        native = [r for r in group if r.way is Way.NATIVE]
        passed = [r for r in group if r.way is not Way.FAILING]
        constant = sum(r.constant for r in native)
        rows.append((name, len(group), _share(len(passed), len(group)), _share(len(native), len(group)), constant))
    return _table(("tests", "number", "pass", "native", "of these without a kernel"), rows)


def _exclusions(results: Sequence[Result], excluded: Mapping[str, str]) -> str:
    failing = {result.name for result in results if result.way is Way.FAILING}
    rows = [(f"`{name}`", reason) for name, reason in sorted(excluded.items()) if name in failing]
    return "".join(f"* {name}: {reason}\n" for name, reason in rows)


def _by_operator(results: Sequence[Result]) -> str:
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        groups[result.operator].append(result)
    rows = []
    for operator, group in sorted(groups.items()):
        counts = [sum(r.way is way for r in group) for way in Way]
        rows.append((operator, *(count or "" for count in counts)))
    return _table(("operator", *(way.value for way in Way)), rows)


def _contrib() -> str:
    names = ", ".join(f"`{name}`" for name in sorted({*DEFINITIONS, *OWN}))
    where = "`test_contrib.py`, `test_grouped.py`, `test_recurrent.py` in `tests/onnx`"
    return (
        "Its optimiser, its quantisers and exporters of language models write operators of the domain `com.microsoft`.\n"
        f"Known, and compared with onnxruntime ({where}), are: {names}.\n"
    )


def _reasons(results: Sequence[Result]) -> str:
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for result in results:
        for host in result.hosts:
            counts[host] += 1
    rows = [(operator, reason, number) for (operator, reason), number in sorted(counts.items())]
    return _table(("operator", "reason", "tests"), rows)

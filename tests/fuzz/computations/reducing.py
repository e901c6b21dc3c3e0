"""A failing plan made smaller, and the Python that shows it again."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tests.fuzz.computations.checking import MismatchError, check
from tests.fuzz.computations.drawing import kind, pruned
from tests.fuzz.computations.oracle import dtype_of
from tests.fuzz.computations.plan import Apply, Choose, Convert, Element, Node, Number, Plan, operands

#: Checks that making a plan smaller may take.
MOST_CHECKS: Final = 150


def reproducer(plan: Plan) -> str:
    """Python that checks ``plan``."""
    return (
        "    from tests.fuzz.computations.checking import check\n"
        "    from tests.fuzz.computations.plan import *\n"
        f"    check({plan!r})\n"
    )


def reduced(plan: Plan, error: MismatchError) -> Plan:
    """A smaller plan that goes wrong in the same way."""
    checks = itertools.count()
    smaller = True
    while smaller:
        smaller = False
        for candidate in sorted(_smaller(plan), key=_size):
            if next(checks) >= MOST_CHECKS:
                return plan
            if _size(candidate) < _size(plan) and _fails(candidate, error):
                plan, smaller = candidate, True
                break
    return plan


def _kind_of(error: MismatchError) -> tuple[str, str]:
    """What goes wrong: where, and whether by an exception (which one) or by a wrong value."""
    where = error.way.rsplit(",", 1)[-1]
    exception = re.search(r": (\w+Error): ", str(error))
    return where, exception.group(1) if exception else ""


def _fails(plan: Plan, like: MismatchError) -> bool:
    try:
        check(plan)
    except MismatchError as error:
        return _kind_of(error) == _kind_of(like)
    except Exception:
        return False  # not a plan any more
    return False


def _count(node: Node) -> int:
    return 1 + sum(map(_count, operands(node)))


def _size(plan: Plan) -> tuple[int, int]:
    points = sum(math.prod((*stage.shape, *stage.folded)) for stage in plan.stages)
    return 3 * len(plan.stages) + len(plan.outputs) + len(plan.inputs) + sum(_count(stage.body) for stage in plan.stages), points


def _smaller(plan: Plan) -> Iterator[Plan]:
    dtypes = {item.name: item.dtype for item in plan.inputs}
    for name in plan.outputs:
        yield pruned(replace(plan, outputs=(name,)))
    for number, stage in enumerate(plan.stages):
        dtypes[stage.name] = dtype_of(stage.body, dtypes)
        if stage.name not in plan.outputs:
            yield pruned(replace(plan, outputs=(stage.name,)))
        for body in _variants(stage.body, dtypes):
            stages = (*plan.stages[:number], replace(stage, body=body), *plan.stages[number + 1 :])
            yield pruned(replace(plan, stages=stages))


def _variants(node: Node, dtypes: dict[str, str]) -> Iterator[Node]:
    """``node`` with one thing in it simpler, of the same dtype."""
    dtype = dtype_of(node, dtypes)
    parts = operands(node)
    for part in parts:
        if not isinstance(node, Element) and dtype_of(part, dtypes) == dtype:
            yield part
    if parts:
        yield Number({"b": True, "i": 1, "f": 1.0}[kind(dtype)], dtype)
    for number, part in enumerate(parts):
        for other in _variants(part, dtypes):
            yield _with(node, (*parts[:number], other, *parts[number + 1 :]))


def _with(node: Node, parts: tuple[Node, ...]) -> Node:
    match node:
        case Apply(op, _):
            return Apply(op, parts)
        case Element(tensor, _):
            return Element(tensor, parts)
        case Convert(_, dtype):
            return Convert(parts[0], dtype)
        case Choose():
            return Choose(*parts)
    raise AssertionError(f"{node} has no parts")

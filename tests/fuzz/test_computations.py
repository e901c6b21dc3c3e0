"""Random computations, each against the oracle.

``pytest tests/fuzz/test_computations.py --computations 2000`` tries more of them.
"""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.computations import checking, drawing, oracle
from tests.fuzz.computations.checking import MismatchError, check
from tests.fuzz.computations.drawing import drawn
from tests.fuzz.computations.plan import Apply, Axis, Choose, Convert, Element, Input, Node, Number, Plan, Stage, walk
from tests.fuzz.computations.reducing import reduced, reproducer

ZERO, THREE = Number(0.0, "float32"), Number(3.0, "float32")
LARGE = Number((1 << 61) + 5, "int64")

#: So many tests share the computations.
PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_every_way_to_compute_gives_what_the_oracle_says(part: int, request: pytest.FixtureRequest) -> None:
    count = request.config.getoption("--computations") // PARTS
    known = 0.0
    for seed in range(part * count, (part + 1) * count):
        plan = drawn(seed)
        try:
            known += check(plan)
        except MismatchError as error:
            raise AssertionError(f"seed {seed}: {error}\nTo see it again:\n{reproducer(reduced(plan, error))}") from error
    assert known > 0.8 * count, "the oracle knows too little of what is drawn"


def test_what_is_drawn_covers_operations_dtypes_and_folds() -> None:
    plans = [drawn(seed) for seed in range(300)]
    stages = [stage for plan in plans for stage in plan.stages]
    nodes = [node for stage in stages for node in walk(stage.body)]
    operations = {node.op for node in nodes if isinstance(node, Apply)}
    assert operations >= {op for table in (drawing._BINARY, drawing._UNARY) for ops in table.values() for op in ops}
    assert {item.dtype for plan in plans for item in plan.inputs} == set(oracle.DTYPES)
    assert {stage.fold for stage in stages} == {"", "sum", "prod", "max", "min"}
    assert any(len(plan.outputs) > 1 for plan in plans)
    assert any(len(plan.stages) > 2 for plan in plans)


def test_the_oracle_and_what_it_reads_import_nothing_of_ansorlite() -> None:
    folder = Path(oracle.__file__).parent
    for name in ("plan.py", "oracle.py", "drawing.py"):
        for node in ast.walk(ast.parse((folder / name).read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if name.startswith("ansorlite")]


def _alone(body: Node, *inputs: Input, shape: tuple[int, ...] = (8, 9)) -> Plan:
    return Plan(inputs, (Stage("T0", shape, body),), ("T0",), seed=0)


def _at(tensor: str, *axes: int) -> Element:
    return Element(tensor, tuple(Axis(axis) for axis in axes))


#: Each went wrong in one way or another.
FOUND = {
    "an index out of what is no number": _alone(
        Element("X0", (Convert(Apply("minimum", (Apply("maximum", (_at("X1", 0, 1), ZERO)), THREE)), "int64"),)),
        Input("X0", (4,), "int8", 0.0),
        Input("X1", (8, 9), "float32", 0.3),
    ),
    **{
        f"{source} to {target}": _alone(Convert(_at("X0", 0, 1), target), Input("X0", (8, 9), source, 0.5))
        for source in ("float16", "float32", "float64")
        for target in ("int8", "uint8", "int32", "uint32", "int64", "uint64")
    },
    **{
        f"{op} of {dtype}": _alone(
            Apply(op, (_at("X0", 0, 1), _at("X1", 1, 0))), Input("X0", (8, 9), dtype, 0.5), Input("X1", (9, 8), dtype, 0.5)
        )
        for op, dtype in (("power", "int8"), ("power", "int64"), ("//", "bfloat16"), ("%", "float16"), ("power", "bfloat16"))
    },
    "one root of float16": _alone(Apply("rsqrt", (Apply("abs", (_at("X0", 0, 1),)),)), Input("X0", (8, 9), "float16", 0.1)),
    "an index that wraps around": _alone(Apply("//", (Apply("*", (Axis(1), LARGE)), Number(3, "int64"))), shape=(3, 16)),
    "an index of what is not read that wraps around": _alone(
        Choose(
            Apply("<", (Axis(0), Number(0, "int64"))),
            Element("X0", (Axis(0), Apply("*", (Apply("*", (Axis(0), LARGE)), Number(8, "int64"))))),
            Number(2.0, "float32"),
        ),
        Input("X0", (8, 9), "float32", 0.0),
    ),
    "literals that wrap around": _alone(Apply("-", (Axis(0), Apply("*", (Number(-6, "int64"), LARGE)))), shape=(3, 16)),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_once_was_wrong(name: str) -> None:
    assert check(FOUND[name]) == 1.0


SUM = Plan(
    (Input("X0", (3, 8), "int8", 0.0),),
    (Stage("T0", (3,), Apply("+", (Element("X0", (Axis(0), Axis(1))), Number(1, "int8"))), "sum", (8,)),),
    ("T0",),
    seed=3,
)


def test_a_wrong_kernel_is_found_and_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(SUM) == 1.0
    right = checking.compiled

    def off_by_one(*arguments: object) -> list[np.ndarray]:
        arrays = right(*arguments)  # type: ignore[arg-type]
        # What cannot run here gives nothing to spoil: the mutation stands for its result.
        return [array + array.dtype.type(1) for array in (checking.poisoned(arguments[0]) if arrays is None else arrays)]  # type: ignore[arg-type]

    monkeypatch.setattr(checking, "compiled", off_by_one)
    with pytest.raises(MismatchError, match=r"(?s)default .*compiled: .* instead of ") as caught:
        check(SUM)
    smaller = reduced(SUM, caught.value)
    assert sum(1 for _ in walk(smaller.stages[0].body)) < sum(1 for _ in walk(SUM.stages[0].body))
    names: dict[str, object] = {}
    text = "\n".join(line.strip() for line in reproducer(smaller).splitlines())
    with pytest.raises(MismatchError):
        exec(text, names)


@pytest.mark.parametrize(
    ("found", "wrong"), [(1.0, False), (1.0 + 2.0**-23, True), (float("nan"), True), (float("inf"), True), (-1.0, True)]
)
def test_exact_results_are_compared_exactly(found: float, wrong: bool) -> None:
    expected = oracle.Tensor((1,), "float32", [oracle.Real(1.0)])
    assert bool(oracle.difference(expected, np.array([found], "f4"))) == wrong


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_oracle_rounds_as_numpy_stores(dtype: str) -> None:
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        for value in rng.standard_normal(300) * 2.0 ** rng.integers(-160, 130, 300):
            stored = np.float16(np.float32(value)) if dtype == "float16" else np.dtype(dtype).type(value)
            assert oracle.rounded(float(value), dtype) == float(stored)
        for number in rng.integers(-(1 << 62), 1 << 62, 300):
            assert oracle.rounded_integer(int(number), dtype) == float(number.astype(dtype))

"""The machine on what LLVM's back end makes of plain functions, beside numpy."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.ptx_machine import launch

_COUNT = 256
_KINDS = {
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}


def to_ptx(text: str, processor: str = "sm_80", features: str = "+ptx80") -> str:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    backend = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    machine = backend.create_target_machine(cpu=processor, features=features, opt=3)
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple, module.data_layout = "nvptx64-nvidia-cuda", str(machine.target_data)
    return str(machine.emit_assembly(module))


def function(expression: str, operands: str, result: str, declared: str = "") -> str:
    """A kernel that computes ``%r`` from ``%x`` and ``%y`` for each thread."""
    return f"""
{declared}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define void @k(ptr noalias readonly %a, ptr noalias readonly %b, ptr noalias %c) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %n = zext i32 %t to i64
  %pa = getelementptr {operands}, ptr %a, i64 %n
  %pb = getelementptr {operands}, ptr %b, i64 %n
  %x = load {operands}, ptr %pa
  %y = load {operands}, ptr %pb
{expression}
  %pc = getelementptr {result}, ptr %c, i64 %n
  store {result} %r, ptr %pc
  ret void
}}
!nvvm.annotations = !{{!0, !1}}
!0 = !{{ptr @k, !"kernel", i32 1}}
!1 = !{{ptr @k, !"reqntidx", i32 {_COUNT}, !"reqntidy", i32 1, !"reqntidz", i32 1}}
"""


def run(text: str, x: NDArray[Any], y: NDArray[Any], result: str) -> NDArray[Any]:
    out = np.zeros(_COUNT, _KINDS[result])
    launch(to_ptx(text), 1, [x, y, out])
    return out


def operands(kind: str) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(3)
    dtype = np.dtype(_KINDS[kind])
    if dtype.kind == "f":
        x, y = ((rng.standard_normal(_COUNT) * 100).astype(dtype) for _ in range(2))
        x[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 2.5]
        y[:12] = [-0.0, 0.0, 1, 1, 1, 1, 0.0, -0.0, np.inf, -np.inf, np.nan, 3.5]
        return x, y
    info = np.iinfo(dtype)
    x, y = (rng.integers(info.min, info.max, _COUNT, dtype=dtype, endpoint=True) for _ in range(2))
    y[::2] = y[::2] % 7 + 1
    x[:3], y[:3] = [info.min, info.max, -1], [1, 2, 3]
    y[y == 0] = 1
    y[(x == info.min) & (y == -1)] = 2
    return x, y


def _truncated(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    quotient = np.array([abs(int(a)) // abs(int(b)) for a, b in zip(x, y, strict=True)], object)
    return np.array([int(q) if (a < 0) == (b < 0) else -int(q) for q, a, b in zip(quotient, x, y, strict=True)]).astype(x.dtype)


def _unsigned(function: Any) -> Any:
    return lambda x, y: function(x.view(f"u{x.dtype.itemsize}"), y.view(f"u{y.dtype.itemsize}")).view(x.dtype)


def _shift_of(y: NDArray[Any]) -> NDArray[Any]:
    return y.view(f"u{y.dtype.itemsize}") % (8 * y.dtype.itemsize)


_INTEGER = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "sdiv": _truncated,
    "srem": lambda x, y: x - _truncated(x, y) * y,
    "udiv": _unsigned(np.floor_divide),
    "urem": _unsigned(np.remainder),
}


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("operation", [*_INTEGER, "shl", "lshr", "ashr"])
def test_integers(operation: str, kind: str) -> None:
    x, y = operands(kind)
    if operation in _INTEGER:
        text, expected = f"  %r = {operation} {kind} %x, %y", _INTEGER[operation](x, y)
    else:
        bits = 8 * x.dtype.itemsize
        by = _shift_of(y)
        text = f"  %s = urem {kind} %y, {bits}\n  %r = {operation} {kind} %x, %s"
        if operation == "shl":
            expected = np.left_shift(x, by.astype(x.dtype))
        elif operation == "ashr":
            expected = np.right_shift(x, by.astype(x.dtype))
        else:
            expected = np.right_shift(x.view(by.dtype), by).view(x.dtype)
    np.testing.assert_array_equal(run(function(text, kind, kind), x, y, kind), expected)


@pytest.mark.parametrize("divisor", [3, 7, 10, 12, 641, -5])
@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_divisions_by_literals(divisor: int, kind: str) -> None:
    x, y = operands(kind)
    text = f"  %q = sdiv {kind} %x, {divisor}\n  %m = urem {kind} %x, {abs(divisor)}\n  %r = add {kind} %q, %m"
    expected = _truncated(x, np.full_like(x, divisor)) + _unsigned(np.remainder)(x, np.full_like(x, abs(divisor)))
    np.testing.assert_array_equal(run(function(text, kind, kind), x, y, kind), expected)


_COMPARE_INTEGER = {"slt": np.less, "sge": np.greater_equal, "eq": np.equal, "ult": _unsigned(np.less)}


@pytest.mark.parametrize("predicate", ["slt", "sge", "eq", "ne", "ult", "uge"])
@pytest.mark.parametrize("kind", ["i16", "i32", "i64"])
def test_comparisons_of_integers(predicate: str, kind: str) -> None:
    x, y = operands(kind)
    y[::3] = x[::3]
    plain = {"slt": np.less, "sge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "ult": np.less, "uge": np.greater_equal}
    a, b = (x.view(f"u{x.dtype.itemsize}"), y.view(f"u{x.dtype.itemsize}")) if predicate[0] == "u" else (x, y)
    text = f"  %f = icmp {predicate} {kind} %x, %y\n  %r = select i1 %f, {kind} %x, {kind} 77"
    np.testing.assert_array_equal(run(function(text, kind, kind), x, y, kind), np.where(plain[predicate](a, b), x, 77))


_FLOATS = {
    "fadd": np.add,
    "fsub": np.subtract,
    "fmul": np.multiply,
    "fdiv": np.divide,
}


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("operation", _FLOATS)
def test_floats(operation: str, kind: str) -> None:
    x, y = operands(kind)
    with np.errstate(all="ignore"):
        expected = _FLOATS[operation](x, y)
    np.testing.assert_array_equal(run(function(f"  %r = {operation} {kind} %x, %y", kind, kind), x, y, kind), expected)


_CALLS = {
    "sqrt": (1, np.sqrt),
    "fabs": (1, np.abs),
    "floor": (1, np.floor),
    "ceil": (1, np.ceil),
    "trunc": (1, np.trunc),
    "rint": (1, np.rint),
    "copysign": (2, np.copysign),
    "minnum": (2, np.fmin),
    "maxnum": (2, np.fmax),
    "minimum": (2, np.minimum),
    "maximum": (2, np.maximum),
}


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("name", _CALLS)
def test_functions_of_floats(name: str, kind: str) -> None:
    x, y = operands(kind)
    suffix = "f32" if kind == "float" else "f64"
    count, reference = _CALLS[name]
    parameters = ", ".join([kind] * count)
    text = f"  %r = call {kind} @llvm.{name}.{suffix}({', '.join(f'{kind} {v}' for v in ('%x', '%y')[:count])})"
    with np.errstate(all="ignore"):
        expected = reference(*(x, y)[:count])  # type: ignore[operator]
    got = run(function(text, kind, kind, f"declare {kind} @llvm.{name}.{suffix}({parameters})"), x, y, kind)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("predicate", ["olt", "ole", "ogt", "oge", "oeq", "one", "ult", "uge", "une", "ueq", "ord", "uno"])
def test_comparisons_of_floats(predicate: str) -> None:
    x, y = operands("float")
    y[::3] = x[::3]
    either = np.isnan(x) | np.isnan(y)
    plain = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}
    if predicate in ("ord", "uno"):
        holds = either if predicate == "uno" else ~either
    else:
        holds = plain[predicate[1:]](x, y)
        holds = holds | either if predicate[0] == "u" else holds & ~either
    text = f"  %f = fcmp {predicate} float %x, %y\n  %r = zext i1 %f to i32"
    np.testing.assert_array_equal(run(function(text, "float", "i32"), x, y, "i32"), holds)


@pytest.mark.parametrize(
    ("source", "target", "instruction"),
    [
        ("i32", "float", "sitofp"),
        ("i64", "double", "sitofp"),
        ("i32", "i64", "sext"),
        ("i64", "i8", "trunc"),
        ("i8", "i32", "sext"),
        ("i16", "float", "sitofp"),
        ("float", "double", "fpext"),
        ("double", "float", "fptrunc"),
        ("float", "half", "fptrunc"),
        ("half", "float", "fpext"),
    ],
)
def test_conversions(source: str, target: str, instruction: str) -> None:
    x, y = operands(source)
    with np.errstate(all="ignore"):
        expected = x.astype(_KINDS[target])
    np.testing.assert_array_equal(
        run(function(f"  %r = {instruction} {source} %x to {target}", source, target), x, y, target), expected
    )


@pytest.mark.parametrize("target", ["i8", "i16", "i32", "i64"])
def test_saturating_conversions(target: str) -> None:
    x, y = operands("float")
    x[10:14] = [3e9, -3e9, 1e20, -1e20]
    info = np.iinfo(_KINDS[target])
    name = f"llvm.fptosi.sat.{target}.f32"
    text = function(f"  %r = call {target} @{name}(float %x)", "float", target, f"declare {target} @{name}(float)")
    wanted = [
        0 if np.isnan(v) else max(info.min, min(info.max, int(v) if np.isfinite(v) else (1 << 70) * int(np.sign(v)))) for v in x
    ]
    np.testing.assert_array_equal(run(text, x, y, target), np.array(wanted, np.int64).astype(_KINDS[target]))


def test_local_memory_generic_addresses_and_constants() -> None:
    """An array of each thread's own, and a pointer that may be to one of two."""
    text = function(
        """  %l = alloca [8 x float], align 16
  %i = and i64 %n, 7
  br label %fill
fill:
  %k = phi i64 [ 0, %0 ], [ %k1, %fill ]
  %at = getelementptr float, ptr %l, i64 %k
  %kf = sitofp i64 %k to float
  %v = fadd float %kf, %x
  store volatile float %v, ptr %at
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, 8
  br i1 %more, label %fill, label %end
end:
  %mine = getelementptr float, ptr %l, i64 %i
  %odd = trunc i64 %n to i1
  %where = select i1 %odd, ptr %mine, ptr @constants
  %r = load volatile float, ptr %where""",
        "float",
        "float",
        "@constants = internal constant [2 x float] [float 4.0, float 8.0], align 8",
    )
    x = np.arange(_COUNT, dtype=np.float32)
    n = np.arange(_COUNT)
    np.testing.assert_array_equal(run(text, x, x, "float"), np.where(n % 2, x + n % 8, 4.0))

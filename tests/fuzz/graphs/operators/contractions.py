"""Products, convolutions and pooling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.fuzz.graphs.draft import Draft, Made, NoFitError
from tests.fuzz.graphs.operators.elementwise import Maker
from tests.fuzz.graphs.values import FLOATS

_MULTIPLIED: Final = (*FLOATS, "int32", "int64", "uint32", "uint64")


def _image(g: Draft, dtypes: tuple[str, ...] = FLOATS) -> str:
    """(images, channels, extents of one to three dimensions)."""
    return g.pick(dtypes, (3, 5)) if g.chance(0.7) else g.fresh(g.choice(dtypes[:1] * 3 + dtypes), _image_shape(g))


def _image_shape(g: Draft) -> tuple[int, ...]:
    spatial = g.choice((1, 2, 2, 2, 3))
    most = {1: 12, 2: 8, 3: 4}[spatial]
    return (g.integer(1, 2), g.choice((1, 2, 3, 4, 8)), *(g.integer(2, most) for _ in range(spatial)))


def window(g: Draft, extents: tuple[int, ...], kernel: tuple[int, ...], dilated: bool = True) -> dict[str, Any]:
    """Strides, dilations and pads with which a window fits at least once."""
    rank = len(kernel)
    found: dict[str, Any] = {}
    if g.chance(0.6):
        found["strides"] = [g.integer(1, 3) for _ in range(rank)]
    dilations = [1] * rank
    if dilated and g.chance(0.4):
        dilations = [g.integer(1, 2) for _ in range(rank)]
        found["dilations"] = dilations
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if g.chance(0.25):
        found["auto_pad"] = g.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        pads = [0] * (2 * rank)
    else:
        # A pad is smaller than the kernel: a window all of padding has no maximum.
        pads = [g.integer(0, k - 1) for k in kernel * 2] if g.chance(0.7) else [0] * (2 * rank)
        if any(pads):
            found["pads"] = pads
    if any(e + a + b < span for e, a, b, span in zip(extents, pads[:rank], pads[rank:], spans, strict=True)):
        raise NoFitError
    return found


def _kernel(g: Draft, extents: tuple[int, ...]) -> tuple[int, ...]:
    if min(extents, default=0) < 1:
        raise NoFitError
    return tuple(g.integer(1, min(4, e + 1)) for e in extents)


def conv(g: Draft) -> Made:
    x = _image(g)
    shape, dtype = g[x].shape, g.dtype(x)
    groups = g.choice([n for n in range(1, shape[1] + 1) if shape[1] % n == 0 and (n in (1, 2, shape[1]))] or [1])
    kernel = _kernel(g, shape[2:])
    outputs = groups * g.integer(1, max(1, 8 // groups))
    w = g.fresh(dtype, (outputs, shape[1] // groups, *kernel), -1, 1)
    bias = [g.exactly((outputs,), dtype)] if g.chance() else []
    attributes = {"group": groups, "kernel_shape": list(kernel), **window(g, shape[2:], kernel)}
    return Made("Conv", [x, w, *bias], attributes)


def conv_transpose(g: Draft) -> Made:
    x = _image(g)
    shape, dtype = g[x].shape, g.dtype(x)
    groups = g.choice([n for n in range(1, shape[1] + 1) if shape[1] % n == 0 and (n in (1, 2, shape[1]))] or [1])
    kernel = _kernel(g, shape[2:])
    w = g.fresh(dtype, (shape[1], g.integer(1, 3), *kernel), -1, 1)
    rank = len(kernel)
    attributes: dict[str, Any] = {"group": groups}
    strides = [g.integer(1, 3) for _ in range(rank)]
    attributes["strides"] = strides
    if g.chance(0.3):
        attributes["dilations"] = [g.integer(1, 2) for _ in range(rank)]
    if g.chance(0.3):
        # With a kernel shorter than the stride there would be less than nothing to cut off.
        shorter = any(k < s for k, s in zip(kernel, strides, strict=True))
        attributes["auto_pad"] = "VALID" if shorter else g.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    elif g.chance():
        attributes["pads"] = [g.integer(0, (k - 1) // 2) for k in kernel * 2]
    if g.chance(0.3) and "auto_pad" not in attributes:
        attributes["output_padding"] = [g.integer(0, s - 1) for s in strides]
    bias = [g.exactly((g[w].shape[1] * groups,), dtype)] if g.chance() else []
    return Made("ConvTranspose", [x, w, *bias], attributes)


def matmul(g: Draft) -> Made:
    a = g.pick(_MULTIPLIED, (1, 4))
    inner = g[a].shape[-1]
    columns = g.integer(1, 8)
    batch = [1 if g.chance(0.3) else e for e in g[a].shape[:-2]][g.integer(0, max(0, g.rank(a) - 2)) :]
    shape = (inner,) if g.chance(0.15) else (*batch, inner, columns)
    return Made("MatMul", [a, g.exactly(shape, g.dtype(a))])


def matmul_swapped(g: Draft) -> Made:
    """The value that is there on the right."""
    b = g.pick(_MULTIPLIED, (2, 4))
    return Made("MatMul", [g.exactly((g.integer(1, 6), g[b].shape[-2]), g.dtype(b)), b])


def either_matmul(g: Draft) -> Made:
    return (matmul if g.chance(0.7) else matmul_swapped)(g)


def gemm(g: Draft) -> Made:
    a = g.pick(_MULTIPLIED, (2, 2))
    flags = g.flags("transA", "transB")
    rows, inner = g[a].shape[::-1] if flags.get("transA") else g[a].shape
    columns = g.integer(1, 8)
    b = g.exactly((columns, inner) if flags.get("transB") else (inner, columns), g.dtype(a))
    c = (
        [g.exactly(g.choice(((rows, columns), (columns,), (1, columns), (rows, 1), (), (1,))), g.dtype(a))]
        if g.chance(0.7)
        else []
    )
    whole = g.dtype(a) not in FLOATS
    factors = {name: float(g.integer(1, 3)) for name in ("alpha", "beta")} if whole else g.numbers(alpha=(-2, 2), beta=(-2, 2))
    return Made("Gemm", [a, b, *c], {**flags, **factors})


_EINSUMS: Final = (
    ("ij,jk->ik", 2), ("ij,kj->ik", 2), ("bij,bjk->bik", 3), ("bij,bkj->bik", 3), ("ij->ji", 2), ("ij->i", 2), ("ij->", 2),
    ("ii->i", 2), ("ij,ij->ij", 2), ("i,j->ij", 1), ("...ij,...jk->...ik", 3), ("bhid,bhjd->bhij", 4), ("ij,j->i", 2),
    ("bij->b", 3), ("ijk,ik->ij", 3),
)  # fmt: skip


def einsum(g: Draft) -> Made:
    equation, rank = g.choice(_EINSUMS)
    dtypes = ("float32", "float64", "int32", "int64", "float16")
    x = g.pick(dtypes, (rank, rank))
    terms = equation.split("->")[0].split(",")
    letters = terms[0].replace("...", "@")
    extents = dict(zip(letters, g[x].shape, strict=True))
    if letters in ("ii",) and len(set(g[x].shape)) > 1:
        raise NoFitError
    others = [
        g.exactly([extents.setdefault(letter, g.integer(1, 5)) for letter in term.replace("...", "@")], g.dtype(x))
        for term in terms[1:]
    ]
    return Made("Einsum", [x, *others], {"equation": equation})


def _pool(g: Draft, operator: str, since_dilated: int, since_ceil: int, dtypes: tuple[str, ...] = FLOATS) -> Made:
    x = _image(g, dtypes)
    kernel = _kernel(g, g[x].shape[2:])
    slide = window(g, g[x].shape[2:], kernel, g.opset >= since_dilated)
    ceil = g.flags("ceil_mode") if g.opset >= since_ceil and "auto_pad" not in slide else {}
    return Made(operator, [x], {"kernel_shape": list(kernel), **slide, **ceil})


def max_pool(g: Draft) -> Made:
    made = _pool(g, "MaxPool", 10, 10, (*FLOATS, "uint8", "int8"))
    if g.chance(0.2):
        return Made("MaxPool", made.inputs, {**made.attributes, **g.flags("storage_order")}, outputs=2)
    return made


def average_pool(g: Draft) -> Made:
    made = _pool(g, "AveragePool", 19, 10)
    return Made("AveragePool", made.inputs, {**made.attributes, **g.flags("count_include_pad")})


def lp_pool(g: Draft) -> Made:
    made = _pool(g, "LpPool", 18, 18)
    return Made("LpPool", made.inputs, {**made.attributes, "p": g.integer(1, 3)})


def global_pool(operator: str) -> Maker:
    def make(g: Draft) -> Made:
        return Made(operator, [_image(g)], {"p": g.integer(1, 3)} if operator == "GlobalLpPool" else {})

    return make


CONTRACTIONS: Final[Mapping[str, Maker]] = {
    "AveragePool": average_pool,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Einsum": einsum,
    "Gemm": gemm,
    "GlobalAveragePool": global_pool("GlobalAveragePool"),
    "GlobalLpPool": global_pool("GlobalLpPool"),
    "GlobalMaxPool": global_pool("GlobalMaxPool"),
    "LpPool": lp_pool,
    "MatMul": either_matmul,
    "MaxPool": max_pool,
}

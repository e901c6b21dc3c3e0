"""erf of float64 in LLVM IR, over any number of lanes, for machines without the C library.

Rational functions on three ranges, after fdlibm (s_erf.c): Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice is preserved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ansorlite.codegen.lanes import FloatLanes

# Each from the constant term on.
_SMALL: Final = (
    1.28379167095512558561e-01,
    -3.25042107247001499370e-01,
    -2.84817495755985104766e-02,
    -5.77027029648944159157e-03,
    -2.37630166566501626084e-05,
)
_SMALL_BELOW: Final = (
    1.0,
    3.97917223959155352819e-01,
    6.50222499887672944485e-02,
    5.08130628187576562776e-03,
    1.32494738004321644526e-04,
    -3.96022827877536812320e-06,
)
#: erf(1), rounded to float32.
_AT_ONE: Final = 8.45062911510467529297e-01
_NEAR_ONE: Final = (
    -2.36211856075265944077e-03,
    4.14856118683748331666e-01,
    -3.72207876035701323847e-01,
    3.18346619901161753674e-01,
    -1.10894694282396677476e-01,
    3.54783043256182359371e-02,
    -2.16637559486879084300e-03,
)
_NEAR_ONE_BELOW: Final = (
    1.0,
    1.06420880400844228286e-01,
    5.40397917702171048937e-01,
    7.18286544141962662868e-02,
    1.26171219808761642112e-01,
    1.36370839120290507362e-02,
    1.19844998467991074170e-02,
)
_LARGE: Final = (
    -9.86494403484714822705e-03,
    -6.93858572707181764372e-01,
    -1.05586262253232909814e01,
    -6.23753324503260060396e01,
    -1.62396669462573470355e02,
    -1.84605092906711035994e02,
    -8.12874355063065934246e01,
    -9.81432934416914548592e00,
)
_LARGE_BELOW: Final = (
    1.0,
    1.96512716674392571292e01,
    1.37657754143519042600e02,
    4.34565877475229228821e02,
    6.45387271733267880336e02,
    4.29008140027567833386e02,
    1.08635005541779435134e02,
    6.57024977031928170135e00,
    -6.04244152148580987438e-02,
)
_LARGER: Final = (
    -9.86494292470009928597e-03,
    -7.99283237680523006574e-01,
    -1.77579549177547519889e01,
    -1.60636384855821916062e02,
    -6.37566443368389627722e02,
    -1.02509513161107724954e03,
    -4.83519191608651397019e02,
)
_LARGER_BELOW: Final = (
    1.0,
    3.03380607434824582924e01,
    3.25792512996573918826e02,
    1.53672958608443695994e03,
    3.19985821950859553908e03,
    2.55305040643316442583e03,
    4.74528541206955367215e02,
    -2.24409524465858183362e01,
)


def _ratio(w: FloatLanes, above: tuple[float, ...], below: tuple[float, ...], x: str) -> str:
    numerator, denominator = (w.polynomial(tuple(reversed(part)), x) for part in (above, below))
    return w.op("fdiv", numerator, denominator)


def double(w: FloatLanes, x: str, exp: Callable[[str], str]) -> str:
    """erf(x); ``exp`` writes an exponential."""
    magnitude = w.unary("fabs", x)
    small = w.fma(_ratio(w, _SMALL, _SMALL_BELOW, w.op("fmul", x, x)), x, x)
    near = w.op("fadd", w.number(_AT_ONE), _ratio(w, _NEAR_ONE, _NEAR_ONE_BELOW, w.op("fsub", magnitude, w.number(1.0))))
    # Beyond 6, erf is 1.
    t = w.at_most(magnitude, 6.0)
    square = w.op("fmul", t, t)
    inverse = w.op("fdiv", w.number(1.0), square)
    far = w.compare("olt", t, 1 / 0.35)
    tail = w.select(far, _ratio(w, _LARGE, _LARGE_BELOW, inverse), _ratio(w, _LARGER, _LARGER_BELOW, inverse))
    exponent = w.op("fsub", w.op("fsub", tail, w.number(0.5625)), square)
    large = w.op("fsub", w.number(1.0), w.op("fdiv", exp(exponent), t))
    result = w.select(w.compare("olt", magnitude, 1.25), near, large)
    result = w.copysign(result, x)
    result = w.select(w.compare("olt", magnitude, 0.84375), small, result)
    return w.select(w.compare("uno", x, x), x, result)

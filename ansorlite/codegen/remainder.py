"""C's ``fmod`` in LLVM IR, for machines without the C library: long division in integers, exact at every step."""

from __future__ import annotations

from string import Template
from typing import Final

from ansorlite.codegen.builder import Builder

#: For each type: the integer of its size, bits of the mantissa, and of the whole.
_FORMATS: Final = {"float": ("i32", 23, 32), "double": ("i64", 52, 64)}

# A number is m 2^e with bit M of m set; e is 1 for the least normal numbers, and less for those below.
_TEXT: Final = Template("""define internal $F @$name($F %x, $F %y) #1 {
entry:
  %xb = bitcast $F %x to $I
  %yb = bitcast $F %y to $I
  %xm = and $I %xb, $magnitude
  %ym = and $I %yb, $magnitude
  %sign = and $I %xb, $top
  %zero = icmp eq $I %ym, 0
  %y.nan = icmp ugt $I %ym, $infinity
  %x.not = icmp uge $I %xm, $infinity
  %bad1 = or i1 %zero, %y.nan
  %bad = or i1 %bad1, %x.not
  br i1 %bad, label %invalid, label %small
invalid:
  %product = fmul $F %x, %y
  %none = fdiv $F %product, %product
  %nothing = select i1 %x.not, $F $nan, $F %none
  ret $F %nothing
small:
  %below = icmp ult $I %xm, %ym
  br i1 %below, label %itself, label %begin
itself:
  ret $F %x
begin:
  %xe0 = lshr $I %xm, $M
  %ye0 = lshr $I %ym, $M
  %xf = and $I %xm, $fraction
  %yf = and $I %ym, $fraction
  %xl = call $I @llvm.ctlz.$I($I %xf, i1 false)
  %yl = call $I @llvm.ctlz.$I($I %yf, i1 false)
  %xs = sub $I %xl, $above
  %ys = sub $I %yl, $above
  %x.low = icmp eq $I %xe0, 0
  %y.low = icmp eq $I %ye0, 0
  %xs1 = select i1 %x.low, $I %xs, $I 0
  %ys1 = select i1 %y.low, $I %ys, $I 0
  %x.one = or $I %xf, $bit
  %y.one = or $I %yf, $bit
  %xn = select i1 %x.low, $I %xf, $I %x.one
  %yn = select i1 %y.low, $I %yf, $I %y.one
  %mx = shl $I %xn, %xs1
  %my = shl $I %yn, %ys1
  %xe1 = select i1 %x.low, $I 1, $I %xe0
  %ye1 = select i1 %y.low, $I 1, $I %ye0
  %xe = sub $I %xe1, %xs1
  %ye = sub $I %ye1, %ys1
  %steps = sub $I %xe, %ye
  br label %step
step:
  %m = phi $I [ %mx, %begin ], [ %twice, %again ]
  %left = phi $I [ %steps, %begin ], [ %fewer, %again ]
  %less = sub $I %m, %my
  %fits = icmp uge $I %m, %my
  %rest = select i1 %fits, $I %less, $I %m
  %last = icmp eq $I %left, 0
  br i1 %last, label %end, label %again
again:
  %twice = shl $I %rest, 1
  %fewer = sub $I %left, 1
  br label %step
end:
  %gone = icmp eq $I %rest, 0
  %rl = call $I @llvm.ctlz.$I($I %rest, i1 false)
  %rs = sub $I %rl, $above
  %rs1 = select i1 %gone, $I 0, $I %rs
  %mr = shl $I %rest, %rs1
  %re = sub $I %ye, %rs1
  %normal = icmp sgt $I %re, 0
  %implied = xor $I %mr, $bit
  %exponent = shl $I %re, $M
  %joined = or $I %implied, %exponent
  %shift = sub $I 1, %re
  %shift1 = select i1 %normal, $I 0, $I %shift
  %denormal = lshr $I %mr, %shift1
  %number = select i1 %normal, $I %joined, $I %denormal
  %number1 = select i1 %gone, $I 0, $I %number
  %signed = or $I %number1, %sign
  %result = bitcast $I %signed to $F
  ret $F %result
}""")


def function(b: Builder, element: str) -> str:
    """The name of the function for ``float`` or ``double``, which is defined once."""
    name = f"remainder_{element}"
    if not b.module.has(name):
        integer, mantissa, bits = _FORMATS[element]
        infinity = ((1 << (bits - 1 - mantissa)) - 1) << mantissa
        b.module.declare(f"{integer} @llvm.ctlz.{integer}({integer}, i1)")
        b.module.define(
            name,
            _TEXT.substitute(
                name=name,
                F=element,
                I=integer,
                M=mantissa,
                magnitude=(1 << (bits - 1)) - 1,
                top=-(1 << (bits - 1)),
                infinity=infinity,
                fraction=(1 << mantissa) - 1,
                bit=1 << mantissa,
                above=bits - 1 - mantissa,
                nan="0x7FF8000000000000",
            ),
        )
    return name

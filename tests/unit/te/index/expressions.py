"""Index expressions of two axes, drawn at random."""

from hypothesis import strategies as st

from ansorlite import te
from ansorlite.te.expr import Axis
from ansorlite.te.expr import const as literal

I, J = Axis("i", extent=5), Axis("j", extent=7)  # noqa: E741


@st.composite
def index_expressions(draw, depth=4):
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([I, J, *(literal(c, "int64") for c in (-3, -1, 0, 1, 2, 5))]))
    x, y = draw(index_expressions(depth - 1)), draw(index_expressions(depth - 1))
    kind = draw(st.integers(0, 9))
    match kind:
        case 0 | 1:
            return x + y
        case 2:
            return x - y
        case 3:
            return x * y
        case 4:
            return x // draw(st.sampled_from([1, 2, 3, -2]))
        case 5:
            return x % draw(st.sampled_from([1, 2, 5, -3]))
        case 6:
            return te.minimum(x, y)
        case 7:
            return te.maximum(x, y)
        case 8:
            return te.abs(x) % (te.abs(y) + 1)
        case _:
            return te.if_then_else(te.any(x < y, x == 2), x, -y)

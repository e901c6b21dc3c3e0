import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite import te
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.digits import parts
from ansorlite.te.evaluate import evaluate
from ansorlite.te.expr import Binary
from ansorlite.te.index.form import form_of
from ansorlite.te.index.ranges import bounds
from ansorlite.te.ops import BinaryOp
from ansorlite.te.traversal import reads, walk
from ansorlite.topi.conv import conv, conv_transpose
from tests.strategies import arrays_for, assert_close
from tests.unit.te import loop_reference


@st.composite
def divided(draw):
    """A sum of products whose factors are read by quotients and remainders of space and reduce axes, with any offset."""
    extents = [draw(st.integers(1, 9)) for _ in range(2)]
    length = draw(st.integers(1, 8))
    r = te.reduce_axis(length, name="r")

    def index(axis):
        divisor, offset = draw(st.integers(1, 5)), draw(st.integers(-4, 6))
        shifted = axis + offset
        if draw(st.booleans()):
            return shifted % divisor
        quotient = shifted // divisor
        least, _ = bounds(quotient)
        return quotient - int(least)

    def read(name, *indices):
        shape = [int(bounds(index)[1]) + 1 for index in indices]
        source = te.placeholder(shape, draw(st.sampled_from(("float32", "int32"))), name=name)
        return source, te.cast(source[indices], "float64")

    inputs = []

    def element(i, j):
        choices = (i, j, r, index(i), index(j), index(r))
        one, a = read("A", *(draw(st.sampled_from(choices)) for _ in range(2)), r)
        other, b = read("B", *(draw(st.sampled_from(choices)) for _ in range(2)))
        inputs.extend((one, other))
        value = te.if_then_else(index(i) < 2, a, b) if draw(st.booleans()) else a * b
        fold = draw(st.sampled_from((te.sum, te.max)))
        return fold(value, axis=r)

    result = te.compute(extents, element, name="C")
    return ComputeDAG.of([*inputs, result])


@settings(deadline=None, max_examples=150)
@given(divided(), st.integers(0, 2**32 - 1))
def test_equals_plain_loops(dag, seed):
    arrays = arrays_for(dag, np.random.default_rng(seed))
    assert_close(dag, evaluate(dag, arrays), loop_reference.run(dag, arrays))


@settings(deadline=None, max_examples=60)
@given(divided())
def test_parts_cover_every_element_once(dag):
    (whole,) = dag.outputs
    met = np.zeros(whole.shape, int)
    for part in parts(whole):
        assert math.prod(part.tensor.shape) == met[part.region].size
        met[part.region] += 1
    assert (met == 1).all()


@pytest.mark.parametrize("pads", [0, 1, 2])
def test_convolutions_read_affinely(pads):
    x = te.placeholder((2, 8, 5, 5), name="x")
    grouped = conv(x, te.placeholder((12, 2, 3, 3), name="w"), before=(pads, pads), after=(pads, pads), groups=4)
    transposed = conv_transpose(
        x, te.placeholder((8, 3, 4, 4), name="w"), strides=(2, 2), before=(pads, pads), after=(pads, pads)
    )
    for tensor in (grouped, transposed):
        assert any(isinstance(node, Binary) and node.op is BinaryOp.FLOORDIV for node in walk(tensor.body))
        for part in parts(tensor):
            assert all(form_of(index).over_variables for read in reads(part.tensor.body) for index in read.indices)


def test_what_divides_nothing_is_one_part():
    x = te.placeholder((6, 6), name="x")
    k = te.reduce_axis(6)
    y = te.compute((6,), lambda i: te.sum(x[i, k], axis=k))
    (part,) = parts(y)
    assert part.tensor is y

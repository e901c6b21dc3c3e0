"""Decoders whose caches grow with every call: one program serves all lengths of a bucket, and reads caches where they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import ansorlite as al
from tests.onnx.test_open_dimensions import Counted, model_of, normal

HEADS, SIZE = 2, 16


def decoder(*, positions: bool = True, turned: bool = False) -> onnx.ModelProto:
    """A layer of attention over what was and what comes, its positions counted from the length of the cache.

    Args:
        turned: whether keys are kept with positions last, as (heads, size, positions).
    """
    node = helper.make_node
    width = HEADS * SIZE
    nodes = [
        node("Shape", ["past_v"], ["past_shape"]),
        node("Gather", ["past_shape", "two"], ["past"]),
        node("Shape", ["x"], ["x_shape"]),
        node("Gather", ["x_shape", "one"], ["new"]),
        node("Add", ["past", "new"], ["total"]),
        node("Range", ["past", "total", "one"], ["places"]),
        node("Cast", ["places"], ["places_f"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["places_f", "one_axis"], ["column"]),
        node("Mul", ["column", "rates"], ["angles"]),
        node("Sin", ["angles"], ["waves"]),
        node("Add", ["x", "waves"], ["h"]) if positions else node("Identity", ["x"], ["h"]),
    ]
    for name in "qkv":
        nodes += [
            node("MatMul", ["h", f"w{name}"], [f"{name}_flat"]),
            node("Reshape", [f"{name}_flat", "split"], [f"{name}_rows"]),
            node("Transpose", [f"{name}_rows"], [f"{name}_new"], perm=[0, 2, 3, 1] if turned and name == "k" else [0, 2, 1, 3]),
        ]
    nodes += [
        node("Concat", ["past_k", "k_new"], ["k"], axis=3 if turned else 2),
        node("Concat", ["past_v", "v_new"], ["v"], axis=2),
        node("Identity", ["k"], ["k_t"]) if turned else node("Transpose", ["k"], ["k_t"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q_new", "k_t"], ["scores"]),
        node("Add", ["scores", "mask"], ["masked"]),
        node("Softmax", ["masked"], ["weights"]),
        node("MatMul", ["weights", "v"], ["heads"]),
        node("Transpose", ["heads"], ["rows"], perm=[0, 2, 1, 3]),
        node("Reshape", ["rows", "joined"], ["flat"]),
        node("MatMul", ["flat", "wo"], ["y"]),
    ]
    constants = {f"w{name}": normal(width, width) / 4 for name in "qkvo"} | {
        "one": np.array(1), "two": np.array(2), "one_axis": np.array([1]), "split": np.array([0, 0, HEADS, SIZE]),
        "joined": np.array([0, 0, width]), "rates": normal(width),
    }  # fmt: skip
    key = ("batch", HEADS, SIZE, "past") if turned else ("batch", HEADS, "past", SIZE)
    inputs = {"x": ("batch", "new", width), "mask": ("batch", 1, 1, "total"), "past_k": key}
    return model_of(nodes, {**inputs, "past_v": ("batch", HEADS, "past", SIZE)}, {"y": 3, "k": 4, "v": 4}, constants)


def call(past: int, new: int = 1, batch: int = 1, *, turned: bool = False) -> dict[str, np.ndarray]:
    """Inputs of a length; the first place is masked."""
    mask = np.zeros((batch, 1, 1, past + new), np.float32)
    mask[..., : past + new > 1] = -1e9
    key = normal(batch, HEADS, SIZE, past) if turned else normal(batch, HEADS, past, SIZE)
    return {"x": normal(batch, new, HEADS * SIZE), "mask": mask, "past_k": key, "past_v": normal(batch, HEADS, past, SIZE)}


@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
def test_one_program_serves_the_lengths_of_a_bucket(turned: bool) -> None:
    ready = Counted(decoder(turned=turned), dims={"total": (16, 32)})
    for past in (9, 12, 10, 14, 8):
        ready.check(**call(past, turned=turned))
    assert ready.compiled == 1
    for past in (16, 30, 23):
        ready.check(**call(past, turned=turned))
    assert ready.compiled == 2
    # Masks take half of the time in so small a decoder: the ends of buckets have programs of their own.
    for past in (15, 31):
        ready.check(**call(past, turned=turned))
    assert ready.compiled == 4


def test_lengths_that_nobody_named() -> None:
    """The first ones have programs of their own; then one serves the others up to the next power of two."""
    ready = Counted(decoder())
    for past in range(33, 64):
        ready.check(**call(past))
    # Two lengths first, then one program for all but the end of the bucket, which has the fastest.
    assert ready.compiled == 4


def test_prompts_and_batches() -> None:
    ready = Counted(decoder(), dims={"total": (16,), "batch": (4,)})
    for new in (9, 15, 11):
        ready.check(**call(0, new))
    assert ready.compiled == 1
    for batch, past in ((1, 9), (3, 10), (4, 14), (2, 8)):
        ready.check(**call(past, 1, batch))
    assert ready.compiled == 2
    ready.check(**call(5, 4))  # several at once behind some that were


def test_results_of_one_call_are_read_in_place_by_the_next() -> None:
    """Caches are parts of larger arrays then; others are copied, or have rows that lie apart in another way."""
    proto = decoder()
    ready, reference = Counted(proto, dims={"total": (16,)}), ReferenceEvaluator(proto)
    inputs = call(4)
    for _ in range(6):
        found = ready.run(inputs)
        expected = dict(zip(found, reference.run(None, inputs), strict=True))
        for name, array in found.items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=1e-5)
        assert not found["k"].flags.c_contiguous
        length = found["k"].shape[2]
        inputs = {**call(length), "past_k": found["k"], "past_v": np.asfortranarray(expected["v"])}
    assert ready.compiled == 1
    backward = normal(1, HEADS, 6, SIZE)
    ready.check(**{**call(6), "past_k": backward[:, :, ::-1], "past_v": np.repeat(backward, 2, axis=2)[:, :, ::2]})


def test_compiled_and_tuned(tmp_path: Path) -> None:
    proto = decoder()
    reference = ReferenceEvaluator(proto)
    sizes = {"batch": (1,), "new": (1,), "total": (16,), "past": (15,)}
    model = al.from_onnx(proto, dims=sizes)
    al.tune(model, trials=len(model.tasks) * 2, database=tmp_path / "tuning.db")
    served = al.compile(model, tmp_path / "tuning.db")
    for past in (7, 15, 11, 3):
        inputs = call(past)
        for array, expected in zip(served(inputs).values(), reference.run(None, inputs), strict=True):
            np.testing.assert_allclose(array, expected, rtol=1e-4, atol=1e-5)
    # What was tuned is what runs: a program for all lengths, and one for the last.
    programs = served._programs._results.values()
    assert len(programs) == 2
    assert {task.key for task, _ in model.tasks} == {facts.task for program in programs for facts in program.facts if facts.task}

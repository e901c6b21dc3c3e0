"""The function of a model's steps: of many, functions of some each."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import ansorlite as al
from ansorlite.codegen import entry
from ansorlite.frontends.onnx import load_model

CHAIN = "\n".join(f"v{n + 1} = Tanh(p{n})\np{n + 1} = MatMul(v{n + 1}, w)" for n in range(5))
MODEL = f"""
    <ir_version: 8, opset_import: ["" : 17]>
    chain (float[3, 4] x, float[4, 4] w) => (float[3, 4] y) {{
        p0 = MatMul(x, w)
        {CHAIN}
        y = Identity(p5)
    }}
"""


@pytest.mark.parametrize("most", [1, 2, 4, 100])
def test_many_steps_are_several_functions(most, monkeypatch, tmp_path):
    monkeypatch.setattr(entry, "_MOST_STEPS", most)
    executable = al.compile(load_model(onnx.parser.parse_model(MODEL)))
    assert executable.steps > 4
    rng = np.random.default_rng(0)
    x, w = rng.random((3, 4), dtype=np.float32), rng.random((4, 4), dtype=np.float32)
    expected = x @ w
    for _ in range(5):
        expected = np.tanh(expected) @ w
    np.testing.assert_allclose(executable(x=x, w=w)["y"], expected, rtol=1e-5)
    profile = executable.profile({"x": x, "w": w}, runs=1)
    assert len(profile.steps) == executable.steps
    assert all(step.seconds > 0 for step in profile.steps)
    executable.export(tmp_path / "chain.so")
    np.testing.assert_allclose(al.load(tmp_path / "chain.so")(x=x, w=w)["y"], expected, rtol=1e-5)

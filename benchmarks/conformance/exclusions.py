"""The tests that are not expected to pass, each with its reason."""

from __future__ import annotations

from typing import Final

#: Tests that are not expected to pass, and why.
EXCLUDED: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "test_bernoulli",
            "test_bernoulli_expanded",
            "test_bernoulli_double",
            "test_bernoulli_double_expanded",
            "test_bernoulli_seed",
            "test_bernoulli_seed_expanded",
        ),
        "compares random numbers; no generator is prescribed",
    ),
    "test_if_opt": "the reference, which runs it, gives optional sequences in another form than the test expects",
    "test_loop16_seq_none": "the reference, which runs it, gives optional sequences in another form than the test expects",
    "test_scan_sum": "the Scan of opset 8, which has another form; the reference does not know it",
    **dict.fromkeys(
        ("test_attention_4d_causal_fp16", "test_attention_4d_causal_fp16_expanded"),
        "sums of float16 are made in float32 here, and rounded once; the test expects, to the last bit, a softmax rounded at "
        "each step",
    ),
    **dict.fromkeys(
        ("test_dft_inverse", "test_dft_inverse_opset19"),
        "sums of float32 are made in float32; the test expects zero to 1e-7 beside numbers of 50, as float64 gives it",
    ),
}

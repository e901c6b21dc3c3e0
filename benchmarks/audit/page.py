"""``docs/onnx-audit.md``: what the comparison with onnxruntime says of every operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import onnx
import onnxruntime

from benchmarks.audit.verdict import Outcome, Verdict

_HEAD: Final = """\
# ONNX operators beside onnxruntime

`python -m benchmarks.audit --write` made this page with onnx {onnx} and onnxruntime {onnxruntime}. It takes the models of
ONNX's node tests, and some more, varies attributes, optional inputs, dtypes, data and the version of the operator set ({number}
variations of each operator), and compares with onnxruntime, its optimisations off. Each model is tried in one of three ways:
with inputs; with constants, which are folded at import; and with data whose shape is known only while the model runs. Native
nodes ran as the numpy meaning of their tensor expressions.

It asks above all which nodes may run in Python, and whether they are right there. A node with a converter runs by that:
natively, or in Python as the same tensor expressions, so that there are no two meanings of it. Only what has none (or a case
of it that has none) is left to `onnx.reference`. What was found wrong there has become one of these:

| operator | what `onnx.reference` gets wrong | what became of it |
| --- | --- | --- |
| RNN, GRU, LSTM | ignores `sequence_lens`, `clip`, `activations`, `input_forget` | native |
| MaxPool | `Indices`, of several channels or samples | native |
| DynamicQuantizeLinear | data of nothing but zeros | native |
| Hardmax | before opset 13, `axis` | native |
| Softmax, LogSoftmax | before opset 13, `axis` | native, in Python too |
| Split, ReverseSequence, AveragePool | uneven parts, negative axes, `auto_pad`, `ceil_mode` | native, in Python too |
| Loop | stacks rows below each other whatever their rank; does not begin without a condition | mended |
| RoiAlign | before opset 16, where pixels are | mended |
| Optional | gives a list, which nothing else takes for an optional value | mended |
| LinearRegressor | without `intercepts`, NaN | mended |
| operators of ai.onnx.ml on float64 | results that are float32 by definition | mended |
| LinearClassifier | one row of coefficients for two classes | refused |
| Normalizer | `norm="MAX"`: which sign counts | refused |
| SVMClassifier | `post_transform` | refused |
| TreeEnsemble | `post_transform`; `aggregate_function` MIN and MAX of several targets | refused |
| TreeEnsembleClassifier | the label, of two classes | refused |
| TreeEnsembleRegressor | `aggregate_function` MIN and MAX where a leaf has no weight of a target | refused |

Where onnxruntime differs from ONNX's words or tests, these count: `activation_alpha` of ThresholdedRelu is 1 if it is left
out; MaxUnpool with `output_shape`; `auto_pad` of windows with dilations; Cast of a negative zero of float8 to bool;
MeanVarianceNormalization of one element; Resize by scales that do not give a whole size, where corners are aligned. What
TopK gives unsorted, random numbers, what floats beyond the range of an integer become, and masks of Dropout before opset 12
cannot be compared; floats that Cast writes as strings are compared as numbers, as their digits are open.
`com.microsoft.DynamicQuantizeLSTM` is compared in `tests/onnx/test_recurrent.py`.

*Right*: equal. *Refused*: one sentence says why; mostly of attributes that fit nothing, as they are drawn at random.
*Unchecked*: onnxruntime takes none of the variations that were tried. *In Python*: how many had a step in Python.

"""


def page(verdicts: Mapping[str, Sequence[Verdict]], number: int) -> str:
    """The page in Markdown."""
    parts = [_HEAD.format(onnx=onnx.__version__, onnxruntime=onnxruntime.__version__, number=number)]
    parts.append("| operator | right | wrong | refused | unchecked | in Python |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
    for operator, own in verdicts.items():
        counts = Counter(verdict.outcome for verdict in own)
        wrong = counts[Outcome.WRONG] + counts[Outcome.CRASH]
        python = sum(verdict.python for verdict in own)
        cells = (counts[Outcome.RIGHT], wrong, counts[Outcome.REFUSED], counts[Outcome.UNCHECKED], python)
        parts.append(f"| {operator} | {' | '.join(str(cell or '') for cell in cells)} |\n")
    return "".join(parts)

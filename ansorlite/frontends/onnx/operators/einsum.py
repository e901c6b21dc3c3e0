"""Einsum: the equation with a letter for every dimension, and one product of two tensors after another."""

from __future__ import annotations

import string

from ansorlite.frontends.onnx.node import NodeView
from ansorlite.topi.einsum import einsum


def convert_einsum(node: NodeView) -> str:
    names = [node.input(position) for position in range(len(node.inputs))]
    terms, output = _equation(node)
    result, letters = names[0], terms[0]
    if len(names) == 1:
        return node.apply(einsum, result, inputs=(letters,), output=output)
    for position in range(1, len(names)):
        # What no later factor and not the result needs is summed over at once.
        later = set(output).union(*terms[position + 1 :])
        both = dict.fromkeys(letters + terms[position])
        kept = output if position == len(names) - 1 else "".join(x for x in both if x in later)
        result = node.apply(einsum, result, names[position], inputs=(letters, terms[position]), output=kept)
        letters = kept
    return result


def _equation(node: NodeView) -> tuple[list[str], str]:
    """The letters of each input and of the result, with fresh ones in the place of ``...``."""
    text = node.text("equation", "").replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(node.inputs):
        raise node.error(f"equation {text!r} is for {len(terms)} inputs, not {len(node.inputs)}")
    used = set(text)
    free = [letter for letter in string.ascii_letters if letter not in used]
    ranks = [len(node.value(n).shape) - len(t.replace("...", "")) for n, t in enumerate(terms) if "..." in t]
    dots = "".join(free[: max(ranks, default=0)])
    full = []
    for position, term in enumerate(terms):
        own = len(node.value(position).shape) - len(term.replace("...", ""))
        full.append(term.replace("...", dots[len(dots) - own :] if own else ""))
    if not arrow:
        once = sorted(x for x in set(left) - set(",.") if left.count(x) == 1)
        right = dots + "".join(once)
    return full, right.replace("...", dots)

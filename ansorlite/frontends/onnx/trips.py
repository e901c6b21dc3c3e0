"""How often a loop runs, where that follows from what is known beforehand.

Only what its condition depends on is looked at, turn by turn, however much else its body computes:

>>> i, n = 0, 80; while i < n: state = cell(state, rows[i]); i = i + 1       # 80 times: i < n depends on i and n alone
"""

from __future__ import annotations

from typing import Final

from ansorlite.frontends.onnx.imports import Imports
from ansorlite.frontends.onnx.loops import Loop, known
from ansorlite.frontends.onnx.node import UnsupportedError
from ansorlite.frontends.onnx.scope import Attempt
from ansorlite.frontends.onnx.segments import Slot

#: Nodes that may be looked at to count the turns of a loop.
_MOST_NODES: Final = 1 << 14


def trips(loop: Loop, attempt: Attempt, imports: Imports) -> int:
    """How often ``loop``, the node of ``attempt``, runs.

    Raises:
        UnsupportedError: it is known only while the model runs, or is too much to count, or without an end.
        ModelError: a condition is no single value.
    """
    limit, condition = known(loop.limit, imports), known(loop.condition, imports)
    going = condition is None or bool(condition)
    proceed = loop.body.output[0].name
    read = loop.read([proceed])
    size = sum(not read.isdisjoint(node.output) for node in loop.body.node)
    own = [p for p, name in enumerate(loop.names) if name in read]
    wanted = [proceed, *(loop.results[p] for p in own)]
    counted = loop.body.input[0].name in read
    carried = list(loop.carried)
    turn = 0
    while going and (limit is None or turn < limit):
        if (turn + 1) * size > _MOST_NODES:
            raise UnsupportedError("it runs too often to count its turns")
        told = {name: Slot.constant(name, array) for name, array in loop.told(turn, going).items()}
        scope = imports.scope_of(loop.body, told | dict(zip(loop.names, carried, strict=True)), attempt.scope)
        imports.add_nodes(loop.body.node, wanted, scope)
        going = bool(known(scope.slots[proceed], imports))
        turn += 1
        if going and not own and not counted:
            # The next turn is told the same, and says the same.
            if limit is None:
                raise UnsupportedError("it never ends")
            return int(limit)
        for p in own:
            carried[p] = scope.slots[loop.results[p]]
    return turn

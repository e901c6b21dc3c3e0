"""Lowering: one program to loop IR.

Map of this file and its neighbours::

    lower_program        the whole kernel: buffers that outlive a nest, then one nest after another
      lower_nest.py      an anchor's loops, with what is computed inside of them, recursively band by band
        lower_region.py  the loops of a stage that is attached to an anchor, or stands at the root
        coordinates.py   loop variables to coordinates

The numbers all come from the fold.
"""

from __future__ import annotations

from ansorlite.analysis.constants import constant_stages
from ansorlite.loops.arguments import argument
from ansorlite.loops.nodes import Alloc, Buffer, Function, Scope, Stmt, block
from ansorlite.loops.simplify import simplify
from ansorlite.schedule.lower_nest import NestLowering, padding
from ansorlite.schedule.nest import Attached, Program
from ansorlite.schedule.reading import Reader, whole
from ansorlite.te.tensor import Tensor


def lower_program(program: Program, name: str = "kernel") -> Function:
    """The loop IR of a program whose numbers are ints."""
    dag = program.dag
    arguments = (*dag.inputs, *dag.outputs)
    buffers = {t: argument(t) for t in arguments}
    tiles = {nest.anchor for nest in program.nests if nest.epilogue is not None}
    computed = {pack.tensor for each in program.nests for nest in each.all for pack in nest.packed if not pack.copies}
    outside = [t for t in dag.computes if t not in buffers and t not in tiles | computed and _at_root(program, t)]
    constant = constant_stages(dag)
    scopes = {t: Scope.PREPARED if t in constant else Scope.GLOBAL for t in outside}
    buffers |= {t: Buffer(t.name, _shape(program, t), t.dtype, scopes[t], padding(program, t)) for t in outside}
    reads: dict[Tensor, Reader] = {t: whole(buffer) for t, buffer in buffers.items()}
    body: list[Stmt] = []
    packs: list[Buffer] = []
    for nest in program.nests:
        lowering = NestLowering(nest, program, buffers, reads)
        body.append(lowering.lower())
        packs += lowering.root_packs
    whole_body = block(*body)
    for buffer in (*reversed(packs), *(buffers[t] for t in reversed(outside))):
        whole_body = Alloc(buffer, whole_body)
    return simplify(Function(name, tuple(buffers[t] for t in arguments), len(dag.outputs), whole_body))


def _at_root(program: Program, tensor: Tensor) -> bool:
    """Whether all of ``tensor`` is in memory at once: it is not computed region by region."""
    inside = (stage for nest in program.nests for stage in nest.attached)
    return all(_home_is_root(stage, tensor) for stage in inside)


def _home_is_root(stage: Attached, tensor: Tensor) -> bool:
    """Whether ``tensor`` is neither computed region by region as the attached stage, nor inside of its loops."""
    if stage.tensor is tensor:
        return bool(stage.at == 0)
    return stage.nest is None or not any(_computes(inner, tensor) for inner in stage.nest.attached)


def _computes(stage: Attached, tensor: Tensor) -> bool:
    return stage.tensor is tensor or (stage.nest is not None and any(_computes(inner, tensor) for inner in stage.nest.attached))


def _shape(program: Program, tensor: Tensor) -> tuple[int, ...]:
    extents = (program.parts.get(a, a.extent) for a in tensor.axes)
    return tuple(int(extent) for extent in extents)

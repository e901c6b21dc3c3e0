"""From what was imported to a model on a target."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ansorlite.frontends.onnx.segments import HostNode, Imported
from ansorlite.graph.hybrid import AnyModel, HybridModel
from ansorlite.graph.model import Model
from ansorlite.target import Target, resolve


def model_of(imported: Imported, target: str | Target, *, blocked: bool = True, precision: str = "float32") -> AnyModel:
    """The model of ``imported``: one that is native from end to end, if there are no host steps.

    Args:
        blocked, precision: see :meth:`ansorlite.graph.model.Model.of`.

    Raises:
        TargetError: an unknown target.
    """
    if imported.graph is not None:
        return Model.of(imported.graph, target, blocked=blocked, precision=precision)
    made = partial(model_of, target=target, blocked=blocked, precision=precision)
    steps = tuple(
        replace(step.step, bodies=tuple(map(made, step.bodies)))
        if isinstance(step, HostNode)
        else Model.of(step, target, blocked=blocked, precision=precision)
        for step in imported.steps
    )
    return HybridModel(
        steps,
        {name: slot.value for name, slot in imported.inputs.items()},
        {name: slot.name for name, slot in imported.outputs.items()},
        {slot.name: slot.datum for slot in imported.outputs.values() if slot.known},
        resolve(target),
    )

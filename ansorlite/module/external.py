"""Functions from outside, known by name. They are given arrays to read and arrays to write: destination-passing style."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar, overload

import numpy as np

from ansorlite.errors import ArgumentError, ExternalError
from ansorlite.loops.arguments import argument
from ansorlite.loops.nodes import Buffer
from ansorlite.runtime.arguments import Array, empty
from ansorlite.te.tensor import Tensor

#: What it is called with: the inputs, then the outputs. What it returns is not looked at.
Foreign: TypeAlias = Callable[..., object]

_Foreign = TypeVar("_Foreign", bound=Foreign)

#: What users have registered.
_registered: Final[dict[str, Foreign]] = {}

#: What is in an output before it is written: so many elements of it hold such bytes.
_PROBES: Final = 16
_MARKS: Final = (0xA5, 0x5A)


@overload
def register(name: str, function: _Foreign, *, override: bool = False) -> _Foreign: ...
@overload
def register(name: str, *, override: bool = False) -> Callable[[_Foreign], _Foreign]: ...
def register(name: str, function: _Foreign | None = None, *, override: bool = False) -> Any:
    """Give a function from outside a name, by which an :class:`External` of a module finds it when it is called.

    It is called as ``function(*inputs, *outputs)``, with numpy arrays, which ``torch.from_dlpack`` and others view in place; it
    writes all of the outputs, and leaves the inputs as they are. What it returns does not matter. Without ``function`` this is
    a decorator: ``@al.register("env.relu")``.

    Args:
        name: any; by custom with a dot in it, as in ``"env.linear"``.
        override: whether it may take the place of another function of that name.

    Returns:
        ``function``.

    Raises:
        ArgumentError: the name is taken, or no name; ``function`` cannot be called.
    """
    if not isinstance(name, str) or not name:
        raise ArgumentError(f'a function is registered by a name, as in al.register("env.linear", function), not by {name!r}')
    if function is None:
        return lambda decorated: register(name, decorated, override=override)
    if not callable(function):
        raise ArgumentError(f"{name} is registered with {function!r}, which cannot be called; give a function")
    if name in _registered and not override:
        raise ArgumentError(f"{name} is registered already; choose another name, or replace it with override=True")
    _registered[name] = function
    return function


@dataclass(frozen=True, eq=False, init=False)
class External:
    """A registered function, with the shapes and dtypes that it is called with.

    Attributes:
        name: that it is, or will be, registered by.
        inputs, outputs: what it reads and writes, in the order of its parameters.
    """

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]

    def __init__(self, name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """
        Args:
            name: that it is, or will be, registered by.
            inputs, outputs: placeholders, or other tensors, for the sake of their shapes and dtypes.

        Raises:
            ArgumentError: no name, no tensors, or no outputs.
        """
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"an external function has a name, as al.register took it, not {name!r}")
        for what, tensors in (("inputs", inputs), ("outputs", outputs)):
            if not isinstance(tensors, Sequence) or not all(isinstance(tensor, Tensor) for tensor in tensors):
                raise ArgumentError(f"the {what} of {name} are {tensors!r}; give a list of tensors, as from te.placeholder")
        if not outputs:
            raise ArgumentError(f"{name} has no outputs; give at least one, which it writes to")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "inputs", tuple(map(argument, inputs)))
        object.__setattr__(self, "outputs", tuple(map(argument, outputs)))

    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Call it.

        A function that seems to have left an output as it was is called a second time, to tell that from having written by
        chance what was there.

        Args:
            arrays: one an input, of its shape and dtype. Those that may not be written to are copied: some libraries refuse to
                view them.

        Returns:
            The output, or a tuple of them if there are several: new arrays.

        Raises:
            ExternalError: nothing is registered by its name, it raises, or it does not write an output.
        """
        function = _registered.get(self.name)
        if function is None:
            cure = f'al.register("{self.name}", function) does that'
            raise ExternalError(
                f"no function {self.name} is registered; {cure}; there are: {', '.join(sorted(_registered)) or 'none'}"
            )
        inputs = [array if array.flags.writeable else array.copy() for array in arrays]
        outputs = [empty(output.shape, output.dtype) for output in self.outputs]
        for mark in _MARKS:
            for output in outputs:
                _probes(output)[:] = mark
            returned = self._called(function, inputs, outputs)
            unwritten = [b.name for b, output in zip(self.outputs, outputs, strict=True) if (_probes(output) == mark).all()]
            if not unwritten:
                return outputs[0] if len(outputs) == 1 else tuple(outputs)
        instead = "" if returned is None else f", but returned a {type(returned).__name__}"
        raise ExternalError(f"{self.name} did not write {unwritten[0]}{instead}; write to the array that comes after its inputs")

    def _called(self, function: Foreign, inputs: Sequence[Array], outputs: Sequence[Array]) -> object:
        try:
            return function(*inputs, *outputs)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ExternalError(f"{self.name} raises {type(error).__name__}: {reason}") from error


def _probes(array: Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of some elements between the first and the last, ``(elements, bytes)``."""
    elements = array.reshape(-1).view(np.uint8).reshape(array.size, array.itemsize)
    return elements[:: -(-array.size // _PROBES)]

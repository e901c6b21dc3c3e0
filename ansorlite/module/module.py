"""Several functions by name, and ``main``, which calls them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from ansorlite.errors import ArgumentError
from ansorlite.module.external import External
from ansorlite.module.fastest import arrays_for, fastest
from ansorlite.module.function import Given, ModuleFunction
from ansorlite.module.main import Main, PythonMain, traced
from ansorlite.runtime.arguments import Array, Signature
from ansorlite.runtime.kernel import Kernel
from ansorlite.task import Task
from ansorlite.visible import visible

#: The name of the function that calls the others.
MAIN: Final = "main"


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Module:
    """Functions by name: tasks, kernels and functions from outside; and ``main``, which calls them. It never changes.

    Attributes:
        functions: all but ``main``.
        main: which of them are called on what.
    """

    functions: Mapping[str, ModuleFunction]
    main: Main

    def __init__(self, functions: Mapping[str, Given | PythonMain]) -> None:
        """
        Args:
            functions: name → a :class:`Task`, a :class:`Kernel` or an :class:`External`; and ``"main"``, a Python function
                ``main(call, x, ...)`` of the inputs, which calls the others by ``call(name, x, ...)`` and returns a result, or a
                tuple of them. It is called now, once, with handles instead of arrays.

        Raises:
            ArgumentError: there is no ``main``; something else is among the functions; or ``main`` does not fit them.
        """
        if not isinstance(functions, Mapping) or not all(isinstance(name, str) and name for name in functions):
            raise ArgumentError(f"a module is made of functions by name, not of {functions!r}: {{'f': ..., 'main': ...}}")
        main = functions.get(MAIN)
        if not callable(main) or isinstance(main, Given):
            raise ArgumentError('a module needs a Python function "main", which calls the others: def main(call, x): ...')
        own = {name: ModuleFunction.of(name, given) for name, given in functions.items() if name != MAIN}
        object.__setattr__(self, "functions", MappingProxyType(own))
        object.__setattr__(self, "main", traced(main, own))

    def __reduce__(self) -> tuple[object, ...]:
        return restored, (dict(self.functions), self.main)

    def __repr__(self) -> str:
        return visible(f"Module({', '.join(self.functions)})")

    def __str__(self) -> str:
        """What it consists of, line by line."""
        inputs = ", ".join(f"{name}: {kind}" for name, kind in self.main.inputs.items())
        parts = [f"{name}{function.signature}: {function.runs}" for name, function in self.functions.items()]
        body = [*map(str, self.main.calls), f"return {', '.join(self.main.outputs)}"]
        return visible("\n".join([*parts, f"{MAIN}({inputs}):", *(f"    {line}" for line in body)]))

    @property
    def tasks(self) -> tuple[tuple[Task, int], ...]:
        """The distinct tasks that are not compiled, in order of first use, each with the number of calls of it."""
        called = [self.functions[call.function] for call in self.main.calls]
        open_tasks = [function.task for function in called if function.task is not None and function.code is None]
        counts = Counter(map(_identity, open_tasks))
        first = {_identity(task): task for task in reversed(open_tasks)}
        return tuple((first[each], count) for each, count in counts.items())

    def extract(self, name: str) -> Task:
        """The task of the function ``name``, to be tuned or compiled by itself.

        Raises:
            ArgumentError: there is no such function, or it is no tensor computation.
        """
        task = self._function(name).task
        if task is None:
            raise ArgumentError(f"{name} is no tensor computation ({self.functions[name].runs}), so there is no task to take out")
        return task

    def replace(self, name: str, kernel: Given) -> Module:
        """This module with another kernel, task or external function in the place of ``name``.

        What is tuned is put back so. :meth:`extract` goes on to give the task of a function that a kernel runs.

        Raises:
            ArgumentError: there is no such function, or the new one takes or gives other shapes or dtypes.
        """
        return restored({**self.functions, name: self._function(name).replaced(name, kernel)}, self.main)

    def best_of(self, name: str, *rivals: Kernel | External, seed: int = 0) -> Module:
        """This module with the fastest of what runs ``name`` now and of ``rivals``: a library's function, say. They are called in
        turns, and a rival must be faster beyond luck.

        Args:
            seed: of the arrays that they are called with.

        Raises:
            ArgumentError: there is no such function, it is a task that is not compiled, or a rival takes or gives other shapes or
                dtypes.
            ExternalError: a function from outside is not there, raises, or does not write an output.
        """
        now = self._function(name)
        if now.code is None:
            raise ArgumentError(f"{name} is a task that is not compiled, so there is nothing to compare; al.compile the module")
        others = [now.replaced(name, rival).code for rival in rivals]
        codes = [now.code, *(code for code in others if code is not None)]
        at = fastest(codes, arrays_for(now.inputs, seed))
        return self if at == 0 else self.replace(name, rivals[at - 1])

    def compiled(self, kernel_for: Callable[[Task], Given]) -> Module:
        """This module with a kernel for each task that has none; ``kernel_for`` is asked once for each distinct one."""
        kernels = {_identity(task): kernel_for(task) for task, _ in self.tasks}
        result = self
        for name, function in self.functions.items():
            if function.code is None and function.task is not None and _identity(function.task) in kernels:
                result = result.replace(name, kernels[_identity(function.task)])
        return result

    def __call__(self, /, *arrays: Any, **named: Any) -> Array | tuple[Array, ...]:
        """Run ``main``.

        Args:
            arrays: one mapping of input name → array; or the inputs in the order of ``main``'s parameters. Arrays of numpy, or of
                any library that speaks DLPack.
            named: inputs by name.

        Returns:
            What ``main`` returns: an array, or a tuple of them.

        Raises:
            ArgumentError: an input that is missing, unknown, given twice, or of another shape, dtype or device; a task is not
                compiled.
            ExternalError: a function from outside is not there, raises, or does not write an output.
        """
        values = dict(zip(self._signature.inputs, self._signature.given(arrays, named), strict=True))
        for call in self.main.calls:
            code = self.functions[call.function].code
            if code is None:
                raise ArgumentError(f"{call.function} is a task that is not compiled; al.compile(module) compiles all such")
            results = code(*(values[name] for name in call.inputs))
            values.update(zip(call.outputs, results if isinstance(results, tuple) else (results,), strict=True))
        found = tuple(values[name] for name in self.main.outputs)
        return found[0] if self.main.single else found

    def run(self, inputs: Mapping[str, Any]) -> Array | tuple[Array, ...]:
        """Run ``main`` on inputs by name: see :meth:`__call__`."""
        return self(inputs)

    @cached_property
    def _signature(self) -> Signature:
        return Signature(self.main.inputs, {})

    def _function(self, name: str) -> ModuleFunction:
        found = self.functions.get(name)
        if found is None:
            raise ArgumentError(f"there is no function {name!r} in the module; its functions are: {', '.join(self.functions)}")
        return found


def _identity(task: Task) -> tuple[str, str]:
    """Equal for equal computations for one machine."""
    return task.key, task.target.key


def restored(functions: Mapping[str, ModuleFunction], main: Main) -> Module:
    """The module of what :class:`Module` keeps."""
    module = object.__new__(Module)
    module.__dict__.update(functions=MappingProxyType(functions), main=main)
    return module

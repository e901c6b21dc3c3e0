"""What makes a part of tuning, given as it is, by the name that the house has for it, or by the place where the user's own is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.errors import ArgumentError
from ansorlite.measure.measurer import Measurer
from ansorlite.measure.settings import MeasureSettings
from ansorlite.python_file import named
from ansorlite.search import STRATEGIES, StrategyMaker
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.task_scheduler import SCHEDULERS, SchedulerMaker
from ansorlite.tuner.cost_models import COST_MODELS, CostModelsMaker
from ansorlite.tuner.loop import Measures
from ansorlite.tuner.measurers import MEASURERS, Checked, MeasurerMaker, at_address
from ansorlite.tuner.presets import PRESETS, Preset

_Maker = TypeVar("_Maker", bound=Callable[..., Any])
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Part(Generic[_Maker]):
    """A part of tuning that can be chosen.

    Attributes:
        one, several: what people call it: ``"strategy"``, ``"strategies"``.
        known: those of the house, by name.
        arguments: what its maker is called with.
        members: what the maker's result has.
        address: gives the maker that is meant by an address, if a text is one.
        example: of an address.
    """

    one: str
    several: str
    known: Mapping[str, _Maker]
    arguments: tuple[str, ...]
    members: tuple[str, ...]
    address: Callable[[str], _Maker | None] = lambda _given: None
    example: str | None = None

    def chosen(self, given: Any) -> _Maker:
        """The maker that is meant by ``given``: a maker, a name of the house's, or ``"file.py:NAME"`` of one.

        Raises:
            ArgumentError: it is none of these, or cannot be called with :attr:`arguments`.
        """
        if isinstance(given, str) and given in self.known:
            return self.known[given]
        if isinstance(given, str) and (found := self.address(given)) is not None:
            return found
        own = isinstance(given, str) and ":" in given
        maker = named(f"a {self.one}", given) if own else given
        if not own and not callable(maker):
            raise ArgumentError(
                f'unknown {self.one} {given!r}; the {self.several} are: {", ".join(self.known)}; or "file.py:NAME"'
            )
        what = f"the {self.one} {given}" if own else f"the {self.one} {getattr(given, '__name__', given)}"
        if not callable(maker):
            raise ArgumentError(f"{what} is {maker!r}, which cannot be called; name a function of {', '.join(self.arguments)}")
        self._check_arguments(maker, what)
        return maker  # type: ignore[no-any-return]

    def checked(self, made: _Made) -> _Made:
        """What a maker gave.

        Raises:
            ArgumentError: it lacks one of :attr:`members`.
        """
        missing = [member for member in self.members if not hasattr(made, member)]
        if missing:
            raise ArgumentError(f"the {self.one} {made!r} has no {missing[0]}; it needs {', '.join(self.members)}")
        return made

    def _check_arguments(self, maker: Callable[..., Any], what: str) -> None:
        try:
            signature = inspect.signature(maker)
        except (TypeError, ValueError):  # of a builtin, which tells nothing
            return
        try:
            signature.bind(*self.arguments)
        except TypeError:
            raise ArgumentError(f"{what} takes {signature}, but it is called with ({', '.join(self.arguments)})") from None


STRATEGY: Final[Part[StrategyMaker]] = Part(
    "strategy", "strategies", STRATEGIES, ("problem", "model", "rng"), ("propose", "observe", "rounds")
)
SCHEDULER: Final[Part[SchedulerMaker]] = Part(
    "scheduler", "schedulers", SCHEDULERS, ("tasks", "objective", "stop_below"), ("next", "update", "expected_gain")
)
COST_MODEL: Final[Part[CostModelsMaker]] = Part("cost model", "cost models", COST_MODELS, ("tasks", "rng"), ("fit", "predict"))
MEASURER: Final[Part[MeasurerMaker]] = Part(
    "measurer", "measurers", MEASURERS, ("target", "settings"), ("measure",), at_address, "ssh://USER@BOARD|ray://HEAD:PORT"
)


def preset(name: object) -> Preset:
    """The preset of that name.

    Raises:
        ArgumentError: there is none.
    """
    if not isinstance(name, str) or name not in PRESETS:
        raise ArgumentError(f"unknown preset {name!r}; the presets are: {', '.join(PRESETS)}")
    return PRESETS[name]


def cost_models(maker: CostModelsMaker, tasks: Sequence[Task], rng: np.random.Generator) -> tuple[CostModel, ...]:
    """What ``maker`` makes: a model for each of ``tasks``.

    Raises:
        ArgumentError: it makes too few or too many, or something else.
    """
    models = maker(tasks, rng)
    if not isinstance(models, Sequence) or len(models) != len(tasks):
        raise ArgumentError(
            f"the cost model's maker gave {models!r} for {len(tasks)} tasks; it must give a list, one model a task"
        )
    return tuple(map(COST_MODEL.checked, models))


@contextmanager
def open_measurer(maker: MeasurerMaker, target: Target, settings: MeasureSettings) -> Iterator[Measures]:
    """What ``maker`` makes, opened; held to its contract if it is not the house's.

    Raises:
        ArgumentError: it makes no context manager of something that measures.
    """
    made: object = maker(target, settings)
    if not isinstance(made, AbstractContextManager):
        raise ArgumentError(f"the measurer {made!r} is no context manager; give it __enter__ and __exit__")
    with made as measurer:
        yield measurer if isinstance(measurer, Measurer) else Checked(MEASURER.checked(measurer))

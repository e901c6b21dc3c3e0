"""What makes a part of tuning, given as it is, by the name that the house has for it, or by the place where the user's own is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from ansorlite.cost_model.models import COST_MODELS, CostModelsMaker
from ansorlite.errors import ArgumentError
from ansorlite.python_file import named
from ansorlite.search import STRATEGIES, StrategyMaker
from ansorlite.task_scheduler import SCHEDULERS, SchedulerMaker
from ansorlite.tuner.measurers import MEASURERS, MeasurerMaker

_Maker = TypeVar("_Maker", bound=Callable[..., Any])


@dataclass(frozen=True)
class Part(Generic[_Maker]):
    """A part of tuning that can be chosen.

    Attributes:
        one, several: what people call it: ``"strategy"``, ``"strategies"``.
        known: those of the house, by name.
        arguments: what its maker is called with.
    """

    one: str
    several: str
    known: Mapping[str, _Maker]
    arguments: tuple[str, ...]

    def chosen(self, given: Any) -> _Maker:
        """The maker that is meant by ``given``: a maker, a name of the house's, or ``"file.py:NAME"`` of one.

        Raises:
            ArgumentError: it is none of these, or cannot be called with :attr:`arguments`.
        """
        if isinstance(given, str) and given in self.known:
            return self.known[given]
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

    def _check_arguments(self, maker: Callable[..., Any], what: str) -> None:
        try:
            signature = inspect.signature(maker)
        except (TypeError, ValueError):  # of a builtin, which tells nothing
            return
        try:
            signature.bind(*self.arguments)
        except TypeError:
            raise ArgumentError(f"{what} takes {signature}, but it is called with ({', '.join(self.arguments)})") from None


STRATEGY: Final[Part[StrategyMaker]] = Part("strategy", "strategies", STRATEGIES, ("problem", "model", "rng"))
SCHEDULER: Final[Part[SchedulerMaker]] = Part("scheduler", "schedulers", SCHEDULERS, ("tasks", "objective", "stop_below"))
COST_MODEL: Final[Part[CostModelsMaker]] = Part("cost model", "cost models", COST_MODELS, ("tasks", "rng"))
MEASURER: Final[Part[MeasurerMaker]] = Part("measurer", "measurers", MEASURERS, ("target", "settings"))

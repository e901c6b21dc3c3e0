"""Facts of an object that are found once and kept with it: when it goes, they go."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Of = TypeVar("Of")
More = ParamSpec("More")
Fact = TypeVar("Fact")


def once_for_each(function: Callable[Concatenate[Of, More], Fact]) -> Callable[Concatenate[Of, More], Fact]:
    """``function`` of an immutable object and possibly more, hashable and given by position: asked once for each.

    Unlike with a cache of the latest results, nothing stays in memory of programs that nobody has any more.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    # Asked for every expression of every unrolled statement.
    @wraps(function)
    def remembered(of: Of, /, *more: More.args, **named: More.kwargs) -> Fact:
        known: dict[Any, Any] = of.__dict__
        key = (name, *more) if more else name
        try:
            fact: Fact = known[key]
        except KeyError:
            assert not named
            # All threads get the same one.
            fact = known.setdefault(key, function(of, *more, **named))
        return fact

    return remembered

"""Whether what a verb is given is of the kind that it takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from ansorlite.errors import ArgumentError


def check_integer(name: str, value: Any, least: int) -> None:
    """
    Raises:
        ArgumentError: ``value`` is no integer, or less than ``least``.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ArgumentError(f"{name} is {value!r}; it must be an integer, {least} or more")


def check_positive(name: str, value: Any) -> None:
    """
    Raises:
        ArgumentError: ``value`` is no number greater than 0.
    """
    if not isinstance(value, Real) or isinstance(value, bool) or math.isnan(value) or value <= 0:
        raise ArgumentError(f"{name} is {value!r}; it must be a number greater than 0")


def check_share(name: str, value: Any) -> None:
    """
    Raises:
        ArgumentError: ``value`` is no number from 0 up to 1.
    """
    if not isinstance(value, Real) or not 0 <= float(value) < 1:
        raise ArgumentError(f"{name} is {value!r}; it must be a share from 0 up to 1: 0.001 is a tenth of a percent")


def check_flag(name: str, value: Any) -> None:
    """
    Raises:
        ArgumentError: ``value`` is neither true nor false.
    """
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} is {value!r}; it must be True or False")


def check_by_name(name: str, value: Any, example: str) -> None:
    """
    Raises:
        ArgumentError: ``value`` is no mapping of names.
    """
    if value is not None and (not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value)):
        raise ArgumentError(f"{name} is {value!r}; it must be a dictionary, as in {name}={example}")


def check_shapes(shapes: Any) -> None:
    """
    Raises:
        ArgumentError: ``shapes`` does not give shapes by name.
    """
    example = '{"data": (1, 3, 224, 224)}'
    check_by_name("shapes", shapes, example)
    for name, shape in (shapes or {}).items():
        several = isinstance(shape, Iterable) and not isinstance(shape, str)
        if not several or not all(isinstance(extent, Integral | str) for extent in shape):
            raise ArgumentError(f"the shape of {name!r} is {shape!r}; it must be integers, as in shapes={example}")

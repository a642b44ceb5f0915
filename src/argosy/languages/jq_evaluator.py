"""Evaluates jq expressions as closures.

In: a path and the value at it. Out: paths and values, one after another; JqFailed if jq would fail.
Never: takes more than a bounded number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

_MAX_STEPS: Final = 200_000
_CHARACTERS_PER_STEP: Final = 64


class JqFailed(ValueError):
    """An error of jq: the document does not have the type that the expression expects."""


class JqTooExpensiveError(ValueError):
    """An expression exceeds the step limit. Not a JqFailed, which a `?` would hide."""


class JqValue(NamedTuple):
    """A value and its path; None if the value is not part of the document."""

    path: tuple[str | int, ...] | None
    value: Any


class StepCounter:
    """Counts the steps of an expression, to stop endless ones."""

    __slots__ = ("remaining",)

    def __init__(self) -> None:
        self.remaining = _MAX_STEPS

    def count(self, steps: int = 1) -> None:
        self.remaining -= steps
        if self.remaining < 0:
            raise JqTooExpensiveError


JqStep = Callable[[JqValue, StepCounter], Iterator[JqValue]]


def identity(input_value: JqValue, counter: StepCounter) -> Iterator[JqValue]:
    yield input_value


def build_field(name: str) -> JqStep:
    def step(input_value: JqValue, counter: StepCounter) -> Iterator[JqValue]:
        counter.count()
        path, value = input_value
        if value is not None and not isinstance(value, dict):
            raise JqFailed(f"cannot index with {name!r}: expected an object")
        yield JqValue(None if path is None else (*path, name), value.get(name) if value else None)

    return step


def build_index(number: int) -> JqStep:
    def step(input_value: JqValue, counter: StepCounter) -> Iterator[JqValue]:
        counter.count()
        path, value = input_value
        if value is not None and not isinstance(value, list):
            raise JqFailed("cannot index with a number: expected an array")
        position = number + len(value) if value and number < 0 else number
        element = value[position] if value and 0 <= position < len(value) else None
        yield JqValue(None if path is None else (*path, position), element)

    return step


def iterate(input_value: JqValue, counter: StepCounter) -> Iterator[JqValue]:
    path, value = input_value
    items: Any
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        raise JqFailed("only objects and arrays have elements")
    for key, item in items:
        counter.count()
        yield JqValue(None if path is None else (*path, key), item)


def build_pipe(left: JqStep, right: JqStep) -> JqStep:
    def step(input_value: JqValue, counter: StepCounter) -> Iterator[JqValue]:
        for result in left(input_value, counter):
            counter.count()
            yield from right(result, counter)

    return step


def build_comma(left: JqStep, right: JqStep) -> JqStep:
    def step(input_value: JqValue, counter: StepCounter) -> Iterator[JqValue]:
        counter.count()
        yield from left(input_value, counter)
        yield from right(input_value, counter)

    return step


def build_error_suppression(body: JqStep) -> JqStep:
    """`?`: an error ends the results silently."""

    def step(input_value: JqValue, counter: StepCounter) -> Iterator[JqValue]:
        try:
            yield from body(input_value, counter)
        except JqFailed:
            counter.count()

    return step


def build_select(condition: JqStep) -> JqStep:
    def step(input_value: JqValue, counter: StepCounter) -> Iterator[JqValue]:
        for _, value in condition(JqValue(None, input_value.value), counter):
            counter.count()
            if is_true(value):
                yield input_value

    return step


def build_literal(value: Any) -> JqStep:
    def step(input_value: JqValue, counter: StepCounter) -> Iterator[JqValue]:
        yield JqValue(None, value)

    return step


def build_function(function: Callable[[Any], Any]) -> JqStep:
    """Apply a function to the value."""

    def step(input_value: JqValue, counter: StepCounter) -> Iterator[JqValue]:
        counter.count(1 + (len(input_value.value) // _CHARACTERS_PER_STEP if isinstance(input_value.value, str) else 0))
        yield JqValue(None, function(input_value.value))

    return step


def build_comparison(left: JqStep, right: JqStep, test: Callable[[int], bool]) -> JqStep:
    def step(input_value: JqValue, counter: StepCounter) -> Iterator[JqValue]:
        detached = JqValue(None, input_value.value)
        for _, right_value in right(detached, counter):
            for _, left_value in left(detached, counter):
                counter.count()
                yield JqValue(None, test(compare_values(left_value, right_value, counter)))

    return step


def build_and_or(left: JqStep, right: JqStep, *, stops_at: bool) -> JqStep:
    """`and` stops at false, `or` at true."""

    def step(input_value: JqValue, counter: StepCounter) -> Iterator[JqValue]:
        detached = JqValue(None, input_value.value)
        for _, left_value in left(detached, counter):
            counter.count()
            if is_true(left_value) is stops_at:
                yield JqValue(None, stops_at)
                continue
            for _, right_value in right(detached, counter):
                yield JqValue(None, is_true(right_value))

    return step


def is_true(value: Any) -> bool:
    return value is not None and value is not False


def compare_values(left: Any, right: Any, counter: StepCounter) -> int:
    """Return -1, 0 or 1, in jq's order: null, false, true, numbers, strings, arrays, objects. Counts a step per
    element.
    """
    if isinstance(left, str | list | dict):
        counter.count(len(left) // _CHARACTERS_PER_STEP if isinstance(left, str) else len(left))
    left_rank, right_rank = _type_rank(left), _type_rank(right)
    if left_rank != right_rank:
        return -1 if left_rank < right_rank else 1
    if isinstance(left, list):
        for left_item, right_item in zip(left, right):
            if result := compare_values(left_item, right_item, counter):
                return result
        return _compare_plain(len(left), len(right))
    if isinstance(left, dict):
        counter.count(len(right))
        left_names, right_names = sorted(left), sorted(right)
        if left_names != right_names:
            return _compare_plain(left_names, right_names)
        return next((result for name in left_names if (result := compare_values(left[name], right[name], counter))), 0)
    return 0 if left == right else _compare_plain(left, right)


def _compare_plain(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _type_rank(value: Any) -> int:
    match value:
        case None:
            return 0
        case bool():
            return 2 if value else 1
        case int() | float():
            return 3
        case str():
            return 4
        case list():
            return 5
    return 6

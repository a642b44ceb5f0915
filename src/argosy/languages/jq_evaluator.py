"""Evaluates jq expressions as closures.

In: a path and the value at it. Out: paths and values, one after another; JqFailed if jq would fail.
Never: takes more than a bounded number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

_MOST_STEPS: Final = 200_000
_CHARACTERS_PER_STEP: Final = 64


class JqFailed(ValueError):
    """An error of jq: the document does not have the type that the expression expects."""


class JqTooExpensiveError(ValueError):
    """An expression exceeds the step limit. Not a JqFailed, which a `?` would hide."""


class Run(NamedTuple):
    """A value and its path; None if the value is not part of the document."""

    path: tuple[str | int, ...] | None
    value: Any


class Stepper:
    """Counts the steps of an expression, to stop endless ones."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _MOST_STEPS

    def count(self, work: int = 1) -> None:
        self.left -= work
        if self.left < 0:
            raise JqTooExpensiveError


Step = Callable[[Run, Stepper], Iterator[Run]]


def identity(run: Run, stepper: Stepper) -> Iterator[Run]:
    yield run


def field(name: str) -> Step:
    def step(run: Run, stepper: Stepper) -> Iterator[Run]:
        stepper.count()
        path, value = run
        if value is not None and not isinstance(value, dict):
            raise JqFailed(f"cannot index with {name!r}: expected an object")
        yield Run(None if path is None else (*path, name), value.get(name) if value else None)

    return step


def index(number: int) -> Step:
    def step(run: Run, stepper: Stepper) -> Iterator[Run]:
        stepper.count()
        path, value = run
        if value is not None and not isinstance(value, list):
            raise JqFailed("cannot index with a number: expected an array")
        at = number + len(value) if value and number < 0 else number
        found = value[at] if value and 0 <= at < len(value) else None
        yield Run(None if path is None else (*path, at), found)

    return step


def each(run: Run, stepper: Stepper) -> Iterator[Run]:
    path, value = run
    items: Any
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        raise JqFailed("only objects and arrays have elements")
    for step, item in items:
        stepper.count()
        yield Run(None if path is None else (*path, step), item)


def pipe(left: Step, right: Step) -> Step:
    def step(run: Run, stepper: Stepper) -> Iterator[Run]:
        for found in left(run, stepper):
            stepper.count()
            yield from right(found, stepper)

    return step


def comma(left: Step, right: Step) -> Step:
    def step(run: Run, stepper: Stepper) -> Iterator[Run]:
        stepper.count()
        yield from left(run, stepper)
        yield from right(run, stepper)

    return step


def attempt(body: Step) -> Step:
    """`?`: an error ends the results silently."""

    def step(run: Run, stepper: Stepper) -> Iterator[Run]:
        try:
            yield from body(run, stepper)
        except JqFailed:
            stepper.count()

    return step


def select(condition: Step) -> Step:
    def step(run: Run, stepper: Stepper) -> Iterator[Run]:
        for _, value in condition(Run(None, run.value), stepper):
            stepper.count()
            if is_true(value):
                yield run

    return step


def literal(value: Any) -> Step:
    def step(run: Run, stepper: Stepper) -> Iterator[Run]:
        yield Run(None, value)

    return step


def computed(function: Callable[[Any], Any]) -> Step:
    """Apply a function to the value."""

    def step(run: Run, stepper: Stepper) -> Iterator[Run]:
        stepper.count(1 + (len(run.value) // _CHARACTERS_PER_STEP if isinstance(run.value, str) else 0))
        yield Run(None, function(run.value))

    return step


def compared(left: Step, right: Step, holds: Callable[[int], bool]) -> Step:
    def step(run: Run, stepper: Stepper) -> Iterator[Run]:
        free = Run(None, run.value)
        for _, other in right(free, stepper):
            for _, one in left(free, stepper):
                stepper.count()
                yield Run(None, holds(order(one, other, stepper)))

    return step


def both(left: Step, right: Step, *, stops_at: bool) -> Step:
    """`and` stops at false, `or` at true."""

    def step(run: Run, stepper: Stepper) -> Iterator[Run]:
        free = Run(None, run.value)
        for _, one in left(free, stepper):
            stepper.count()
            if is_true(one) is stops_at:
                yield Run(None, stops_at)
                continue
            for _, other in right(free, stepper):
                yield Run(None, is_true(other))

    return step


def is_true(value: Any) -> bool:
    return value is not None and value is not False


def order(one: Any, other: Any, stepper: Stepper) -> int:
    """Return -1, 0 or 1, in jq's order: null, false, true, numbers, strings, arrays, objects. Counts a step per
    element.
    """
    if isinstance(one, str | list | dict):
        stepper.count(len(one) // _CHARACTERS_PER_STEP if isinstance(one, str) else len(one))
    left, right = _rank(one), _rank(other)
    if left != right:
        return -1 if left < right else 1
    if isinstance(one, list):
        for mine, theirs in zip(one, other):
            if found := order(mine, theirs, stepper):
                return found
        return _sign(len(one), len(other))
    if isinstance(one, dict):
        stepper.count(len(other))
        names, others = sorted(one), sorted(other)
        if names != others:
            return _sign(names, others)
        return next((found for name in names if (found := order(one[name], other[name], stepper))), 0)
    return 0 if one == other else _sign(one, other)


def _sign(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


def _rank(value: Any) -> int:
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

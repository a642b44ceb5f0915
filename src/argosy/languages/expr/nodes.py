"""Nodes of an expression as functions of a scope: operators, members, calls, predicates.

In: nodes. Out: a node. Never: reads a Python attribute: a member is one of plain data, or of a time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from argosy.languages import go_time
from argosy.languages.evaluation_budget import Meter
from argosy.languages.expr.lexer import ExprError
from argosy.languages.go_time import Duration, Time

MOST_PATTERN: Final = 1000
MOST_SUBJECT: Final = 100_000
MOST_RANGE: Final = 1_000_000


@dataclass(slots=True)
class Scope:
    """Values by name, and in a predicate the current element."""

    values: Mapping[str, Any]
    meter: Meter
    local: Mapping[str, Any] = field(default_factory=dict)
    item: Any = None
    index: int = 0
    result: Any = None  # of `reduce`, so far

    def within(self, item: Any, index: int, result: Any = None) -> Scope:
        return Scope(self.values, self.meter, self.local, item, index, result)

    def knowing(self, name: str, value: Any) -> Scope:
        return Scope(self.values, self.meter, {**self.local, name: value}, self.item, self.index, self.result)


Node = Callable[[Scope], Any]


class Short(Exception):
    """`?.` found nil: the rest of the chain is skipped."""


def constant(value: Any) -> Node:
    return lambda scope: value


def named(name: str) -> Node:
    def look(scope: Scope) -> Any:
        scope.meter.step()
        return scope.local[name] if name in scope.local else scope.values.get(name)

    return look


def member(of: Node, name: Node, *, is_optional: bool = False) -> Node:
    def look(scope: Scope) -> Any:
        scope.meter.step()
        value = of(scope)
        if value is None and is_optional:
            raise Short
        return fetched(value, name(scope))

    return look


def fetched(value: Any, name: Any) -> Any:
    """argo: a missing field is nil, but nil has no fields."""
    if isinstance(value, dict):
        return value.get(name) if isinstance(name, str | int | float) else None
    if isinstance(value, list | str) and isinstance(name, int) and not isinstance(name, bool):
        place = name + len(value) if name < 0 else name
        if not 0 <= place < len(value):
            raise ExprError(f"index {name} is out of range: the length is {len(value)}")
        return value[place]
    methods = go_time.METHODS.get(type(value), {})
    if isinstance(name, str) and name in methods:
        return _bound(methods[name], value)
    shown = str(name)[:60]
    raise ExprError(f"cannot fetch {shown!r} from {kind_of(value)}; check it first, as with ?.")


def _bound(method: Callable[..., Any], value: Any) -> Callable[..., Any]:
    return lambda *arguments: method(value, *arguments)


def chain(of: Node) -> Node:
    def ask(scope: Scope) -> Any:
        try:
            return of(scope)
        except Short:
            return None

    return ask


def call(of: Node, arguments: Sequence[Node], what: str) -> Node:
    def ask(scope: Scope) -> Any:
        scope.meter.step(10)
        function = of(scope)
        if not callable(function):
            raise ExprError(f"{what} is not a function; see docs/reference/notifications.md for those that exist")
        try:
            found = function(*(each(scope) for each in arguments))
        except TypeError as error:
            raise ExprError(f"wrong arguments for {what}; see docs/reference/notifications.md") from error
        if isinstance(found, str):
            scope.meter.grow(len(found))
        return found

    return ask


def sliced(of: Node, first: Node | None, last: Node | None) -> Node:
    def ask(scope: Scope) -> Any:
        value = of(scope)
        if not isinstance(value, list | str):
            raise ExprError(f"cannot slice {kind_of(value)}; slice a list or a string")
        bounds = [each(scope) if each else None for each in (first, last)]
        if not all(each is None or type(each) is int for each in bounds):
            raise ExprError("the bounds of a slice must be whole numbers; correct them")
        found = value[bounds[0] : bounds[1]]
        scope.meter.grow(len(found))
        return found

    return ask


def kind_of(value: Any) -> str:
    for kinds, name in _KINDS:
        if isinstance(value, kinds):
            return name
    return "nil" if value is None else "a function"


_KINDS: Final[Sequence[tuple[Any, str]]] = (
    (bool, "a bool"), (int, "a number"), (float, "a number"), (str, "a string"), (list, "a list"), (dict, "a map"),
    (Time, "a time"), (Duration, "a duration"),
)  # fmt: skip


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def wrapped(value: int) -> int:
    """Wrap around like Go's int64."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _sum(scope: Scope, one: Any, other: Any) -> Any:
    if isinstance(one, str) and isinstance(other, str):
        scope.meter.grow(len(one) + len(other))
        return one + other
    if isinstance(one, Time) or isinstance(other, Time):
        return go_time.add(one, other) if isinstance(one, Time) else go_time.add(other, one)
    return _reckoned(one, other, "+", lambda a, b: a + b)


def _less(scope: Scope, one: Any, other: Any) -> Any:
    if isinstance(one, Time):
        if isinstance(other, Time):
            return go_time.subtract(one, other)
        return go_time.add(one, -go_time.nanoseconds(other))
    return _reckoned(one, other, "-", lambda a, b: a - b)


def _reckoned(one: Any, other: Any, mark: str, operation: Callable[[Any, Any], Any]) -> Any:
    spans = isinstance(one, Duration) or isinstance(other, Duration)
    if spans:
        one, other = go_time.nanoseconds(one), go_time.nanoseconds(other)
    if not is_number(one) or not is_number(other):
        raise ExprError(f"{kind_of(one)} {mark} {kind_of(other)} is not supported; use values of one type")
    found = operation(one, other)
    if isinstance(found, int):
        found = wrapped(found)
    return Duration(int(found)) if spans else found


def _divided(scope: Scope, one: Any, other: Any) -> Any:
    def divide(a: Any, b: Any) -> float:
        if b == 0:
            return math.nan if a == 0 else math.copysign(math.inf, a)
        return float(a) / float(b)

    if isinstance(one, Duration) and isinstance(other, Duration):
        return divide(one.nanoseconds, other.nanoseconds)
    return _reckoned(one, other, "/", divide)


def _rest(scope: Scope, one: Any, other: Any) -> Any:
    if type(one) is not int or type(other) is not int or other == 0:
        raise ExprError("% needs two whole numbers, the second not zero")
    return int(math.fmod(one, other)) if abs(one) < 1 << 52 and abs(other) < 1 << 52 else one % other


def _power(scope: Scope, one: Any, other: Any) -> Any:
    def power(a: Any, b: Any) -> float:
        try:
            return math.pow(a, b)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return _reckoned(one, other, "**", power)


def _ordered(mark: str, test: Callable[[Any, Any], bool]) -> Callable[[Scope, Any, Any], bool]:
    def compare(scope: Scope, one: Any, other: Any) -> bool:
        if isinstance(one, Duration) != isinstance(other, Duration):
            one, other = go_time.nanoseconds(one), go_time.nanoseconds(other)
        fits = (is_number(one) and is_number(other)) or (
            type(one) is type(other) and isinstance(one, str | Time | Duration)
        )
        if not fits:
            raise ExprError(f"{kind_of(one)} {mark} {kind_of(other)} cannot be compared; use values of one type")
        return test(one, other)

    return compare


def is_in(one: Any, other: Any, meter: Meter) -> bool:
    """argo: nothing is in nil."""
    if other is None:
        return False
    if isinstance(other, dict):
        return isinstance(one, str | int | float) and one in other
    if isinstance(other, list):
        meter.step(len(other))
        return any(same(one, each) for each in other)
    raise ExprError(f"`in` needs a list or a map, not {kind_of(other)}")


@lru_cache(maxsize=256)
def pattern(text: str) -> re.Pattern[str]:
    if len(text) > MOST_PATTERN:
        raise ExprError(f"the pattern exceeds {MOST_PATTERN} characters; shorten it")
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ExprError(f"invalid pattern {text[:60]!r} ({error}); correct it") from error


def _matches(one: str, other: str) -> bool:
    if len(one) > MOST_SUBJECT:
        raise ExprError(f"matches is limited to {MOST_SUBJECT} characters of text; shorten the text")
    return pattern(other).search(one) is not None


def _texts(mark: str, test: Callable[[str, str], bool]) -> Callable[[Scope, Any, Any], bool]:
    def compare(scope: Scope, one: Any, other: Any) -> bool:
        if one is None or other is None:  # argo: nil matches nothing
            return False
        if not isinstance(one, str) or not isinstance(other, str):
            raise ExprError(f"{mark} compares strings, not {kind_of(one)} with {kind_of(other)}")
        return test(one, other)

    return compare


def _range(scope: Scope, one: Any, other: Any) -> list[int]:
    if type(one) is not int or type(other) is not int:
        raise ExprError(".. needs two whole numbers")
    count = max(0, other - one + 1)
    if count > MOST_RANGE:
        raise ExprError(f".. exceeds {MOST_RANGE} numbers; use fewer")
    scope.meter.grow(count)
    return list(range(one, other + 1))


BINARY: Final[Mapping[str, Callable[[Scope, Any, Any], Any]]] = {
    "==": lambda scope, one, other: same(one, other),
    "!=": lambda scope, one, other: not same(one, other),
    "<": _ordered("<", lambda one, other: one < other),
    "<=": _ordered("<=", lambda one, other: one <= other),
    ">": _ordered(">", lambda one, other: one > other),
    ">=": _ordered(">=", lambda one, other: one >= other),
    "+": _sum,
    "-": _less,
    "*": lambda scope, one, other: _reckoned(one, other, "*", lambda a, b: a * b),
    "/": _divided,
    "%": _rest,
    "**": _power,
    "^": _power,
    "..": _range,
    "in": lambda scope, one, other: is_in(one, other, scope.meter),
    "matches": _texts("matches", _matches),
    "contains": _texts("contains", lambda one, other: other in one),
    "startsWith": _texts("startsWith", str.startswith),
    "endsWith": _texts("endsWith", str.endswith),
}


def binary(mark: str, one: Node, other: Node) -> Node:
    operation = BINARY[mark]

    def ask(scope: Scope) -> Any:
        scope.meter.step()
        return operation(scope, one(scope), other(scope))

    return ask


def truth(value: Any, mark: str) -> bool:
    if isinstance(value, bool):
        return value
    raise ExprError(f"{mark} needs true or false, not {kind_of(value)}; use a comparison")


def both(one: Node, other: Node) -> Node:
    return lambda scope: truth(one(scope), "and") and truth(other(scope), "and")


def either(one: Node, other: Node) -> Node:
    return lambda scope: truth(one(scope), "or") or truth(other(scope), "or")


def coalesced(one: Node, other: Node) -> Node:
    def ask(scope: Scope) -> Any:
        found = one(scope)
        return other(scope) if found is None else found

    return ask


def negated(of: Node) -> Node:
    return lambda scope: not truth(of(scope), "not")


def minus(of: Node) -> Node:
    return lambda scope: _less(scope, 0, of(scope))


def plus(of: Node) -> Node:
    return lambda scope: _sum(scope, 0, of(scope))


def chosen(test: Node, one: Node, other: Node) -> Node:
    return lambda scope: one(scope) if truth(test(scope), "?") else other(scope)


def listed(items: Sequence[Node]) -> Node:
    return lambda scope: [each(scope) for each in items]


def mapped(items: Sequence[tuple[Node, Node]]) -> Node:
    return lambda scope: {str(name(scope)): value(scope) for name, value in items}


def let(name: str, value: Node, rest: Node) -> Node:
    return lambda scope: rest(scope.knowing(name, value(scope)))

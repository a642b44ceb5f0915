"""Nodes of an expression as functions of a scope: operators, members, calls, predicates.

In: nodes. Out: a node. Never: reads a Python attribute: a member is one of plain data, or of a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from argosy.languages import go_time
from argosy.languages.evaluation_budget import EvaluationBudget
from argosy.languages.expr.lexer import ExprError
from argosy.languages.go_regexp import InvalidGoRegexp, MatchTooExpensiveError, RegexpMatcher, compile_go_regexp
from argosy.languages.go_time import GoDuration, GoTime

MAX_PATTERN_CHARACTERS: Final = 1000
MAX_SUBJECT_CHARACTERS: Final = 100_000
MAX_RANGE_NUMBERS: Final = 1_000_000


@dataclass(slots=True)
class ExprScope:
    """Values by name, and in a predicate the current element."""

    values: Mapping[str, Any]
    budget: EvaluationBudget
    local: Mapping[str, Any] = field(default_factory=dict)
    item: Any = None
    index: int = 0
    result: Any = None  # of `reduce`, so far

    def with_element(self, item: Any, index: int, result: Any = None) -> ExprScope:
        return ExprScope(self.values, self.budget, self.local, item, index, result)

    def with_variable(self, name: str, value: Any) -> ExprScope:
        return ExprScope(self.values, self.budget, {**self.local, name: value}, self.item, self.index, self.result)


Node = Callable[[ExprScope], Any]


class OptionalChainEnd(Exception):
    """`?.` found nil: the rest of the chain is skipped."""


def build_constant(value: Any) -> Node:
    return lambda scope: value


def build_variable(name: str) -> Node:
    def evaluate(scope: ExprScope) -> Any:
        scope.budget.spend_steps()
        return scope.local[name] if name in scope.local else scope.values.get(name)

    return evaluate


def build_member(receiver: Node, name: Node, *, is_optional: bool = False) -> Node:
    def evaluate(scope: ExprScope) -> Any:
        scope.budget.spend_steps()
        value = receiver(scope)
        if value is None and is_optional:
            raise OptionalChainEnd
        return get_member(value, name(scope))

    return evaluate


def get_member(value: Any, name: Any) -> Any:
    """argo: a missing field is nil, but nil has no fields."""
    if isinstance(value, dict):
        return value.get(name) if isinstance(name, str | int | float) else None
    if isinstance(value, list | str) and isinstance(name, int) and not isinstance(name, bool):
        position = name + len(value) if name < 0 else name
        if not 0 <= position < len(value):
            raise ExprError(f"index {name} is out of range: the length is {len(value)}")
        return value[position]
    methods = go_time.METHODS.get(type(value), {})
    if isinstance(name, str) and name in methods:
        return _bind_method(methods[name], value)
    name_text = str(name)[:60]
    raise ExprError(f"cannot fetch {name_text!r} from {describe_type(value)}; check it first, as with ?.")


def _bind_method(method: Callable[..., Any], value: Any) -> Callable[..., Any]:
    return lambda *arguments: method(value, *arguments)


def build_optional_chain(body: Node) -> Node:
    def evaluate(scope: ExprScope) -> Any:
        try:
            return body(scope)
        except OptionalChainEnd:
            return None

    return evaluate


def build_call(callee: Node, arguments: Sequence[Node], description: str) -> Node:
    def evaluate(scope: ExprScope) -> Any:
        scope.budget.spend_steps(10)
        function = callee(scope)
        if not callable(function):
            raise ExprError(
                f"{description} is not a function; see docs/reference/notifications.md for those that exist"
            )
        try:
            result = function(*(argument(scope) for argument in arguments))
        except TypeError as error:
            raise ExprError(f"wrong arguments for {description}; see docs/reference/notifications.md") from error
        if isinstance(result, str):
            scope.budget.spend_characters(len(result))
        return result

    return evaluate


def build_slice(sequence: Node, first: Node | None, last: Node | None) -> Node:
    def evaluate(scope: ExprScope) -> Any:
        value = sequence(scope)
        if not isinstance(value, list | str):
            raise ExprError(f"cannot slice {describe_type(value)}; slice a list or a string")
        bounds = [bound(scope) if bound else None for bound in (first, last)]
        if not all(bound is None or type(bound) is int for bound in bounds):
            raise ExprError("the bounds of a slice must be whole numbers; correct them")
        result = value[bounds[0] : bounds[1]]
        scope.budget.spend_characters(len(result))
        return result

    return evaluate


def describe_type(value: Any) -> str:
    for kinds, name in _KINDS:
        if isinstance(value, kinds):
            return name
    return "nil" if value is None else "a function"


_KINDS: Final[Sequence[tuple[Any, str]]] = (
    (bool, "a bool"), (int, "a number"), (float, "a number"), (str, "a string"), (list, "a list"), (dict, "a map"),
    (GoTime, "a time"), (GoDuration, "a duration"),
)  # fmt: skip


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def wrap_int64(value: int) -> int:
    """Wrap around like Go's int64."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def is_equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_equal, left, right))
    return bool(left == right)


def _add(scope: ExprScope, left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        scope.budget.spend_characters(len(left) + len(right))
        return left + right
    if isinstance(left, GoTime) or isinstance(right, GoTime):
        return go_time.add_duration(left, right) if isinstance(left, GoTime) else go_time.add_duration(right, left)
    return _calculate(left, right, "+", lambda a, b: a + b)


def _subtract(scope: ExprScope, left: Any, right: Any) -> Any:
    if isinstance(left, GoTime):
        if isinstance(right, GoTime):
            return go_time.subtract_times(left, right)
        return go_time.add_duration(left, -go_time.to_nanoseconds(right))
    return _calculate(left, right, "-", lambda a, b: a - b)


def _calculate(left: Any, right: Any, operator: str, operation: Callable[[Any, Any], Any]) -> Any:
    is_duration = isinstance(left, GoDuration) or isinstance(right, GoDuration)
    if is_duration:
        left, right = go_time.to_nanoseconds(left), go_time.to_nanoseconds(right)
    if not is_number(left) or not is_number(right):
        raise ExprError(
            f"{describe_type(left)} {operator} {describe_type(right)} is not supported; use values of one type"
        )
    result = operation(left, right)
    if isinstance(result, int):
        result = wrap_int64(result)
    return GoDuration(int(result)) if is_duration else result


def _divide(scope: ExprScope, left: Any, right: Any) -> Any:
    def divide(a: Any, b: Any) -> float:
        if b == 0:
            return math.nan if a == 0 else math.copysign(math.inf, a)
        return float(a) / float(b)

    if isinstance(left, GoDuration) and isinstance(right, GoDuration):
        return divide(left.nanoseconds, right.nanoseconds)
    return _calculate(left, right, "/", divide)


def _modulo(scope: ExprScope, left: Any, right: Any) -> Any:
    if type(left) is not int or type(right) is not int or right == 0:
        raise ExprError("% needs two whole numbers, the second not zero")
    return int(math.fmod(left, right)) if abs(left) < 1 << 52 and abs(right) < 1 << 52 else left % right


def _power(scope: ExprScope, left: Any, right: Any) -> Any:
    def power(a: Any, b: Any) -> float:
        try:
            return math.pow(a, b)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return _calculate(left, right, "**", power)


def _build_comparison(operator: str, test: Callable[[Any, Any], bool]) -> Callable[[ExprScope, Any, Any], bool]:
    def compare(scope: ExprScope, left: Any, right: Any) -> bool:
        if isinstance(left, GoDuration) != isinstance(right, GoDuration):
            left, right = go_time.to_nanoseconds(left), go_time.to_nanoseconds(right)
        is_comparable = (is_number(left) and is_number(right)) or (
            type(left) is type(right) and isinstance(left, str | GoTime | GoDuration)
        )
        if not is_comparable:
            raise ExprError(
                f"{describe_type(left)} {operator} {describe_type(right)} cannot be compared; use values of one type"
            )
        return test(left, right)

    return compare


def contains(item: Any, container: Any, budget: EvaluationBudget) -> bool:
    """argo: nothing is in nil."""
    if container is None:
        return False
    if isinstance(container, dict):
        return isinstance(item, str | int | float) and item in container
    if isinstance(container, list):
        budget.spend_steps(len(container))
        return any(is_equal(item, element) for element in container)
    raise ExprError(f"`in` needs a list or a map, not {describe_type(container)}")


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> RegexpMatcher:
    if len(text) > MAX_PATTERN_CHARACTERS:
        raise ExprError(f"the pattern exceeds {MAX_PATTERN_CHARACTERS} characters; shorten it")
    try:
        return compile_go_regexp(text)
    except InvalidGoRegexp as error:
        raise ExprError(f"invalid pattern {text[:60]!r} ({error}); correct it") from error


def _matches_pattern(subject: str, pattern_text: str) -> bool:
    if len(subject) > MAX_SUBJECT_CHARACTERS:
        raise ExprError(f"matches is limited to {MAX_SUBJECT_CHARACTERS} characters of text; shorten the text")
    try:
        return compile_pattern(pattern_text)(subject)
    except MatchTooExpensiveError as error:
        raise ExprError(f"the text is too long for the pattern {pattern_text[:60]!r}; shorten one of them") from error


def _build_string_comparison(operator: str, test: Callable[[str, str], bool]) -> Callable[[ExprScope, Any, Any], bool]:
    def compare(scope: ExprScope, left: Any, right: Any) -> bool:
        if left is None or right is None:  # argo: nil matches nothing
            return False
        if not isinstance(left, str) or not isinstance(right, str):
            raise ExprError(f"{operator} compares strings, not {describe_type(left)} with {describe_type(right)}")
        return test(left, right)

    return compare


def _build_number_range(scope: ExprScope, start: Any, stop: Any) -> list[int]:
    if type(start) is not int or type(stop) is not int:
        raise ExprError(".. needs two whole numbers")
    count = max(0, stop - start + 1)
    if count > MAX_RANGE_NUMBERS:
        raise ExprError(f".. exceeds {MAX_RANGE_NUMBERS} numbers; use fewer")
    scope.budget.spend_characters(count)
    return list(range(start, stop + 1))


BINARY_OPERATORS: Final[Mapping[str, Callable[[ExprScope, Any, Any], Any]]] = {
    "==": lambda scope, one, other: is_equal(one, other),
    "!=": lambda scope, one, other: not is_equal(one, other),
    "<": _build_comparison("<", lambda one, other: one < other),
    "<=": _build_comparison("<=", lambda one, other: one <= other),
    ">": _build_comparison(">", lambda one, other: one > other),
    ">=": _build_comparison(">=", lambda one, other: one >= other),
    "+": _add,
    "-": _subtract,
    "*": lambda scope, one, other: _calculate(one, other, "*", lambda a, b: a * b),
    "/": _divide,
    "%": _modulo,
    "**": _power,
    "^": _power,
    "..": _build_number_range,
    "in": lambda scope, one, other: contains(one, other, scope.budget),
    "matches": _build_string_comparison("matches", _matches_pattern),
    "contains": _build_string_comparison("contains", lambda one, other: other in one),
    "startsWith": _build_string_comparison("startsWith", str.startswith),
    "endsWith": _build_string_comparison("endsWith", str.endswith),
}


def build_binary(operator: str, left: Node, right: Node) -> Node:
    operation = BINARY_OPERATORS[operator]

    def evaluate(scope: ExprScope) -> Any:
        scope.budget.spend_steps()
        return operation(scope, left(scope), right(scope))

    return evaluate


def require_bool(value: Any, operator: str) -> bool:
    if isinstance(value, bool):
        return value
    raise ExprError(f"{operator} needs true or false, not {describe_type(value)}; use a comparison")


def build_and(left: Node, right: Node) -> Node:
    return lambda scope: require_bool(left(scope), "and") and require_bool(right(scope), "and")


def build_or(left: Node, right: Node) -> Node:
    return lambda scope: require_bool(left(scope), "or") or require_bool(right(scope), "or")


def build_coalesce(left: Node, right: Node) -> Node:
    def evaluate(scope: ExprScope) -> Any:
        result = left(scope)
        return right(scope) if result is None else result

    return evaluate


def build_not(operand: Node) -> Node:
    return lambda scope: not require_bool(operand(scope), "not")


def build_minus(operand: Node) -> Node:
    return lambda scope: _subtract(scope, 0, operand(scope))


def build_plus(operand: Node) -> Node:
    return lambda scope: _add(scope, 0, operand(scope))


def build_conditional(test: Node, then_node: Node, else_node: Node) -> Node:
    return lambda scope: then_node(scope) if require_bool(test(scope), "?") else else_node(scope)


def build_list(items: Sequence[Node]) -> Node:
    return lambda scope: [item(scope) for item in items]


def build_map(items: Sequence[tuple[Node, Node]]) -> Node:
    return lambda scope: {str(name(scope)): value(scope) for name, value in items}


def build_let(name: str, value: Node, body: Node) -> Node:
    return lambda scope: body(scope.with_variable(name, value(scope)))

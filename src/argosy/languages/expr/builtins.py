"""Built-in functions of expressions: plain functions, and functions with a predicate for item element.

In: nodes. Out: nodes. Never: more elements or characters than the budget allows.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any, Final

import orjson

from argosy.languages import go_time
from argosy.languages.evaluation_budget import EvaluationBudget
from argosy.languages.expr.compiled_nodes import (
    BINARY_OPERATORS,
    ExprScope,
    Node,
    describe_type,
    is_equal,
    is_number,
    require_bool,
    wrap_int64,
)
from argosy.languages.expr.lexer import ExprError
from argosy.languages.go_time import GoTime

Function = Callable[..., Any]


def build_plain_call(name: str, arguments: Sequence[Node]) -> Node:
    function = PLAIN_FUNCTIONS[name]

    def evaluate(scope: ExprScope) -> Any:
        scope.budget.spend_steps(10)
        values = [item(scope) for item in arguments]
        for item in values:
            if isinstance(item, str | list | dict):
                scope.budget.spend_steps(len(item) // 100)
        try:
            result = function(scope.budget, *values)
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            raise ExprError(f"wrong arguments for {name}: {', '.join(map(describe_type, values)) or 'none'}") from error
        if isinstance(result, str | list | dict):
            scope.budget.spend_characters(len(result))
        return result

    return evaluate


def _length(budget: EvaluationBudget, value: Any) -> int:
    if isinstance(value, str | list | dict):
        return len(value)
    raise TypeError


def _require_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


def _encode_json(value: Any) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _to_string(budget: EvaluationBudget, value: Any) -> str:
    return value if isinstance(value, str) else "nil" if value is None else format_like_go(value)


def format_like_go(value: Any) -> str:
    """Format a value as Go does."""
    from argosy.languages.go_printf import format_value  # imported here: it is needed only to print

    return format_value(value)


def _to_int(budget: EvaluationBudget, value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, str) and len(value) > 30):
        raise TypeError
    return wrap_int64(int(value))


def _to_float(budget: EvaluationBudget, value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _get_type_name(budget: EvaluationBudget, value: Any) -> str:
    names: dict[type, str] = {bool: "bool", int: "int", float: "float", str: "string", list: "array", dict: "map"}
    return "nil" if value is None else names.get(type(value), "func")


def _decode_json(budget: EvaluationBudget, text: Any) -> Any:
    try:
        return orjson.loads(_require_string(text))
    except orjson.JSONDecodeError as error:
        raise ExprError("fromJSON: invalid JSON; pass valid JSON text") from error


def _split(budget: EvaluationBudget, text: Any, separator: Any, max_parts: int = -1) -> list[str]:
    return _require_string(text).split(_require_string(separator), max_parts - 1 if max_parts > 0 else -1)


def _join(budget: EvaluationBudget, items: Any, separator: str = "") -> str:
    strings = [_require_string(item) for item in items]
    budget.spend_characters(sum(map(len, strings)) + len(separator) * len(strings))
    return separator.join(strings)


def _replace(budget: EvaluationBudget, text: Any, old: Any, new: Any) -> str:
    budget.spend_characters(len(text) + (text.count(old) if old else len(text) + 1) * len(new))
    return _require_string(text).replace(_require_string(old), _require_string(new))


def _repeat(budget: EvaluationBudget, text: Any, count: int) -> str:
    budget.spend_characters(len(_require_string(text)) * max(0, count))
    return _require_string(text) * count


def _sort(items: Sequence[Any], direction: str) -> list[Any]:
    if not (all(map(is_number, items)) or all(isinstance(item, str) for item in items)):
        raise ExprError("sort needs a list of only numbers, or only strings")
    return sorted(items, reverse=direction == "desc")


def _require_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise TypeError


def _get_item_or_nil(value: Any, index: int) -> Any:
    items = _require_list(value)
    return items[index] if items else None


def _flatten_numbers(values: Sequence[Any]) -> list[Any]:
    numbers = [number for value in values for number in (value if isinstance(value, list) else [value])]
    if not all(map(is_number, numbers)):
        raise TypeError
    return numbers


def _mean(budget: EvaluationBudget, *values: Any) -> float:
    numbers = _flatten_numbers(values)
    return math.fsum(numbers) / len(numbers) if numbers else 0.0


def _median(budget: EvaluationBudget, *values: Any) -> float:
    numbers = sorted(_flatten_numbers(values))
    middle = len(numbers) // 2
    if not numbers:
        return 0.0
    return float(numbers[middle]) if len(numbers) % 2 else (numbers[middle - 1] + numbers[middle]) / 2


def _parse_date(budget: EvaluationBudget, text: Any, layout: str = "", zone: str = "") -> GoTime:
    parsed = go_time.parse_time(text if "T" in _require_string(text) else f"{text}T00:00:00Z")
    return go_time.convert_to_zone(parsed, zone) if zone else parsed


def _unique(budget: EvaluationBudget, items: Any) -> list[Any]:
    result: list[Any] = []
    for item in _require_list(items):
        budget.spend_steps(len(result))
        if not any(is_equal(item, other) for other in result):
            result.append(item)
    return result


def _flatten(budget: EvaluationBudget, items: Any) -> list[Any]:
    budget.spend_steps(len(items))
    result: list[Any] = []
    with budget.enter_nested():
        for item in _require_list(items):
            result += _flatten(budget, item) if isinstance(item, list) else [item]
    return result


def _build_rounding(function: Callable[[float], float]) -> Function:
    return lambda budget, value: float(function(value)) if math.isfinite(value) else value


def _build_bit_operation(function: Callable[[int, int], int]) -> Function:
    def calculate(budget: EvaluationBudget, left: Any, right: Any) -> int:
        if type(left) is not int or type(right) is not int or not 0 <= right < 1 << 63:
            raise TypeError
        return wrap_int64(function(left, right))

    return calculate


PLAIN_FUNCTIONS: Final[Mapping[str, Function]] = {
    "len": _length,
    "type": _get_type_name,
    "string": _to_string,
    "int": _to_int,
    "float": _to_float,
    "abs": lambda meter, value: wrap_int64(abs(value)) if isinstance(value, int) else abs(value),
    "ceil": _build_rounding(math.ceil),
    "floor": _build_rounding(math.floor),
    "round": _build_rounding(lambda value: math.floor(abs(value) + 0.5) * (1 if value >= 0 else -1)),
    "max": lambda meter, *values: max(_flatten_numbers(values)),
    "min": lambda meter, *values: min(_flatten_numbers(values)),
    "mean": _mean,
    "median": _median,
    "trim": lambda meter, text, marks=None: _require_string(text).strip(marks),
    "trimPrefix": lambda meter, text, start: _require_string(text).removeprefix(start),
    "trimSuffix": lambda meter, text, end: _require_string(text).removesuffix(end),
    "upper": lambda meter, text: _require_string(text).upper(),
    "lower": lambda meter, text: _require_string(text).lower(),
    "split": _split,
    "splitAfter": lambda meter, text, mark: [item + mark for item in text.split(mark)[:-1]] + [text.split(mark)[-1]],
    "replace": _replace,
    "repeat": _repeat,
    "join": _join,
    "indexOf": lambda meter, text, part: _require_string(text).find(part),
    "lastIndexOf": lambda meter, text, part: _require_string(text).rfind(part),
    "hasPrefix": lambda meter, text, start: _require_string(text).startswith(_require_string(start)),
    "hasSuffix": lambda meter, text, end: _require_string(text).endswith(_require_string(end)),
    "toJSON": lambda meter, value: _encode_json(value),
    "fromJSON": _decode_json,
    "toBase64": lambda meter, text: base64.b64encode(_require_string(text).encode()).decode(),
    "fromBase64": lambda meter, text: base64.b64decode(_require_string(text), validate=True).decode(),
    "keys": lambda meter, value: list(dict.keys(value)),
    "values": lambda meter, value: list(dict.values(value)),
    "toPairs": lambda meter, value: [[name, item] for name, item in dict.items(value)],
    "fromPairs": lambda meter, items: {str(name): item for name, item in items},
    "first": lambda meter, items: _get_item_or_nil(items, 0),
    "last": lambda meter, items: _get_item_or_nil(items, -1),
    "get": lambda meter, value, name: _get_or_nil(value, name),
    "take": lambda meter, items, count: _require_list(items)[: max(0, count)],
    "reverse": lambda meter, items: _require_list(items)[::-1],
    "sort": lambda meter, items, direction="asc": _sort(_require_list(items), direction),
    "uniq": _unique,
    "concat": lambda meter, *lists: [item for items in lists for item in _require_list(items)],
    "flatten": _flatten,
    "date": _parse_date,
    "duration": lambda meter, text: go_time.parse_go_duration(_require_string(text)),
    "bitand": _build_bit_operation(lambda one, other: one & other),
    "bitor": _build_bit_operation(lambda one, other: one | other),
    "bitxor": _build_bit_operation(lambda one, other: one ^ other),
}


def _get_or_nil(value: Any, name: Any) -> Any:
    if isinstance(value, dict):
        return value.get(name) if isinstance(name, str | int) else None
    if isinstance(value, list) and type(name) is int:
        return value[name] if -len(value) <= name < len(value) else None
    return None


def build_predicate_call(
    name: str, collection: Node, predicate: Node | None, extra_arguments: Sequence[Node] = ()
) -> Node:
    function = PREDICATE_FUNCTIONS[name]

    def evaluate(scope: ExprScope) -> Any:
        scope.budget.spend_steps(10)
        items = collection(scope)
        if isinstance(items, dict) and name in ("all", "any", "none", "one", "count", "filter", "map"):
            items = list(items.values())
        if not isinstance(items, list):
            raise ExprError(f"{name} needs a list, not {describe_type(items)}; check it first")
        return function(scope, items, predicate, [argument(scope) for argument in extra_arguments])

    return evaluate


def _evaluate_predicate(scope: ExprScope, item: Any, index: int, predicate: Node | None) -> Any:
    scope.budget.spend_steps()
    return item if predicate is None else predicate(scope.with_element(item, index))


def _list_matching_indexes(name: str, scope: ExprScope, items: Sequence[Any], predicate: Node | None) -> list[int]:
    return [i for i, item in enumerate(items) if require_bool(_evaluate_predicate(scope, item, i, predicate), name)]


def _get_match(indexes: Sequence[int], items: Sequence[Any], position: int, *, is_index: bool = False) -> Any:
    if not indexes:
        return None
    return indexes[position] if is_index else items[indexes[position]]


def _group_by(
    scope: ExprScope, items: Sequence[Any], predicate: Node | None, extra_arguments: Sequence[Any]
) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for i, item in enumerate(items):
        groups.setdefault(format_like_go(_evaluate_predicate(scope, item, i, predicate)), []).append(item)
    return groups


def _sum_by(scope: ExprScope, items: Sequence[Any], predicate: Node | None, extra_arguments: Sequence[Any]) -> Any:
    total: Any = 0
    for i, item in enumerate(items):
        total = BINARY_OPERATORS["+"](scope, total, _evaluate_predicate(scope, item, i, predicate))
    return total


def _reduce(scope: ExprScope, items: Sequence[Any], predicate: Node | None, extra_arguments: Sequence[Any]) -> Any:
    if predicate is None or (not items and not extra_arguments):
        raise ExprError("reduce needs elements and a predicate")
    result, remaining_items = (extra_arguments[0], items) if extra_arguments else (items[0], items[1:])
    for i, item in enumerate(remaining_items):
        scope.budget.spend_steps()
        result = predicate(scope.with_element(item, i, result))
    return result


def _sort_by(
    scope: ExprScope, items: Sequence[Any], predicate: Node | None, extra_arguments: Sequence[Any]
) -> list[Any]:
    keys = [_evaluate_predicate(scope, item, i, predicate) for i, item in enumerate(items)]

    def compare(left: int, right: int) -> int:
        scope.budget.spend_steps()
        return (
            -1
            if BINARY_OPERATORS["<"](scope, keys[left], keys[right])
            else int(BINARY_OPERATORS["<"](scope, keys[right], keys[left]))
        )

    sorted_indexes = sorted(range(len(items)), key=cmp_to_key(compare))
    return [items[i] for i in (sorted_indexes[::-1] if extra_arguments[:1] == ["desc"] else sorted_indexes)]


PredicateFunction = Callable[[ExprScope, Sequence[Any], Node | None, Sequence[Any]], Any]
PREDICATE_FUNCTIONS: Final[Mapping[str, PredicateFunction]] = {
    "all": lambda scope, items, test, more: len(_list_matching_indexes("all", scope, items, test)) == len(items),
    "any": lambda scope, items, test, more: bool(_list_matching_indexes("any", scope, items, test)),
    "none": lambda scope, items, test, more: not _list_matching_indexes("none", scope, items, test),
    "one": lambda scope, items, test, more: len(_list_matching_indexes("one", scope, items, test)) == 1,
    "count": lambda scope, items, test, more: len(_list_matching_indexes("count", scope, items, test)),
    "filter": lambda scope, items, test, more: [
        items[at] for at in _list_matching_indexes("filter", scope, items, test)
    ],
    "map": lambda scope, items, test, more: [
        _evaluate_predicate(scope, item, at, test) for at, item in enumerate(items)
    ],
    "find": lambda scope, items, test, more: _get_match(_list_matching_indexes("find", scope, items, test), items, 0),
    "findLast": lambda scope, items, test, more: _get_match(
        _list_matching_indexes("findLast", scope, items, test), items, -1
    ),
    "findIndex": lambda scope, items, test, more: _get_match(
        _list_matching_indexes("", scope, items, test), items, 0, is_index=True
    ),
    "findLastIndex": lambda scope, items, test, more: _get_match(
        _list_matching_indexes("", scope, items, test), items, -1, is_index=True
    ),
    "groupBy": _group_by,
    "sum": _sum_by,
    "reduce": _reduce,
    "sortBy": _sort_by,
}

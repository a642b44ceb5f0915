"""Built-in functions of expressions: plain functions, and functions with a predicate for each element.

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
from argosy.languages.evaluation_budget import Meter
from argosy.languages.expr.lexer import ExprError
from argosy.languages.expr.nodes import BINARY, Node, Scope, is_number, kind_of, same, truth, wrapped
from argosy.languages.go_time import Time

Function = Callable[..., Any]


def plain(name: str, arguments: Sequence[Node]) -> Node:
    function = PLAIN[name]

    def ask(scope: Scope) -> Any:
        scope.meter.step(10)
        given = [each(scope) for each in arguments]
        for each in given:
            if isinstance(each, str | list | dict):
                scope.meter.step(len(each) // 100)
        try:
            found = function(scope.meter, *given)
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            raise ExprError(f"wrong arguments for {name}: {', '.join(map(kind_of, given)) or 'none'}") from error
        if isinstance(found, str | list | dict):
            scope.meter.grow(len(found))
        return found

    return ask


def _length(meter: Meter, value: Any) -> int:
    if isinstance(value, str | list | dict):
        return len(value)
    raise TypeError


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


def _written(value: Any) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _string(meter: Meter, value: Any) -> str:
    return value if isinstance(value, str) else "nil" if value is None else shown(value)


def shown(value: Any) -> str:
    """Format a value as Go does."""
    from argosy.languages.go_format import text_of  # imported here: go_format is needed only to print

    return text_of(value)


def _whole(meter: Meter, value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, str) and len(value) > 30):
        raise TypeError
    return wrapped(int(value))


def _real(meter: Meter, value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _kind(meter: Meter, value: Any) -> str:
    names: dict[type, str] = {bool: "bool", int: "int", float: "float", str: "string", list: "array", dict: "map"}
    return "nil" if value is None else names.get(type(value), "func")


def _from_json(meter: Meter, text: Any) -> Any:
    try:
        return orjson.loads(_text(text))
    except orjson.JSONDecodeError as error:
        raise ExprError("fromJSON: invalid JSON; pass valid JSON text") from error


def _split(meter: Meter, text: Any, separator: Any, most: int = -1) -> list[str]:
    return _text(text).split(_text(separator), most - 1 if most > 0 else -1)


def _joined(meter: Meter, items: Any, separator: str = "") -> str:
    found = [_text(each) for each in items]
    meter.grow(sum(map(len, found)) + len(separator) * len(found))
    return separator.join(found)


def _replaced(meter: Meter, text: Any, old: Any, new: Any) -> str:
    meter.grow(len(text) + (text.count(old) if old else len(text) + 1) * len(new))
    return _text(text).replace(_text(old), _text(new))


def _repeated(meter: Meter, text: Any, count: int) -> str:
    meter.grow(len(_text(text)) * max(0, count))
    return _text(text) * count


def _ordered(items: Sequence[Any], direction: str) -> list[Any]:
    if not (all(map(is_number, items)) or all(isinstance(each, str) for each in items)):
        raise ExprError("sort needs a list of only numbers, or only strings")
    return sorted(items, reverse=direction == "desc")


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise TypeError


def _edge(value: Any, place: int) -> Any:
    items = _listed(value)
    return items[place] if items else None


def _numbers(values: Sequence[Any]) -> list[Any]:
    found = [each for value in values for each in (value if isinstance(value, list) else [value])]
    if not all(map(is_number, found)):
        raise TypeError
    return found


def _mean(meter: Meter, *values: Any) -> float:
    found = _numbers(values)
    return math.fsum(found) / len(found) if found else 0.0


def _median(meter: Meter, *values: Any) -> float:
    found = sorted(_numbers(values))
    middle = len(found) // 2
    if not found:
        return 0.0
    return float(found[middle]) if len(found) % 2 else (found[middle - 1] + found[middle]) / 2


def _date(meter: Meter, text: Any, layout: str = "", zone: str = "") -> Time:
    found = go_time.parse_time(text if "T" in _text(text) else f"{text}T00:00:00Z")
    return go_time.zoned(found, zone) if zone else found


def _unique(meter: Meter, items: Any) -> list[Any]:
    found: list[Any] = []
    for each in _listed(items):
        meter.step(len(found))
        if not any(same(each, other) for other in found):
            found.append(each)
    return found


def _flat(meter: Meter, items: Any) -> list[Any]:
    meter.step(len(items))
    found: list[Any] = []
    with meter.deeper():
        for each in _listed(items):
            found += _flat(meter, each) if isinstance(each, list) else [each]
    return found


def _rounded(function: Callable[[float], float]) -> Function:
    return lambda meter, value: float(function(value)) if math.isfinite(value) else value


def _bits(function: Callable[[int, int], int]) -> Function:
    def reckon(meter: Meter, one: Any, other: Any) -> int:
        if type(one) is not int or type(other) is not int or not 0 <= other < 1 << 63:
            raise TypeError
        return wrapped(function(one, other))

    return reckon


PLAIN: Final[Mapping[str, Function]] = {
    "len": _length,
    "type": _kind,
    "string": _string,
    "int": _whole,
    "float": _real,
    "abs": lambda meter, value: wrapped(abs(value)) if isinstance(value, int) else abs(value),
    "ceil": _rounded(math.ceil),
    "floor": _rounded(math.floor),
    "round": _rounded(lambda value: math.floor(abs(value) + 0.5) * (1 if value >= 0 else -1)),
    "max": lambda meter, *values: max(_numbers(values)),
    "min": lambda meter, *values: min(_numbers(values)),
    "mean": _mean,
    "median": _median,
    "trim": lambda meter, text, marks=None: _text(text).strip(marks),
    "trimPrefix": lambda meter, text, start: _text(text).removeprefix(start),
    "trimSuffix": lambda meter, text, end: _text(text).removesuffix(end),
    "upper": lambda meter, text: _text(text).upper(),
    "lower": lambda meter, text: _text(text).lower(),
    "split": _split,
    "splitAfter": lambda meter, text, mark: [each + mark for each in text.split(mark)[:-1]] + [text.split(mark)[-1]],
    "replace": _replaced,
    "repeat": _repeated,
    "join": _joined,
    "indexOf": lambda meter, text, part: _text(text).find(part),
    "lastIndexOf": lambda meter, text, part: _text(text).rfind(part),
    "hasPrefix": lambda meter, text, start: _text(text).startswith(_text(start)),
    "hasSuffix": lambda meter, text, end: _text(text).endswith(_text(end)),
    "toJSON": lambda meter, value: _written(value),
    "fromJSON": _from_json,
    "toBase64": lambda meter, text: base64.b64encode(_text(text).encode()).decode(),
    "fromBase64": lambda meter, text: base64.b64decode(_text(text), validate=True).decode(),
    "keys": lambda meter, value: list(dict.keys(value)),
    "values": lambda meter, value: list(dict.values(value)),
    "toPairs": lambda meter, value: [[name, each] for name, each in dict.items(value)],
    "fromPairs": lambda meter, items: {str(name): each for name, each in items},
    "first": lambda meter, items: _edge(items, 0),
    "last": lambda meter, items: _edge(items, -1),
    "get": lambda meter, value, name: _got(value, name),
    "take": lambda meter, items, count: _listed(items)[: max(0, count)],
    "reverse": lambda meter, items: _listed(items)[::-1],
    "sort": lambda meter, items, direction="asc": _ordered(_listed(items), direction),
    "uniq": _unique,
    "concat": lambda meter, *lists: [each for items in lists for each in _listed(items)],
    "flatten": _flat,
    "date": _date,
    "duration": lambda meter, text: go_time.parse_duration(_text(text)),
    "bitand": _bits(lambda one, other: one & other),
    "bitor": _bits(lambda one, other: one | other),
    "bitxor": _bits(lambda one, other: one ^ other),
}


def _got(value: Any, name: Any) -> Any:
    if isinstance(value, dict):
        return value.get(name) if isinstance(name, str | int) else None
    if isinstance(value, list) and type(name) is int:
        return value[name] if -len(value) <= name < len(value) else None
    return None


def asking(name: str, of: Node, predicate: Node | None, more: Sequence[Node] = ()) -> Node:
    function = ASKING[name]

    def ask(scope: Scope) -> Any:
        scope.meter.step(10)
        items = of(scope)
        if isinstance(items, dict) and name in ("all", "any", "none", "one", "count", "filter", "map"):
            items = list(items.values())
        if not isinstance(items, list):
            raise ExprError(f"{name} needs a list, not {kind_of(items)}; check it first")
        return function(scope, items, predicate, [each(scope) for each in more])

    return ask


def _said(scope: Scope, item: Any, index: int, predicate: Node | None) -> Any:
    scope.meter.step()
    return item if predicate is None else predicate(scope.within(item, index))


def _true(name: str, scope: Scope, items: Sequence[Any], predicate: Node | None) -> list[int]:
    return [at for at, each in enumerate(items) if truth(_said(scope, each, at, predicate), name)]


def _found(places: Sequence[int], items: Sequence[Any], place: int, *, is_index: bool = False) -> Any:
    if not places:
        return None
    return places[place] if is_index else items[places[place]]


def _grouped(scope: Scope, items: Sequence[Any], predicate: Node | None, more: Sequence[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for at, each in enumerate(items):
        found.setdefault(shown(_said(scope, each, at, predicate)), []).append(each)
    return found


def _summed(scope: Scope, items: Sequence[Any], predicate: Node | None, more: Sequence[Any]) -> Any:
    total: Any = 0
    for at, each in enumerate(items):
        total = BINARY["+"](scope, total, _said(scope, each, at, predicate))
    return total


def _reduced(scope: Scope, items: Sequence[Any], predicate: Node | None, more: Sequence[Any]) -> Any:
    if predicate is None or (not items and not more):
        raise ExprError("reduce needs elements and a predicate")
    result, rest = (more[0], items) if more else (items[0], items[1:])
    for at, each in enumerate(rest):
        scope.meter.step()
        result = predicate(scope.within(each, at, result))
    return result


def _sorted_by(scope: Scope, items: Sequence[Any], predicate: Node | None, more: Sequence[Any]) -> list[Any]:
    keys = [_said(scope, each, at, predicate) for at, each in enumerate(items)]

    def order(one: int, other: int) -> int:
        scope.meter.step()
        return -1 if BINARY["<"](scope, keys[one], keys[other]) else int(BINARY["<"](scope, keys[other], keys[one]))

    found = sorted(range(len(items)), key=cmp_to_key(order))
    return [items[at] for at in (found[::-1] if more[:1] == ["desc"] else found)]


Asking = Callable[[Scope, Sequence[Any], Node | None, Sequence[Any]], Any]
ASKING: Final[Mapping[str, Asking]] = {
    "all": lambda scope, items, test, more: len(_true("all", scope, items, test)) == len(items),
    "any": lambda scope, items, test, more: bool(_true("any", scope, items, test)),
    "none": lambda scope, items, test, more: not _true("none", scope, items, test),
    "one": lambda scope, items, test, more: len(_true("one", scope, items, test)) == 1,
    "count": lambda scope, items, test, more: len(_true("count", scope, items, test)),
    "filter": lambda scope, items, test, more: [items[at] for at in _true("filter", scope, items, test)],
    "map": lambda scope, items, test, more: [_said(scope, each, at, test) for at, each in enumerate(items)],
    "find": lambda scope, items, test, more: _found(_true("find", scope, items, test), items, 0),
    "findLast": lambda scope, items, test, more: _found(_true("findLast", scope, items, test), items, -1),
    "findIndex": lambda scope, items, test, more: _found(_true("", scope, items, test), items, 0, is_index=True),
    "findLastIndex": lambda scope, items, test, more: _found(_true("", scope, items, test), items, -1, is_index=True),
    "groupBy": _grouped,
    "sum": _summed,
    "reduce": _reduced,
    "sortBy": _sorted_by,
}

"""Sprig functions for notification templates: all except random functions and those that read the environment.

In: a state (for its budget and its time), values. Out: values. Never: reads a clock; more elements than the budget
allows.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from argosy.languages import go_time
from argosy.languages.expr.nodes import wrapped
from argosy.languages.go_format import text_of
from argosy.languages.go_templates.functions import truth
from argosy.languages.go_templates.lexer import TemplateError
from argosy.languages.go_templates.sprig_strings import TEXT, text
from argosy.languages.go_time import Duration, Time

Function = Callable[..., Any]
_LEADING: Final = re.compile(r"\s*[+-]?(0[xX][0-9a-fA-F]+|\d+)")


def whole(value: Any) -> int:
    """Sprig: anything that is not a number is 0."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return wrapped(int(value)) if math.isfinite(value) else 0
    if isinstance(value, str):
        return wrapped(int(value, 0)) if _LEADING.fullmatch(value) and len(value) < 30 and not _octal(value) else 0
    return value if isinstance(value, int) else value.nanoseconds if isinstance(value, Duration) else 0


def _octal(value: str) -> bool:
    return re.fullmatch(r"[+-]?0\d+", value) is not None


def real(value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return 0.0
    return float(value) if isinstance(value, int | float) else float(whole(value))


def items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise TemplateError(f"expected a list, not {text_of(value)[:40]!r}; `list` makes one")


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise TemplateError(f"expected a map, not {text_of(value)[:40]!r}; `dict` makes one")


def _sum(state: Any, *values: Any) -> int:
    return wrapped(sum(map(whole, values)))


def _product(state: Any, *values: Any) -> int:
    found = 1
    for each in values:
        found = wrapped(found * whole(each))
    return found


def _divided(one: int, other: int) -> int:
    if other == 0:
        raise TemplateError("division by zero; check the divisor first")
    found = abs(one) // abs(other)
    return found if (one < 0) == (other < 0) else -found


def _until(state: Any, start: int, stop: int, step: int) -> list[int]:
    found = range(start, stop, step) if step else range(0)
    state.meter.grow(len(found))
    return list(found)


def _seq(state: Any, *bounds: Any) -> str:
    given = [whole(each) for each in bounds]
    start, stop = (1, given[0]) if len(given) == 1 else (given[0], given[-1])
    step = given[1] if len(given) == 3 else (1 if start <= stop else -1)
    found = range(start, stop + (1 if step > 0 else -1), step) if step else range(0)
    state.meter.grow(len(found) * 20)
    return " ".join(map(str, found))


def _dict(state: Any, *pairs: Any) -> dict[str, Any]:
    padded = [*pairs, ""] if len(pairs) % 2 else list(pairs)
    return {text_of(padded[at]): padded[at + 1] for at in range(0, len(padded), 2)}


def _set(state: Any, value: Any, name: Any, item: Any) -> dict[str, Any]:
    _mapping(value)[text(name)] = item
    return _mapping(value)


def _unset(state: Any, value: Any, name: Any) -> dict[str, Any]:
    _mapping(value).pop(text(name), None)
    return _mapping(value)


def _merged(state: Any, into: Any, *others: Any, over: bool = False) -> dict[str, Any]:
    """Sprig merges deeply, into the first map."""
    state.meter.step(10 + len(into))
    with state.meter.deeper():
        for other in others:
            for name, value in _mapping(other).items():
                if isinstance(value, dict) and isinstance(into.get(name), dict):
                    _merged(state, into[name], value, over=over)
                elif over or not truth(into.get(name)):
                    into[name] = copy.deepcopy(value)
    return _mapping(into)


def _dig(state: Any, *path: Any) -> Any:
    *names, default, value = path
    for each in names:
        value = value.get(each) if isinstance(value, dict) else None
        if value is None:
            return default
    return value


def _unique(state: Any, value: Any) -> list[Any]:
    found: list[Any] = []
    for each in items(value):
        state.meter.step(len(found) + 1)
        if each not in found:
            found.append(each)
    return found


def _json(value: Any, option: int = 0) -> str:
    try:
        return orjson.dumps(value, default=text_of, option=option | orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError as error:
        raise TemplateError("toJson: the value cannot be encoded as JSON; encode a part of it") from error


def _escaped(written: str) -> str:
    """Go escapes characters that HTML would interpret; toRawJson does not."""
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _from_json(state: Any, value: Any) -> Any:
    try:
        return orjson.loads(text(value))
    except orjson.JSONDecodeError:
        return None


def _kind_of(value: Any) -> str:
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return "invalid" if value is None else "struct" if isinstance(value, Time) else "int64"


_KINDS: Final[Sequence[tuple[type, str]]] = (
    (bool, "bool"), (int, "int64"), (float, "float64"), (str, "string"), (list, "slice"), (dict, "map"),
)  # fmt: skip


def moment(state: Any, value: Any) -> Time:
    """Sprig: a time, seconds since 1970, or now."""
    if isinstance(value, Time):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return go_time.unix(value)
    return go_time.Time(state.now)


def _to_date(state: Any, layout: Any, value: Any) -> Time:
    """Supports layouts with the precision of RFC 3339 or of a day."""
    return go_time.parse_time(value if "T" in text(value) else f"{value[:10]}T00:00:00Z")


def _ago(state: Any, value: Any) -> str:
    gone = go_time.subtract(go_time.Time(state.now), moment(state, value))
    return go_time.duration_text(gone.nanoseconds // 10**9 * 10**9)


def _date_modify(state: Any, change: Any, value: Any) -> Time:
    return go_time.add(moment(state, value), go_time.parse_duration(text(change)))


def _span(state: Any, value: Any) -> str:
    return go_time.duration_text(whole(value) * 10**9)


def _rounded_span(state: Any, value: Any) -> str:
    seconds = abs(value.nanoseconds if isinstance(value, Duration) else go_time.parse_duration(text(value)).nanoseconds)
    for mark, size in (("y", 31_536_000), ("mo", 2_592_000), ("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        if seconds >= size * 10**9:
            return f"{seconds // (size * 10**9)}{mark}"
    return "0s"


def _rounded(state: Any, value: Any, places: int = 0) -> float:
    scale = float(10 ** max(0, min(15, whole(places))))
    number = real(value)
    if not math.isfinite(number):
        return number
    return math.floor(abs(number) * scale + 0.5) / scale * (1 if number >= 0 else -1)


def _fail(state: Any, message: Any) -> Any:
    raise TemplateError(text_of(message)[:200])


def _required(state: Any, message: Any, value: Any) -> Any:
    return _fail(state, message) if value is None or value == "" else value


def _whole_edge(function: Callable[[float], int]) -> Function:
    return lambda state, value: float(function(real(value))) if math.isfinite(real(value)) else real(value)


def _version(value: Any) -> tuple[int, int, int]:
    found = re.fullmatch(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:[-+].*)?", text(value))
    if found is None:
        raise TemplateError(f"invalid version {value[:40]!r}; write one such as 1.2.3")
    return int(found[1]), int(found[2] or 0), int(found[3] or 0)


def _version_compare(state: Any, wanted: Any, value: Any) -> bool:
    have = _version(value)
    for part in re.split(r"[,\s]+(?=[<>=~^!]|\d|v)", text(wanted).strip()):
        mark, _, number = re.sub(r"^(>=|<=|!=|[<>=~^]?)\s*", r"\1 ", part, count=1).partition(" ")
        asked = _version(number)
        top = (asked[0] + 1, 0, 0) if mark == "^" else (asked[0], asked[1] + 1, 0)
        fits = {
            "": have == asked, "=": have == asked, "!=": have != asked, ">": have > asked, "<": have < asked,
            ">=": have >= asked, "<=": have <= asked, "~": asked <= have < top, "^": asked <= have < top,
        }[mark]  # fmt: skip
        if not fits:
            return False
    return True


def _default(state: Any, default: Any, value: Any = None) -> Any:
    return value if truth(value) else default


def _sequence(values: Sequence[Any]) -> list[Any]:
    return [each for value in values for each in items(value)]


_OTHER: Final[Mapping[str, Function]] = {
    "add": _sum,
    "add1": lambda state, value: wrapped(whole(value) + 1),
    "sub": lambda state, one, other: wrapped(whole(one) - whole(other)),
    "mul": _product,
    "div": lambda state, one, other: _divided(whole(one), whole(other)),
    "mod": lambda state, one, other: whole(one) - whole(other) * _divided(whole(one), whole(other)),
    "max": lambda state, *values: max(map(whole, values)),
    "min": lambda state, *values: min(map(whole, values)),
    "ceil": _whole_edge(math.ceil),
    "floor": _whole_edge(math.floor),
    "round": _rounded,
    "int": lambda state, value: whole(value),
    "int64": lambda state, value: whole(value),
    "float64": lambda state, value: real(value),
    "atoi": lambda state, value: whole(value) if isinstance(value, str) else 0,
    "until": lambda state, stop: _until(state, 0, whole(stop), 1 if whole(stop) >= 0 else -1),
    "untilStep": lambda state, start, stop, step: _until(state, whole(start), whole(stop), whole(step)),
    "seq": _seq,
    "default": _default,
    "empty": lambda state, value: not truth(value),
    "coalesce": lambda state, *values: next((each for each in values if truth(each)), None),
    "all": lambda state, *values: all(map(truth, values)),
    "any": lambda state, *values: any(map(truth, values)),
    "ternary": lambda state, one, other, test: one if test is True else other,
    "fail": _fail,
    "required": _required,
    "list": lambda state, *values: list(values),
    "tuple": lambda state, *values: list(values),
    "first": lambda state, value: next(iter(items(value)), None),
    "last": lambda state, value: items(value)[-1] if value else None,
    "rest": lambda state, value: items(value)[1:],
    "initial": lambda state, value: items(value)[:-1],
    "append": lambda state, value, item: [*items(value), item],
    "push": lambda state, value, item: [*items(value), item],
    "prepend": lambda state, value, item: [item, *items(value)],
    "concat": lambda state, *values: _sequence(values),
    "reverse": lambda state, value: items(value)[::-1],
    "uniq": _unique,
    "without": lambda state, value, *gone: [each for each in items(value) if each not in gone],
    "has": lambda state, item, value: value is not None and item in items(value),
    "compact": lambda state, value: [each for each in items(value) if truth(each)],
    "dict": _dict,
    "get": lambda state, value, name: _mapping(value).get(text(name), ""),
    "set": _set,
    "unset": _unset,
    "hasKey": lambda state, value, name: text(name) in _mapping(value),
    "pluck": lambda state, name, *values: [each[name] for each in values if text(name) in _mapping(each)],
    "keys": lambda state, *values: sorted(name for each in values for name in _mapping(each)),
    "values": lambda state, value: list(_mapping(value).values()),
    "pick": lambda state, value, *names: {name: value[name] for name in names if name in _mapping(value)},
    "omit": lambda state, value, *names: {name: each for name, each in _mapping(value).items() if name not in names},
    "merge": _merged,
    "mergeOverwrite": lambda state, into, *others: _merged(state, into, *others, over=True),
    "dig": _dig,
    "deepCopy": lambda state, value: copy.deepcopy(value),
    "toJson": lambda state, value: _escaped(_json(value)),
    "toRawJson": lambda state, value: _json(value),
    "toPrettyJson": lambda state, value: _escaped(_json(value, orjson.OPT_INDENT_2)),
    "fromJson": _from_json,
    "kindOf": lambda state, value: _kind_of(value),
    "kindIs": lambda state, kind, value: _kind_of(value) == kind,
    "typeOf": lambda state, value: _kind_of(value),
    "typeIs": lambda state, kind, value: _kind_of(value) == kind,
    "deepEqual": lambda state, one, other: one == other and isinstance(one, bool) == isinstance(other, bool),
    "now": lambda state: go_time.Time(state.now),
    "date": lambda state, layout, value: go_time.formatted(moment(state, value).at, text(layout)),
    "htmlDate": lambda state, value: go_time.formatted(moment(state, value).at, "2006-01-02"),
    "dateInZone": lambda state, layout, value, zone: go_time.formatted(
        go_time.zoned(moment(state, value), text(zone)).at, text(layout)
    ),
    "date_in_zone": lambda state, layout, value, zone: go_time.formatted(
        go_time.zoned(moment(state, value), text(zone)).at, text(layout)
    ),
    "dateModify": _date_modify,
    "date_modify": _date_modify,
    "toDate": _to_date,
    "ago": _ago,
    "unixEpoch": lambda state, value: str(int(moment(state, value).at.timestamp())),
    "duration": _span,
    "durationRound": _rounded_span,
    "semver": lambda state, value: dict(zip(("Major", "Minor", "Patch"), _version(value), strict=True)),
    "semverCompare": _version_compare,
}
_MUST: Final = (
    "first last rest initial append push prepend reverse uniq without has compact merge mergeOverwrite deepCopy "
    "toJson toRawJson toPrettyJson fromJson toDate dateModify regexMatch regexFind regexFindAll regexReplaceAll "
    "regexReplaceAllLiteral regexSplit"
)
SPRIG: Final[Mapping[str, Function]] = {
    **TEXT,
    **_OTHER,
    **{f"must{name[0].upper()}{name[1:]}": ({**TEXT, **_OTHER})[name] for name in _MUST.split()},
}

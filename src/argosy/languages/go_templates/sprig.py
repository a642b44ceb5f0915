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
from argosy.languages.expr.compiled_nodes import wrap_int64
from argosy.languages.go_printf import format_value
from argosy.languages.go_templates.functions import is_truthy
from argosy.languages.go_templates.lexer import TemplateError
from argosy.languages.go_templates.sprig_strings import STRING_FUNCTIONS, require_string
from argosy.languages.go_time import GoDuration, GoTime

Function = Callable[..., Any]
_INTEGER: Final = re.compile(r"\s*[+-]?(0[xX][0-9a-fA-F]+|\d+)")


def to_int(value: Any) -> int:
    """Sprig: anything that is not a number is 0."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return wrap_int64(int(value)) if math.isfinite(value) else 0
    if isinstance(value, str):
        return (
            wrap_int64(int(value, 0)) if _INTEGER.fullmatch(value) and len(value) < 30 and not _is_octal(value) else 0
        )
    return value if isinstance(value, int) else value.nanoseconds if isinstance(value, GoDuration) else 0


def _is_octal(value: str) -> bool:
    return re.fullmatch(r"[+-]?0\d+", value) is not None


def to_float(value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return 0.0
    return float(value) if isinstance(value, int | float) else float(to_int(value))


def require_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise TemplateError(f"expected a list, not {format_value(value)[:40]!r}; `list` makes one")


def _require_map(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise TemplateError(f"expected a map, not {format_value(value)[:40]!r}; `dict` makes one")


def _add(state: Any, *values: Any) -> int:
    return wrap_int64(sum(map(to_int, values)))


def _multiply(state: Any, *values: Any) -> int:
    product = 1
    for value in values:
        product = wrap_int64(product * to_int(value))
    return product


def _divide(dividend: int, divisor: int) -> int:
    if divisor == 0:
        raise TemplateError("division by zero; check the divisor first")
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _build_range(state: Any, start: int, stop: int, step: int) -> list[int]:
    numbers = range(start, stop, step) if step else range(0)
    state.budget.spend_characters(len(numbers))
    return list(numbers)


def _format_sequence(state: Any, *bounds: Any) -> str:
    numbers = [to_int(bound) for bound in bounds]
    start, stop = (1, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[-1])
    step = numbers[1] if len(numbers) == 3 else (1 if start <= stop else -1)
    sequence = range(start, stop + (1 if step > 0 else -1), step) if step else range(0)
    state.budget.spend_characters(len(sequence) * 20)
    return " ".join(map(str, sequence))


def _build_dict(state: Any, *pairs: Any) -> dict[str, Any]:
    padded = [*pairs, ""] if len(pairs) % 2 else list(pairs)
    return {format_value(padded[i]): padded[i + 1] for i in range(0, len(padded), 2)}


def _set_key(state: Any, value: Any, name: Any, item: Any) -> dict[str, Any]:
    _require_map(value)[require_string(name)] = item
    return _require_map(value)


def _delete_key(state: Any, value: Any, name: Any) -> dict[str, Any]:
    _require_map(value).pop(require_string(name), None)
    return _require_map(value)


def _merge(state: Any, target: Any, *others: Any, overwrite: bool = False) -> dict[str, Any]:
    """Sprig merges deeply, into the first map."""
    state.budget.spend_steps(10 + len(target))
    with state.budget.enter_nested():
        for other in others:
            for name, value in _require_map(other).items():
                if isinstance(value, dict) and isinstance(target.get(name), dict):
                    _merge(state, target[name], value, overwrite=overwrite)
                elif overwrite or not is_truthy(target.get(name)):
                    target[name] = copy.deepcopy(value)
    return _require_map(target)


def _dig(state: Any, *path: Any) -> Any:
    *names, default, value = path
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            return default
    return value


def _unique(state: Any, value: Any) -> list[Any]:
    result: list[Any] = []
    for item in require_list(value):
        state.budget.spend_steps(len(result) + 1)
        if item not in result:
            result.append(item)
    return result


def _encode_json(value: Any, option: int = 0) -> str:
    try:
        return orjson.dumps(value, default=format_value, option=option | orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError as error:
        raise TemplateError("toJson: the value cannot be encoded as JSON; encode a part of it") from error


def _escape_html(json_text: str) -> str:
    """Go escapes characters that HTML would interpret; toRawJson does not."""
    return json_text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _decode_json(state: Any, value: Any) -> Any:
    try:
        return orjson.loads(require_string(value))
    except orjson.JSONDecodeError:
        return None


def _get_kind(value: Any) -> str:
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return "invalid" if value is None else "struct" if isinstance(value, GoTime) else "int64"


_KINDS: Final[Sequence[tuple[type, str]]] = (
    (bool, "bool"), (int, "int64"), (float, "float64"), (str, "string"), (list, "slice"), (dict, "map"),
)  # fmt: skip


def to_time(state: Any, value: Any) -> GoTime:
    """Sprig: a time, seconds since 1970, or now."""
    if isinstance(value, GoTime):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return go_time.time_from_unix(value)
    return go_time.GoTime(state.now)


def _parse_date(state: Any, layout: Any, value: Any) -> GoTime:
    """Supports layouts with the precision of RFC 3339 or of a day."""
    return go_time.parse_time(value if "T" in require_string(value) else f"{value[:10]}T00:00:00Z")


def _format_age(state: Any, value: Any) -> str:
    age = go_time.subtract_times(go_time.GoTime(state.now), to_time(state, value))
    return go_time.format_duration(age.nanoseconds // 10**9 * 10**9)


def _modify_date(state: Any, change: Any, value: Any) -> GoTime:
    return go_time.add_duration(to_time(state, value), go_time.parse_go_duration(require_string(change)))


def _format_seconds(state: Any, value: Any) -> str:
    return go_time.format_duration(to_int(value) * 10**9)


def _round_duration(state: Any, value: Any) -> str:
    seconds = abs(
        value.nanoseconds
        if isinstance(value, GoDuration)
        else go_time.parse_go_duration(require_string(value)).nanoseconds
    )
    for suffix, size in (("y", 31_536_000), ("mo", 2_592_000), ("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        if seconds >= size * 10**9:
            return f"{seconds // (size * 10**9)}{suffix}"
    return "0s"


def _round(state: Any, value: Any, places: int = 0) -> float:
    scale = float(10 ** max(0, min(15, to_int(places))))
    number = to_float(value)
    if not math.isfinite(number):
        return number
    return math.floor(abs(number) * scale + 0.5) / scale * (1 if number >= 0 else -1)


def _fail(state: Any, message: Any) -> Any:
    raise TemplateError(format_value(message)[:200])


def _required(state: Any, message: Any, value: Any) -> Any:
    return _fail(state, message) if value is None or value == "" else value


def _build_rounding(function: Callable[[float], int]) -> Function:
    return lambda state, value: float(function(to_float(value))) if math.isfinite(to_float(value)) else to_float(value)


def _parse_version(value: Any) -> tuple[int, int, int]:
    match = re.fullmatch(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:[-+].*)?", require_string(value))
    if match is None:
        raise TemplateError(f"invalid version {value[:40]!r}; write one such as 1.2.3")
    return int(match[1]), int(match[2] or 0), int(match[3] or 0)


def _compare_version(state: Any, constraint: Any, value: Any) -> bool:
    version = _parse_version(value)
    for part in re.split(r"[,\s]+(?=[<>=~^!]|\d|v)", require_string(constraint).strip()):
        operator, _, number = re.sub(r"^(>=|<=|!=|[<>=~^]?)\s*", r"\1 ", part, count=1).partition(" ")
        bound = _parse_version(number)
        upper_bound = (bound[0] + 1, 0, 0) if operator == "^" else (bound[0], bound[1] + 1, 0)
        is_satisfied = {
            "": version == bound,
            "=": version == bound,
            "!=": version != bound,
            ">": version > bound,
            "<": version < bound,
            ">=": version >= bound,
            "<=": version <= bound,
            "~": bound <= version < upper_bound,
            "^": bound <= version < upper_bound,
        }[operator]
        if not is_satisfied:
            return False
    return True


def _use_default(state: Any, default: Any, value: Any = None) -> Any:
    return value if is_truthy(value) else default


def _concatenate(values: Sequence[Any]) -> list[Any]:
    return [item for value in values for item in require_list(value)]


_GENERAL_FUNCTIONS: Final[Mapping[str, Function]] = {
    "add": _add,
    "add1": lambda state, value: wrap_int64(to_int(value) + 1),
    "sub": lambda state, one, other: wrap_int64(to_int(one) - to_int(other)),
    "mul": _multiply,
    "div": lambda state, one, other: _divide(to_int(one), to_int(other)),
    "mod": lambda state, one, other: to_int(one) - to_int(other) * _divide(to_int(one), to_int(other)),
    "max": lambda state, *values: max(map(to_int, values)),
    "min": lambda state, *values: min(map(to_int, values)),
    "ceil": _build_rounding(math.ceil),
    "floor": _build_rounding(math.floor),
    "round": _round,
    "int": lambda state, value: to_int(value),
    "int64": lambda state, value: to_int(value),
    "float64": lambda state, value: to_float(value),
    "atoi": lambda state, value: to_int(value) if isinstance(value, str) else 0,
    "until": lambda state, stop: _build_range(state, 0, to_int(stop), 1 if to_int(stop) >= 0 else -1),
    "untilStep": lambda state, start, stop, step: _build_range(state, to_int(start), to_int(stop), to_int(step)),
    "seq": _format_sequence,
    "default": _use_default,
    "empty": lambda state, value: not is_truthy(value),
    "coalesce": lambda state, *values: next((item for item in values if is_truthy(item)), None),
    "all": lambda state, *values: all(map(is_truthy, values)),
    "any": lambda state, *values: any(map(is_truthy, values)),
    "ternary": lambda state, one, other, test: one if test is True else other,
    "fail": _fail,
    "required": _required,
    "list": lambda state, *values: list(values),
    "tuple": lambda state, *values: list(values),
    "first": lambda state, value: next(iter(require_list(value)), None),
    "last": lambda state, value: require_list(value)[-1] if value else None,
    "rest": lambda state, value: require_list(value)[1:],
    "initial": lambda state, value: require_list(value)[:-1],
    "append": lambda state, value, item: [*require_list(value), item],
    "push": lambda state, value, item: [*require_list(value), item],
    "prepend": lambda state, value, item: [item, *require_list(value)],
    "concat": lambda state, *values: _concatenate(values),
    "reverse": lambda state, value: require_list(value)[::-1],
    "uniq": _unique,
    "without": lambda state, value, *gone: [item for item in require_list(value) if item not in gone],
    "has": lambda state, item, value: value is not None and item in require_list(value),
    "compact": lambda state, value: [item for item in require_list(value) if is_truthy(item)],
    "dict": _build_dict,
    "get": lambda state, value, name: _require_map(value).get(require_string(name), ""),
    "set": _set_key,
    "unset": _delete_key,
    "hasKey": lambda state, value, name: require_string(name) in _require_map(value),
    "pluck": lambda state, name, *values: [item[name] for item in values if require_string(name) in _require_map(item)],
    "keys": lambda state, *values: sorted(name for item in values for name in _require_map(item)),
    "values": lambda state, value: list(_require_map(value).values()),
    "pick": lambda state, value, *names: {name: value[name] for name in names if name in _require_map(value)},
    "omit": lambda state, value, *names: {
        name: item for name, item in _require_map(value).items() if name not in names
    },
    "merge": _merge,
    "mergeOverwrite": lambda state, into, *others: _merge(state, into, *others, overwrite=True),
    "dig": _dig,
    "deepCopy": lambda state, value: copy.deepcopy(value),
    "toJson": lambda state, value: _escape_html(_encode_json(value)),
    "toRawJson": lambda state, value: _encode_json(value),
    "toPrettyJson": lambda state, value: _escape_html(_encode_json(value, orjson.OPT_INDENT_2)),
    "fromJson": _decode_json,
    "kindOf": lambda state, value: _get_kind(value),
    "kindIs": lambda state, kind, value: _get_kind(value) == kind,
    "typeOf": lambda state, value: _get_kind(value),
    "typeIs": lambda state, kind, value: _get_kind(value) == kind,
    "deepEqual": lambda state, one, other: one == other and isinstance(one, bool) == isinstance(other, bool),
    "now": lambda state: go_time.GoTime(state.now),
    "date": lambda state, layout, value: go_time.format_time(to_time(state, value).moment, require_string(layout)),
    "htmlDate": lambda state, value: go_time.format_time(to_time(state, value).moment, "2006-01-02"),
    "dateInZone": lambda state, layout, value, zone: go_time.format_time(
        go_time.convert_to_zone(to_time(state, value), require_string(zone)).moment, require_string(layout)
    ),
    "date_in_zone": lambda state, layout, value, zone: go_time.format_time(
        go_time.convert_to_zone(to_time(state, value), require_string(zone)).moment, require_string(layout)
    ),
    "dateModify": _modify_date,
    "date_modify": _modify_date,
    "toDate": _parse_date,
    "ago": _format_age,
    "unixEpoch": lambda state, value: str(int(to_time(state, value).moment.timestamp())),
    "duration": _format_seconds,
    "durationRound": _round_duration,
    "semver": lambda state, value: dict(zip(("Major", "Minor", "Patch"), _parse_version(value), strict=True)),
    "semverCompare": _compare_version,
}
_MUST_NAMES: Final = (
    "first last rest initial append push prepend reverse uniq without has compact merge mergeOverwrite deepCopy "
    "toJson toRawJson toPrettyJson fromJson toDate dateModify regexFind regexFindAll regexReplaceAll "
    "regexReplaceAllLiteral regexSplit"
)
SPRIG_FUNCTIONS: Final[Mapping[str, Function]] = {
    **STRING_FUNCTIONS,
    **_GENERAL_FUNCTIONS,
    **{
        f"must{name[0].upper()}{name[1:]}": ({**STRING_FUNCTIONS, **_GENERAL_FUNCTIONS})[name]
        for name in _MUST_NAMES.split()
    },
}

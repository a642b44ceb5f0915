"""CEL functions of Kubernetes: quantities, URLs, IP addresses, lists, strings.

In: plain values; types that CEL lacks (a quantity, a URL) are maps with a marker key. Out: plain values.
Never: does I/O. A rule that calls a function missing here is skipped, and the result names the function.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

from argosy.errors import UserError
from argosy.kube.schema import quantity as quantities

_QUANTITY_MARK = "@quantity"


def _parse_quantity(text: str) -> dict[str, str]:
    try:
        return {_QUANTITY_MARK: format(quantities.parse(text).normalize(), "f")}
    except (UserError, ValueError, ArithmeticError) as error:
        raise ValueError(f"quantities must match the regular expression of Kubernetes: {text}") from error


def _is_quantity(text: Any) -> bool:
    try:
        return isinstance(text, str) and bool(_parse_quantity(text))
    except ValueError:
        return False


def _to_decimal(value: Any) -> Decimal:
    if isinstance(value, dict) and _QUANTITY_MARK in value:
        return Decimal(value[_QUANTITY_MARK])
    return Decimal(value)


def _build_quantity(value: Decimal) -> dict[str, str]:
    return {_QUANTITY_MARK: format(value.normalize(), "f")}


def _compare_quantities(left: Any, right: Any) -> int:
    difference = _to_decimal(left) - _to_decimal(right)
    return (difference > 0) - (difference < 0)


def _quantity_to_integer(value: Any) -> int:
    number = _to_decimal(value)
    if number != number.to_integral_value():
        raise ValueError("cannot convert value to integer")
    return int(number)


def _parse_url(text: str) -> dict[str, Any]:
    if not _is_url(text):
        raise ValueError(f"URL parse error during conversion from string: {text}")
    parts = urlsplit(text)
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname or ""
    return {
        "@url": text,
        "scheme": parts.scheme,
        "host": f"{host}:{parts.port}" if parts.port is not None else host,
        "hostname": parts.hostname or "",
        "port": str(parts.port) if parts.port is not None else "",
        "path": parts.path,
        "query": parse_qs(parts.query),
    }


def _is_url(text: Any) -> bool:
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018  urlsplit checks the port on access
    except (ValueError, AttributeError, TypeError):
        return False
    return bool(parts.scheme and (parts.netloc or parts.path)) or str(text).startswith("/")


def _parse_ip(text: str) -> dict[str, Any]:
    address = ipaddress.ip_address(text)
    return {"@ip": str(address), "version": address.version}


def _parse_cidr(text: str) -> dict[str, Any]:
    network = ipaddress.ip_network(text, strict=False)
    return {"@cidr": text, "network": str(network), "prefix": network.prefixlen}


def _build_syntax_check(parse: Callable[[str], Any]) -> Callable[[Any], bool]:
    def check(text: Any) -> bool:
        try:
            parse(text)
        except (ValueError, TypeError):
            return False
        return True

    return check


def _contains_ip(network: dict[str, Any], address: Any) -> bool:
    text = address["@ip"] if isinstance(address, dict) else address
    return ipaddress.ip_address(text) in ipaddress.ip_network(network["network"])


def _contains_cidr(network: dict[str, Any], other: Any) -> bool:
    inner_network = ipaddress.ip_network(other["network"] if isinstance(other, dict) else other, strict=False)
    outer_network = ipaddress.ip_network(network["network"])
    return inner_network.version == outer_network.version and inner_network.subnet_of(outer_network)  # type: ignore[arg-type]


def _format(template: str, values: list[Any]) -> str:
    """Implement `'%s is %d'.format([…])`."""
    remaining_values = iter(values)
    parts = iter(template.split("%"))
    text = next(parts)
    for part in parts:
        if not part:
            text += "%" + next(parts, "")
            continue
        precision, verb, tail = _split_verb(part)
        text += _format_verb(next(remaining_values), verb, precision) + tail
    return text


def _split_verb(part: str) -> tuple[int, str, str]:
    digits = ""
    if part.startswith("."):
        digits = "".join(character for character in part[1:4] if character.isdigit())
        part = part[1 + len(digits) :]
    return int(digits or 6), part[:1], part[1:]


def _format_verb(value: Any, verb: str, precision: int) -> str:
    match verb:
        case "d":
            return str(int(value))
        case "f":
            return f"{value:.{precision}f}"
        case "e":
            return f"{value:.{precision}e}"
        case "b":
            return format(int(value), "b")
        case "o":
            return format(int(value), "o")
        case "x" | "X":
            return value.encode().hex() if isinstance(value, str) else format(int(value), verb)
    return _format_value(value)


def _format_value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case dict():
            return "{" + ", ".join(f"{_format_value(key)}:{_format_value(value[key])}" for key in sorted(value)) + "}"
        case list():
            return "[" + ", ".join(map(_format_value, value)) + "]"
        case float() if value.is_integer():
            return str(int(value))
    return str(value)


def _substring(text: str, first: int, last: int | None = None) -> str:
    end = len(text) if last is None else last
    if not 0 <= first <= end <= len(text):
        raise ValueError(f"index out of range: {first}")
    return text[first:end]


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    parts = list(text) if not separator else text.split(separator, limit - 1 if limit > 0 else -1)
    return parts


def _index_of(values: Any, item: Any, start: int = 0) -> int:
    if isinstance(values, str):
        return values.find(item, start)
    return next((index for index, value in enumerate(values) if index >= start and value == item), -1)


def _last_index_of(values: Any, item: Any) -> int:
    if isinstance(values, str):
        return values.rfind(item)
    return next((index for index in range(len(values) - 1, -1, -1) if values[index] == item), -1)


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise ValueError(f"index out of range: {index}")
    return text[index : index + 1]


def _lower_ascii(text: str) -> str:
    return "".join(character.lower() if character.isascii() else character for character in text)


def _upper_ascii(text: str) -> str:
    return "".join(character.upper() if character.isascii() else character for character in text)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": _parse_quantity,
    "isQuantity": _is_quantity,
    "isGreaterThan": lambda left, right: _compare_quantities(left, right) > 0,
    "isLessThan": lambda left, right: _compare_quantities(left, right) < 0,
    "compareTo": _compare_quantities,
    "add": lambda left, right: _build_quantity(_to_decimal(left) + _to_decimal(right)),
    "sub": lambda left, right: _build_quantity(_to_decimal(left) - _to_decimal(right)),
    "sign": lambda value: _compare_quantities(value, 0),
    "isInteger": lambda value: _to_decimal(value) == _to_decimal(value).to_integral_value(),
    "asInteger": _quantity_to_integer,
    "asApproximateFloat": lambda value: float(_to_decimal(value)),
    "url": _parse_url,
    "isURL": _is_url,
    "getScheme": lambda url: url["scheme"],
    "getHost": lambda url: url["host"],
    "getHostname": lambda url: url["hostname"],
    "getPort": lambda url: url["port"],
    "getEscapedPath": lambda url: url["path"],
    "getQuery": lambda url: url["query"],
    "ip": lambda value: _parse_ip(
        value.partition("/")[0] if isinstance(value, str) else value["@cidr"].partition("/")[0]
    ),
    "isIP": _build_syntax_check(ipaddress.ip_address),
    "isCIDR": lambda text: isinstance(text, str) and "/" in text and _build_syntax_check(_parse_cidr)(text),
    "cidr": _parse_cidr,
    "family": lambda address: address["version"],
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "prefixLength": lambda network: network["prefix"],
    "isSorted": lambda values: all(left <= right for left, right in pairwise(values)),
    "sum": sum,
    "min": min,
    "max": max,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "format": _format,
    "lowerAscii": _lower_ascii,
    "upperAscii": _upper_ascii,
    "trim": lambda text: text.strip(),
    "split": _split,
    "join": lambda values, separator="": separator.join(values),
    "replace": _replace,
    "substring": _substring,
    "charAt": _char_at,
    "reverse": lambda value: value[::-1],
    "abs": lambda value: math.fabs(value) if isinstance(value, float) else abs(value),
}

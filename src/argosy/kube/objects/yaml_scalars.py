"""Resolves YAML scalars as Go programs do.

In: text. Out: JSON values, and numbers in Go's text format. Never: does I/O.

In the dialect KUBERNETES, words of YAML 1.1 such as `yes` are booleans. In the dialect KUSTOMIZE they are strings, and
dates become timestamps.
"""

from __future__ import annotations

import base64
import binascii
import enum
import math
import re
import struct
from typing import Any, Final

from argosy.kube.objects.go_format import find_shortest_digits, format_float

Scalar = str | int | float | bool | None


class YamlDialect(enum.Enum):
    KUBERNETES = "kubernetes"
    KUSTOMIZE = "kustomize"


class ScalarError(ValueError):
    """The text does not match its tag, or has no JSON representation."""


YAML_TAG_PREFIX: Final = "tag:yaml.org,2002:"
INT64_MIN: Final = -(2**63)
UINT64_MAX: Final = 2**64 - 1

_CORE_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
# k8s: sigs.k8s.io/yaml still reads YAML 1.1's words as booleans, one-letter ones too.
SCALAR_WORDS: Final[dict[YamlDialect, dict[str, Scalar]]] = {
    YamlDialect.KUSTOMIZE: _CORE_WORDS,
    YamlDialect.KUBERNETES: {
        **_CORE_WORDS,
        **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
        **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    },
}
TYPED_FIRST_CHARACTERS: Final = frozenset("+-.0123456789yYnNtTfFoO~")
"""Text that starts with any other character is a string."""

UNPRINTABLE: Final = r"\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff\U00010000-\U0010ffff"
"""Characters that Go's writer escapes, for a regex character class; except the tab, where Go versions differ."""

_INT = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]([0-7]+)|0([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_BASES: Final = (16, 2, 8, 8, 10)
# k8s: Go also accepts a sign after `0b` (and, in kustomize, after `0o`), as in `0b+100`.
_SIGN_AFTER_BASE: Final = {
    YamlDialect.KUBERNETES: re.compile(r"0(?P<base>b)(?P<sign>[+-])(?P<digits>[01]+)", re.ASCII),
    YamlDialect.KUSTOMIZE: re.compile(r"0(?P<base>[bo])(?P<sign>[+-])(?P<digits>[0-7]+)", re.ASCII),
}
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
# k8s: a number that starts with a dot is read by Go's own float syntax: `_` only between two digits.
_DOT_FLOAT = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?", re.ASCII)
_BASE60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)(?:"
    r"[Tt](\d\d?):(\d\d?):(\d\d?)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)"
    r"| +(\d\d?):(\d\d?):(\d\d?)(?:[.,](\d+))?)?",
    re.ASCII,
)
_MONTH_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def resolve_scalar(text: str, dialect: YamlDialect) -> Scalar:
    """Return the value of a plain scalar. `.inf` and `.nan` stay floats: see `to_json_number`."""
    if text[:1] not in TYPED_FIRST_CHARACTERS and text:
        return text
    words = SCALAR_WORDS[dialect]
    if text in words:
        return words[text]
    first = text[0]
    if first == ".":
        return _resolve_dot_float(text)
    if first not in "+-0123456789":
        return text
    if dialect is YamlDialect.KUSTOMIZE and (normalized := normalize_timestamp(text)) is not None:
        return normalized
    return _resolve_number(text, dialect)


def _resolve_dot_float(text: str) -> Scalar:
    if _DOT_FLOAT.fullmatch(text):
        value = float(text.replace("_", ""))
        if not math.isinf(value):
            return value
    return text


def _resolve_number(text: str, dialect: YamlDialect) -> Scalar:
    plain = text.replace("_", "")
    if (integer := _parse_integer(plain)) is not None:
        return integer
    if _FLOAT.fullmatch(plain):
        value = float(plain)
        if not math.isinf(value):
            return value
    match = _SIGN_AFTER_BASE[dialect].fullmatch(plain)
    if match and (match["base"] == "o" or set(match["digits"]) <= {"0", "1"}):
        signed = _parse_bounded_integer(match["sign"], match["digits"], 8 if match["base"] == "o" else 2)
        return text if signed is None else signed
    return text


def _parse_integer(plain: str) -> int | None:
    match = _INT.fullmatch(plain)
    if match is None:
        return None
    for base, digits in zip(_BASES, match.groups()[1:]):
        if digits is not None:
            return _parse_bounded_integer(match[1], digits, base)
    return None


def _parse_bounded_integer(sign: str, digits: str, base: int) -> int | None:
    """Parse an int64, or a uint64 without a sign; None if it is out of range. Never converts a long text."""
    digits = digits.lstrip("0") or "0"
    if len(digits) > 64:
        return None
    value = int(digits, base)
    if sign == "-":
        return -value if -value >= INT64_MIN else None
    if sign == "+" and value >= 2**63:
        return None
    return value if value <= UINT64_MAX else None


def normalize_timestamp(text: str) -> str | None:
    """Return the RFC 3339 form of a date or time that Go accepts; None for other text."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day = (int(part) for part in match.group(1, 2, 3))
    if not (1 <= month <= 12 and 1 <= day <= _MONTH_DAYS[month - 1]):
        return None
    if month == 2 and day == 29 and (year % 4 or (year % 100 == 0 and year % 400)):
        return None
    clock = match.group(4, 5, 6) if match[4] else match.group(9, 10, 11)
    hour, minute, second = (int(part or 0) for part in clock)
    if hour > 23 or minute > 59 or second > 59:
        return None
    zone = match[8] or "Z"
    if zone != "Z" and (int(zone[1:3]) > 24 or int(zone[4:6]) > 60):
        return None
    if zone in ("+00:00", "-00:00"):
        zone = "Z"
    fraction = (match[7] or match[12] or "")[:9].rstrip("0")
    point = f".{fraction}" if fraction else ""
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{point}{zone}"


def resolve_tagged_scalar(text: str, tag: str, dialect: YamlDialect) -> Scalar:
    """Return the value of a scalar with an explicit tag; a string if Go does not know the tag."""
    name = tag.removeprefix(YAML_TAG_PREFIX) if tag.startswith(YAML_TAG_PREFIX) else ""
    if name == "binary":
        return _decode_binary(text)
    if name not in ("bool", "int", "float", "null", "timestamp"):
        return text
    value = resolve_scalar(text, dialect)
    if name == "timestamp":
        normalized = normalize_timestamp(text)
        if normalized is not None:
            return normalized if dialect is YamlDialect.KUSTOMIZE else text
    elif name == "float" and type(value) is int:
        return float(value)
    elif _tag_name(value) == name:
        return value
    raise ScalarError(f"cannot decode !!{_tag_name(value)} `{text[:40]}` as a !!{name}: correct the tag or the value")


def _tag_name(value: Scalar) -> str:
    if value is None:
        return "null"
    return {bool: "bool", int: "int", float: "float"}.get(type(value), "str")


def _decode_binary(text: str) -> str:
    try:
        data = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise ScalarError("!!binary value contains invalid base64 data: encode it with base64") from None
    return data.decode("utf-8", "replace")


def to_json_number(number: float) -> int | float:
    """Return the number that remains after Go wrote a float as JSON and read it back: 1.0 and 1e3 become integers."""
    if not math.isfinite(number):
        raise ScalarError(f"{_format_non_finite(number)} cannot be written as JSON: use a finite number, or quote it")
    if not number.is_integer() or abs(number) >= 1e21:
        return number
    whole = int(number) if abs(number) < 2**53 else _to_shortest_integer(number)
    return whole if INT64_MIN <= whole <= UINT64_MAX else number


def _to_shortest_integer(number: float) -> int:
    """Return the integer with the shortest digits of a float, padded with zeros."""
    digits, power = find_shortest_digits(abs(number))
    whole = int(digits.ljust(power + 1, "0"))
    return -whole if number < 0 else whole


def _format_non_finite(number: float) -> str:
    return ".nan" if math.isnan(number) else ".inf" if number > 0 else "-.inf"


def format_key(key: Any) -> str:
    """Convert a YAML key to a JSON object key, as the Kubernetes tools do."""
    if type(key) is str:
        return key
    if key is True or key is False:
        return "true" if key else "false"
    if type(key) is int and key < 2**63:
        return str(key)
    if type(key) is float:
        return _format_float32(key)
    # k8s: sigs.k8s.io/yaml does not support keys that are null or beyond int64.
    raise ScalarError(f"unsupported map key {'null' if key is None else key}: put it in quotes")


def _format_float32(number: float) -> str:
    # k8s: float keys are printed with the precision of a 32-bit float.
    try:
        single = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        single = math.inf if number > 0 else -math.inf
    if not math.isfinite(single):
        return _format_non_finite(single)
    for precision in range(1, 10):
        text = f"{single:.{precision}g}"
        if struct.pack("f", float(text)) == struct.pack("f", single):
            return format_float(float(text))
    return format_float(single)


_UNFOLDABLE = re.compile(rf" (?:\n|\Z)|[{UNPRINTABLE}]")
_BEFORE_INDENTED = re.compile(r"^([^\n \t].*)(\n+)(?=[ \t])", re.MULTILINE)
_BEFORE_KEPT_END = re.compile(r"^([^\n \t].*\n)(\n+)\Z", re.MULTILINE)
_BETWEEN_LINES = re.compile(r"^([^\n \t].*)\n(\n+)(?=[^\n \t])", re.MULTILINE)
_BETWEEN_NEAR_LINES = re.compile(r"^([^\n \t].*)\n(?=[^\n \t])", re.MULTILINE)


def refold_as_kustomize(text: str) -> str:
    """Return a folded (`>`) scalar after kustomize wrote it and read it back.

    k8s: Go's writer adds a line break after a line. The break vanishes when the lines are folded again, but stays
    before a line with more indentation and at a kept end. If the text starts with whitespace, Go omits the break.
    """
    if "\n" not in text or len(text) > 1_000_000 or _UNFOLDABLE.search(text):
        return text
    if text.lstrip("\n")[:1] in (" ", "\t", ""):
        return _BETWEEN_LINES.sub(r"\1\2", _BETWEEN_NEAR_LINES.sub(r"\1 ", text))
    return _BEFORE_KEPT_END.sub(r"\1\n\2", _BEFORE_INDENTED.sub(r"\1\n\2", text))


def needs_quotes(text: str) -> bool:
    """True if Go's writer quotes the string, because unquoted it would be read as another type."""
    if not text:
        return True
    first = text[0]
    if first not in TYPED_FIRST_CHARACTERS:
        return False
    if resolve_scalar(text, YamlDialect.KUBERNETES) is not text:
        return True
    return first in "+-0123456789" and (normalize_timestamp(text) is not None or bool(_BASE60.fullmatch(text)))

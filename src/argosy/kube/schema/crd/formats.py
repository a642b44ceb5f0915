"""Checks of the string formats in custom schemas.

In: the name of a format and a string. Out: whether the string matches. Never: rejects an unknown format
(`find_format_check` returns None).
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime, time
from urllib.parse import urlsplit

FormatCheck = Callable[[str], bool]


def _build_pattern_check(pattern: str, flags: int = 0) -> FormatCheck:
    compiled = re.compile(pattern, flags | re.ASCII)
    return lambda text: len(text) <= 2048 and compiled.fullmatch(text) is not None


def _build_parser_check(parse: Callable[[str], object]) -> FormatCheck:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return check


_DATETIME_PATTERN = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII)


def _is_datetime(text: str) -> bool:
    match = _DATETIME_PATTERN.fullmatch(text)
    if match is None:
        return False
    try:
        date.fromisoformat(match.group(1))
        time(int(match.group(2)), int(match.group(3)), int(match.group(4)))
    except ValueError:
        return False
    return True


_is_hostname = _build_pattern_check(
    r"([a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.?"
)


def _is_uri(text: str) -> bool:
    """Check like Go's url.ParseRequestURI: an absolute URI, or a path from the root."""
    if not text or any(character <= " " or character == "\x7f" for character in text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _is_isbn(text: str) -> bool:
    return _is_isbn10(text) or _is_isbn13(text)


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"\d{9}[\dX]", digits, re.ASCII):
        return False
    return sum((10 - index) * (10 if digit == "X" else int(digit)) for index, digit in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"\d{13}", digits, re.ASCII):
        return False
    return sum(int(digit) * (3 if index % 2 else 1) for index, digit in enumerate(digits)) % 10 == 0


_HEX = "[0-9a-f]"
_DURATION_PATTERN = re.compile(
    r"[+-]?(\d+(\.\d*)?|\.\d+)\s*(ns|us|µs|μs|ms|s|m|h|d|w|nano|micro|milli|second|minute|hour|day|week)s?"
)


def _is_duration(text: str) -> bool:
    """Accept Go's `1h30m`, or a number with a spelled-out unit."""
    remaining = text.strip()
    if remaining in ("0", "+0", "-0"):
        return True
    while remaining:
        match = _DURATION_PATTERN.match(remaining)
        if match is None:
            return False
        remaining = remaining[match.end() :].lstrip()
    return bool(text.strip())


FORMAT_CHECKS: dict[str, FormatCheck] = {
    "bsonobjectid": _build_pattern_check(r"[0-9a-fA-F]{24}"),
    "uri": _is_uri,
    "email": _build_pattern_check(r"(?:[^@<>\s]+|\"[^\"]+\")@[^@<>\s]+|[^<>@]*<[^@<>\s]+@[^@<>\s]+>"),
    "hostname": lambda text: len(text) <= 255 and _is_hostname(text),
    "ipv4": _build_parser_check(ipaddress.IPv4Address),
    "ipv6": _build_parser_check(ipaddress.IPv6Address),
    "cidr": lambda text: (
        "/" in text and _build_parser_check(lambda network: ipaddress.ip_network(network, strict=False))(text)
    ),
    "mac": _build_pattern_check(
        r"(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}"
    ),
    "uuid": _build_pattern_check(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}", re.IGNORECASE),
    "uuid3": _build_pattern_check(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}", re.IGNORECASE),
    "uuid4": _build_pattern_check(
        rf"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}", re.IGNORECASE
    ),
    "uuid5": _build_pattern_check(
        rf"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}", re.IGNORECASE
    ),
    "isbn": _is_isbn,
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": lambda text: 13 <= len(re.sub(r"[^0-9]", "", text)) <= 16,
    "ssn": _build_pattern_check(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _build_pattern_check(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _build_pattern_check(r"rgb\(\s*(25[0-5]|2[0-4]\d|1?\d?\d)\s*(,\s*(25[0-5]|2[0-4]\d|1?\d?\d)\s*){2}\)"),
    "byte": _build_parser_check(lambda text: base64.b64decode(text, validate=True)),
    "password": lambda text: True,
    "date": _build_parser_check(lambda text: datetime.strptime(text, "%Y-%m-%d")),
    "duration": _is_duration,
    "datetime": _is_datetime,
}


def find_format_check(name: str) -> FormatCheck | None:
    """Return the check of a format as a schema names it (`date-time`, `ipv4`), None if it is unknown."""
    return FORMAT_CHECKS.get(name.replace("-", ""))

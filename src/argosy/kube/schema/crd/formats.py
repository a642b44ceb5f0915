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
from datetime import date, datetime
from urllib.parse import urlsplit

Check = Callable[[str], bool]


def _shape(pattern: str, flags: int = 0) -> Check:
    compiled = re.compile(pattern, flags | re.ASCII)
    return lambda text: len(text) <= 2048 and compiled.fullmatch(text) is not None


def _succeeds(read: Callable[[str], object]) -> Check:
    def check(text: str) -> bool:
        try:
            read(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return check


_DATETIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII)


def _datetime(text: str) -> bool:
    match = _DATETIME.fullmatch(text)
    if match is None:
        return False
    try:
        date.fromisoformat(match.group(1))
        datetime.strptime(match.group(2), "%H:%M:%S")
    except ValueError:
        return False
    return True


_HOSTNAME = _shape(
    r"([a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.?"
)


def _uri(text: str) -> bool:
    """Check like Go's url.ParseRequestURI: an absolute URI, or a path from the root."""
    if not text or any(character <= " " or character == "\x7f" for character in text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _isbn(text: str) -> bool:
    return _isbn10(text) or _isbn13(text)


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"\d{9}[\dX]", digits, re.ASCII):
        return False
    return sum((10 - place) * (10 if digit == "X" else int(digit)) for place, digit in enumerate(digits)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"\d{13}", digits, re.ASCII):
        return False
    return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10 == 0


_HEX = "[0-9a-f]"
_DURATION = re.compile(
    r"[+-]?(\d+(\.\d*)?|\.\d+)\s*(ns|us|µs|μs|ms|s|m|h|d|w|nano|micro|milli|second|minute|hour|day|week)s?"
)


def _duration(text: str) -> bool:
    """Accept Go's `1h30m`, or a number with a spelled-out unit."""
    rest = text.strip()
    if rest in ("0", "+0", "-0"):
        return True
    while rest:
        match = _DURATION.match(rest)
        if match is None:
            return False
        rest = rest[match.end() :].lstrip()
    return bool(text.strip())


CHECKS: dict[str, Check] = {
    "bsonobjectid": _shape(r"[0-9a-fA-F]{24}"),
    "uri": _uri,
    "email": _shape(r"(?:[^@<>\s]+|\"[^\"]+\")@[^@<>\s]+|[^<>@]*<[^@<>\s]+@[^@<>\s]+>"),
    "hostname": lambda text: len(text) <= 255 and _HOSTNAME(text),
    "ipv4": _succeeds(ipaddress.IPv4Address),
    "ipv6": _succeeds(ipaddress.IPv6Address),
    "cidr": lambda text: "/" in text and _succeeds(lambda each: ipaddress.ip_network(each, strict=False))(text),
    "mac": _shape(
        r"(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}"
    ),
    "uuid": _shape(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}", re.IGNORECASE),
    "uuid3": _shape(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}", re.IGNORECASE),
    "uuid4": _shape(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}", re.IGNORECASE),
    "uuid5": _shape(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}", re.IGNORECASE),
    "isbn": _isbn,
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": lambda text: 13 <= len(re.sub(r"[^0-9]", "", text)) <= 16,
    "ssn": _shape(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _shape(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _shape(r"rgb\(\s*(25[0-5]|2[0-4]\d|1?\d?\d)\s*(,\s*(25[0-5]|2[0-4]\d|1?\d?\d)\s*){2}\)"),
    "byte": _succeeds(lambda text: base64.b64decode(text, validate=True)),
    "password": lambda text: True,
    "date": _succeeds(lambda text: datetime.strptime(text, "%Y-%m-%d")),
    "duration": _duration,
    "datetime": _datetime,
}


def check_of(name: str) -> Check | None:
    """Return the check of a format as a schema names it (`date-time`, `ipv4`), None if it is unknown."""
    return CHECKS.get(name.replace("-", ""))

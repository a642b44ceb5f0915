"""Template filters: format times, revisions, sizes and URLs.

In: values from manifests and users. Out: short text, or markup built only here. Never: returns a URL that is not a path
of this site or http(s); raises on invalid input.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime
from html import escape
from typing import Any
from urllib.parse import urlsplit

from minijinja import safe

from argosy.kube.objects.timestamps import written

ODD = re.compile(r"[\s\x00-\x1f\\]")
HEX = frozenset("0123456789abcdef")
PICTURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8"}
STEPS = ((86400 * 365, "y"), (86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def href(address: Any) -> str:
    """Return a URL that is safe in a link, or "": a path of this site, or http(s)."""
    text = str(address or "")
    if ODD.search(text) or text.startswith("//"):
        return ""
    if text[:1] == "/":  # a path of this site
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    if parts.scheme:
        return text if parts.scheme.lower() in ("http", "https") and parts.netloc else ""
    return text if text[:1] in ("/", "?", "#") else ""


def local(address: Any) -> str:
    """Return a path of this site, or ""; forms redirect nowhere else."""
    found = href(address)
    return found if found.startswith("/") else ""


def picture(encoded: Any, media: str = "image/png") -> str:
    """Return an inline image; "" if the bytes do not match the media type."""
    text = "".join(str(encoded or "").split())
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ""
    begins = PICTURES.get(media)
    return f"data:{media};base64,{text}" if begins and data.startswith(begins) else ""


def short(revision: Any) -> str:
    """Shorten a commit to 7 characters and a digest to 12; leave other text as it is."""
    text = str(revision or "")
    algorithm, colon, digest = text.partition(":")
    if colon and algorithm.startswith("sha") and set(digest) <= HEX:
        return f"{algorithm}:{digest[:12]}"
    return text[:7] if len(text) >= 40 and set(text) <= HEX else text


def amount(size: Any) -> str:
    """Format a number of bytes."""
    number = float(size or 0)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(number) < 1024:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def plural(number: Any, word: str, words: str = "") -> str:
    """`1 app`, `3 apps`, `2 entries`."""
    count = int(number or 0)
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def lasting(seconds: Any) -> str:
    """Format a duration: `640 ms`, `12 s`, `3 min 4 s`, `2 h 10 min`."""
    if seconds is None:
        return ""
    left = max(0.0, float(seconds))
    if left < 1:
        return f"{left * 1000:.0f} ms"
    whole = int(left)
    said: list[str] = []
    for length, unit in STEPS:
        if whole >= length and len(said) < 2:
            said.append(f"{whole // length} {unit}")
            whole %= length
        elif said:
            break
    return " ".join(said)


class Times:
    """Renders times as <time> elements: relative text, exact time as the title."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def ago(self, when: Any, never: str = "never") -> str:
        """`3 min ago`; the page's script updates it."""
        found = _moment(when)
        if found is None:
            return _markup(f'<span class="dim">{escape(never)}</span>')
        passed = (self._now() - found).total_seconds()
        return _element(found, since(passed), " data-ago")

    def clock(self, when: Any) -> str:
        """`12:03:07`, with the date if it is not today."""
        found = _moment(when)
        if found is None:
            return ""
        is_today = found.date() == self._now().date()
        return _element(found, found.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S"), "")


def since(seconds: float) -> str:
    """Format the distance from now in one unit, with the same words as the page's script."""
    passed = abs(seconds)
    if passed < 5:
        return "just now"
    length, unit = next((step for step in STEPS if passed >= step[0]), STEPS[-1])
    said = f"{int(passed // length)} {unit}"
    return f"{said} ago" if seconds > 0 else f"in {said}"


def _element(when: datetime, text: str, mark: str) -> str:
    title = when.strftime("%Y-%m-%d %H:%M:%S UTC")
    return _markup(f'<time datetime="{written(when)}" title="{title}"{mark}>{escape(text)}</time>')


def _markup(text: str) -> str:
    made: str = safe(text)
    return made


def _moment(when: Any) -> datetime | None:
    if isinstance(when, datetime):
        return when.astimezone(UTC)
    if isinstance(when, int | float) and not isinstance(when, bool):
        return datetime.fromtimestamp(when, UTC)
    try:
        found = datetime.fromisoformat(str(when)) if when else None
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC) if found else None

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

from argosy.kube.objects.timestamps_and_delays import format_timestamp

UNSAFE_CHARACTERS = re.compile(r"[\s\x00-\x1f\\]")
HEX_DIGITS = frozenset("0123456789abcdef")
IMAGE_SIGNATURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8"}
TIME_UNITS = ((86400 * 365, "y"), (86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def get_safe_url(address: Any) -> str:
    """Return a URL that is safe in a link, or "": a path of this site, or http(s)."""
    text = str(address or "")
    if UNSAFE_CHARACTERS.search(text) or text.startswith("//"):
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


def get_safe_path(address: Any) -> str:
    """Return a path of this site, or ""; forms redirect nowhere else."""
    url = get_safe_url(address)
    return url if url.startswith("/") else ""


def build_data_url(encoded: Any, media: str = "image/png") -> str:
    """Return an inline image; "" if the bytes do not match the media type."""
    text = "".join(str(encoded or "").split())
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ""
    signature = IMAGE_SIGNATURES.get(media)
    return f"data:{media};base64,{text}" if signature and data.startswith(signature) else ""


def shorten_revision(revision: Any) -> str:
    """Shorten a commit to 7 characters and a digest to 12; leave other text as it is."""
    text = str(revision or "")
    algorithm, colon, digest = text.partition(":")
    if colon and algorithm.startswith("sha") and set(digest) <= HEX_DIGITS:
        return f"{algorithm}:{digest[:12]}"
    return text[:7] if len(text) >= 40 and set(text) <= HEX_DIGITS else text


def format_bytes(size: Any) -> str:
    """Format a number of bytes."""
    number = float(size or 0)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(number) < 1024:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def format_count(number: Any, word: str, words: str = "") -> str:
    """`1 app`, `3 apps`, `2 entries`."""
    count = int(number or 0)
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def format_duration(seconds: Any) -> str:
    """Format a duration: `640 ms`, `12 s`, `3 min 4 s`, `2 h 10 min`."""
    if seconds is None:
        return ""
    remaining = max(0.0, float(seconds))
    if remaining < 1:
        return f"{remaining * 1000:.0f} ms"
    whole_seconds = int(remaining)
    words: list[str] = []
    for length, unit in TIME_UNITS:
        if whole_seconds >= length and len(words) < 2:
            words.append(f"{whole_seconds // length} {unit}")
            whole_seconds %= length
        elif words:
            break
    return " ".join(words)


class TimeFilters:
    """Renders times as <time> elements: relative text, exact time as the title."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def ago(self, when: Any, never: str = "never") -> str:
        """`3 min ago`; the page's script updates it."""
        moment = _parse_time(when)
        if moment is None:
            return _mark_safe(f'<span class="dim">{escape(never)}</span>')
        elapsed = (self._now() - moment).total_seconds()
        return _render_time_element(moment, format_relative_time(elapsed), " data-ago")

    def clock(self, when: Any) -> str:
        """`12:03:07`, with the date if it is not today."""
        moment = _parse_time(when)
        if moment is None:
            return ""
        is_today = moment.date() == self._now().date()
        return _render_time_element(moment, moment.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S"), "")


def format_relative_time(seconds: float) -> str:
    """Format the distance from now in one unit, with the same words as the page's script."""
    elapsed = abs(seconds)
    if elapsed < 5:
        return "just now"
    length, unit = next((step for step in TIME_UNITS if elapsed >= step[0]), TIME_UNITS[-1])
    distance = f"{int(elapsed // length)} {unit}"
    return f"{distance} ago" if seconds > 0 else f"in {distance}"


def _render_time_element(when: datetime, text: str, attributes: str) -> str:
    title = when.strftime("%Y-%m-%d %H:%M:%S UTC")
    return _mark_safe(f'<time datetime="{format_timestamp(when)}" title="{title}"{attributes}>{escape(text)}</time>')


def _mark_safe(text: str) -> str:
    markup: str = safe(text)
    return markup


def _parse_time(when: Any) -> datetime | None:
    if isinstance(when, datetime):
        return when.astimezone(UTC)
    if isinstance(when, int | float) and not isinstance(when, bool):
        return datetime.fromtimestamp(when, UTC)
    try:
        moment = datetime.fromisoformat(str(when)) if when else None
    except ValueError:
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC) if moment else None

"""How a secret text may be told: as it is, escaped once, twice or three times, and encoded.

In: a text. Out: bytes to look for. Never: more than a bound, however many signs of it have to be escaped.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, quote_plus

import orjson

LEAST: Final = 7  # bytes of what is looked for
DEEP: Final = 3  # a page shows YAML that quotes JSON that has it in a text
MOST: Final = 60  # forms of one text
_ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")
_ALIEN: Final = re.compile(r"[^\x00-\x7f]")
_GO: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def forms(value: str) -> Iterator[bytes]:
    raw = value.encode("utf-8", "replace")
    yield from (told for each in _escaped(raw.decode()) if len(told := each.encode()) >= LEAST)
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    for told in _encoded(raw):
        yield told
        if b"+" in told or b"/" in told:
            yield told.translate(bytes.maketrans(b"+/", b"-_"))


def _escaped(value: str) -> list[str]:
    """A value of letters and digits has one form; each sign that is escaped somewhere makes more."""
    found = dict.fromkeys([value])
    newest = [value, value.replace("'", "''")]
    for depth in range(DEEP):
        made = [told for each in newest for told in _once(each, is_plain=depth == 0)]
        newest = [each for each in dict.fromkeys(made) if each not in found]
        found.update(dict.fromkeys(newest))
        if not newest or len(found) > MOST:
            break
    return list(found)[:MOST]


def _once(text: str, *, is_plain: bool) -> Iterator[str]:
    yield text
    inner = orjson.dumps(text).decode()[1:-1]
    yield inner
    yield html.escape(text)
    if is_plain:
        yield inner.translate(_GO)  # as programs in Go write it
        yield json.dumps(text)[1:-1]  # with nothing but ASCII
        yield _ASTRAL.sub(_yaml, inner)  # as YAML in quotes, which keeps most letters, or none but ASCII
        yield _ALIEN.sub(_yaml, inner)
        yield quote(text, safe="")
        yield quote(text)
        yield quote_plus(text)


def _yaml(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02X}" if number < 0x100 else f"\\u{number:04X}" if number < 0x10000 else f"\\U{number:08X}"


def _encoded(raw: bytes) -> Iterator[bytes]:
    """As base64, at whichever place of a longer text it begins; only what does not depend on what is around it."""
    yield base64.b64encode(raw)
    yield base64.b64encode(raw + b"\n")
    for skipped in range(3):
        whole = raw[skipped : skipped + (len(raw) - skipped) // 3 * 3]
        if len(whole) >= LEAST - 1:
            yield base64.b64encode(whole)

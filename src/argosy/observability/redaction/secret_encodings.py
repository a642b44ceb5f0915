"""Encodings in which a secret text may appear: plain, escaped up to three times, base64, hex.

In: a text. Out: bytes to search for. Never: more than a bound, however many of its characters need escaping.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from itertools import islice
from json.encoder import encode_basestring
from typing import Final
from urllib.parse import quote, quote_plus

MIN_FORM_BYTES: Final = 7  # minimum length of a search form
MAX_ESCAPE_LEVELS: Final = 3  # e.g. a page shows YAML that quotes JSON with the value in a string
MAX_ESCAPED_FORMS: Final = 60  # forms per text
_ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")
_NON_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_GO_ESCAPES: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_PERCENT_ENCODING: Final = re.compile("%[0-9A-F]{2}")
_URL_FORM_NAMES: Final = {"plain segment", "plain path", "plain query", "base64", "base64 url"}
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


def iter_forms(value: str) -> Iterator[bytes]:
    yield from (form for _, form in iter_named_forms(value))


def list_url_forms(value: str) -> set[str]:
    """Return a value as written, percent-encoded as git and hosts do, and in base64 without its padding."""
    forms = {name: form.decode() for name, form in iter_named_forms(value, min_bytes=1) if name in _URL_FORM_NAMES}
    percent_encoded = {_PERCENT_ENCODING.sub(lambda match: match[0].lower(), form) for form in forms.values()}
    return {value, *percent_encoded, *(form.rstrip("=") if "base64" in name else form for name, form in forms.items())}


def iter_named_forms(value: str, min_bytes: int = MIN_FORM_BYTES) -> Iterator[tuple[str, bytes]]:
    """Yield each form with the name of its encoding. Texts whose characters are escaped alike have the same names."""
    raw = value.encode("utf-8", "replace")
    yield from (
        (name, form)
        for text, name in _build_escaped_forms(raw.decode()).items()
        if len(form := text.encode()) >= min_bytes
    )
    yield "hex", raw.hex().encode()
    yield "HEX", raw.hex().upper().encode()
    for name, encoded in _base64_forms(raw):
        yield name, encoded
        yield f"{name} url", encoded.translate(_URL_SAFE)


def _build_escaped_forms(value: str) -> dict[str, str]:
    """Return the escaped forms of a value, each with its name. A value of letters and digits has one form; each
    character that some format escapes adds more.
    """
    names = {value: "plain"}
    newest = dict(names)
    newest.setdefault(value.replace("'", "''"), "doubled")
    for depth in range(MAX_ESCAPE_LEVELS):
        escaped: dict[str, str] = {}
        for text, name in newest.items():
            for encoder, form in _escape_once(text, is_unescaped=depth == 0):
                if form not in names:
                    escaped.setdefault(form, f"{name} {encoder}")
        newest = escaped
        names |= newest
        if not newest or len(names) > MAX_ESCAPED_FORMS:
            break
    return dict(islice(names.items(), MAX_ESCAPED_FORMS))


def _escape_once(text: str, *, is_unescaped: bool) -> Iterator[tuple[str, str]]:
    yield "", text
    inner = encode_basestring(text)[1:-1]
    yield "json", inner
    yield "html", html.escape(text)
    if is_unescaped:
        yield "go", inner.translate(_GO_ESCAPES)  # as Go programs write it
        yield "ascii", json.dumps(text)[1:-1]  # ASCII only
        yield "yaml", _ASTRAL.sub(_escape_for_yaml, inner)  # quoted YAML, which keeps most characters, or only ASCII
        yield "ascii yaml", _NON_ASCII.sub(_escape_for_yaml, inner)
        yield "segment", quote(text, safe="")
        yield "path", quote(text)
        yield "query", quote_plus(text)


def _escape_for_yaml(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02X}" if number < 0x100 else f"\\u{number:04X}" if number < 0x10000 else f"\\U{number:08X}"


def _base64_forms(raw: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield base64 forms at each alignment within a longer text, without parts that depend on the surrounding text."""
    yield "base64", base64.b64encode(raw)
    yield "base64 line", base64.b64encode(raw + b"\n")
    for skipped in range(3):
        aligned = raw[skipped : skipped + (len(raw) - skipped) // 3 * 3]
        if len(aligned) >= MIN_FORM_BYTES - 1:
            yield f"base64 from {skipped}", base64.b64encode(aligned)

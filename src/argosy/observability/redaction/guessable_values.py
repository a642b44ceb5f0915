"""Decides which secret values can be guessed, because they are short or simple.

In: values, and forms in which a text may quote them. Out: yes or no, and search forms. Never: shows a value in a repr.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final
from urllib.parse import unquote

from argosy.kube.objects import Manifest
from argosy.observability.redaction.secret_encodings import iter_forms
from argosy.observability.redaction.secret_text_extraction import extract_secret_texts

UNGUESSABLE_LENGTH: Final = 20  # at least 64 bits if the characters are random
MAX_ESCAPES: Final = 3  # same depth as the search forms
ESCAPE: Final = re.compile(r"\\+(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|.)")
MAX_CUT_BYTES: Final = 3  # cut-off bytes of a character at either end
UNGUESSABLE_CHARACTERS: Final = 10  # distinct characters


class GuessableForms(frozenset[bytes]):
    """Search forms of guessable values. Its repr shows none of them."""

    def __repr__(self) -> str:
        return f"<{len(self)} forms>"


NO_FORMS: Final = GuessableForms()


def is_guessable(form: bytes) -> bool:
    """True if a form, or a part of a value, is short or simple enough to be guessed. For a whole value use
    `is_guessable_value`: a part of a random value may be base64 of a text by chance.
    """
    text = form.decode("utf-8", "replace")
    spellings = [text, unquote(text), unescape(text)]
    for decode in (bytes.fromhex, base64.b64decode, base64.urlsafe_b64decode):
        with suppress(ValueError, binascii.Error):
            spellings += _iter_printable_texts(decode(text))
    return any(map(_is_short_or_plain, spellings))


def find_guessable_forms(secret: Manifest) -> GuessableForms:
    """Return all forms of a Secret's guessable values. The whole value decides about each form."""
    return GuessableForms(
        form for text in extract_secret_texts(secret).short if is_guessable_value(text) for form in iter_forms(text)
    )


def is_guessable_value(value: str) -> bool:
    """True if a whole value, or the text that it encodes as a whole, is short or simple."""
    decoded = [data.decode("utf-8", "replace").strip() for data in _iter_decoded(value)]
    printable = [text for text in decoded if text.isprintable() and "\ufffd" not in text]
    return any(map(_is_short_or_plain, [value, unquote(value), unescape(value), *printable]))


def _iter_decoded(value: str) -> Iterator[bytes]:
    with suppress(ValueError):
        yield bytes.fromhex(value)
    with suppress(ValueError, binascii.Error):
        standard = value.translate(str.maketrans("-_", "+/"))
        yield base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)


def unescape(text: str) -> str:
    """Remove escapes of HTML, JSON and YAML, up to MAX_ESCAPES times."""
    for _ in range(MAX_ESCAPES):
        text = ESCAPE.sub(_escaped_character, html.unescape(text))
    return text


def _escaped_character(match: re.Match[str]) -> str:
    return chr(min(int(match[1][1:], 16), sys.maxunicode)) if len(match[1]) > 1 else match[1]


def _iter_printable_texts(data: bytes) -> Iterator[str]:
    """Yield the text of decoded bytes. A part of a value may begin or end within a character, or with a newline."""
    for first in range(MAX_CUT_BYTES + 1):
        for last in range(MAX_CUT_BYTES + 1):
            with suppress(UnicodeDecodeError):
                text = data[first : len(data) - last].decode().strip()
                if text and text.isprintable():
                    yield text
                    return


def _is_short_or_plain(text: str) -> bool:
    has_mixture = any(map(str.isdigit, text)) or (text.lower() != text and text.upper() != text)
    return len(text) < UNGUESSABLE_LENGTH or len(set(text)) < UNGUESSABLE_CHARACTERS or not has_mixture

"""Words of four bytes, by which many texts are looked for in some data at once.

In: data, or a text to look for. Out: words. Never: a text that stands in the data, and whose words do not.

Every fourth byte of the data begins a word. Wherever a text stands in it, one of the first four bytes of the text
begins a word of the data, and so does every fourth byte of the text after that one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

WORD: Final = 4  # bytes


def list_words(data: bytes) -> set[int]:
    """Return the words of some data."""
    return set(memoryview(data)[: len(data) // WORD * WORD].cast("I"))


def list_first_words(text: bytes) -> set[int]:
    """Return the words that the first bytes of a text begin: one of them is in any data that has the text."""
    return {_read_word(text, at) for at in range(WORD)}


def may_have(words: set[int], text: bytes) -> bool:
    """True if the text may stand in the data of the words: if the words of one alignment are all among them."""
    return any(all(_read_word(text, at) in words for at in _places(text, first)) for first in range(WORD))


def _places(text: bytes, first: int) -> Iterable[int]:
    return range(first, len(text) - WORD + 1, WORD)


def _read_word(text: bytes, at: int) -> int:
    return int.from_bytes(text[at : at + WORD], sys.byteorder)

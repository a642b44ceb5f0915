"""Words of four bytes, by which many texts are looked for in some data at once.

In: data, or a text to look for. Out: words. Never: a text that stands in the data, and whose words do not; a
text of fewer than seven bytes, which may have no whole word.

Every fourth byte of the data begins a word. Wherever a text stands in it, one of the first four bytes of the text
begins a word of the data, and so does every fourth byte of the text after that one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

WORD_BYTES: Final = 4
MIN_TEXT_BYTES: Final = 2 * WORD_BYTES - 1  # wherever such a text stands in some data, it has one whole word of it


def list_words(data: bytes) -> set[int]:
    """Return the words of some data."""
    return set(memoryview(data)[: len(data) // WORD_BYTES * WORD_BYTES].cast("I"))


def list_first_words(text: bytes) -> set[int]:
    """Return the words that the first bytes of a text begin: one of them is in any data that has the text."""
    assert len(text) >= MIN_TEXT_BYTES, "a shorter text may have no whole word of the data"
    return {_read_word(text, at) for at in range(WORD_BYTES)}


def may_contain(words: set[int], text: bytes) -> bool:
    """True if the text may stand in the data of the words: if the words of one alignment are all among them."""
    assert len(text) >= MIN_TEXT_BYTES, "a shorter text may have no whole word of the data"
    return any(all(_read_word(text, at) in words for at in _places(text, first)) for first in range(WORD_BYTES))


def _places(text: bytes, first: int) -> Iterable[int]:
    return range(first, len(text) - WORD_BYTES + 1, WORD_BYTES)


def _read_word(text: bytes, at: int) -> int:
    return int.from_bytes(text[at : at + WORD_BYTES], sys.byteorder)


def count_common_prefix(one: bytes, other: bytes) -> int:
    """Return how many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low

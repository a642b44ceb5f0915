"""Four-byte words for searching many texts in some data at once.

In: data, or a text to search for. Out: words. Never: misses a text in the data; accepts a text of fewer than seven
bytes, which may contain no whole word.

Every fourth byte of the data starts a word. Wherever a text occurs, one of its first four bytes starts a word of the
data, and so does every fourth byte of the text after that one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

WORD_BYTES: Final = 4
MIN_TEXT_BYTES: Final = 2 * WORD_BYTES - 1  # such a text contains one whole word of the data at any alignment


def list_words(data: bytes) -> set[int]:
    """Return all words of the data."""
    return set(memoryview(data)[: len(data) // WORD_BYTES * WORD_BYTES].cast("I"))


def list_first_words(text: bytes) -> set[int]:
    """Return the words that start at the first bytes of a text: one of them is in any data that contains the text."""
    assert len(text) >= MIN_TEXT_BYTES, "a shorter text may contain no whole word of the data"
    return {_read_word(text, offset) for offset in range(WORD_BYTES)}


def data_may_contain(words: set[int], text: bytes) -> bool:
    """True if the data may contain the text: if all words of one alignment are among its words."""
    assert len(text) >= MIN_TEXT_BYTES, "a shorter text may contain no whole word of the data"
    return any(
        all(_read_word(text, offset) in words for offset in _word_offsets(text, first)) for first in range(WORD_BYTES)
    )


def _word_offsets(text: bytes, first: int) -> Iterable[int]:
    return range(first, len(text) - WORD_BYTES + 1, WORD_BYTES)


def _read_word(text: bytes, offset: int) -> int:
    return int.from_bytes(text[offset : offset + WORD_BYTES], sys.byteorder)


def count_common_prefix(left: bytes, right: bytes) -> int:
    """Return the length of the common prefix in bytes."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low

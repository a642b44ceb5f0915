"""Caches results of functions of one untrusted text.

In: a function of one text. Out: the same function with an LRU cache.
Never: keeps a long text, because thousands of them would fill the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

MAX_CACHED_TEXT_LENGTH = 512
Key = TypeVar("Key", str, bytes)
Result = TypeVar("Result")


def cache_short_texts(max_entries: int) -> Callable[[Callable[[Key], Result]], Callable[[Key], Result]]:
    """Cache the results for short texts; the least recently used entry is dropped first."""

    def decorate(function: Callable[[Key], Result]) -> Callable[[Key], Result]:
        cached = lru_cache(maxsize=max_entries)(function)

        @wraps(function)
        def call(text: Key) -> Result:
            return cached(text) if len(text) <= MAX_CACHED_TEXT_LENGTH else function(text)

        return call

    return decorate

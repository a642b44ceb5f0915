"""Replaces texts in a response, at a cost that does not depend on the length or number of the texts.

In: pairs of a text and its replacement, and data. Out: the data with the replacements, in all encoded forms. Never: a
pass over the data for a text that is not in it; a run time that reveals the length of a text.

All texts are looked up at once in the set of the data's words. Only those whose words are all there are searched for.
For a text that may be cut off, the first characters are searched, and the following ones compared there.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cached_property
from heapq import heapify, heappop, heapreplace
from typing import Final, NamedTuple
from urllib.parse import quote

from argosy.observability.redaction.four_byte_word_filter import (
    MIN_TEXT_BYTES,
    count_common_prefix,
    data_may_contain,
    list_first_words,
)
from argosy.observability.redaction.secret_encodings import iter_named_forms

MIN_CUT_CHARACTERS: Final = 7  # length of a short commit on pages
ANCHOR_BYTES: Final = MIN_TEXT_BYTES
MAX_PASSES: Final = 8  # passes over the data, one per text; more texts are searched with one pattern


class TextReplacement(NamedTuple):
    text: str
    sent: str


class Substitutions:
    """Replacements of texts in all encoded forms, and of texts that a page cuts off."""

    def __init__(self, pairs: Iterable[TextReplacement] = (), padding_text: str = "") -> None:
        """`padding_text`: the longest text that may contain one of the pairs. The text around a pair costs as much as
        if it were in the pair: each escaped character adds forms.
        """
        self._texts: dict[bytes, _TextsOfAnchor] = {}  # by anchor
        self._searched: dict[int, set[bytes]] = {}  # by word: forms to search for
        for text, sent in pairs:
            self._add_pair(TextReplacement(text, sent))
            # also if equal, so that the cost reveals nothing
            self._add_pair(TextReplacement(text.lower(), sent.lower()))
        if padding_text:
            self._spend_padding_work(padding_text)

    def __bool__(self) -> bool:
        return bool(self._texts)

    def _add_pair(self, pair: TextReplacement) -> None:
        text = pair.text.encode("utf-8", "replace")
        shortest = pair.text[:MIN_CUT_CHARACTERS].encode("utf-8", "replace")
        can_be_cut = len(pair.text) >= MIN_CUT_CHARACTERS
        if can_be_cut:
            self._get_texts_of_anchor(text).cuts.setdefault(text, pair)
            self._index_search_text(shortest)
        sent_forms = dict(iter_named_forms(pair.sent))
        for name, form in iter_named_forms(pair.text):
            if len(form) >= ANCHOR_BYTES and name in sent_forms:
                self._get_texts_of_anchor(form).forms.setdefault(form, sent_forms[name])
                self._index_search_text(shortest if can_be_cut and form.startswith(shortest) else form)

    def _get_texts_of_anchor(self, text: bytes) -> _TextsOfAnchor:
        return self._texts.setdefault(text[:ANCHOR_BYTES], _TextsOfAnchor())

    def _spend_padding_work(self, padding_text: str) -> None:
        """Do the work for forms that the padding text has and the pairs do not have."""
        count, data = sum(len(texts.forms) for texts in self._texts.values()), padding_text.encode("utf-8", "replace")
        data = data.ljust(ANCHOR_BYTES)
        for _ in range(count, len({form for _, form in iter_named_forms(padding_text)})):
            quote(html.escape(padding_text))
            list_first_words(data)

    def _index_search_text(self, text: bytes) -> None:
        for word in list_first_words(text):
            self._searched.setdefault(word, set()).add(text)

    def apply(self, data: bytes, words: set[int]) -> bytes:
        """Return the data with the replacements. `words`: the words of the data.

        Each step finds one text and continues behind it, so there are fewer steps than bytes, whatever the texts are.
        """
        find_next = _build_search(
            data, [text for text in self._list_candidates(words) if data_may_contain(words, text)]
        )
        pieces, copied_until, position = list[bytes](), 0, find_next(0)
        while position >= 0:
            match = self._texts[data[position : position + ANCHOR_BYTES]].match(data, position)
            if match is not None:
                length, replacement = match
                pieces += (data[copied_until:position], replacement)
                copied_until = position = position + length
            else:
                position += 1
            position = find_next(position)
        return b"".join((*pieces, data[copied_until:])) if pieces else data

    def _list_candidates(self, words: set[int]) -> set[bytes]:
        return {text for word in words & self._searched.keys() for text in self._searched[word]}


class _TextsOfAnchor:
    """Texts with the same anchor. Finding the one at a position takes logarithmic time in their number: one request can
    have hundreds of spellings of a text.
    """

    def __init__(self) -> None:
        self.forms: dict[bytes, bytes] = {}  # form -> replacement
        self.cuts: dict[bytes, TextReplacement] = {}  # texts that may be cut off

    @cached_property
    def _sorted_forms(self) -> list[bytes]:
        return sorted(self.forms)

    @cached_property
    def _sorted_cuts(self) -> list[bytes]:
        return sorted(self.cuts)

    @cached_property
    def _longest_lengths(self) -> tuple[int, int]:
        """Length in bytes of the longest form, and of the longest text that may be cut off."""
        return max(map(len, self.forms), default=0), max(map(len, self.cuts), default=0)

    @cached_property
    def _longest_prefixes(self) -> dict[bytes, bytes]:
        """Maps a form to the longest other form that is a prefix of it."""
        beginnings, open_forms = dict[bytes, bytes](), list[bytes]()
        for form in self._sorted_forms:
            while open_forms and not form.startswith(open_forms[-1]):
                open_forms.pop()
            if open_forms:
                beginnings[form] = open_forms[-1]
            open_forms.append(form)
        return beginnings

    def match(self, data: bytes, position: int) -> tuple[int, bytes] | None:
        """Return the length of the longest text at a position of the data, and its replacement."""
        longest_form, longest_cut = self._longest_lengths
        ahead = data[position : position + max(longest_form, longest_cut)]
        form = self._find_form(ahead)
        if form is not None and len(form) >= longest_cut:
            return len(form), self.forms[form]
        cut = self._find_cut_off_text(ahead)
        if form is not None and (cut is None or len(form) >= cut[0]):
            return len(form), self.forms[form]
        return cut

    def _find_form(self, ahead: bytes) -> bytes | None:
        """Return the longest form that is a prefix of the bytes: the last form that sorts not after them, or a prefix
        of that form.
        """
        number = bisect_right(self._sorted_forms, ahead)
        form = self._sorted_forms[number - 1] if number else None
        while form is not None and not ahead.startswith(form):
            form = self._longest_prefixes.get(form)
        return form

    def _find_cut_off_text(self, ahead: bytes) -> tuple[int, bytes] | None:
        """Return the length of the longest cut-off text, and its replacement. The texts with the longest common prefix
        are neighbours of the bytes in sort order.
        """
        number = bisect_right(self._sorted_cuts, ahead)
        cuts = self._sorted_cuts[max(0, number - 1) : number + 1]
        if not cuts:
            return None
        common_bytes, cut = max(
            ((count_common_prefix(text, ahead), text) for text in cuts), key=lambda candidate: candidate[0]
        )
        characters = len(cut[:common_bytes].decode("utf-8", "ignore"))
        if characters < MIN_CUT_CHARACTERS:
            return None
        text, sent = self.cuts[cut]
        return len(text[:characters].encode("utf-8", "replace")), sent[:characters].encode("utf-8", "replace")


def _build_search(data: bytes, texts: list[bytes]) -> Callable[[int], int]:
    """Return a function that finds the next position of any of the texts, or -1. Start positions must not decrease."""
    if len(texts) > MAX_PASSES:
        pattern = re.compile(_build_pattern(texts))
        return lambda start: match.start() if (match := pattern.search(data, start)) else -1
    positions = [(position, text) for text in texts if (position := data.find(text)) >= 0]
    heapify(positions)

    def find_next(start: int) -> int:
        while positions and positions[0][0] < start:
            text = positions[0][1]
            position = data.find(text, start)
            if position >= 0:
                heapreplace(positions, (position, text))
            else:
                heappop(positions)
        return positions[0][0] if positions else -1

    return find_next


def _build_pattern(texts: Iterable[bytes], depth: int = ANCHOR_BYTES) -> bytes:
    """Return a pattern of all texts, in which each of the first bytes is compared once for all of them."""
    if not depth:
        return b"(?:%s)" % b"|".join(map(re.escape, sorted(set(texts), key=len)))
    remainders: dict[bytes, list[bytes]] = {}  # by the first byte
    for text in texts:
        remainders.setdefault(text[:1], []).append(text[1:])
    return b"(?:%s)" % b"|".join(
        re.escape(first) + _build_pattern(remainder_texts, depth - 1)
        for first, remainder_texts in sorted(remainders.items())
    )

"""Replaces texts in an answer, with work that does not depend on how long or how many the texts are.

In: pairs of a text and its replacement, and data. Out: the data with the replacements, in all the forms of the texts.
Never: a pass over the data for a text that is not in it; a time that tells how long a text is.

All texts are looked up at once in the set of the data's words. Only those whose words are all there are searched for.
Of a text that may be cut, the first bytes are searched for, its anchor, and what follows them is compared there.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import quote

from argosy.server.doors.secret_forms import forms
from argosy.server.doors.words import WORD, list_first_words, may_have

SHORTEST_PART: Final = 7  # characters: of a commit, pages show as many
ANCHOR: Final = 2 * WORD - 1  # bytes: wherever it stands, it has one whole word of the data


class StandIn(NamedTuple):
    text: str
    sent: str


class Substitutions:
    """Replacements of texts, in the same forms, and of texts whose end is cut off, as pages cut it."""

    def __init__(self, pairs: Iterable[StandIn] = (), even: str = "") -> None:
        """`even`: the longest text of which one of the pairs may be a part. What stands around it costs as much as if
        it were in the pair: each of its characters that is escaped makes more forms."""
        self._forms: dict[bytes, dict[bytes, bytes]] = {}  # by anchor: the replacement of each form
        self._cuts: dict[bytes, dict[StandIn, None]] = {}  # by anchor: the texts that may be cut
        self._searched: dict[int, set[bytes]] = {}  # by word: what is searched for
        for text, sent in pairs:
            self._add(StandIn(text, sent))
            self._add(StandIn(text.lower(), sent.lower()))  # also if it is the same: the work does not tell
        if even:
            self._pad(even)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def _add(self, pair: StandIn) -> None:
        anchor = pair.text.encode("utf-8", "replace")[:ANCHOR]
        if len(anchor) == ANCHOR:
            self._cuts.setdefault(anchor, {})[pair] = None
            self._search(anchor)
        for given, sent in zip(forms(pair.text), forms(pair.sent)):
            if len(given) >= ANCHOR:
                self._forms.setdefault(given[:ANCHOR], {}).setdefault(given, sent)
                self._search(anchor if given[:ANCHOR] == anchor else given)

    def _pad(self, even: str) -> None:
        """Do the work of the forms that the text has, and that the pairs have not."""
        count, data = sum(map(len, self._forms.values())), even.encode("utf-8", "replace")
        for _ in range(count, len(set(forms(even)))):
            quote(html.escape(even))
            list_first_words(data)

    def _search(self, text: bytes) -> None:
        for word in list_first_words(text):
            self._searched.setdefault(word, set()).add(text)

    def apply(self, data: bytes, words: set[int]) -> bytes:
        """Return the data with the replacements. `words` are those of the data."""
        pieces, done = list[bytes](), 0
        for place in self._places(data, words):
            if place >= done and (match := self._match(data, place)) is not None:
                length, replacement = match
                pieces += (data[done:place], replacement)
                done = place + length
        return b"".join((*pieces, data[done:])) if pieces else data

    def _places(self, data: bytes, words: set[int]) -> list[int]:
        """Return where texts stand, in order."""
        texts = {text for word in words & self._searched.keys() for text in self._searched[word]}
        return sorted({place for text in texts if may_have(words, text) for place in _find_all(text, data)})

    def _match(self, data: bytes, place: int) -> tuple[int, bytes] | None:
        """Return the length of the longest text there, and its replacement."""
        anchor = data[place : place + ANCHOR]
        found = [
            (len(given), sent) for given, sent in self._forms.get(anchor, {}).items() if data.startswith(given, place)
        ]
        for text, sent in self._cuts.get(anchor, ()):
            given = text.encode("utf-8", "replace")
            characters = len(given[: _count_same(given, data, place)].decode("utf-8", "ignore"))
            if characters >= SHORTEST_PART:
                length = len(text[:characters].encode("utf-8", "replace"))
                found.append((length, sent[:characters].encode("utf-8", "replace")))
        return max(found, key=lambda match: match[0], default=None)


def _find_all(part: bytes, data: bytes) -> Iterator[int]:
    place = data.find(part)
    while place >= 0:
        yield place
        place = data.find(part, place + 1)


def _count_same(text: bytes, data: bytes, place: int) -> int:
    """Return how many bytes of the text stand at a place of the data."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if data.startswith(text[:middle], place):
            low = middle
        else:
            high = middle - 1
    return low

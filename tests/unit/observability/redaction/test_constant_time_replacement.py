"""Restoring request input costs steps in proportion to the response, whatever the spelling of the request."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from argosy.gitops.redaction.never_masked_object_names import PublicWords
from argosy.observability.redaction.constant_time_replacement import Substitutions, TextReplacement
from argosy.observability.redaction.four_byte_word_filter import list_words
from argosy.observability.redaction.secret_mask import SecretMask
from argosy.web.auth.caller import NOBODY
from argosy.web.request import QueryParameters
from argosy.web.request_input_echo import conceal_request
from support.page_site import a_request, a_site

SECRET = "pin-314159-abcdef"


class Counted(bytes):
    """Data that counts how often it is read at a position, and how often it is searched from its start."""

    reads = 0
    passes = 0

    def find(self, part: Any, *place: Any) -> int:
        Counted.reads += 1
        Counted.passes += not place
        return super().find(part, *place)

    def startswith(self, *arguments: Any) -> bool:
        Counted.reads += 1
        return super().startswith(*arguments)

    def __getitem__(self, place: Any) -> Any:
        Counted.reads += 1
        return super().__getitem__(place)

    @classmethod
    def clear(cls) -> None:
        cls.reads = cls.passes = 0


def spell(text: str, number: int) -> str:
    """Return one of many spellings of a text: characters percent-encoded once, twice, or not at all."""
    choices = ("{}", "%{:02x}", "%25{:02x}")
    digits = (number // 3**at % 3 for at in itertools.count())
    return "".join(choices[digit].format(c if digit == 0 else ord(c)) for c, digit in zip(text, digits))


@pytest.mark.parametrize("secret", [SECRET, "quite-another-value"], ids=["a right guess", "a wrong guess"])
def test_many_spellings_of_a_text_cost_few_steps_per_position(secret: str) -> None:
    spellings = [spell(SECRET, number) for number in range(150)]
    request = a_request(a_site(), "GET", "/apps", {}, QueryParameters([("q", "&".join(spellings))]), {}, NOBODY)
    concealed, echo = conceal_request(
        request, SecretMask(lambda: [{"stringData": {"v": secret}}], PublicWords()).find_values
    )
    copies = 40
    answer, expected = (Counted("\n".join([q] * copies).encode()) for q in (concealed.query["q"], request.query["q"]))
    Counted.clear()
    assert echo.restore(answer) == expected
    assert Counted.reads <= 10 * 150 * copies
    assert Counted.passes <= 20


@pytest.mark.parametrize("period", ["a", "ab", "abc", "ä", "a<", "6161"])
def test_periodic_text_is_replaced_with_at_most_one_read_per_byte(period: str) -> None:
    text, other = (period * 16)[:16], "0123456789abcdef"
    data = Counted((period * 200_000)[:200_000].encode())
    for pair in (TextReplacement(text, text), TextReplacement(other, text), TextReplacement(text, other)):
        substitutions, words = Substitutions([pair]), list_words(data)
        Counted.clear()
        substitutions.apply(data, words)
        assert Counted.reads <= len(data)


def test_multibyte_text_is_not_compared_where_only_a_part_of_it_occurs() -> None:
    text = "äöüßäöüßäöüß"
    data = Counted((text[:5] + "x").encode() * 20_000 + text.encode())
    substitutions, words = Substitutions([TextReplacement(text, "ÄÖÜẞäöüßÄÖÜẞ")]), list_words(data)
    Counted.clear()
    restored = substitutions.apply(data, words)
    assert restored == data[: -len(text.encode())] + "ÄÖÜẞäöüßÄÖÜẞ".encode()
    assert Counted.reads <= 100


def test_longest_matching_text_with_a_common_prefix_is_replaced() -> None:
    texts = ["abcdefgh", "abcdefghij", "abcdefghijkl0123", "abcdefghijklmnop", "abcdefgz"]
    substitutions = Substitutions([TextReplacement(text, text.upper()) for text in texts])
    for sent in [*texts, "abcdefg", "abcdefghi", "abcdefghijklm", "abcdefghijklmnopq", "abcdefzzzz", "xabcdefgh"]:
        data = f"- {sent} -".encode()
        same = max(
            (len(sent) - at - left, at, text)
            for text in texts
            for at in range(len(sent))
            for left in range(len(sent) - at + 1)
            if text.startswith(sent[at : len(sent) - left])
        )
        length, at, _ = same
        expected = sent if length < 7 else sent[:at] + sent[at : at + length].upper() + sent[at + length :]
        assert substitutions.apply(data, list_words(data)) == f"- {expected} -".encode(), sent


def test_any_number_of_texts_is_replaced() -> None:
    for count in (1, 8, 9, 300):
        pairs = [TextReplacement(f"{number:05}-stand-in", f"{number:05}-was-sent") for number in range(count)]
        data = " ".join(text for text, _ in reversed(pairs)).encode()
        expected = " ".join(sent for _, sent in reversed(pairs)).encode()
        assert Substitutions(pairs).apply(data, list_words(data)) == expected

"""Echoes request input unredacted, because a redacted echo would confirm a guessed secret.

In: a request, and the mask of its subject. Out: for a read, the request with placeholders for secret values, and an
Echo that restores them in the response; for a change, the texts that were sent. Never: a placeholder in anything that
is written; a response that depends on whether the input is a secret; a value that was read, because the caller sent
the same text.

A read request that contains a secret value is handled as if it contained an unused one: each letter and digit is
replaced by another of its class. The response is redacted in full; then placeholders become the sent text again.

A request without a secret value takes the same steps with a decoy, a piece of the longest text that was sent, and their
results are dropped. Each step does as much work as the longest text needs, and searches for both the placeholders and
the sent text, so that the response time does not reveal whether a guess is correct.
"""

from __future__ import annotations

import html
import re
import secrets
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote, unquote_plus

import orjson

from argosy.gitops.redaction.substring_index import list_words
from argosy.gitops.redaction.text_substitution import MIN_CUT_CHARACTERS, StandIn, Substitutions
from argosy.web.request import Asked, Query

MAX_ENCODINGS: Final = 3  # levels of percent-encoding: a URL within a URL
MAX_TRIES: Final = 50  # to find a placeholder that is not a secret itself
MAX_STAND_INS: Final = 1_000  # in one text
MIN_DECOY_CHARACTERS: Final = 8  # no secret value is shorter
MAX_DECOY_CHARACTERS: Final = 256  # nobody guesses a longer value
PIECES: Final = tuple(  # pieces of a text with one form and one spelling, or at least one spelling
    re.compile(rf"{characters}{{{MIN_DECOY_CHARACTERS},{MAX_DECOY_CHARACTERS}}}")
    for characters in (r"[\w.~-]", "[^%+]")
)
ENCODING_SIGNS: Final = "%+ "  # of percent-encoding
ENCODED_BYTE: Final = re.compile(r"(%(?:25)*)[0-9A-Fa-f]{2}")
ABSENT: Final = "\x00"  # a character that no request contains
CLASSES: Final = ("0123456789", "abcdef", "ABCDEF", string.ascii_lowercase[6:], string.ascii_uppercase[6:])
NEVER_SENT: Final = ("status", "operation")  # fields of a response that a write does not set
INPUT: Final = re.compile(rb"<input\b[^<>]*>")
INPUT_NAME: Final = re.compile(rb' name="([^"]*)"')
INPUT_VALUE: Final = re.compile(rb' value="([^"]*)"')
TEXT_AREA: Final = re.compile(rb"(<textarea\b[^<>]*>)([^<]*)(</textarea>)")
SIGNS: Final = "-_.~"  # for a text without letters and digits
OTHERS: Final = {one: kind.replace(one, "") for kind in CLASSES for one in kind}  # by character: others of its class
OTHER_SIGNS: Final = {one: SIGNS.replace(one, "") for one in SIGNS}
Find = Callable[[bytes], list[bytes]]


class Echo:
    """Placeholders of one request. Usually none, or decoys, which change nothing but cost the same work."""

    def __init__(
        self, stand_ins: tuple[StandIn, ...] = (), decoys: tuple[StandIn, ...] = (), padding_text: str = ""
    ) -> None:
        """`padding_text`: the longest text that was sent."""
        self._stand_ins, self._decoys, self._padding_text = stand_ins, decoys, padding_text
        everything = stand_ins + decoys
        # The response to a correct guess has the placeholder where that to a wrong one has the sent text. Both texts
        # are searched in both responses; the sent text is replaced by itself.
        self._given = Substitutions(everything, padding_text)
        self._sent = Substitutions((StandIn(sent, sent) for _, sent in everything), padding_text)

    @property
    def is_decoy(self) -> bool:
        return bool(self._decoys) and not self._stand_ins

    def __add__(self, other: Echo) -> Echo:
        if not other._stand_ins and not other._decoys:
            return self
        return Echo(
            self._stand_ins + other._stand_ins, self._decoys + other._decoys, self._padding_text or other._padding_text
        )

    def __bool__(self) -> bool:
        return bool(self._stand_ins)

    def restore(self, data: bytes, words: set[int] | None = None) -> bytes:
        """Put the sent texts back into the data. `words`: words of the data, if already known."""
        if not self._given:
            return data
        words = list_words(data) if words is None else words
        restored = self._given.apply(data, words)
        self._sent.apply(data, words)
        return restored if self._stand_ins else data


def conceal(asked: Asked, find: Find) -> tuple[Asked, Echo]:
    """Replace secret values in path and query by placeholders. `find` finds secret values.

    Without secret values, return the same request, and an Echo that changes nothing.
    """
    given = [*asked.query, *(text for name in asked.query for text in asked.query.all(name)), *asked.values.values()]
    everything = _decoded("\n".join([asked.path, *given]))
    longest = max(given, key=len, default="")
    padding_length = min(len(longest), MAX_DECOY_CHARACTERS)
    if find(everything):
        concealed, stand_ins = _conceal(asked, find, everything.decode().lower(), padding_length)
        return concealed, Echo(stand_ins, padding_text=longest[:MAX_DECOY_CHARACTERS])
    if len(longest) < MIN_DECOY_CHARACTERS:
        return asked, NO_ECHO
    decoy = _decoy(longest)
    _, stand_ins = _conceal(
        asked,
        lambda data: find(data) or ([decoy] if decoy in data else []),
        everything.decode().lower(),
        padding_length,
    )
    return asked, Echo(decoys=stand_ins, padding_text=longest[:MAX_DECOY_CHARACTERS])


def _decoy(text: str) -> bytes:
    """Return the longest plain piece of the text, if there is one."""
    pieces = next((found for pattern in PIECES if (found := pattern.findall(text))), [text[:MAX_DECOY_CHARACTERS]])
    return max(pieces, key=len).encode("utf-8", "replace")


def _conceal(asked: Asked, find: Find, everything: str, padding_length: int) -> tuple[Asked, tuple[StandIn, ...]]:
    """`padding_length`: characters; each placeholder costs as much as one of this length."""
    stand_ins: dict[str, StandIn] = {}  # by what was sent
    spellings: list[StandIn] = []  # with percent-encodings

    def put(known: StandIn, text: str) -> str:
        if "%" not in text and "+" not in text:  # only one spelling
            return text.replace(known.sent, known.text)

        def spelled(match: re.Match[str]) -> str:
            made = _respelled(match[0], known)
            spellings.extend(_levels(made, match[0]))
            return made

        return _spelled(known.sent, padding_length).sub(spelled, text)

    def stand_in(text: str) -> str:
        for known in stand_ins.values():
            text = put(known, text)
        for _ in range(MAX_STAND_INS):
            found = [each.decode("utf-8", "replace") for each in find(_decoded(text))]
            if not found or found[0] in stand_ins:
                break
            stand_ins[found[0]] = made = _different(found[0], find, everything, padding_length)
            text = put(made, text)
        return text

    pairs = [(stand_in(name), stand_in(text)) for name in asked.query for text in asked.query.all(name)]
    values = {name: stand_in(text) for name, text in asked.values.items()}
    concealed = replace(asked, path=stand_in(asked.path), values=values, query=Query(pairs))
    return concealed, (*stand_ins.values(), *dict.fromkeys(spellings))


def sent_texts(asked: Asked) -> list[str]:
    """Return the decoded texts that were sent with a change, as far as they were read. Each is a whole field."""
    texts = [asked.path, *asked.values.values()]
    for words in (asked.query, asked.kept.get("form")):
        for name in words or ():
            texts += [name, *words.all(name)]  # type: ignore[union-attr]
    texts += _leaves(asked.kept.get("document"))
    return list(dict.fromkeys(spelling for text in texts for spelling in _decoded(text).decode().split("\n")))


class ShownFields:
    """Form fields of a page by placeholder token. Each is restored as the page has it: escaped."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(16).encode()
        self._values: list[bytes] = []

    def add(self, value: bytes) -> bytes:
        """Return the token for the bytes of a field."""
        self._values.append(value)
        return b"%s%08d" % (self._prefix, len(self._values) - 1)

    def restore(self, page: bytes) -> bytes:
        if not self._values:
            return page
        return re.sub(self._prefix + rb"([0-9]{8})", lambda match: self._values[int(match[1])], page)


def conceal_fields(page: bytes, form: Query | None) -> tuple[bytes, ShownFields]:
    """Replace submitted form fields that a page shows again by tokens, in inputs of the same name only."""
    fields = ShownFields()

    def is_sent(name: bytes, value: bytes) -> bool:
        key, text = html.unescape(name.decode()), html.unescape(value.decode("utf-8", "replace"))
        return form is not None and len(text) >= MIN_CUT_CHARACTERS and text.strip() in map(str.strip, form.all(key))

    def change_input(match: re.Match[bytes]) -> bytes:
        name, value = INPUT_NAME.search(match[0]), INPUT_VALUE.search(match[0])
        if not name or not value or not is_sent(name[1], value[1]):
            return match[0]
        return match[0].replace(value[0], b' value="%s"' % fields.add(value[1]))

    def change_area(match: re.Match[bytes]) -> bytes:
        name = INPUT_NAME.search(match[1])
        if not name or not is_sent(name[1], match[2]):
            return match[0]
        return match[1] + fields.add(match[2]) + match[3]

    concealed = TEXT_AREA.sub(change_area, INPUT.sub(change_input, page)) if form else page
    return concealed, fields


def restore_written(masked: bytes, answer: bytes, sent: Any) -> bytes:
    """Restore sent fields in the redacted response to a write, at the paths where they were sent.

    A field is restored if both documents have the same whole value at the same path. The status is never sent.
    """
    if masked == answer or not isinstance(sent, dict):
        return masked
    try:
        return orjson.dumps(_restored(orjson.loads(masked), orjson.loads(answer), sent))
    except (orjson.JSONDecodeError, RecursionError):
        return masked


def _restored(masked: Any, answer: Any, sent: Any) -> Any:
    if isinstance(masked, dict) and isinstance(answer, dict) and isinstance(sent, dict):
        return {
            name: value if name in NEVER_SENT else _restored(value, answer.get(name), sent.get(name))
            for name, value in masked.items()
        }
    if isinstance(masked, list) and isinstance(answer, list) and isinstance(sent, list) and len(answer) == len(sent):
        return [_restored(*values) for values in zip(masked, answer, sent)]
    return answer if isinstance(masked, str) and isinstance(answer, str) and answer == sent else masked


def _leaves(value: Any) -> list[str]:
    """Return the texts of a document; a patch is JSON in a string."""
    if isinstance(value, str):
        if value.lstrip()[:1] in ("{", "["):
            try:
                return [value, *_leaves(orjson.loads(value))]
            except orjson.JSONDecodeError:
                return [value]
        return [value]
    if isinstance(value, Mapping):
        return [text for name, inner in value.items() for text in (str(name), *_leaves(inner))]
    return [text for inner in value for text in _leaves(inner)] if isinstance(value, list) else []


def _decoded(text: str) -> bytes:
    """Return the text as it is, and with each level of percent-encoding removed."""
    spellings = [text]
    for _ in range(MAX_ENCODINGS):
        if "%" not in text and "+" not in text:
            break
        text = unquote_plus(text, errors="replace")
        spellings.append(text)
    return "\n".join(spellings).encode("utf-8", "replace")


def _spelled(text: str, padding_length: int) -> re.Pattern[str]:
    """Compile a pattern for the text, with each character plain or percent-encoded. A short text is compiled with a
    second pattern that never matches, so that the work does not reveal its length."""
    padding = ABSENT * (padding_length - len(text))
    return re.compile("|".join("".join(map(_character, part)) for part in (text, padding) if part))


@lru_cache(256)
def _character(character: str) -> str:
    encoded = "".join(f"%(?:25)*(?i:{byte:02x})" for byte in character.encode("utf-8", "replace"))
    return rf"(?:{re.escape(character)}|{encoded}{'|[+]' if character == ' ' else ''})"


def _respelled(spelling: str, known: StandIn) -> str:
    """Return the placeholder with each character encoded like the one that was sent."""
    made, place = "", 0
    for sent, instead in zip(known.sent, known.text):
        match = re.compile(_character(sent)).match(spelling, place)
        part = match[0] if match else sent
        place += len(part)
        if sent == instead:
            made += part
        elif len(part) == 1:
            made += instead
        else:
            first_byte = ENCODED_BYTE.match(part)
            prefix = first_byte[1] if first_byte else "%"
            made += "".join(f"{prefix}{byte:02x}" for byte in instead.encode("utf-8", "replace"))
    return made


def _levels(made: str, sent: str) -> Iterator[StandIn]:
    """Yield both texts as they are, and with each level of encoding removed."""
    for _ in range(MAX_ENCODINGS):
        if "%" not in sent or made == sent:
            return
        yield StandIn(made, sent)
        made, sent = unquote(made), unquote(sent)


def _different(sent: str, find: Find, everything: str, padding_length: int) -> StandIn:
    """Return another text of the same length and form, which is not a secret and was not sent.

    Characters are replaced by others of their class. If a text has no such characters, they are shuffled.
    """
    others = next((table for table in (OTHERS, OTHER_SIGNS) if not table.keys().isdisjoint(sent)), {})
    padding = ABSENT * (padding_length - len(sent))  # the work must not reveal the length
    text = sent
    for number in range(2 * MAX_TRIES):
        numbers = secrets.token_bytes(len(sent) + len(padding))
        if others and number < MAX_TRIES:
            choices = zip(sent + padding, numbers)
            text = "".join(_pick(others.get(character, character), number) for character, number in choices)
            text = text[: len(sent)]
        else:
            text = _shuffle(sent, numbers)
        if text != sent and text.lower() not in everything and not find(text.encode("utf-8", "replace")):
            break
    return StandIn(text, sent)


def _shuffle(text: str, numbers: bytes) -> str:
    """Reorder the characters of a text by the numbers. Characters of encodings keep their positions, unless nothing
    would change then."""
    moved = [place for place, character in enumerate(text) if character not in ENCODING_SIGNS]
    if len({text[place] for place in moved}) < 2:
        moved = list(range(len(text)))
    characters = list(text)
    for place, other in zip(moved, sorted(moved, key=numbers.__getitem__)):
        characters[place] = text[other]
    return "".join(characters)


def _pick(characters: str, number: int) -> str:
    return characters[number % len(characters)]


NO_ECHO: Final = Echo()

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

from argosy.observability.redaction.constant_time_replacement import MIN_CUT_CHARACTERS, TextReplacement
from argosy.web.request import QueryParameters, RequestContext
from argosy.web.response_placeholder_restoration import NO_ECHO, InputEcho

MAX_ENCODINGS: Final = 3  # levels of percent-encoding: a URL within a URL
MAX_TRIES: Final = 50  # to find a placeholder that is not a secret itself
MAX_STAND_INS: Final = 1_000  # in one text
MIN_DECOY_CHARACTERS: Final = 8  # no secret value is shorter
MAX_DECOY_CHARACTERS: Final = 256  # nobody guesses a longer value
# Pieces of a text with one form and one spelling, or at least one spelling.
DECOY_PATTERNS: Final = tuple(
    re.compile(rf"{characters}{{{MIN_DECOY_CHARACTERS},{MAX_DECOY_CHARACTERS}}}")
    for characters in (r"[\w.~-]", "[^%+]")
)
ENCODING_CHARACTERS: Final = "%+ "  # of percent-encoding
ENCODED_BYTE: Final = re.compile(r"(%(?:25)*)[0-9A-Fa-f]{2}")
ABSENT_CHARACTER: Final = "\x00"  # a character that no request contains
CHARACTER_CLASSES: Final = ("0123456789", "abcdef", "ABCDEF", string.ascii_lowercase[6:], string.ascii_uppercase[6:])
SERVER_ONLY_FIELDS: Final = ("status", "operation")  # fields of a response that a write does not set
INPUT: Final = re.compile(rb"<input\b[^<>]*>")
INPUT_NAME: Final = re.compile(rb' name="([^"]*)"')
INPUT_VALUE: Final = re.compile(rb' value="([^"]*)"')
TEXT_AREA: Final = re.compile(rb"(<textarea\b[^<>]*>)([^<]*)(</textarea>)")
PUNCTUATION: Final = "-_.~"  # for a text without letters and digits
# By character: others of its class.
SUBSTITUTES: Final = {character: kind.replace(character, "") for kind in CHARACTER_CLASSES for character in kind}
PUNCTUATION_SUBSTITUTES: Final = {character: PUNCTUATION.replace(character, "") for character in PUNCTUATION}
FindSecrets = Callable[[bytes], list[bytes]]


def conceal_request(request: RequestContext, find: FindSecrets) -> tuple[RequestContext, InputEcho]:
    """Replace secret values in path and query by placeholders. `find` finds secret values.

    Without secret values, return the same request, and an Echo that changes nothing.
    """
    texts = [
        *request.query,
        *(text for name in request.query for text in request.query.get_all(name)),
        *request.path_parameters.values(),
    ]
    all_text = _decode_levels("\n".join([request.path, *texts]))
    longest = max(texts, key=len, default="")
    padding_length = min(len(longest), MAX_DECOY_CHARACTERS)
    if find(all_text):
        concealed, stand_ins = _replace_secrets(request, find, all_text.decode().lower(), padding_length)
        return concealed, InputEcho(stand_ins, padding_text=longest[:MAX_DECOY_CHARACTERS])
    if len(longest) < MIN_DECOY_CHARACTERS:
        return request, NO_ECHO
    decoy = _find_decoy(longest)
    _, stand_ins = _replace_secrets(
        request,
        lambda data: find(data) or ([decoy] if decoy in data else []),
        all_text.decode().lower(),
        padding_length,
    )
    return request, InputEcho(decoys=stand_ins, padding_text=longest[:MAX_DECOY_CHARACTERS])


def _find_decoy(text: str) -> bytes:
    """Return the longest plain piece of the text, if there is one."""
    pieces = next(
        (matches for pattern in DECOY_PATTERNS if (matches := pattern.findall(text))), [text[:MAX_DECOY_CHARACTERS]]
    )
    return max(pieces, key=len).encode("utf-8", "replace")


def _replace_secrets(
    request: RequestContext, find: FindSecrets, all_text: str, padding_length: int
) -> tuple[RequestContext, tuple[TextReplacement, ...]]:
    """`padding_length`: characters; each placeholder costs as much as one of this length."""
    stand_ins: dict[str, TextReplacement] = {}  # by what was sent
    spellings: list[TextReplacement] = []  # with percent-encodings

    def replace_known(stand_in: TextReplacement, text: str) -> str:
        if "%" not in text and "+" not in text:  # only one spelling
            return text.replace(stand_in.sent, stand_in.text)

        def replace_match(match: re.Match[str]) -> str:
            replacement = _encode_like(match[0], stand_in)
            spellings.extend(_list_decoded_replacements(replacement, match[0]))
            return replacement

        return _compile_spellings(stand_in.sent, padding_length).sub(replace_match, text)

    def replace_all(text: str) -> str:
        for known_stand_in in stand_ins.values():
            text = replace_known(known_stand_in, text)
        for _ in range(MAX_STAND_INS):
            secrets_found = [secret.decode("utf-8", "replace") for secret in find(_decode_levels(text))]
            if not secrets_found or secrets_found[0] in stand_ins:
                break
            stand_ins[secrets_found[0]] = new_stand_in = _build_stand_in(
                secrets_found[0], find, all_text, padding_length
            )
            text = replace_known(new_stand_in, text)
        return text

    pairs = [(replace_all(name), replace_all(text)) for name in request.query for text in request.query.get_all(name)]
    values = {name: replace_all(text) for name, text in request.path_parameters.items()}
    concealed = replace(request, path=replace_all(request.path), path_parameters=values, query=QueryParameters(pairs))
    return concealed, (*stand_ins.values(), *dict.fromkeys(spellings))


def list_sent_texts(request: RequestContext) -> list[str]:
    """Return the decoded texts that were sent with a change, as far as they were read. Each is a whole field."""
    texts = [request.path, *request.path_parameters.values()]
    for fields in (request.query, request.memory.form):
        for name in fields or ():
            texts += [name, *fields.get_all(name)]  # type: ignore[union-attr]
    texts += _list_texts(request.memory.document)
    return list(dict.fromkeys(spelling for text in texts for spelling in _decode_levels(text).decode().split("\n")))


class FormFieldTokens:
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


def conceal_form_fields(page: bytes, form: QueryParameters | None) -> tuple[bytes, FormFieldTokens]:
    """Replace submitted form fields that a page shows again by tokens, in inputs of the same name only."""
    fields = FormFieldTokens()

    def is_sent(name: bytes, value: bytes) -> bool:
        key, text = html.unescape(name.decode()), html.unescape(value.decode("utf-8", "replace"))
        return (
            form is not None and len(text) >= MIN_CUT_CHARACTERS and text.strip() in map(str.strip, form.get_all(key))
        )

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


def restore_sent_fields(masked: bytes, response: bytes, sent: Any) -> bytes:
    """Restore sent fields in the redacted response to a write, at the paths where they were sent.

    A field is restored if both documents have the same whole value at the same path. The status is never sent.
    """
    if masked == response or not isinstance(sent, dict):
        return masked
    try:
        return orjson.dumps(_restore_value(orjson.loads(masked), orjson.loads(response), sent))
    except (orjson.JSONDecodeError, RecursionError):
        return masked


def _restore_value(masked: Any, response: Any, sent: Any) -> Any:
    if isinstance(masked, dict) and isinstance(response, dict) and isinstance(sent, dict):
        return {
            name: value if name in SERVER_ONLY_FIELDS else _restore_value(value, response.get(name), sent.get(name))
            for name, value in masked.items()
        }
    if (
        isinstance(masked, list)
        and isinstance(response, list)
        and isinstance(sent, list)
        and len(response) == len(sent)
    ):
        return [_restore_value(*values) for values in zip(masked, response, sent)]
    return response if isinstance(masked, str) and isinstance(response, str) and response == sent else masked


def _list_texts(value: Any) -> list[str]:
    """Return the texts of a document; a patch is JSON in a string."""
    if isinstance(value, str):
        if value.lstrip()[:1] in ("{", "["):
            try:
                return [value, *_list_texts(orjson.loads(value))]
            except orjson.JSONDecodeError:
                return [value]
        return [value]
    if isinstance(value, Mapping):
        return [text for name, inner in value.items() for text in (str(name), *_list_texts(inner))]
    return [text for inner in value for text in _list_texts(inner)] if isinstance(value, list) else []


def _decode_levels(text: str) -> bytes:
    """Return the text as it is, and with each level of percent-encoding removed."""
    spellings = [text]
    for _ in range(MAX_ENCODINGS):
        if "%" not in text and "+" not in text:
            break
        text = unquote_plus(text, errors="replace")
        spellings.append(text)
    return "\n".join(spellings).encode("utf-8", "replace")


def _compile_spellings(text: str, padding_length: int) -> re.Pattern[str]:
    """Compile a pattern for the text, with each character plain or percent-encoded. A short text is compiled with a
    second pattern that never matches, so that the work does not reveal its length."""
    padding = ABSENT_CHARACTER * (padding_length - len(text))
    return re.compile("|".join("".join(map(_build_character_pattern, part)) for part in (text, padding) if part))


@lru_cache(256)
def _build_character_pattern(character: str) -> str:
    encoded = "".join(f"%(?:25)*(?i:{byte:02x})" for byte in character.encode("utf-8", "replace"))
    return rf"(?:{re.escape(character)}|{encoded}{'|[+]' if character == ' ' else ''})"


def _encode_like(spelling: str, stand_in: TextReplacement) -> str:
    """Return the placeholder with each character encoded like the one that was sent."""
    encoded, offset = "", 0
    for sent, substitute in zip(stand_in.sent, stand_in.text):
        match = re.compile(_build_character_pattern(sent)).match(spelling, offset)
        part = match[0] if match else sent
        offset += len(part)
        if sent == substitute:
            encoded += part
        elif len(part) == 1:
            encoded += substitute
        else:
            first_byte = ENCODED_BYTE.match(part)
            prefix = first_byte[1] if first_byte else "%"
            encoded += "".join(f"{prefix}{byte:02x}" for byte in substitute.encode("utf-8", "replace"))
    return encoded


def _list_decoded_replacements(placeholder: str, sent: str) -> Iterator[TextReplacement]:
    """Yield both texts as they are, and with each level of encoding removed."""
    for _ in range(MAX_ENCODINGS):
        if "%" not in sent or placeholder == sent:
            return
        yield TextReplacement(placeholder, sent)
        placeholder, sent = unquote(placeholder), unquote(sent)


def _build_stand_in(sent: str, find: FindSecrets, all_text: str, padding_length: int) -> TextReplacement:
    """Return another text of the same length and form, which is not a secret and was not sent.

    Characters are replaced by others of their class. If a text has no such characters, they are shuffled.
    """
    substitutes = next(
        (table for table in (SUBSTITUTES, PUNCTUATION_SUBSTITUTES) if not table.keys().isdisjoint(sent)), {}
    )
    padding = ABSENT_CHARACTER * (padding_length - len(sent))  # the work must not reveal the length
    text = sent
    for number in range(2 * MAX_TRIES):
        numbers = secrets.token_bytes(len(sent) + len(padding))
        if substitutes and number < MAX_TRIES:
            choices = zip(sent + padding, numbers)
            text = "".join(
                _pick_character(substitutes.get(character, character), number) for character, number in choices
            )
            text = text[: len(sent)]
        else:
            text = _shuffle(sent, numbers)
        if text != sent and text.lower() not in all_text and not find(text.encode("utf-8", "replace")):
            break
    return TextReplacement(text, sent)


def _shuffle(text: str, numbers: bytes) -> str:
    """Reorder the characters of a text by the numbers. Characters of encodings keep their positions, unless nothing
    would change then."""
    moved = [index for index, character in enumerate(text) if character not in ENCODING_CHARACTERS]
    if len({text[index] for index in moved}) < 2:
        moved = list(range(len(text)))
    characters = list(text)
    for index, source_index in zip(moved, sorted(moved, key=numbers.__getitem__)):
        characters[index] = text[source_index]
    return "".join(characters)


def _pick_character(characters: str, number: int) -> str:
    return characters[number % len(characters)]

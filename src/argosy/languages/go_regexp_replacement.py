"""Finds, replaces and splits by a regular expression as Go's regexp does, in bounded time.

In: a pattern and a text. Out: texts. Never: backtracks; reads `$` in another way than Go's Expand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from argosy.languages.go_regexp import GoRegexpFinder, Span

MAX_GROUP_NUMBER: Final = 100_000_000  # k8s: a larger number is a name in Go
_SPECIAL_CHARACTERS: Final = {ord(character): f"\\{character}" for character in r"\.+*?()|[]{}^$"}
SpendCharacters = Callable[[int], None]  # raises an error if the results become too long


def quote_meta(text: str) -> str:
    return text.translate(_SPECIAL_CHARACTERS)


def find_all(pattern: str, text: str, max_matches: int = -1) -> list[str]:
    content = _encode(text)
    spans = _compile(pattern).iter_spans(content)
    limited = spans if max_matches < 0 else islice(spans, max_matches)
    return [content[start:end].decode() for (start, end), *_ in limited]


def split(pattern: str, text: str, max_parts: int = -1) -> list[str]:
    """Split around matches: into at most `max_parts` parts, or into none at 0."""
    if max_parts == 0:
        return []
    if pattern and not text:
        return [""]
    content = _encode(text)
    parts: list[str] = []
    begin = match_start = 0
    for (start, end), *_ in _compile(pattern).iter_spans(content):
        if len(parts) == max_parts - 1:
            break
        match_start = start
        if end > 0:
            parts.append(content[begin:start].decode())
        begin = end
    return parts if match_start == len(content) else [*parts, content[begin:].decode()]


def replace_all(pattern: str, text: str, template: str, spend_characters: SpendCharacters) -> str:
    """Replace each match; `$1`, `${1}` and `${name}` in the template are groups, `$$` is a dollar sign."""
    if "$" not in template:
        return replace_all_literal(pattern, text, template, spend_characters)
    finder = _compile(pattern, needs_groups=True)
    parts = tuple(_split_template(template, finder.group_numbers))
    return _replace(finder, _encode(text), parts, spend_characters)


def replace_all_literal(pattern: str, text: str, replacement: str, spend_characters: SpendCharacters) -> str:
    return _replace(_compile(pattern), _encode(text), (_encode(replacement),), spend_characters)


def _replace(
    finder: GoRegexpFinder, content: bytes, parts: Sequence[bytes | int], spend_characters: SpendCharacters
) -> str:
    pieces: list[bytes] = []
    copied_until = 0
    for spans in finder.iter_spans(content):
        start, end = spans[0]
        replacement = b"".join(part if isinstance(part, bytes) else _read_group(content, spans, part) for part in parts)
        spend_characters(len(replacement))
        pieces += (content[copied_until:start], replacement)
        copied_until = end
    return b"".join((*pieces, content[copied_until:])).decode()


def _read_group(content: bytes, spans: Sequence[Span], number: int) -> bytes:
    start, end = spans[number] if number < len(spans) else (-1, -1)
    return content[start:end] if start >= 0 else b""


def _split_template(template: str, group_numbers: Mapping[str, int]) -> Iterator[bytes | int]:
    """Yield literal texts and group numbers, as Go's Expand reads them."""
    while True:
        literal, dollar, template = template.partition("$")
        yield _encode(literal)
        if not dollar:
            return
        if template.startswith("$"):
            yield b"$"
            template = template[1:]
            continue
        name, rest = _read_group_name(template)
        if not name:
            yield b"$"
            continue
        template = rest
        number = _parse_group_number(name)
        if number is None:
            number = group_numbers.get(name)
        if number is not None:
            yield number


def _read_group_name(template: str) -> tuple[str, str]:
    """Return the name or `{name}` at the start and the rest; without a name, ""."""
    braces = template.startswith("{")
    start = end = int(braces)
    while end < len(template) and (template[end].isalpha() or template[end].isdecimal() or template[end] == "_"):
        end += 1
    name = template[start:end]
    if braces and not template.startswith("}", end):
        return "", template
    return name, template[end + braces :]


def _parse_group_number(name: str) -> int | None:
    is_number = name.isascii() and name.isdecimal() and (name == "0" or not name.startswith("0"))
    return int(name) if is_number and len(name) <= len(str(MAX_GROUP_NUMBER)) else None


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


@lru_cache(maxsize=256)
def _compile(pattern: str, needs_groups: bool = False) -> GoRegexpFinder:
    return GoRegexpFinder(pattern, needs_groups=needs_groups)

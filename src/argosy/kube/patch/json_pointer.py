"""JSON pointers (RFC 6901): parse and format them, read and replace the values they point to.

In: a pointer as text or tokens. Out: tokens, text, a value, or a new document. Never: mutates a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from argosy.errors import PatchError

_INDEX = re.compile(r"0|[1-9][0-9]*")


def parse(pointer: str) -> list[str]:
    """Split `/a~1b/0` into `["a/b", "0"]`; the empty pointer has no tokens and means the whole document."""
    if not pointer:
        return []
    if pointer[0] != "/":
        raise PatchError(f'invalid JSON pointer {pointer!r}: it must start with "/"')
    return [unescape(token) for token in pointer[1:].split("/")]


def format_tokens(tokens: Iterable[str | int]) -> str:
    return "".join(f"/{escape(str(token))}" for token in tokens)


def escape(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token


def get(document: Any, pointer: str | Sequence[str]) -> Any:
    """Return the value at the pointer; raise PatchError if the document has none."""
    tokens = parse(pointer) if isinstance(pointer, str) else pointer
    value = document
    for depth, token in enumerate(tokens):
        match value:
            case dict() if token in value:
                value = value[token]
            case list() if _INDEX.fullmatch(token) and int(token) < len(value):
                value = value[int(token)]
            case _:
                raise PatchError(f"no value at {format_tokens(tokens[: depth + 1])!r}")
    return value


def put(document: Any, pointer: str | Sequence[str], value: Any) -> Any:
    """Return a copy with `value` at the pointer. The last token may be a new map key, `-` or a list's length."""
    tokens = parse(pointer) if isinstance(pointer, str) else pointer
    return _put(document, tokens, 0, value)


def _put(document: Any, tokens: Sequence[str], depth: int, value: Any) -> Any:
    if depth == len(tokens):
        return value
    token, last = tokens[depth], depth + 1 == len(tokens)
    match document:
        case dict() if last or token in document:
            return document | {token: _put(document.get(token), tokens, depth + 1, value)}
        case list() if last and token in ("-", str(len(document))):
            return [*document, value]
        case list() if _INDEX.fullmatch(token) and int(token) < len(document):
            index = int(token)
            return [*document[:index], _put(document[index], tokens, depth + 1, value), *document[index + 1 :]]
    raise PatchError(f"no value at {format_tokens(tokens[: depth + 1])!r}")

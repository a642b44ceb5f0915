"""Matches kinds against wildcards of Argo CD's settings: `*.example.io/*`, `apps/{Deployment,StatefulSet}`.

In: a pattern, a kind. Out: True if it matches, in time proportional to both lengths. Never: backtracks.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from typing import Final

from argosy.errors import UserError

MAX_ALTERNATIVES: Final = 256
_WILDCARD_PART: Final = re.compile(r"(\*+|\?|\[[!^]?[^\]]*\]|\\.)", re.DOTALL)
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
PatternToken = re.Pattern[str] | None  # one character, or None for any number of them


def matches_kind_pattern(pattern: str, text: str) -> bool:
    """argo: `*` also matches the slash between group and kind."""
    return any(_matches_tokens(tokens, text) for tokens in parse_kind_pattern(pattern))


@cache
def parse_kind_pattern(pattern: str) -> tuple[tuple[PatternToken, ...], ...]:
    """Return the tokens of each alternative. Raises UserError for an invalid pattern."""
    return tuple(tuple(_parse_tokens(alternative, pattern)) for alternative in _expand_braces(pattern))


def _expand_braces(pattern: str) -> list[str]:
    pieces = _BRACES.split(pattern)
    if any(brace in piece for piece in pieces[::2] for brace in "{}"):
        raise UserError(f"the pattern {pattern!r} has an unbalanced brace; write {{a,b}}")
    choices = [piece.split(",") if position % 2 else [piece] for position, piece in enumerate(pieces)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MAX_ALTERNATIVES:
        raise UserError(f"the pattern {pattern!r} has over {MAX_ALTERNATIVES} alternatives; write several patterns")
    return ["".join(combination) for combination in product(*choices)]


def _parse_tokens(text: str, pattern: str) -> list[PatternToken]:
    tokens: list[PatternToken] = []
    for position, part in enumerate(_WILDCARD_PART.split(text)):
        if position % 2 == 0:
            tokens += [re.compile(re.escape(character)) for character in part]
        elif part[0] == "*":
            tokens.append(None)
        else:
            tokens.append(_parse_token(part, pattern))
    return tokens


def _parse_token(part: str, pattern: str) -> PatternToken:
    if part == "?":
        return re.compile(".", re.DOTALL)
    if part[0] == "\\":
        return re.compile(re.escape(part[1]))
    negated = part[1] in "!^"
    members = part[2 if negated else 1 : -1].replace("\\", r"\\").replace("[", r"\[")
    try:
        return re.compile(f"[{'^' if negated else ''}{members}]")
    except re.error as error:
        raise UserError(f"the pattern {pattern!r} has an invalid character set {part}; write [a-z]") from error


def _matches_tokens(tokens: tuple[PatternToken, ...], text: str) -> bool:
    """Match greedily: on a mismatch, only the last `*` takes one more character."""
    token_index, position = 0, 0
    star, resume_position = -1, 0
    while position < len(text):
        token = tokens[token_index] if token_index < len(tokens) else None
        if token_index < len(tokens) and token is None:
            star, resume_position = token_index, position
            token_index += 1
        elif token is not None and token.fullmatch(text, position, position + 1):
            token_index, position = token_index + 1, position + 1
        elif star >= 0:
            resume_position += 1
            token_index, position = star + 1, resume_position
        else:
            return False
    return all(token is None for token in tokens[token_index:])

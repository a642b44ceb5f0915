"""Matches kinds against wildcards of Argo CD's settings: `*.example.io/*`, `apps/{Deployment,StatefulSet}`.

In: a pattern, a kind. Out: True if it matches, in time proportional to both lengths. Never: backtracks.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from typing import Final

from argosy.errors import UserError

MOST_ALTERNATIVES: Final = 256
_PART: Final = re.compile(r"(\*+|\?|\[[!^]?[^\]]*\]|\\.)", re.DOTALL)
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
Token = re.Pattern[str] | None  # one character, or None for any number of them


def matches(pattern: str, text: str) -> bool:
    """argo: `*` also matches the slash between group and kind."""
    return any(_fits(tokens, text) for tokens in read(pattern))


@cache
def read(pattern: str) -> tuple[tuple[Token, ...], ...]:
    """Return the tokens of each alternative. Raises UserError for an invalid pattern."""
    return tuple(tuple(_tokens(one, pattern)) for one in _alternatives(pattern))


def _alternatives(pattern: str) -> list[str]:
    pieces = _BRACES.split(pattern)
    if any(brace in piece for piece in pieces[::2] for brace in "{}"):
        raise UserError(f"the pattern {pattern!r} has an unbalanced brace; write {{a,b}}")
    choices = [piece.split(",") if place % 2 else [piece] for place, piece in enumerate(pieces)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MOST_ALTERNATIVES:
        raise UserError(f"the pattern {pattern!r} has over {MOST_ALTERNATIVES} alternatives; write several patterns")
    return ["".join(chosen) for chosen in product(*choices)]


def _tokens(text: str, pattern: str) -> list[Token]:
    tokens: list[Token] = []
    for place, part in enumerate(_PART.split(text)):
        if place % 2 == 0:
            tokens += [re.compile(re.escape(character)) for character in part]
        elif part[0] == "*":
            tokens.append(None)
        else:
            tokens.append(_one(part, pattern))
    return tokens


def _one(part: str, pattern: str) -> Token:
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


def _fits(tokens: tuple[Token, ...], text: str) -> bool:
    """Match greedily: on a mismatch, only the last `*` takes one more character."""
    at, place = 0, 0
    star, resume = -1, 0
    while place < len(text):
        token = tokens[at] if at < len(tokens) else None
        if at < len(tokens) and token is None:
            star, resume = at, place
            at += 1
        elif token is not None and token.fullmatch(text, place, place + 1):
            at, place = at + 1, place + 1
        elif star >= 0:
            resume += 1
            at, place = star + 1, resume
        else:
            return False
    return all(token is None for token in tokens[at:])

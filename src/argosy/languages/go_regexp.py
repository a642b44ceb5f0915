"""Matches Go's regular expressions in linear time.

In: a pattern, a text. Out: True or False. Never: backtracks, as Python's `re` does: all alternatives are followed at
once, as in Go, so that a user's pattern cannot stop a server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

MOST_NODES: Final = 1_000
MOST_REPEATS: Final = 1_000  # argo: Go's limit
# argo: Go does not support these, or they mean something else
_FOREIGN: Final = re.compile(r"\(\?[=!<>(#]|\\[1-9gkZ]|[*+?}]\+|\[\[:")
_WORD: Final = re.compile(r"\w", re.ASCII)
_REPEATS: Final = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_KINDS: Final = {
    sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip

Fits = Callable[[str], bool]
Sign = Callable[[str], bool]  # True if one character matches
Step = tuple[str, Any, int]  # kind, argument, index of the next step


class Unreadable(Exception):
    """Not a regular expression, or not one of Go's."""


def expression(pattern: str) -> Fits:
    if _FOREIGN.search(pattern):
        raise Unreadable(pattern)
    try:
        tree = parser.parse(pattern, re.ASCII)
        program = _Program(tree)
        quick = re.compile(pattern, re.ASCII).search
    except (re.error, RecursionError, OverflowError, KeyError) as error:
        raise Unreadable(pattern) from error
    if _is_simple(tree):
        # Python's `$` also matches before a final line break, and its `\B` never in an empty text; Go differs.
        return lambda text: program.fits(text) if not text or "\n" in text else quick(text) is not None
    return program.fits


def _is_simple(tree: Any) -> bool:
    """True for at most one repeat and one alternation, not nested: then Python's `re` is fast, too."""
    repeats, choices = _counted(tree, is_inside=False)
    return repeats <= 1 and choices <= 1


def _counted(tree: Any, *, is_inside: bool) -> tuple[int, int]:
    repeats = choices = 0
    for kind, value in tree:
        if kind in _REPEATS:
            repeats += 2 if is_inside else 1
        elif kind is sre.BRANCH:
            choices += 2 if is_inside else 1
        for inner in _inner(kind, value):
            more = _counted(inner, is_inside=is_inside or kind in _REPEATS or kind is sre.BRANCH)
            repeats, choices = repeats + more[0], choices + more[1]
    return repeats, choices


def _inner(kind: Any, value: Any) -> Sequence[Any]:
    if kind in _REPEATS:
        return (value[2],)
    if kind is sre.BRANCH:
        return tuple(value[1])
    return (value[3],) if kind is sre.SUBPATTERN else ()


class _Program:
    """The steps of a pattern (a Thompson NFA); step 0 is the match."""

    def __init__(self, tree: Any) -> None:
        self._steps: list[Step] = [("over", None, 0)]
        self._first = self._all(tree, 0, tree.state.flags)

    def fits(self, text: str) -> bool:
        now: set[int] = set()
        for at in range(len(text) + 1):
            now.add(self._first)  # a match may start anywhere
            reached = self._reached(now, text, at)
            if reached is None:
                return True
            if at < len(text):
                sign = text[at]
                now = {after for fits, after in reached if fits(sign)}
        return False

    def _reached(self, begun: set[int], text: str, at: int) -> list[tuple[Sign, int]] | None:
        """Return the characters that may come next; None if the pattern has matched."""
        seen, left = set(begun), list(begun)
        found: list[tuple[Sign, int]] = []
        while left:
            kind, what, after = self._steps[left.pop()]
            if kind == "over":
                return None
            if kind == "sign":
                found.append((what, after))
                continue
            further = (what, after) if kind == "either" else (after,) if _holds(what, text, at) else ()
            for each in further:
                if each not in seen:
                    seen.add(each)
                    left.append(each)
        return found

    # -- build -------------------------------------------------------------------------------------------------------

    def _add(self, kind: str, what: Any, after: int) -> int:
        if len(self._steps) >= MOST_NODES:
            raise OverflowError
        self._steps.append((kind, what, after))
        return len(self._steps) - 1

    def _all(self, tree: Any, after: int, flags: int) -> int:
        """Return the first step of a sequence of parts that continues at `next_step`."""
        for kind, value in reversed(list(tree)):
            after = self._one(kind, value, after, flags)
        return after

    def _one(self, kind: Any, value: Any, after: int, flags: int) -> int:
        if kind in _REPEATS:
            return self._repeat(value, after, flags)
        if kind is sre.BRANCH:
            first, *others = [self._all(each, after, flags) for each in value[1]]
            for each in others:
                first = self._add("either", first, each)
            return first
        if kind is sre.SUBPATTERN:
            _, more, less, inner = value
            return self._all(inner, after, (flags | more) & ~less)
        if kind is sre.AT:
            return self._add("place", (value, bool(flags & re.MULTILINE)), after)
        return self._add("sign", _sign(kind, value, flags), after)

    def _repeat(self, value: Any, after: int, flags: int) -> int:
        least, most, inner = value
        if least > MOST_REPEATS or (most is not sre.MAXREPEAT and most > MOST_REPEATS):
            raise OverflowError
        if most is sre.MAXREPEAT:
            entered = self._add("either", after, after)
            self._steps[entered] = ("either", self._all(inner, entered, flags), after)
        else:
            entered = after
            for _ in range(most - least):
                entered = self._add("either", self._all(inner, entered, flags), after)
        for _ in range(least):
            entered = self._all(inner, entered, flags)
        return entered


def _sign(kind: Any, value: Any, flags: int) -> Sign:
    ignores = bool(flags & re.IGNORECASE)
    if kind is sre.ANY:
        return (lambda sign: True) if flags & re.DOTALL else (lambda sign: sign != "\n")
    if kind is sre.LITERAL:
        made = _any_of([(kind, value)])
    elif kind is sre.NOT_LITERAL:
        made = _any_of([(sre.NEGATE, None), (sre.LITERAL, value)])
    elif kind is sre.IN:
        made = _any_of(value)
    else:
        raise KeyError(kind)  # lookaround, backreferences, atomic groups: Go has none
    if not ignores:
        return made
    if kind is sre.NOT_LITERAL or (kind is sre.IN and value[0][0] is sre.NEGATE):
        return lambda sign: all(made(each) for each in {sign, sign.lower(), sign.upper()} if len(each) == 1)
    return lambda sign: any(made(each) for each in {sign, sign.lower(), sign.upper()} if len(each) == 1)


def _any_of(items: Sequence[tuple[Any, Any]]) -> Sign:
    is_negated = bool(items) and items[0][0] is sre.NEGATE
    ranges: list[tuple[int, int]] = []
    kinds: list[re.Pattern[str]] = []
    for kind, value in items[1:] if is_negated else items:
        if kind is sre.LITERAL:
            ranges.append((value, value))
        elif kind is sre.RANGE:
            ranges.append(value)
        else:
            kinds.append(re.compile(_KINDS[value], re.ASCII))

    def fits(sign: str) -> bool:
        number = ord(sign)
        found = any(low <= number <= high for low, high in ranges) or any(each.match(sign) for each in kinds)
        return found is not is_negated

    return fits


def _holds(what: tuple[Any, bool], text: str, at: int) -> bool:
    """True if the assertion holds at this position of the text."""
    place, is_lines = what
    if place is sre.AT_BEGINNING or place is sre.AT_BEGINNING_STRING:
        return at == 0 or (is_lines and place is sre.AT_BEGINNING and text[at - 1] == "\n")
    if place is sre.AT_END or place is sre.AT_END_STRING:
        return at == len(text) or (is_lines and place is sre.AT_END and text[at] == "\n")
    before = at > 0 and _WORD.match(text[at - 1]) is not None
    behind = at < len(text) and _WORD.match(text[at]) is not None
    return (before is not behind) is (place is sre.AT_BOUNDARY)

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

MAX_STEPS: Final = 1_000
MAX_REPEATS: Final = 1_000  # argo: Go's limit
# argo: Go does not support these, or they mean something else
_UNSUPPORTED_BY_GO: Final = re.compile(r"\(\?[=!<>(#]|\\[1-9gkZ]|[*+?}]\+|\[\[:")
_WORD_CHARACTER: Final = re.compile(r"\w", re.ASCII)
_REPEAT_KINDS: Final = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_CATEGORY_PATTERNS: Final = {
    sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip

RegexpMatcher = Callable[[str], bool]
CharacterTest = Callable[[str], bool]  # True if one character matches
NfaStep = tuple[str, Any, int]  # kind, argument, index of the next step


class InvalidGoRegexp(Exception):
    """Not a regular expression, or not one of Go's."""


def compile_go_regexp(pattern: str) -> RegexpMatcher:
    if _UNSUPPORTED_BY_GO.search(pattern):
        raise InvalidGoRegexp(pattern)
    try:
        tree = parser.parse(pattern, re.ASCII)
        program = _NfaProgram(tree)
        python_search = re.compile(pattern, re.ASCII).search
    except (re.error, RecursionError, OverflowError, KeyError) as error:
        raise InvalidGoRegexp(pattern) from error
    if _is_simple(tree):
        # Python's `$` also matches before a final line break, and its `\B` never in an empty text; Go differs.
        return lambda text: program.matches(text) if not text or "\n" in text else python_search(text) is not None
    return program.matches


def _is_simple(tree: Any) -> bool:
    """True for at most one repeat and one alternation, not nested: then Python's `re` is fast, too."""
    repeats, choices = _count_repeats_and_choices(tree, is_inside=False)
    return repeats <= 1 and choices <= 1


def _count_repeats_and_choices(tree: Any, *, is_inside: bool) -> tuple[int, int]:
    repeats = choices = 0
    for kind, value in tree:
        if kind in _REPEAT_KINDS:
            repeats += 2 if is_inside else 1
        elif kind is sre.BRANCH:
            choices += 2 if is_inside else 1
        for inner in _list_inner_patterns(kind, value):
            inner_counts = _count_repeats_and_choices(
                inner, is_inside=is_inside or kind in _REPEAT_KINDS or kind is sre.BRANCH
            )
            repeats, choices = repeats + inner_counts[0], choices + inner_counts[1]
    return repeats, choices


def _list_inner_patterns(kind: Any, value: Any) -> Sequence[Any]:
    if kind in _REPEAT_KINDS:
        return (value[2],)
    if kind is sre.BRANCH:
        return tuple(value[1])
    return (value[3],) if kind is sre.SUBPATTERN else ()


class _NfaProgram:
    """The steps of a pattern (a Thompson NFA); step 0 is the match."""

    def __init__(self, tree: Any) -> None:
        self._steps: list[NfaStep] = [("over", None, 0)]
        self._start = self._build_sequence(tree, 0, tree.state.flags)

    def matches(self, text: str) -> bool:
        current_steps: set[int] = set()
        for position in range(len(text) + 1):
            current_steps.add(self._start)  # a match may start anywhere
            next_tests = self._list_next_tests(current_steps, text, position)
            if next_tests is None:
                return True
            if position < len(text):
                character = text[position]
                current_steps = {next_step for test, next_step in next_tests if test(character)}
        return False

    def _list_next_tests(
        self, start_steps: set[int], text: str, position: int
    ) -> list[tuple[CharacterTest, int]] | None:
        """Return the characters that may come next; None if the pattern has matched."""
        visited, pending = set(start_steps), list(start_steps)
        tests: list[tuple[CharacterTest, int]] = []
        while pending:
            kind, argument, next_step = self._steps[pending.pop()]
            if kind == "over":
                return None
            if kind == "sign":
                tests.append((argument, next_step))
                continue
            successors = (
                (argument, next_step)
                if kind == "either"
                else (next_step,)
                if _is_assertion_true(argument, text, position)
                else ()
            )
            for successor in successors:
                if successor not in visited:
                    visited.add(successor)
                    pending.append(successor)
        return tests

    # -- build -------------------------------------------------------------------------------------------------------

    def _add_step(self, kind: str, argument: Any, next_step: int) -> int:
        if len(self._steps) >= MAX_STEPS:
            raise OverflowError
        self._steps.append((kind, argument, next_step))
        return len(self._steps) - 1

    def _build_sequence(self, tree: Any, next_step: int, flags: int) -> int:
        """Return the first step of a sequence of parts that continues at `next_step`."""
        for kind, value in reversed(list(tree)):
            next_step = self._build_part(kind, value, next_step, flags)
        return next_step

    def _build_part(self, kind: Any, value: Any, next_step: int, flags: int) -> int:
        if kind in _REPEAT_KINDS:
            return self._build_repeat(value, next_step, flags)
        if kind is sre.BRANCH:
            first, *other_branches = [self._build_sequence(branch, next_step, flags) for branch in value[1]]
            for branch in other_branches:
                first = self._add_step("either", first, branch)
            return first
        if kind is sre.SUBPATTERN:
            _, added_flags, removed_flags, inner = value
            return self._build_sequence(inner, next_step, (flags | added_flags) & ~removed_flags)
        if kind is sre.AT:
            return self._add_step("place", (value, bool(flags & re.MULTILINE)), next_step)
        return self._add_step("sign", _build_character_test(kind, value, flags), next_step)

    def _build_repeat(self, value: Any, next_step: int, flags: int) -> int:
        minimum, maximum, inner = value
        if minimum > MAX_REPEATS or (maximum is not sre.MAXREPEAT and maximum > MAX_REPEATS):
            raise OverflowError
        if maximum is sre.MAXREPEAT:
            entry = self._add_step("either", next_step, next_step)
            self._steps[entry] = ("either", self._build_sequence(inner, entry, flags), next_step)
        else:
            entry = next_step
            for _ in range(maximum - minimum):
                entry = self._add_step("either", self._build_sequence(inner, entry, flags), next_step)
        for _ in range(minimum):
            entry = self._build_sequence(inner, entry, flags)
        return entry


def _build_character_test(kind: Any, value: Any, flags: int) -> CharacterTest:
    ignores_case = bool(flags & re.IGNORECASE)
    if kind is sre.ANY:
        return (lambda character: True) if flags & re.DOTALL else (lambda character: character != "\n")
    if kind is sre.LITERAL:
        test = _build_set_test([(kind, value)])
    elif kind is sre.NOT_LITERAL:
        test = _build_set_test([(sre.NEGATE, None), (sre.LITERAL, value)])
    elif kind is sre.IN:
        test = _build_set_test(value)
    else:
        raise KeyError(kind)  # lookaround, backreferences, atomic groups: Go has none
    if not ignores_case:
        return test
    if kind is sre.NOT_LITERAL or (kind is sre.IN and value[0][0] is sre.NEGATE):
        return lambda character: all(
            test(variant) for variant in {character, character.lower(), character.upper()} if len(variant) == 1
        )
    return lambda character: any(
        test(variant) for variant in {character, character.lower(), character.upper()} if len(variant) == 1
    )


def _build_set_test(items: Sequence[tuple[Any, Any]]) -> CharacterTest:
    is_negated = bool(items) and items[0][0] is sre.NEGATE
    ranges: list[tuple[int, int]] = []
    categories: list[re.Pattern[str]] = []
    for kind, value in items[1:] if is_negated else items:
        if kind is sre.LITERAL:
            ranges.append((value, value))
        elif kind is sre.RANGE:
            ranges.append(value)
        else:
            categories.append(re.compile(_CATEGORY_PATTERNS[value], re.ASCII))

    def test(character: str) -> bool:
        code_point = ord(character)
        is_in_set = any(low <= code_point <= high for low, high in ranges) or any(
            category.match(character) for category in categories
        )
        return is_in_set is not is_negated

    return test


def _is_assertion_true(assertion: tuple[Any, bool], text: str, position: int) -> bool:
    """True if the assertion holds at this position of the text."""
    assertion_kind, is_multiline = assertion
    if assertion_kind is sre.AT_BEGINNING or assertion_kind is sre.AT_BEGINNING_STRING:
        return position == 0 or (is_multiline and assertion_kind is sre.AT_BEGINNING and text[position - 1] == "\n")
    if assertion_kind is sre.AT_END or assertion_kind is sre.AT_END_STRING:
        return position == len(text) or (is_multiline and assertion_kind is sre.AT_END and text[position] == "\n")
    is_word_before = position > 0 and _WORD_CHARACTER.match(text[position - 1]) is not None
    is_word_after = position < len(text) and _WORD_CHARACTER.match(text[position]) is not None
    return (is_word_before is not is_word_after) is (assertion_kind is sre.AT_BOUNDARY)

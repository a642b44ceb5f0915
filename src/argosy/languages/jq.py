"""Paths of jq, as `ignoreDifferences` uses them: `.spec.containers[] | select(.name == "proxy")`.

In: an expression. Out: a Path that removes what it names from a document, or None: then only the real jq knows it.
Never: runs long; mutates a document; guesses at what it does not know.

The part of the language that is understood here: fields, indices, `[]`, `select`, comparisons, `and`, `or`, `not`,
`has`, `test` of plain texts, `startswith`, `endswith`, pipes, commas, parentheses and `?`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from argosy.kube.objects.text_cache import remembered
from argosy.languages.jq_evaluator import JqFailed, JqTooExpensiveError, Run, Step, Stepper
from argosy.languages.jq_parser import Unknown, read

_MOST_CHARACTERS: Final = 10_000
MAX_EXPRESSION_SHOWN: Final = 200
TOO_EXPENSIVE: Final = "it takes too much time or memory; write it simpler"
JqPath = tuple[str | int, ...]
_WHOLE: Final = object()  # a value that goes with all that it contains


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled expression."""

    expression: str
    _step: Step

    def paths(self, document: Any) -> list[JqPath]:
        """Where the expression points. Raises JqFailed where jq ends in an error, or JqTooExpensiveError."""
        found: dict[JqPath, None] = {}
        for path, _ in self._step(Run((), document), Stepper()):
            if path is None:
                raise JqFailed("it names no place in the document")
            found[path] = None
        return list(found)

    def remove(self, document: Any) -> Any:
        """As `del(…)`. argo: where jq ends in an error, the document stays as it is. Raises JqTooExpensiveError."""
        try:
            return without_paths(document, self.paths(document))
        except JqFailed:
            return document
        except RecursionError:
            raise JqTooExpensiveError from None


@remembered(1024)
def compile_path(expression: str) -> Path | None:
    """None for what is not understood here: the real jq may understand it, or say what is wrong with it."""
    if len(expression) > _MOST_CHARACTERS:
        return None
    try:
        return Path(expression, read(expression))
    except (Unknown, RecursionError):
        return None


def too_expensive_sentence(expression: str) -> str:
    """The condition of an Application whose expression went over its limits."""
    return fault_sentence(expression, TOO_EXPENSIVE)


def fault_sentence(expression: str, why: str) -> str:
    return f"jqPathExpressions: {repr(expression)[:MAX_EXPRESSION_SHOWN]}: {why}"


def without_paths(document: Any, paths: Iterable[JqPath]) -> Any:
    """The document without these places. Copies each container once, however many of its elements go."""
    removals: dict[str | int, Any] = {}
    for path in paths:
        if not path:
            return None
        branch: Any = removals
        for step in path[:-1]:
            branch = branch.setdefault(step, {})
            if branch is _WHOLE:
                break
        else:
            branch[path[-1]] = _WHOLE
    return _without(document, removals)


def _without(value: Any, removals: dict[str | int, Any]) -> Any:
    """`removals` has, by name or index, what goes below that; `_WHOLE` where all of it goes."""
    if isinstance(value, dict):
        return {
            name: _without(item, removals[name]) if name in removals else item
            for name, item in value.items()
            if removals.get(name) is not _WHOLE
        }
    if isinstance(value, list):
        return [
            _without(item, removals[index]) if index in removals else item
            for index, item in enumerate(value)
            if removals.get(index) is not _WHOLE
        ]
    return value

"""jq paths, as used by `ignoreDifferences`: `.spec.containers[] | select(.name == "proxy")`.

In: an expression. Out: a JqExpression that deletes its paths from a document, or None: then only the real jq can.
Never: runs long; changes the given document; guesses.

Supported: fields, indices, `[]`, `select`, comparisons, `and`, `or`, `not`, `has`, `test` of plain text, `startswith`,
`endswith`, pipes, commas, parentheses and `?`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from argosy.kube.objects.short_text_result_cache import cache_short_texts
from argosy.languages.jq_evaluator import JqFailed, JqStep, JqTooExpensiveError, JqValue, StepCounter
from argosy.languages.jq_parser import UnsupportedJq, parse_jq

_MAX_EXPRESSION_CHARACTERS: Final = 10_000
MAX_SHOWN_CHARACTERS: Final = 200
TOO_EXPENSIVE_MESSAGE: Final = "it takes too much time or memory; simplify it"
JqPath = tuple[str | int, ...]
_DELETE_ALL: Final = object()  # marks a value that is deleted with everything below it


@dataclass(frozen=True, slots=True)
class JqExpression:
    """A compiled expression."""

    expression: str
    _step: JqStep

    def list_paths(self, document: Any) -> list[JqPath]:
        """Return the paths of the expression. Raises JqFailed if jq would fail, or JqTooExpensiveError."""
        paths: dict[JqPath, None] = {}
        for path, _ in self._step(JqValue((), document), StepCounter()):
            if path is None:
                raise JqFailed("it does not point to a path of the document")
            paths[path] = None
        return list(paths)

    def delete_paths(self, document: Any) -> Any:
        """Delete the paths, as `del(…)`. argo: if jq fails, the document is unchanged. Raises JqTooExpensiveError."""
        try:
            return delete_from_document(document, self.list_paths(document))
        except JqFailed:
            return document
        except RecursionError:
            raise JqTooExpensiveError from None


@cache_short_texts(1024)
def compile_jq(expression: str) -> JqExpression | None:
    """Return None for unsupported expressions: the real jq may support them, or report the error."""
    if len(expression) > _MAX_EXPRESSION_CHARACTERS:
        return None
    try:
        return JqExpression(expression, parse_jq(expression))
    except (UnsupportedJq, RecursionError):
        return None


def format_too_expensive_error(expression: str) -> str:
    """Format the condition of an Application whose expression exceeds its limits."""
    return format_jq_error(expression, TOO_EXPENSIVE_MESSAGE)


def format_jq_error(expression: str, reason: str) -> str:
    return f"jqPathExpressions: {repr(expression)[:MAX_SHOWN_CHARACTERS]}: {reason}"


def delete_from_document(document: Any, paths: Iterable[JqPath]) -> Any:
    """Return the document without these paths. Each container is copied once, however many elements are deleted."""
    removals: dict[str | int, Any] = {}
    for path in paths:
        if not path:
            return None
        branch: Any = removals
        for step in path[:-1]:
            branch = branch.setdefault(step, {})
            if branch is _DELETE_ALL:
                break
        else:
            branch[path[-1]] = _DELETE_ALL
    return _delete_from_value(document, removals)


def _delete_from_value(value: Any, removals: dict[str | int, Any]) -> Any:
    """`removals` maps a name or index to the removals below it; `_DELETE_ALL` deletes all of it."""
    if isinstance(value, dict):
        return {
            name: _delete_from_value(item, removals[name]) if name in removals else item
            for name, item in value.items()
            if removals.get(name) is not _DELETE_ALL
        }
    if isinstance(value, list):
        return [
            _delete_from_value(item, removals[index]) if index in removals else item
            for index, item in enumerate(value)
            if removals.get(index) is not _DELETE_ALL
        ]
    return value

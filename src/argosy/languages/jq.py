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

from argosy.kube.objects.text_cache import remembered
from argosy.languages.jq_evaluator import JqFailed, JqTooExpensiveError, Run, Step, Stepper
from argosy.languages.jq_parser import Unknown, read

_MOST_CHARACTERS: Final = 10_000
MAX_EXPRESSION_SHOWN: Final = 200
TOO_EXPENSIVE: Final = "it takes too much time or memory; simplify it"
JqPath = tuple[str | int, ...]
_WHOLE: Final = object()  # marks a value that is deleted with everything below it


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled expression."""

    expression: str
    _step: Step

    def paths(self, document: Any) -> list[JqPath]:
        """Return the paths of the expression. Raises JqFailed if jq would fail, or JqTooExpensiveError."""
        found: dict[JqPath, None] = {}
        for path, _ in self._step(Run((), document), Stepper()):
            if path is None:
                raise JqFailed("it does not point to a path of the document")
            found[path] = None
        return list(found)

    def remove(self, document: Any) -> Any:
        """Delete the paths, as `del(…)`. argo: if jq fails, the document is unchanged. Raises JqTooExpensiveError."""
        try:
            return without_paths(document, self.paths(document))
        except JqFailed:
            return document
        except RecursionError:
            raise JqTooExpensiveError from None


@remembered(1024)
def compile_path(expression: str) -> Path | None:
    """Return None for unsupported expressions: the real jq may support them, or report the error."""
    if len(expression) > _MOST_CHARACTERS:
        return None
    try:
        return Path(expression, read(expression))
    except (Unknown, RecursionError):
        return None


def too_expensive_sentence(expression: str) -> str:
    """Format the condition of an Application whose expression exceeds its limits."""
    return fault_sentence(expression, TOO_EXPENSIVE)


def fault_sentence(expression: str, why: str) -> str:
    return f"jqPathExpressions: {repr(expression)[:MAX_EXPRESSION_SHOWN]}: {why}"


def without_paths(document: Any, paths: Iterable[JqPath]) -> Any:
    """Return the document without these paths. Each container is copied once, however many elements are deleted."""
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
    """`removals` maps a name or index to the removals below it; `_DELETE_ALL` deletes all of it."""
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

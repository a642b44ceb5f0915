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

from argosy.language.jq_steps import JqFailed, Run, Step, Stepper
from argosy.language.jq_syntax import Unknown, read
from argosy.model.remember import remembered

_MOST_CHARACTERS: Final = 10_000
JqPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled expression."""

    expression: str
    _step: Step

    def paths(self, document: Any) -> list[JqPath]:
        """Where the expression points. Raises JqFailed where jq ends in an error."""
        found: dict[JqPath, None] = {}
        for path, _ in self._step(Run((), document), Stepper()):
            if path is None:
                raise JqFailed("it names no place in the document")
            found[path] = None
        return list(found)

    def remove(self, document: Any) -> Any:
        """As `del(…)`. argo: where jq ends in an error, the document stays as it is."""
        try:
            return without_paths(document, self.paths(document))
        except (JqFailed, RecursionError):
            return document


@remembered(1024)
def compile_path(expression: str) -> Path | None:
    """None for what is not understood here: the real jq may understand it, or say what is wrong with it."""
    if len(expression) > _MOST_CHARACTERS:
        return None
    try:
        return Path(expression, read(expression))
    except (Unknown, RecursionError):
        return None


def without_paths(document: Any, paths: Iterable[JqPath]) -> Any:
    """The document without these places; the last ones first, so that indices stay true."""
    for path in sorted(paths, key=_place, reverse=True):
        document = _without(document, path) if path else None
    return document


def _place(path: JqPath) -> list[tuple[bool, str | int]]:
    return [(isinstance(step, str), step) for step in path]


def _without(value: Any, path: JqPath) -> Any:
    step, below = path[0], path[1:]
    if isinstance(value, dict) and step in value:
        if not below:
            return {name: item for name, item in value.items() if name != step}
        return {**value, step: _without(value[step], below)}
    if isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
        replaced = [_without(value[step], below)] if below else []
        return [*value[:step], *replaced, *value[step + 1 :]]
    return value

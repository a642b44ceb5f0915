"""Rules about patches in kustomizations.

In: a repository. Out: violations. Never: reports a patch that tests the value it expects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.gitops.analysis.repository import Item, Repository, Step
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.violation import Severity, Sight
from argosy.kube.objects import load

_BY_PLACE: Final = re.compile(r"(/.*/(?:args|command))/\d+")


def _positional(repository: Repository) -> Iterator[Sight]:
    for item in repository.kustomizations:
        for number, patch in enumerate(item.all("patches")):
            text = patch.get("patch") if isinstance(patch, dict) else None
            steps = _steps(text) if isinstance(text, str) else []
            for at, path in _untested(steps):
                yield _sight(item, ("patches", number, "patch", at, "path"), path)
    for item in repository.patches:
        for at, path in _untested(item.all("steps")):
            yield _sight(item, ("steps", at, "path"), path)


def _untested(steps: list[dict[str, Any]]) -> Iterator[tuple[int, str]]:
    """Yield operations that replace a list element by index in a list that no operation tests."""
    tested = {match[1] for step in steps if step.get("op") == "test" and (match := _place(step))}
    for at, step in enumerate(steps):
        match = _place(step)
        if match and step.get("op") == "replace" and match[1] not in tested:
            yield at, match[0]


def _sight(item: Item, where: tuple[Step, ...], path: str) -> Sight:
    list_of, _, place = path.rpartition("/")
    message = f"replaces {path} by index, even if the base changes"
    before = f"{list_of}/{max(int(place) - 1, 0)}"
    fix = f"add an operation before it: op: test, path: {before}, with the value expected there"
    return Sight(item.at(*where), message, fix, item.key.name, path)


def _place(step: dict[str, Any]) -> re.Match[str] | None:
    return _BY_PLACE.fullmatch(str(step.get("path", "")))


def _steps(text: str) -> list[dict[str, Any]]:
    try:
        found = load(text)
    except ArgosyError:
        return []
    return [each if isinstance(each, dict) else {} for each in found] if isinstance(found, list) else []


RULES: Final = (
    Rule(
        "AGY209",
        Severity.INFO,
        "A patch replaces an argument by its index",
        "An argument added to the base shifts the others: the patch then overwrites the wrong one, and the build"
        " does not fail.",
        "The patch is a list of operations, replaces an element of args or command by index, and no operation tests a"
        " value in that list.",
        "Add a test operation for the flag before it: then the build fails instead.",
        _positional,
    ),
)

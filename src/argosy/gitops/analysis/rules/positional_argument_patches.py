"""Rules about patches in kustomizations.

In: a repository. Out: violations. Never: reports a patch that tests the value it expects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.gitops.analysis.repository_view import ManifestWithLocations, PathStep, RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import Severity, Violation
from argosy.kube.objects import read_yaml

_ARGUMENT_POINTER: Final = re.compile(r"(/.*/(?:args|command))/\d+")


def _find_positional_patches(repository: RepositoryView) -> Iterator[Violation]:
    for item in repository.kustomizations:
        for index, patch in enumerate(item.get_list("patches")):
            text = patch.get("patch") if isinstance(patch, dict) else None
            operations = _read_operations(text) if isinstance(text, str) else []
            for position, path in _list_untested_replacements(operations):
                yield _build_violation(item, ("patches", index, "patch", position, "path"), path)
    for item in repository.patches:
        for position, path in _list_untested_replacements(item.get_list("steps")):
            yield _build_violation(item, ("steps", position, "path"), path)


def _list_untested_replacements(operations: list[dict[str, Any]]) -> Iterator[tuple[int, str]]:
    """Yield operations that replace a list element by index in a list that no operation tests."""
    tested = {
        match[1]
        for operation in operations
        if operation.get("op") == "test" and (match := _match_argument_pointer(operation))
    }
    for index, operation in enumerate(operations):
        match = _match_argument_pointer(operation)
        if match and operation.get("op") == "replace" and match[1] not in tested:
            yield index, match[0]


def _build_violation(item: ManifestWithLocations, location_path: tuple[PathStep, ...], path: str) -> Violation:
    list_pointer, _, index = path.rpartition("/")
    message = f"replaces {path} by index, even if the base changes"
    previous_pointer = f"{list_pointer}/{max(int(index) - 1, 0)}"
    fix = f"add an operation before it: op: test, path: {previous_pointer}, with the value expected there"
    return Violation(item.find_location(*location_path), message, fix, item.key.name, path)


def _match_argument_pointer(operation: dict[str, Any]) -> re.Match[str] | None:
    return _ARGUMENT_POINTER.fullmatch(str(operation.get("path", "")))


def _read_operations(text: str) -> list[dict[str, Any]]:
    try:
        operations = read_yaml(text)
    except ArgosyError:
        return []
    return (
        [operation if isinstance(operation, dict) else {} for operation in operations]
        if isinstance(operations, list)
        else []
    )


RULES: Final = (
    AnalysisRule(
        "AGY209",
        Severity.INFO,
        "A patch replaces an argument by its index",
        "An argument added to the base shifts the others: the patch then overwrites the wrong one, and the build"
        " does not fail.",
        "The patch is a list of operations, replaces an element of args or command by index, and no operation tests a"
        " value in that list.",
        "Add a test operation for the flag before it: then the build fails instead.",
        _find_positional_patches,
    ),
)

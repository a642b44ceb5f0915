"""Applies the rules that need the previous state of the repository.

In: paths and a base. Out: violations by rule. Never: fails without Git history, unless a base was given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from argosy.errors import ArgosyError
from argosy.gitops.analysis.rule_violation import Violation
from argosy.gitops.workspace.command_file_tree_cache import ShowProgress
from argosy.gitops.workspace.enclosing_repository_lookup import find_enclosing_repository


def list_history_violations(
    paths: Sequence[str], base: str, *, log: ShowProgress
) -> Mapping[str, tuple[Violation, ...]]:
    """Compare the working tree with the base, or by default with the merge base of the target branch."""
    folder = paths[0] if paths else os.curdir
    if find_enclosing_repository(os.path.realpath(folder)) is None and not base:
        return {}
    from argosy.features.preview.comparison import compare_sides
    from argosy.features.preview.revision_range_trees import PreviewRepository, open_sides
    from argosy.features.preview.service import build_schemas

    repository = PreviewRepository(folder if os.path.isdir(folder) else os.path.dirname(folder) or os.curdir)
    try:
        comparison = compare_sides(repository, open_sides(repository, base), log=log)
        if not comparison.touched and not comparison.lost:
            return {}
        from argosy.gitops.analysis.rules.breaking_changes import (
            IMMUTABLE_RULE,
            LOST_APPLICATIONS_RULE,
            find_immutable_violations,
            find_lost_application_violations,
        )

        violations_by_rule = {
            IMMUTABLE_RULE: find_immutable_violations(comparison.touched, build_schemas(comparison)),
            LOST_APPLICATIONS_RULE: find_lost_application_violations(comparison.lost),
        }
    except ArgosyError:
        if base:
            raise
        return {}  # no commit, no branch to compare with, a shallow clone
    finally:
        repository.close()
    return {
        rule: tuple(violation for violation in violations if _is_below(violation, paths))
        for rule, violations in violations_by_rule.items()
    }


def _is_below(violation: Violation, paths: Sequence[str]) -> bool:
    real = os.path.realpath(violation.location.file)
    real_paths = [os.path.realpath(path) for path in paths]
    return any(real == path or real.startswith(path.rstrip("/") + "/") for path in real_paths)

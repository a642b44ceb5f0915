"""Builds a preview: the changes between two states of a repository and their impact.

In: a folder of a repository, and the arguments. Out: Preview. Never: contacts a cluster; writes; prints.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from argosy.features.preview.comparison import RepositoryComparison, compare_sides, find_environment_name
from argosy.features.preview.revision_range_trees import PreviewRepository, open_sides, split_arguments
from argosy.gitops.analysis.change_impact_summary import ChangeImpact, assess_impact
from argosy.gitops.analysis.environment_names import PRODUCTION
from argosy.gitops.analysis.object_changes import ApplicationChange
from argosy.gitops.analysis.schema_validation import SchemaValidator
from argosy.gitops.workspace.command_file_tree_cache import ShowProgress
from argosy.kube.well_known_kinds import CRD


@dataclass(frozen=True)
class Preview:
    names: tuple[str, str]  # of both sides: `main`, `feature/cpu`
    pull_request: str  # the pull request, from CI variables; empty if none
    base: str  # short commit
    head: str
    has_working_tree: bool
    impact: ChangeImpact
    applications: int  # in the repository
    rendered: int  # on at least one side
    seconds: float
    files: int = 0  # changed files
    notes: tuple[str, ...] = ()
    is_live: bool = False

    @property
    def title(self) -> str:
        return self.pull_request or "…".join(self.names)


def build_preview(folder: str, words: Sequence[str], *, log: ShowProgress) -> Preview:
    started = time.monotonic()
    repository = PreviewRepository(folder)
    try:
        word, names = split_arguments(repository, words)
        sides = open_sides(repository, word)
        comparison = compare_sides(repository, sides, names, log=log)
        comparison.touched = [_locate_changes(change) for change in comparison.touched]
        result = assess_comparison(comparison)
    finally:
        repository.close()
    return summarize_comparison(comparison, result, time.monotonic() - started)


def _locate_changes(touched: ApplicationChange) -> ApplicationChange:
    return replace(touched, changes=tuple(change.with_locations() for change in touched.changes))


def summarize_comparison(comparison: RepositoryComparison, result: ChangeImpact, seconds: float) -> Preview:
    sides = comparison.sides
    return Preview(
        (sides.base.name, sides.head.name),
        sides.pull_request,
        sides.base.short,
        sides.head.short,
        sides.has_working_tree,
        result,
        len(comparison.applications),
        comparison.rendered,
        seconds,
        len(sides.changed),
        tuple(dict.fromkeys([*sides.notes, *comparison.notes])),
    )


def assess_comparison(comparison: RepositoryComparison) -> ChangeImpact:
    environment_names = [
        find_environment_name(item.declaration, comparison.environments) for item in comparison.applications
    ]
    lost = [name for item in comparison.lost for name in item.names]
    return assess_impact(
        comparison.touched,
        build_schemas(comparison),
        has_production=PRODUCTION in environment_names,
        lost_applications=lost,
    )


def build_schemas(comparison: RepositoryComparison) -> SchemaValidator:
    """Include the CustomResourceDefinitions that the comparison rendered."""
    definitions = [
        item.manifest
        for change_found in comparison.touched
        for item in (*change_found.unchanged, *(change.after for change in change_found.changes if change.after))
        if item.group_kind == CRD
    ]
    return SchemaValidator(definitions)

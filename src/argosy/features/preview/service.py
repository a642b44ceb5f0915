"""Builds a preview: the changes between two states of a repository and their impact.

In: a folder of a repository, and the arguments. Out: Preview. Never: contacts a cluster; writes; prints.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from argosy.features.preview.comparison import Comparison, compare, environment
from argosy.features.preview.revisions import Repository, named_apps, open_sides
from argosy.gitops.analysis.change_impact import Impact, impact
from argosy.gitops.analysis.environment_names import PRODUCTION
from argosy.gitops.analysis.object_changes import Touched
from argosy.gitops.analysis.schema_validation import Schemas
from argosy.gitops.workspace.checkouts import Talk

_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")


@dataclass(frozen=True)
class Preview:
    names: tuple[str, str]  # of both sides: `main`, `feature/cpu`
    request: str  # the pull request, from CI variables; empty if none
    base: str  # short commit
    head: str
    is_working: bool
    impact: Impact
    applications: int  # in the repository
    rendered: int  # on at least one side
    seconds: float
    files: int = 0  # changed files
    notes: tuple[str, ...] = ()
    is_live: bool = False

    @property
    def title(self) -> str:
        return self.request or "…".join(self.names)


def preview(folder: str, words: Sequence[str], *, talk: Talk) -> Preview:
    started = time.monotonic()
    repository = Repository(folder)
    try:
        word, names = named_apps(repository, words)
        sides = open_sides(repository, word)
        found = compare(repository, sides, names, talk=talk)
        found.touched = [_located(each) for each in found.touched]
        result = told(found)
    finally:
        repository.close()
    return as_preview(found, result, time.monotonic() - started)


def _located(touched: Touched) -> Touched:
    return replace(touched, changes=tuple(each.located() for each in touched.changes))


def as_preview(found: Comparison, result: Impact, seconds: float) -> Preview:
    sides = found.sides
    return Preview(
        (sides.base.name, sides.head.name),
        sides.request,
        sides.base.short,
        sides.head.short,
        sides.is_working,
        result,
        len(found.applications),
        found.rendered,
        seconds,
        len(sides.changed),
        tuple(dict.fromkeys([*sides.notes, *found.notes])),
    )


def told(found: Comparison) -> Impact:
    everywhere = [environment(each.written, found.environments) for each in found.applications]
    lost = [name for each in found.lost for name in each.names]
    return impact(found.touched, schemas_of(found), has_production=PRODUCTION in everywhere, lost=lost)


def schemas_of(found: Comparison) -> Schemas:
    """Include the CustomResourceDefinitions that the comparison rendered."""
    definitions = [
        item.manifest
        for each in found.touched
        for item in (*each.kept, *(change.after for change in each.changes if change.after))
        if item.kind == _DEFINITION
    ]
    return Schemas(definitions)

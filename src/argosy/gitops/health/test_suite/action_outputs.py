"""Compares the expected output of an action test with the impacts of the action.

In: the data of an output file, and the impacts. Out: the differences. Never: is stricter than Argo CD's own tests,
except that every expected object must exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.health.actions import Impact
from argosy.gitops.health.test_suite.action_comparison import Differences, differences
from argosy.gitops.health.test_suite.manifest_kind import identity, kind_of, title
from argosy.kube.objects import Manifest

OBJECT: Final = "(the object)"
# argo: names of these consist of the source's name and the time, so expected ones are matched by prefix
_MADE_FROM: Final = {
    "Backup": ("ScheduledBackup",),
    "Job": ("CronJob",),
    "Workflow": ("CronWorkflow", "WorkflowTemplate"),
}


def expected_manifests(document: Any, where: str) -> list[Manifest]:
    """Return the manifests of a single object, or of a list of wrappers."""
    if isinstance(document, dict):
        return [document]
    if not isinstance(document, list):
        raise UserError("is neither an object nor a list of objects; write the expected output", where=where)
    found = [each.get("unstructuredObj") if isinstance(each, dict) else None for each in document]
    for number, manifest in enumerate(found, start=1):
        if not isinstance(manifest, dict):
            raise UserError(f"item {number} has no object at unstructuredObj; write it there", where=where)
    return [manifest for manifest in found if isinstance(manifest, dict)]


def compare(expected: Sequence[Manifest], impacts: Sequence[Impact], source: Manifest) -> list[tuple[str, Differences]]:
    """Return title and differences of each impact, then those of expected objects that are missing."""
    told: list[tuple[str, Differences]] = []
    left = list(expected)
    for impact in impacts:
        desired = next((each for each in expected if _is_meant(each, impact.manifest, source)), None)
        if desired is None:
            told.append((title(impact.manifest), {OBJECT: ("(nothing)", f"a {impact.operation} of it")}))
            continue
        left = [each for each in left if each is not desired]
        told.append((title(desired), differences(desired, _named_like(desired, impact))))
    told += [(title(each), {OBJECT: ("to be made", "(nothing)")}) for each in left]
    return told


def _is_meant(desired: Manifest, made: Manifest, source: Manifest) -> bool:
    *place, name = identity(made)
    *own_place, own_name = identity(desired)
    if place != own_place:
        return False
    if kind_of(source)[1] in _MADE_FROM.get(kind_of(made)[1], ()):
        return own_name.startswith(identity(source)[3])
    return own_name == name


def _named_like(desired: Manifest, impact: Impact) -> Manifest:
    if impact.operation != "create" or kind_of(impact.manifest)[1] not in _MADE_FROM:
        return impact.manifest
    metadata = impact.manifest.get("metadata")
    kept = metadata if isinstance(metadata, dict) else {}
    return impact.manifest | {"metadata": kept | {"name": identity(desired)[3]}}

"""Compares the expected output of an action test with the impacts of the action.

In: the data of an output file, and the impacts. Out: the differences. Never: is stricter than Argo CD's own tests,
except that every expected object must exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.health.actions import ActionImpact
from argosy.gitops.health.test_suite.expected_manifest_diff import Differences, find_differences
from argosy.gitops.health.test_suite.manifest_identity import read_group_kind, read_identity, render_title
from argosy.kube.objects import Manifest

OBJECT_PATH: Final = "(the object)"
# argo: names of these consist of the source's name and the time, so expected ones are matched by prefix
_SOURCE_KINDS: Final = {
    "Backup": ("ScheduledBackup",),
    "Job": ("CronJob",),
    "Workflow": ("CronWorkflow", "WorkflowTemplate"),
}


def read_expected_manifests(document: Any, where: str) -> list[Manifest]:
    """Return the manifests of a single object, or of a list of wrappers."""
    if isinstance(document, dict):
        return [document]
    if not isinstance(document, list):
        raise UserError("is neither an object nor a list of objects; write the expected output", where=where)
    manifests = [wrapper.get("unstructuredObj") if isinstance(wrapper, dict) else None for wrapper in document]
    for number, manifest in enumerate(manifests, start=1):
        if not isinstance(manifest, dict):
            raise UserError(f"item {number} has no object at unstructuredObj; write it there", where=where)
    return [manifest for manifest in manifests if isinstance(manifest, dict)]


def compare_impacts(
    expected: Sequence[Manifest], impacts: Sequence[ActionImpact], source: Manifest
) -> list[tuple[str, Differences]]:
    """Return title and differences of each impact, then those of expected objects that are missing."""
    comparisons: list[tuple[str, Differences]] = []
    unmatched = list(expected)
    for impact in impacts:
        desired = next(
            (candidate for candidate in expected if _is_same_object(candidate, impact.manifest, source)), None
        )
        if desired is None:
            comparisons.append(
                (render_title(impact.manifest), {OBJECT_PATH: ("(nothing)", f"a {impact.operation} of it")})
            )
            continue
        unmatched = [candidate for candidate in unmatched if candidate is not desired]
        comparisons.append((render_title(desired), find_differences(desired, _replace_generated_name(desired, impact))))
    comparisons += [(render_title(candidate), {OBJECT_PATH: ("to be made", "(nothing)")}) for candidate in unmatched]
    return comparisons


def _is_same_object(desired: Manifest, actual: Manifest, source: Manifest) -> bool:
    *actual_identity, name = read_identity(actual)
    *desired_identity, desired_name = read_identity(desired)
    if actual_identity != desired_identity:
        return False
    if read_group_kind(source)[1] in _SOURCE_KINDS.get(read_group_kind(actual)[1], ()):
        return desired_name.startswith(read_identity(source)[3])
    return desired_name == name


def _replace_generated_name(desired: Manifest, impact: ActionImpact) -> Manifest:
    if impact.operation != "create" or read_group_kind(impact.manifest)[1] not in _SOURCE_KINDS:
        return impact.manifest
    metadata = impact.manifest.get("metadata")
    old_metadata = metadata if isinstance(metadata, dict) else {}
    return impact.manifest | {"metadata": old_metadata | {"name": read_identity(desired)[3]}}

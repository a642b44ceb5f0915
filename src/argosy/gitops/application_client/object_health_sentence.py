"""Summarizes the health of an object in one sentence.

In: a live manifest, the message of its health check. Out: a sentence. Never: asks a cluster; repeats a list of
conditions.
"""

from __future__ import annotations

from collections.abc import Iterable

from argosy.gitops.application.step_results import Assessment
from argosy.gitops.application_client.status_summary import extract_condition_gist
from argosy.gitops.application_client.stuck_pods import describe_unschedulable
from argosy.gitops.live.inference_service import describe_invalid_spec
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


def summarize_health_reason(manifest: Manifest, message: str) -> str:
    """Return the reason in the object itself if it is more specific, else the gist of the check's message."""
    if manifest.get("kind") == "InferenceService" and (text := describe_invalid_spec(manifest)):
        return text
    if manifest.get("kind") == "Pod" and (text := describe_unschedulable(manifest)):
        return text
    return extract_condition_gist(message.replace("\n", " "))


def list_health_reasons(assessments: Iterable[tuple[ResourceKey, Assessment, Manifest]]) -> list[str]:
    """List the reasons of all unhealthy objects with their names; equal reasons are listed once."""
    lines_by_reason: dict[str, str] = {}
    for key, assessment, manifest in assessments:
        if assessment.health is None or assessment.health in ("Healthy", "Suspended"):
            continue
        if reason_text := summarize_health_reason(manifest, assessment.message):
            lines_by_reason.setdefault(reason_text, f"{key.kind}/{key.name}: {reason_text}")
    return list(lines_by_reason.values())

"""Summarizes the health of an object in one sentence.

In: a live manifest, the message of its health check. Out: a sentence. Never: asks a cluster; repeats a list of
conditions.
"""

from __future__ import annotations

from collections.abc import Iterable

from argosy.gitops.application.step_results import Assessment
from argosy.gitops.application_client.stuck_pods import unscheduled
from argosy.gitops.application_client.summary import gist
from argosy.gitops.live.inference_service import invalid
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest


def reason(manifest: Manifest, message: str) -> str:
    """Return the reason in the object itself if it is more specific, else the gist of the check's message."""
    if manifest.get("kind") == "InferenceService" and (why := invalid(manifest)):
        return why
    if manifest.get("kind") == "Pod" and (why := unscheduled(manifest)):
        return why
    return gist(message.replace("\n", " "))


def reasons(found: Iterable[tuple[ResourceKey, Assessment, Manifest]]) -> list[str]:
    """List the reasons of all unhealthy objects with their names; equal reasons are listed once."""
    told: dict[str, str] = {}
    for key, said, manifest in found:
        if said.health is None or said.health in ("Healthy", "Suspended"):
            continue
        if why := reason(manifest, said.message):
            told.setdefault(why, f"{key.kind}/{key.name}: {why}")
    return list(told.values())

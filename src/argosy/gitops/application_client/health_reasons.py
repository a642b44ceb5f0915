"""Why an object fares as it does, in the one sentence that helps.

In: a live manifest, what its health check says. Out: a sentence. Never: asks a cluster; repeats a list of conditions.
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
    """What the object itself knows better than the check that judged it, else the most telling part of that."""
    if manifest.get("kind") == "InferenceService" and (why := invalid(manifest)):
        return why
    if manifest.get("kind") == "Pod" and (why := unscheduled(manifest)):
        return why
    return gist(message.replace("\n", " "))


def reasons(found: Iterable[tuple[ResourceKey, Assessment, Manifest]]) -> list[str]:
    """Of those that are to blame, each with its name; what two say alike is told once."""
    told: dict[str, str] = {}
    for key, said, manifest in found:
        if said.health is None or said.health in ("Healthy", "Suspended"):
            continue
        if why := reason(manifest, said.message):
            told.setdefault(why, f"{key.kind}/{key.name}: {why}")
    return list(told.values())


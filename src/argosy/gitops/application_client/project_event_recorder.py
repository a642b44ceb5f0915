"""Records Events about changes of an AppProject.

In: an ApplicationService, a project, the action. Out: an Event in Argo CD's format. Never: fails: the change itself is
already written.
"""

from __future__ import annotations

import secrets

from argosy.gitops.application_client.application_service import ApplicationService, current_timestamp
from argosy.gitops.status.application_event_manifests import UNKNOWN_USER, EventReason
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APP_PROJECT, ARGOPROJ_API_VERSION

COMPONENT = "argocd-server"  # argo


async def record_project_event(
    service: ApplicationService, name: str, reason: EventReason, action: str, *, deleted: Manifest | None = None
) -> None:
    """Record what was done to a project. A deleted one cannot be read again, so its manifest is passed."""
    user, timestamp = await service.find_user(), current_timestamp()
    key = ResourceKey(*APP_PROJECT, service.control_namespace, name)
    project = deleted or await service.cluster.get(key) or {}
    reference = {
        "apiVersion": ARGOPROJ_API_VERSION,
        "kind": APP_PROJECT.kind,
        "name": name,
        "namespace": service.control_namespace,
    }
    metadata = project.get("metadata") or {}
    reference |= {key: str(metadata[key]) for key in ("uid", "resourceVersion") if key in metadata}
    await service.record_event(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name[:230]}.{secrets.token_hex(8)}", "namespace": service.control_namespace},
            "involvedObject": reference,
            "reason": reason.value,
            "message": f"{user or UNKNOWN_USER} {action}",
            "type": "Normal",
            "source": {"component": COMPONENT},
            "firstTimestamp": timestamp,
            "lastTimestamp": timestamp,
            "count": 1,
        }
    )

"""Records Events about changes of an AppProject.

In: an ApplicationService, a project, the action. Out: an Event in Argo CD's format. Never: fails: the change itself is
already written.
"""

from __future__ import annotations

import secrets

from argosy.gitops.application_client.client import Desk, now
from argosy.gitops.reconciler.settings_watch import PROJECT
from argosy.gitops.status.events import NOBODY, Reason
from argosy.kube.names import ResourceKey

COMPONENT = "argocd-server"  # argo


async def tell(desk: Desk, name: str, reason: Reason, what: str) -> None:
    by, at = await desk.who(), now()
    found = await desk.cluster.get(ResourceKey(*PROJECT, desk.control, name)) or {}
    about = {"apiVersion": "argoproj.io/v1alpha1", "kind": PROJECT.kind, "name": name, "namespace": desk.control}
    metadata = found.get("metadata") or {}
    about |= {key: str(metadata[key]) for key in ("uid", "resourceVersion") if key in metadata}
    await desk.record(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name[:230]}.{secrets.token_hex(8)}", "namespace": desk.control},
            "involvedObject": about,
            "reason": reason.value,
            "message": f"{by or NOBODY} {what}",
            "type": "Normal",
            "source": {"component": COMPONENT},
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
    )

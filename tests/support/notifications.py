"""An Application with a notification subscription, the notification settings, and access to its annotations."""

from __future__ import annotations

import base64
from typing import Any

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import wait_until_async
from support.definitions import are_established
from support.message_servers import Inbox

APP = ResourceKey("argoproj.io", "Application", "argocd", "wine")
SECRET = "hunter2-of-the-webhook"
WEBHOOK = """
url: {url}
headers: [{{name: Authorization, value: Bearer $token}}]
"""
TEMPLATE = """
message: "{{.app.metadata.name}} {{.app.status.health.status}}"
webhook:
  ours:
    method: POST
    body: "{{.app.metadata.name}}: {{.app.status.health.status}} {{.app.status.sync.revision}}"
"""


def application(**status: Any) -> Manifest:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": "wine",
            "namespace": "argocd",
            "annotations": {"notifications.argoproj.io/subscribe.on-health-degraded.ours": ""},
        },
        "spec": {"project": "default", "source": {"repoURL": "https://git/x", "path": "."}, "destination": {}},
        "status": {"health": {"status": "Healthy"}, "sync": {"status": "Synced", "revision": "abc"}, **status},
    }


def of_installation(kind: str, name: str, data: dict[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "argocd"}, "data": data}


def settings(inbox: Inbox, **more: str) -> list[Manifest]:
    data = {
        "service.webhook.ours": WEBHOOK.format(url=inbox.url),
        "trigger.on-health-degraded": "[{when: app.status.health.status == 'Degraded', send: [app-health-degraded]}]",
        "template.app-health-degraded": TEMPLATE,
        **more,
    }
    secret = {"token": base64.b64encode(SECRET.encode()).decode()}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}},
        of_installation("ConfigMap", "argocd-notifications-cm", data),
        of_installation("Secret", "argocd-notifications-secret", secret),
    ]


async def prepare(cluster: EmbeddedCluster, manifests: list[Manifest]) -> None:
    for name in ("applications.argoproj.io", "notebookvalidationjobs.mlops.mlops.dev"):
        await cluster.apply(load_definition(name), manager="test", force=True)
    await wait_until_async(lambda: are_established(cluster), "the definitions are established")
    for manifest in manifests:
        await cluster.create(manifest)


async def set_status(cluster: EmbeddedCluster, **status: Any) -> Manifest:
    return await cluster.patch(APP, {"status": status})


async def quiet(cluster: EmbeddedCluster) -> dict[str, Any]:
    """Return the annotations of the Application, which record the sent messages."""
    live = await cluster.get(APP)
    assert live is not None
    return dict(live["metadata"].get("annotations") or {})

"""Notifications of a cluster reached over HTTP, by a user with only the documented RBAC rules."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import Forbidden
from argosy.features.notifications.addon import make
from argosy.kube.client import User
from argosy.kube.client.cluster_client import connect
from argosy.kube.client.kubeconfig import load_kubeconfig
from argosy.kube.controller import run
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema.bundled_crds import load_definition
from support.clusters import sandbox
from support.deadlines import HANG_SECONDS
from support.message_servers import http_inbox

pytestmark = pytest.mark.anyio
SENDER = User("sender", ("system:authenticated",))
OBJECTS = ["get", "list", "watch", "patch"]
SETTINGS = ["argocd-notifications-cm", "argocd-notifications-secret", "argosy-cm"]
RULES: list[dict[str, Any]] = [
    {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": OBJECTS},
    {"apiGroups": ["mlops.mlops.dev"], "resources": ["notebookvalidationjobs"], "verbs": OBJECTS},
    {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get"], "resourceNames": SETTINGS},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
]
RBAC = "rbac.authorization.k8s.io/v1"
SUBSCRIBED = "notifications.argoproj.io/subscribe.on-health-degraded.chat"


def prepared(url: str) -> list[dict[str, Any]]:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "sender"}
    bound = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": SENDER.name}]
    metadata = {"name": "wine", "namespace": "argocd", "annotations": {SUBSCRIBED: ""}}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}},
        {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "sender"}, "rules": RULES},
        {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": "sender"}, "roleRef": role,
         "subjects": bound},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SETTINGS[0], "namespace": "argocd"},
         "data": {"service.webhook.chat": f"url: {url}"}},
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata,
         "spec": {"project": "default", "destination": {}, "source": {"repoURL": "x"}},
         "status": {"health": {"status": "Degraded"}}},
    ]  # fmt: skip


async def test_documented_rbac_rules_suffice_to_send_notifications(home: Path) -> None:
    with http_inbox() as inbox, sandbox(home / "data", "--port", "0", "--rbac") as running:
        admin = await connect(load_kubeconfig([running.kubeconfig], None))
        try:
            for name in ("applications.argoproj.io", "notebookvalidationjobs.mlops.mlops.dev"):
                await admin.apply(load_definition(name), manager="test", force=True)
            for manifest in prepared(inbox.url):
                await admin.create(manifest)
            sender = admin.acting_as(SENDER)
            with pytest.raises(Forbidden):
                await sender.list(GroupKind("", "Pod"))
            addon = make("")
            assert addon.background is not None
            work = asyncio.create_task(run(addon.controllers, sender))
            try:
                async with addon.background(home), asyncio.timeout(HANG_SECONDS):
                    while not [
                        event for event in (await admin.list(GroupKind("", "Event"))).items
                        if event["reason"] == "NotificationSent"
                    ]:  # fmt: skip
                        await asyncio.sleep(0.05)
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
        finally:
            await admin.close()
    assert [letter.body for letter in inbox.letters] == [b"Application wine has degraded.\n"]

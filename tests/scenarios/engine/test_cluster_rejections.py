"""Failures that only a real cluster has: an unavailable APIService, rejection by policy, quota and webhook."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.errors import ClusterError
from argosy.kube.objects import Manifest
from support.deadlines import HANG_SECONDS
from support.engine import Room, conditions, config_map
from support.real_server import REAL

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("room", [REAL], indirect=True)]
ONE = {"app/settings.yaml": config_map(a="one")}
AUTOMATED = {"automated": {"prune": True, "selfHeal": True}, "retry": {"limit": 0}}


def claim(name: str) -> Manifest:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def results(app: dict[str, Any]) -> dict[str, str]:
    sync_results = app["status"]["operationState"]["syncResult"]["resources"]
    return {result["name"]: result["message"] for result in sync_results}


async def test_unavailable_api_service_does_not_block_other_resources(room: Room) -> None:
    service = {"name": "away", "namespace": "ml"}
    spec = {"group": "away.example.com", "version": "v1", "service": service, "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100, "versionPriority": 100}  # fmt: skip
    kind = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
    await room.cluster.create({**kind, "metadata": {"name": "v1.away.example.com"}, "spec": spec})
    room.repository.push(ONE)
    await room.deliver(syncPolicy=AUTOMATED)
    app = await room.until_synced()
    assert "conditions" not in app["status"]
    thing = {"apiVersion": "away.example.com/v1", "kind": "Thing", "metadata": {"name": "one"}}
    room.repository.push({"app/thing.yaml": thing})
    app = await room.until(lambda status: status["operationState"]["phase"] == "Failed")
    assert "away.example.com" in results(app)["one"]
    assert await room.get("ConfigMap", "settings") is not None


async def test_policy_quota_and_webhook_rejections_are_reported_verbatim(room: Room) -> None:
    await _policy(room, "settings")
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"persistentvolumeclaims": "0"}}}
    await room.cluster.create({**quota, "metadata": {"name": "none", "namespace": "ml"}})
    await _webhook(room)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    room.repository.push({**ONE, "app/data.yaml": claim("data"), "app/account.yaml": account})
    await room.deliver(syncPolicy=AUTOMATED)
    words = {"settings": "no such settings", "data": "exceeded quota: none", "robot": "hook.example.com"}

    def refused(status: dict[str, Any]) -> bool:
        messages = results({"status": status})
        return all(word in messages.get(name, "") for name, word in words.items())

    app = await room.until(refused)
    app = await room.until(lambda status: conditions(status, "SyncError"))
    assert app["status"]["operationState"]["phase"] == "Failed"


async def _webhook(room: Room) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["serviceaccounts"]}
    hook = {
        "name": "hook.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 1,
        "clientConfig": {"service": {"name": "nobody", "namespace": "ml"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ml"}},
        "rules": [rule],
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    await room.cluster.create({**kind, "metadata": {"name": "hook"}, "webhooks": [hook]})


async def _policy(room: Room, name: str) -> None:
    api = {"apiVersion": "admissionregistration.k8s.io/v1"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    check = {"expression": f"object.metadata.name != '{name}'", "message": "no such settings, please"}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [check]}
    await room.cluster.create({**api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no"}, "spec": spec})
    bound = {"policyName": "no", "validationActions": ["Deny"]}
    kind = {**api, "kind": "ValidatingAdmissionPolicyBinding"}
    await room.cluster.create({**kind, "metadata": {"name": "no"}, "spec": bound})
    async with asyncio.timeout(HANG_SECONDS):  # k8s: the server compiles a policy asynchronously
        with pytest.raises(ClusterError, match="no such settings"):
            while True:
                await room.cluster.create({**config_map(), "metadata": {"name": name, "namespace": "ml"}}, dry_run=True)
                await asyncio.sleep(0.1)

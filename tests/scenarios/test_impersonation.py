"""Syncs that impersonate the service account of their project, on a server that enforces RBAC."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from support.engine import Room, conditions, config_map, engine_room
from support.tiers import in_test_all

HERE = "https://kubernetes.default.svc"
ON = {"application.sync.impersonation.enabled": "true"}
ACCOUNT = {"server": HERE, "namespace": "ml", "defaultServiceAccount": "deployer"}
USER = "system:serviceaccount:ml:deployer"
READ = ["get", "list", "watch"]
WRITE = ["create", "update", "patch"]


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with engine_room(tmp_path, ON, flavour="wire") as opened_room:
        yield opened_room


async def allow(room: Room, verbs: list[str], resources: tuple[str, ...] = ("configmaps",)) -> None:
    """Create the service account and its permissions in namespace ml."""
    api, meta = "rbac.authorization.k8s.io/v1", {"name": "deployer", "namespace": "ml"}
    subject = {"kind": "ServiceAccount", "name": "deployer", "namespace": "ml"}
    rule = {"apiGroups": ["", "batch"], "resources": list(resources), "verbs": verbs}
    manifests: list[Manifest] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": api, "kind": "Role", "metadata": meta, "rules": [rule]},
        {"apiVersion": api, "kind": "RoleBinding", "metadata": meta, "subjects": [subject],
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"}},
    ]  # fmt: skip
    for manifest in manifests:
        await room.cluster.create(manifest)


async def grant(room: Room, verbs: list[str], *resources: str) -> None:
    """Replace the permissions of the service account."""
    role = await room.get("rbac.authorization.k8s.io/Role", "deployer")
    assert role
    rule = {"apiGroups": ["", "batch"], "resources": list(resources), "verbs": verbs}
    await room.cluster.replace({**role, "rules": [rule]})


async def change_project(room: Room, **spec: Any) -> None:
    await room.cluster.patch(ResourceKey("argoproj.io", "AppProject", "argocd", "team"), {"spec": spec})


def is_running(status: dict[str, Any]) -> bool:
    """True if a hook is running."""
    results = status["operationState"]["syncResult"]["resources"]
    return any(result.get("hookType") and result["hookPhase"] == "Running" for result in results)


def secret() -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"a": "b"}}


def hook() -> Manifest:
    container = {"name": "main", "image": "busybox"}
    return {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "migrate", "annotations": {"argocd.argoproj.io/hook": "PreSync"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }  # fmt: skip


def state(app: dict[str, Any]) -> dict[str, Any]:
    operation_state: dict[str, Any] = app["status"]["operationState"]
    return operation_state


async def test_sync_has_only_the_permissions_of_the_service_account(room: Room) -> None:
    await allow(room, [*READ, *WRITE])
    await room.project(destinationServiceAccounts=[ACCOUNT])
    room.repository.push({"app/a.yaml": config_map(value="1")})
    await room.deliver(project="team")
    await room.sync()
    assert state(await room.until_over())["phase"] == "Succeeded"
    assert await room.get("ConfigMap", "settings")
    room.repository.push({"app/b.yaml": secret()})
    await room.sync()
    failed = state(await room.until_over())
    assert failed["phase"] == "Failed" and await room.get("Secret", "token") is None
    (result,) = [
        resource_result for resource_result in failed["syncResult"]["resources"] if resource_result["kind"] == "Secret"
    ]
    assert USER in result["message"] and "forbidden" in result["message"].lower()


@pytest.mark.tier("all")
async def test_hooks_run_as_the_service_account(room: Room) -> None:
    await allow(room, [*READ, *WRITE])
    await room.project(destinationServiceAccounts=[ACCOUNT])
    room.repository.push({"app/a.yaml": config_map(value="1"), "app/hook.yaml": hook()})
    await room.deliver(project="team")
    await room.sync()
    failed = state(await room.until_over())
    assert failed["phase"] == "Failed" and USER in failed["message"] and "jobs" in failed["message"]
    assert await room.get("batch/Job", "migrate") is None and await room.get("ConfigMap", "settings") is None
    await grant(room, [*READ, *WRITE], "configmaps", "jobs")
    await room.sync()
    await room.until(is_running)
    assert await room.get("batch/Job", "migrate") and await room.get("ConfigMap", "settings") is None


@pytest.mark.tier("all")
async def test_sync_without_read_permission_is_not_retried(room: Room) -> None:
    await allow(room, WRITE, ("configmaps", "jobs"))
    await room.project(destinationServiceAccounts=[ACCOUNT])
    room.repository.push({"app/a.yaml": config_map(value="1"), "app/hook.yaml": hook()})
    await room.deliver(project="team")
    await room.patch_app({"operation": {"sync": {}, "retry": {"limit": 5}, "initiatedBy": {"username": "ann"}}})
    app = await room.until(lambda status: status["operationState"].get("finishedAt"))
    assert state(app)["phase"] == "Failed" and USER in state(app)["message"]
    assert "Retrying" not in state(app)["message"] and not state(app).get("retryCount")


@pytest.mark.parametrize(
    "change",
    ["the entry is removed", in_test_all("impersonation is enabled"), in_test_all("with server-side diff")],
)
async def test_terminated_sync_waits_for_an_account_to_delete_its_hooks(room: Room, change: str) -> None:
    if change == "impersonation is enabled":
        await room.configure({"application.sync.impersonation.enabled": "false"})
    await allow(room, [*READ, *WRITE, "delete"], ("configmaps", "jobs"))
    matching = [] if change == "impersonation is enabled" else [ACCOUNT]
    await room.project(destinationServiceAccounts=matching)
    room.repository.push({"app/a.yaml": config_map(value="1"), "app/hook.yaml": hook()})
    await room.cluster.create({**config_map(value="0"), "metadata": {"name": "settings", "namespace": "ml"}})
    options = {"argocd.argoproj.io/compare-options": "ServerSideDiff=true"} if "diff" in change else {}
    await room.deliver(project="team", metadata={"annotations": options})
    await room.sync()
    await room.until(is_running)
    await room.configure({"application.sync.impersonation.enabled": "true"})
    await change_project(room, destinationServiceAccounts=[])
    waiting = await room.until(lambda status: "no matching service account" in status["operationState"]["message"])
    assert state(waiting)["phase"] == "Running", "the hook runs on, so that the operation does as well"
    await room.patch_app({"status": {"operationState": {"phase": "Terminating", "message": "ended by ann"}}})
    waiting = await room.until(lambda status: "no matching service account" in status["operationState"]["message"])
    assert state(waiting)["phase"] == "Terminating" and await room.get("batch/Job", "migrate")
    assert state(waiting)["message"].startswith("ended by ann; ")
    await change_project(room, destinationServiceAccounts=[ACCOUNT])
    ended = state(await room.until_over())
    assert (ended["phase"], ended["message"]) == ("Failed", "Operation terminated")
    await room.until_gone("batch/Job", "migrate")


@pytest.mark.tier("all")
async def test_prune_and_deletion_run_as_the_service_account(room: Room) -> None:
    await allow(room, [*READ, *WRITE])
    await room.project(destinationServiceAccounts=[ACCOUNT])
    room.repository.push({"app/a.yaml": config_map(value="1"), "app/b.yaml": config_map("other", value="1")})
    await room.deliver(project="team", metadata={"finalizers": ["resources-finalizer.argocd.argoproj.io"]})
    await room.sync()
    assert state(await room.until_over())["phase"] == "Succeeded"
    room.repository.push({"app/b.yaml": None})
    await room.sync(prune=True)
    assert state(await room.until_over())["phase"] == "Failed"
    assert await room.get("ConfigMap", "other")
    app = await room.app()
    await room.cluster.delete(key_of(app))
    message = await room.until_condition("DeletionError")
    assert USER in message and await room.get("ConfigMap", "settings")
    await grant(room, [*READ, *WRITE, "delete"], "configmaps")
    room.clock.leap(60)
    await room.until_gone("argoproj.io/Application", "models", "argocd")
    assert await room.get("ConfigMap", "settings") is None and await room.get("ConfigMap", "other") is None


async def test_sync_and_deletion_without_a_matching_account_change_nothing(room: Room) -> None:
    await room.project(destinationServiceAccounts=[{**ACCOUNT, "namespace": "other"}])
    room.repository.push({"app/a.yaml": config_map(value="1")})
    await room.deliver(project="team", metadata={"finalizers": ["resources-finalizer.argocd.argoproj.io"]})
    await room.sync()
    refused = state(await room.until_over())
    assert refused["phase"] == "Error" and "destinationServiceAccounts of project 'team'" in refused["message"]
    assert await room.get("ConfigMap", "settings") is None
    await room.configure({"application.sync.impersonation.enforced": "false"})
    await room.sync()
    assert state(await room.until_over())["phase"] == "Succeeded", "with the rights of the engine, as in Argo CD"
    await room.configure({"application.sync.impersonation.enforced": None})
    await room.cluster.delete(key_of(await room.app()))
    assert "no matching service account" in await room.until_condition("DeletionError")
    assert await room.get("ConfigMap", "settings")


async def test_server_side_diff_needs_a_matching_service_account(room: Room) -> None:
    await room.project(destinationServiceAccounts=[{**ACCOUNT, "namespace": "other"}])
    room.repository.push({"app/a.yaml": config_map(value="1")})
    await room.cluster.create({**config_map(value="0"), "metadata": {"name": "settings", "namespace": "ml"}})
    annotations = {"argocd.argoproj.io/compare-options": "ServerSideDiff=true"}
    await room.deliver(project="team", metadata={"annotations": annotations})
    assert "no matching service account" in await room.until_condition("ComparisonError")
    await room.configure({"application.sync.impersonation.enabled": "false"})
    app = await room.until(lambda status: not conditions(status, "ComparisonError"))
    assert app["status"]["sync"]["status"] == "OutOfSync"

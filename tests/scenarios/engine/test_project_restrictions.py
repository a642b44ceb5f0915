"""AppProject restrictions, and the conditions that an Application reports for them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.deadlines import HANG_SECONDS
from support.engine import Repository, Room, config_map
from support.tiers import IN_TEST_ALL

pytestmark = pytest.mark.anyio
ONE = {"app/settings.yaml": config_map(a="one")}
AUTOMATED = {"automated": {"prune": True}}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"sourceRepos": ["https://git.example.com/*"]}, "application repo"),
        pytest.param(
            {"destinations": [{"server": "*", "namespace": "other"}]},
            "do not match any of the allowed destinations",
            marks=IN_TEST_ALL,
        ),
        (
            {"destinations": [{"server": "*", "namespace": "*"}, {"server": "*", "namespace": "!ml"}]},
            "do not match any of the allowed destinations",
        ),
    ],
    ids=["source", "destination", "denied destination"],
)
async def test_project_violation_sets_an_invalid_spec_condition(room: Room, rule: dict[str, Any], words: str) -> None:
    room.repository.push(ONE)
    await room.project(**rule)
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    message = await room.until_condition("InvalidSpecError")
    assert words in message and "project 'team'" in message
    app = await room.settled()
    assert (app["status"]["sync"]["status"], app["status"]["health"]["status"]) == ("Unknown", "Unknown")
    assert await room.get("ConfigMap", "settings") is None
    await room.patch_app({"spec": {"project": "default"}})
    app = await room.until_synced()
    assert "conditions" not in app["status"]


async def test_operation_with_a_forbidden_source_ends_in_error(room: Room, tmp_path: Path) -> None:
    room.repository.push(ONE)
    elsewhere = Repository(tmp_path / "elsewhere")
    elsewhere.push({"app/stolen.yaml": config_map("stolen", a="one")})
    await room.project(sourceRepos=[room.repository.url])
    await room.deliver(project="team")
    await room.sync(source={"repoURL": elsewhere.url, "path": "app", "targetRevision": "main"})
    state = (await room.until_over())["status"]["operationState"]
    message = f"InvalidSpecError: application repo {elsewhere.url} is not permitted in project 'team'"
    assert state["phase"] == "Error" and message in state["message"]
    assert await room.get("ConfigMap", "stolen") is None


async def test_repository_whose_secret_names_the_project_is_permitted(room: Room) -> None:
    room.repository.push(ONE)
    await room.project(sourceRepos=[])
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    assert "is not permitted in project 'team'" in await room.until_condition("InvalidSpecError")
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    metadata = {"name": "team-repository", "namespace": "argocd", "labels": labels}
    values = {"url": room.repository.url, "project": "team"}
    await room.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values})
    app = await room.until_synced()
    assert "conditions" not in app["status"]


async def test_missing_project_is_a_condition_until_it_is_created(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    message = await room.until_condition("InvalidSpecError")
    assert "project team which does not exist" in message
    await room.project()
    await room.until_synced()


async def test_forbidden_kind_has_unknown_status_and_fails_the_sync(room: Room) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}}
    room.repository.push({**ONE, "app/secret.yaml": secret})
    await room.project(namespaceResourceBlacklist=[{"group": "", "kind": "Secret"}])
    await room.deliver(project="team")
    app = await room.until(lambda status: status.get("resources"))
    lines = {resource["name"]: resource["status"] for resource in app["status"]["resources"]}
    assert lines == {"settings": "OutOfSync", "key": "Unknown"}
    await room.sync()
    app = await room.until_over()
    assert app["status"]["operationState"]["phase"] == "Failed"
    assert "one or more synchronization tasks are not valid" in app["status"]["operationState"]["message"]
    assert await room.get("ConfigMap", "settings") is None


async def test_application_in_another_namespace_needs_source_namespaces(room: Room) -> None:
    room.repository.push(ONE)
    source = {"repoURL": room.repository.url, "path": "app", "targetRevision": "main"}
    destination = {"name": "in-cluster", "namespace": "ml"}
    spec = {"project": "team", "source": source, "destination": destination, "syncPolicy": AUTOMATED}
    metadata = {"name": "models", "namespace": "ml"}
    await room.project(sourceNamespaces=["m*"])
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    await room.cluster.create({**kind, "metadata": metadata, "spec": spec})
    barred = {**kind, "metadata": {**metadata, "name": "barred"}, "spec": {**spec, "project": "default"}}
    await room.cluster.create(barred)
    async with asyncio.timeout(HANG_SECONDS):
        while (settings := await room.get("ConfigMap", "settings")) is None:
            await asyncio.sleep(0.02)
    assert settings["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] == "ml_models:/ConfigMap:ml/settings"
    async with asyncio.timeout(HANG_SECONDS):
        while not (status := (await room.get("argoproj.io/Application", "barred") or {}).get("status")):
            await asyncio.sleep(0.02)
    assert "sourceNamespaces" in status["conditions"][0]["message"]
    assert status["conditions"][0]["type"] == "UnknownError"  # argo: as if the project could not be loaded


async def test_unknown_destination_cluster_sets_an_invalid_spec_condition(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver(destination={"name": "mars", "namespace": "ml"})
    assert "mars" in await room.until_condition("InvalidSpecError")


async def test_objects_without_a_namespace_are_invalid_spec_errors(room: Room) -> None:
    placed = {**config_map("placed", a="one"), "metadata": {"name": "placed", "namespace": "ml"}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": {}}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}}
    room.repository.push({**ONE, "app/placed.yaml": placed, "app/web.yaml": deployment, "app/role.yaml": role})
    await room.deliver(destination={"server": "https://kubernetes.default.svc"})
    app = await room.until(lambda status: status.get("conditions"))
    messages = [(condition["type"], condition["message"]) for condition in app["status"]["conditions"]]
    expected = ["settings /v1, Kind=ConfigMap", "web apps/v1, Kind=Deployment"]
    assert sorted(messages) == [("InvalidSpecError", f"Namespace for {name} is missing.") for name in expected]
    assert app["status"]["sync"]["status"] == "OutOfSync"
    await room.sync()
    state = (await room.until_over())["status"]["operationState"]
    assert state["phase"] == "Error" and "InvalidSpecError: Namespace for settings" in state["message"]
    assert await room.get("ConfigMap", "placed") is None
    await room.patch_app({"spec": {"destination": {"namespace": "ml"}}})
    app = await room.until(lambda status: "conditions" not in status)


async def test_destination_by_cluster_name_is_synced(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver(destination={"name": "in-cluster", "namespace": "ml"}, syncPolicy=AUTOMATED)
    app = await room.until_synced()
    assert app["status"]["sync"]["comparedTo"]["destination"] == {"name": "in-cluster", "namespace": "ml"}


async def test_orphan_warning_excludes_ignored_resources(room: Room) -> None:
    room.repository.push(ONE)
    ignored = [{"group": "", "kind": "ConfigMap", "name": "known-*"}]
    await room.project(orphanedResources={"warn": True, "ignore": ignored})
    for name in ("stray", "known-1"):
        await room.cluster.create({**config_map(name), "metadata": {"name": name, "namespace": "ml"}})
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    assert await room.until_condition("OrphanedResourceWarning") == "Application has 1 orphaned resources"
    await room.until_synced()
    assert await room.get("ConfigMap", "stray") is not None


async def test_shared_resource_is_a_warning_on_the_second_application(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver()
    await room.sync()
    await room.until_synced()
    await room.deliver("second")
    message = await room.until_condition("SharedResourceWarning", "second")
    assert message == "ConfigMap/settings is part of applications argocd/second and models"
    await room.sync("second", syncOptions=["FailOnSharedResource=true"])
    app = await room.until_over("second")
    assert app["status"]["operationState"]["phase"] == "Failed"


async def test_excluded_kind_is_a_warning_and_is_not_delivered(room: Room) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    room.repository.push({**ONE, "app/account.yaml": account})
    await room.configure({"resource.exclusions": "- apiGroups: ['']\n  kinds: [ServiceAccount]\n  clusters: ['*']\n"})
    await room.deliver(syncPolicy=AUTOMATED)
    assert "ServiceAccount robot" in await room.until_condition("ExcludedResourceWarning")
    await room.until_synced()
    assert await room.get("ServiceAccount", "robot") is None

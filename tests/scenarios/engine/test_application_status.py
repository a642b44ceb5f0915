"""The fields of Application status that the engine writes."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.resource_key import ResourceKey
from support.engine import Room, config_map

pytestmark = pytest.mark.anyio
ONE = {"app/settings.yaml": config_map(a="one")}


def waved(name: str, wave: str) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {"argocd.argoproj.io/sync-wave": wave}}
    return {**config_map(name), "metadata": metadata}


async def test_status_of_a_synced_application_matches_argo_cd(room: Room) -> None:
    revision = room.repository.push({**ONE, "app/late.yaml": waved("late", "3")})
    await room.deliver()
    await room.sync()
    status = (await room.until_synced())["status"]
    spec = (await room.app())["spec"]
    assert status["sync"] == {
        "status": "Synced",
        "revision": revision,
        "comparedTo": {"source": spec["source"], "destination": spec["destination"]},
    }
    assert status["health"].keys() == {"status", "lastTransitionTime"}
    kind = {"kind": "ConfigMap", "version": "v1", "namespace": "ml", "status": "Synced"}
    assert status["resources"] == [{**kind, "name": "late", "syncWave": 3}, {**kind, "name": "settings"}]
    assert status["sourceType"] == "Directory"
    assert status["controllerNamespace"] == "argocd"
    assert status["resourceHealthSource"] == "appTree"
    assert status["summary"] == {}
    state = status["operationState"]
    assert state["phase"] == "Succeeded"
    assert state["message"].startswith("successfully synced")
    assert state["startedAt"] <= state["finishedAt"]
    assert state["operation"]["initiatedBy"] == {"username": "ann"}
    result = state["syncResult"]
    assert (result["revision"], result["source"]) == (revision, spec["source"])
    assert [(resource["name"], resource["status"], resource["syncPhase"]) for resource in result["resources"]] == [
        ("settings", "Synced", "Sync"),
        ("late", "Synced", "Sync"),
    ]
    (entry,) = status["history"]
    assert (entry["id"], entry["revision"], entry["source"]) == (0, revision, spec["source"])
    assert entry["initiatedBy"] == {"username": "ann"}
    assert entry["deployStartedAt"] <= entry["deployedAt"]


@pytest.mark.tier("all")
async def test_resources_are_sorted_by_group_kind_and_name(room: Room) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"}, "rules": []}
    room.repository.push({"app/1.yaml": role, "app/2.yaml": account, "app/3.yaml": config_map("b"), **ONE})
    await room.deliver()
    app = await room.until(lambda status: status.get("resources"))
    keys = [(resource.get("group", ""), resource["kind"], resource["name"]) for resource in app["status"]["resources"]]
    assert keys == sorted(keys)


async def test_hook_is_listed_with_hook_flag_and_without_sync_status(room: Room) -> None:
    hook = {**config_map("hook"), "metadata": {"name": "hook", "annotations": {"argocd.argoproj.io/hook": "PreSync"}}}
    room.repository.push({**ONE, "app/hook.yaml": hook})
    await room.deliver()
    app = await room.until(lambda status: status.get("resources"))
    assert [resource["name"] for resource in app["status"]["resources"]] == [
        "settings"
    ]  # argo: hooks are listed only if they exist live
    await room.sync()
    app = await room.until_synced()
    line = next(resource for resource in app["status"]["resources"] if resource["name"] == "hook")
    assert line["hook"] is True
    assert "status" not in line
    result = next(
        resource
        for resource in app["status"]["operationState"]["syncResult"]["resources"]
        if resource["name"] == "hook"
    )
    assert (result["hookType"], result["hookPhase"], result["syncPhase"]) == ("PreSync", "Succeeded", "PreSync")


async def test_health_transition_time_is_kept_while_health_is_unchanged(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver()
    await room.sync()
    before = (await room.until_synced())["status"]["health"]
    room.clock.leap(200)
    room.repository.push({"app/settings.yaml": config_map(a="two")})
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    assert (await room.settled())["status"]["health"] == before


async def test_resource_health_is_persisted_if_configured(room: Room) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    metadata = {"name": "argocd-cmd-params-cm", "namespace": "argocd"}
    data = {"controller.resource.health.persist": "true"}
    await room.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    room.repository.push({"app/claim.yaml": claim})
    await room.deliver()
    app = await room.until(lambda status: status.get("resources") and "health" in status["resources"][0])
    assert app["status"]["resources"][0]["health"]["status"] == "Missing"
    assert "resourceHealthSource" not in app["status"]
    await room.sync()
    app = await room.until_synced()
    assert app["status"]["health"]["status"] == "Progressing"


@pytest.mark.tier("all")
async def test_summary_images_come_from_pods_owned_by_managed_resources(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver()
    await room.sync()
    await room.until_synced()
    parent = await room.get("ConfigMap", "settings") or {}
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "uid": parent["metadata"]["uid"]}
    await room.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "worker", "namespace": "ml", "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "c", "image": "registry.example.com/model:1"}]},
        }
    )
    app = await room.until(lambda status: status["summary"].get("images"))
    assert app["status"]["summary"]["images"] == ["registry.example.com/model:1"]
    await room.cluster.delete(ResourceKey("", "Pod", "ml", "worker"))
    await room.until(lambda status: not status["summary"].get("images"))


async def test_status_of_a_multi_source_application_lists_all_sources(room: Room) -> None:
    revision = room.repository.push({**ONE, "other/more.yaml": config_map("more")})
    sources = [{"repoURL": room.repository.url, "path": path, "targetRevision": "main"} for path in ("app", "other")]
    await room.deliver(source=None, sources=sources)
    await room.sync()
    app = await room.until(lambda status: status.get("history") and status["sync"]["status"] == "Synced")
    status = app["status"]
    assert status["sync"]["revisions"] == [revision, revision]
    assert "revision" not in status["sync"]
    assert status["sync"]["comparedTo"]["sources"] == sources
    assert status["sourceTypes"] == ["Directory", "Directory"]
    assert status["history"][0]["revisions"] == [revision, revision]
    assert status["history"][0]["sources"] == sources


async def test_condition_keeps_its_timestamp_and_is_removed_with_its_cause(room: Room) -> None:
    room.repository.push({**ONE, "app/twice.yaml": config_map(a="two")})
    await room.deliver()
    message = await room.until_condition("RepeatedResourceWarning")
    assert message == "Resource /ConfigMap/ml/settings appeared 2 times among application resources."
    before = (await room.app())["status"]["conditions"]
    room.clock.leap(100)
    assert (await room.settled())["status"]["conditions"] == before
    room.repository.push({"app/twice.yaml": None})
    await room.until(lambda status: "conditions" not in status)


@pytest.mark.tier("all")
async def test_changed_managed_namespace_metadata_is_out_of_sync_until_synced(room: Room) -> None:
    room.repository.push(ONE)
    policy = {"syncOptions": ["CreateNamespace=true"], "managedNamespaceMetadata": {"labels": {"team": "ml"}}}
    destination = {"server": "https://kubernetes.default.svc", "namespace": "fresh"}
    await room.deliver(syncPolicy=policy, destination=destination)
    await room.sync(syncOptions=policy["syncOptions"])
    await room.until_synced()
    namespace = await room.get("Namespace", "fresh", "") or {}
    assert namespace["metadata"]["labels"]["team"] == "ml"
    changed = {"managedNamespaceMetadata": {"labels": {"team": "serving"}}}
    await room.patch_app({"spec": {"syncPolicy": changed}})
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await room.sync(syncOptions=policy["syncOptions"])
    await room.until_synced()
    namespace = await room.get("Namespace", "fresh", "") or {}
    assert namespace["metadata"]["labels"]["team"] == "serving"


async def test_managed_namespace_metadata_takes_over_labels_that_kubectl_applied(room: Room) -> None:
    room.repository.push(ONE)
    existing = {"name": "fresh", "labels": {"test": "yes"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": existing}
    await room.cluster.create(namespace, manager="kubectl-client-side-apply")
    policy = {"syncOptions": ["CreateNamespace=true"], "managedNamespaceMetadata": {"labels": {"team": "ml"}}}
    destination = {"server": "https://kubernetes.default.svc", "namespace": "fresh"}
    await room.deliver(syncPolicy=policy, destination=destination)
    await room.sync(syncOptions=policy["syncOptions"])
    await room.until_synced()
    labels = (await room.get("Namespace", "fresh", "") or {})["metadata"]["labels"]
    assert labels == {"team": "ml", "kubernetes.io/metadata.name": "fresh"}


async def test_managed_namespace_stays_when_its_manifest_leaves_git(room: Room) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fresh"}}
    room.repository.push({**ONE, "app/namespace.yaml": namespace})
    await room.deliver(destination={"server": "https://kubernetes.default.svc", "namespace": "fresh"})
    await room.sync()
    await room.until_synced()
    await room.patch_app({"spec": {"syncPolicy": {"managedNamespaceMetadata": {"labels": {"team": "ml"}}}}})
    revision = room.repository.push({"app/namespace.yaml": None})
    await room.annotate(refresh="normal")
    await room.until(lambda status: status["sync"]["revision"] == revision)
    await room.sync(prune=True)
    app = await room.until_synced(revision)
    assert app["status"]["operationState"]["phase"] == "Succeeded"
    stored = await room.get("Namespace", "fresh", "") or {}
    assert stored["metadata"]["labels"]["team"] == "ml" and "deletionTimestamp" not in stored["metadata"]


async def test_application_that_was_never_loaded_is_healthy_and_unknown(room: Room) -> None:
    room.repository.push({"README": "no app here"})
    await room.deliver()
    await room.until_condition("ComparisonError")
    status = (await room.app())["status"]
    assert (status["sync"]["status"], status["sync"]["revision"]) == ("Unknown", "main")
    assert (status["health"]["status"], status["resourceHealthSource"]) == ("Healthy", "appTree")
    assert "resources" not in status


async def test_live_objects_are_listed_as_unknown_while_the_source_cannot_be_loaded(room: Room) -> None:
    room.repository.push({**ONE, "app/late.yaml": waved("late", "3")})
    await room.deliver()
    await room.sync()
    await room.until_synced()
    await room.cluster.delete(ResourceKey("", "ConfigMap", "ml", "late"))
    room.repository.push({"app/broken.yaml": "kind: [", "app/late.yaml": None})
    await room.annotate(refresh="normal")
    await room.until_condition("ComparisonError")
    app = await room.until(lambda status: status["sync"]["status"] == "Unknown")
    [line] = app["status"]["resources"]
    assert (line["name"], line["status"], line["requiresPruning"]) == ("settings", "Unknown", True)
    assert app["status"]["health"]["status"] == "Healthy"
    assert await room.get("ConfigMap", "settings") is not None


async def test_skipped_object_is_listed_without_a_sync_status(room: Room) -> None:
    metadata = {"name": "skipped", "annotations": {"argocd.argoproj.io/hook": "Skip"}}
    room.repository.push({**ONE, "app/skipped.yaml": {**config_map("skipped"), "metadata": metadata}})
    await room.deliver()
    await room.sync()
    app = await room.until_synced()
    line = next(resource for resource in app["status"]["resources"] if resource["name"] == "skipped")
    assert line == {"kind": "ConfigMap", "name": "skipped", "namespace": "ml", "version": "v1"}
    assert await room.get("ConfigMap", "skipped") is None

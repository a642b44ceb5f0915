"""Operations that carry their manifests, as `argocd app sync --local` requests them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from argosy.gitops.reconciler.local_manifests import MAX_LOCAL_MANIFESTS_BYTES
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from support.engine import Room, conditions, config_map

pytestmark = pytest.mark.anyio


def to_text(*manifests: Manifest) -> list[str]:
    return [json.dumps(manifest) for manifest in manifests]


async def deliver_one_version(room: Room, **spec: Any) -> str:
    revision = room.repository.push({"app/settings.yaml": config_map(a="git")})
    await room.deliver(**spec)
    await room.until(lambda status: status["sync"]["revision"] == revision)
    await room.sync()
    await room.until_synced(revision)
    return revision


async def read_settings(room: Room) -> dict[str, str]:
    manifest = await room.get("ConfigMap", "settings")
    assert manifest is not None
    return dict(manifest["data"])


async def test_local_manifests_are_synced_and_compared_until_the_next_sync(room: Room) -> None:
    revision = await deliver_one_version(room)
    texts = to_text(config_map(a="local"), config_map("more", b="local"))
    await room.sync(manifests=texts)
    app = await room.until_over()
    state = app["status"]["operationState"]
    assert state["phase"] == "Succeeded", state
    assert (await read_settings(room)) == {"a": "local"}
    more = await room.get("ConfigMap", "more")
    assert more is not None
    assert more["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] == "models:/ConfigMap:ml/more"
    assert state["operation"]["sync"]["manifests"] == texts
    assert state["syncResult"]["revision"] == ""
    assert [entry.get("revision") for entry in app["status"]["history"]] == [revision, None]
    events = (await room.cluster.list(GroupKind("", "Event"), namespace="argocd")).items
    messages = [event["message"] for event in events]
    assert (
        "ann initiated sync locally" in messages and "Sync operation to  succeeded" in messages
    )  # argo: an empty revision is named
    app = await room.settled()
    assert (app["status"]["sync"]["status"], app["status"]["sync"]["revision"]) == ("Synced", "main")
    await room.change(a="changed")
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await room.sync(prune=True)
    await room.until_synced(revision)
    assert (await read_settings(room)) == {"a": "git"}
    await room.until_gone("ConfigMap", "more")


async def test_dry_run_of_local_manifests_changes_neither_objects_nor_the_comparison(room: Room) -> None:
    revision = await deliver_one_version(room)
    await room.sync(manifests=to_text(config_map(a="local")), dryRun=True)
    app = await room.until_over()
    assert app["status"]["operationState"]["phase"] == "Succeeded"
    assert (await read_settings(room)) == {"a": "git"}
    app = await room.settled()
    assert (app["status"]["sync"]["status"], app["status"]["sync"]["revision"]) == ("Synced", revision)
    assert len(app["status"]["history"]) == 1


async def test_automated_sync_returns_to_git_after_a_local_sync(room: Room) -> None:
    revision = await deliver_one_version(room)
    await room.sync(manifests=to_text(config_map(a="local")))
    await room.until_over()
    await room.patch_app({"spec": {"syncPolicy": {"automated": {}}}})
    await room.until_synced(revision)
    assert (await read_settings(room)) == {"a": "git"}


async def test_local_manifests_need_the_permission_of_the_project(room: Room) -> None:
    await room.project(namespaceResourceBlacklist=[{"group": "", "kind": "Secret"}])
    await deliver_one_version(room, project="team")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "forbidden"}}
    await room.sync(manifests=to_text(config_map(a="local"), secret))
    app = await room.until_over()
    assert app["status"]["operationState"]["phase"] == "Failed"
    results = {item["kind"]: item for item in app["status"]["operationState"]["syncResult"]["resources"]}
    assert "not permitted in project team" in results["Secret"]["message"]
    assert await room.get("Secret", "forbidden") is None
    assert (await read_settings(room)) == {"a": "git"}


INVALID = {
    "no JSON": ("kind: ConfigMap", "invalid character 'k'"),
    "no object": ('["text"]', "is not a Kubernetes object"),
    "no kind": ('{"apiVersion": "v1", "metadata": {"name": "a"}}', "has no kind"),
    "no name": ('{"apiVersion": "v1", "kind": "ConfigMap"}', "without metadata.name"),
    "too deep": ('{"a":' * 200 + "1" + "}" * 200, "levels deep"),
}


@pytest.mark.parametrize(("text", "message"), INVALID.values(), ids=INVALID)
async def test_invalid_local_manifest_ends_the_operation_before_anything_changes(
    room: Room, text: str, message: str
) -> None:
    await deliver_one_version(room)
    await room.sync(manifests=[*to_text(config_map(a="local")), text])
    app = await room.until_over()
    state = app["status"]["operationState"]
    assert state["phase"] == "Error"
    assert state["message"].startswith("ComparisonError: Failed to load local manifests: manifests[1]")
    assert message in state["message"]
    assert (await read_settings(room)) == {"a": "git"}


async def test_local_manifests_that_leave_no_room_in_the_application_are_refused(room: Room) -> None:
    await deliver_one_version(room)
    await room.sync(manifests=to_text(config_map(a="x" * MAX_LOCAL_MANIFESTS_BYTES)))
    app = await room.until_over()
    state = app["status"]["operationState"]
    assert state["phase"] == "Error" and "bytes, more than the" in state["message"]
    assert "manifests" not in state["operation"]["sync"]
    assert (await read_settings(room)) == {"a": "git"}
    app = await room.settled()
    assert app["status"]["sync"]["status"] == "Synced"


async def test_local_manifests_are_refused_if_the_project_requires_signatures(room: Room) -> None:
    await room.project(signatureKeys=[{"keyID": "4AEE18F83AFDEB23"}])
    room.repository.push({"app/settings.yaml": config_map(a="git")})
    await room.deliver(project="team")
    await room.until(lambda status: conditions(status, "ComparisonError"))
    await room.sync(manifests=to_text(config_map(a="local")))
    app = await room.until_over()
    state = app["status"]["operationState"]
    assert state["phase"] == "Error"
    assert "Cannot use local manifests when source integrity is enforced" in state["message"]
    assert await room.get("ConfigMap", "settings") is None

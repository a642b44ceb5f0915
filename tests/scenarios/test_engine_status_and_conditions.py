"""Status and conditions of Applications whose state is partly unreadable, and what triggers a comparison."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections.abc import AsyncIterator
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import Forbidden, SourceRefused, SourceUnreachable
from argosy.gitops.engine.metrics import collect_engine_metrics
from argosy.gitops.reconciler.read_your_writes import WATCH_DELIVERY_SECONDS
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.observability.metrics import render_families
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Room, conditions, config_map, engine_room

pytestmark = pytest.mark.anyio
ONE = {"app/settings.yaml": config_map(a="one")}
HERE = "https://kubernetes.default.svc"
ACCOUNT = GroupKind("", "ServiceAccount")


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with engine_room(tmp_path) as opened_room:
        yield opened_room


async def synced(room: Room, **spec: Any) -> dict[str, Any]:
    room.repository.push(ONE)
    await room.deliver(**spec)
    await room.sync()
    return await room.until_synced()


def secret(called: str, labels: dict[str, str], /, **data: str) -> Manifest:
    metadata = {"name": called, "namespace": CONTROL, "labels": labels}
    encoded = {key.replace("_", "."): base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


async def test_failed_comparison_is_unknown_and_unchecked_conditions_stay(room: Room) -> None:
    link = {"annotations": {"link.argocd.argoproj.io/home": "https://home.example"}}
    app = await synced(room, metadata=link)
    summary = app["status"].get("summary")
    room.repository.push({"app/broken.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: ["})
    app = await room.until(lambda status: conditions(status, "ComparisonError"))
    assert [resource["status"] for resource in app["status"]["resources"]] == ["Unknown"]
    assert (app["status"]["sync"]["status"], app["status"].get("summary")) == ("Unknown", summary)
    broken, compared = app["status"]["conditions"], app["status"]["sync"]
    await room.patch_app({"spec": {"project": "nowhere"}})
    app = await room.until(lambda status: conditions(status, "InvalidSpecError"))
    assert [condition for condition in app["status"]["conditions"] if condition["type"] == "ComparisonError"] == broken
    assert app["status"]["sync"] == compared
    await room.patch_app({"spec": {"project": "default"}})
    room.repository.push({"app/broken.yaml": None})
    app = await room.until(lambda status: "conditions" not in status)
    assert [resource["status"] for resource in app["status"]["resources"]] == ["Synced"]


@pytest.mark.tier("all")
async def test_health_of_live_objects_is_updated_while_manifests_cannot_be_read(room: Room) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "data", "namespace": "ml"}
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    room.repository.push({"app/claim.yaml": json.dumps({**kind, "metadata": metadata, "spec": claim})})
    await room.deliver()
    await room.sync()
    await room.until(lambda status: (status["sync"]["status"], status["health"]["status"]) == ("Synced", "Progressing"))
    room.repository.push({"app/broken.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: ["})
    app = await room.until(lambda status: conditions(status, "ComparisonError"))
    assert app["status"]["health"]["status"] == "Progressing"
    key = ResourceKey("", "PersistentVolumeClaim", "ml", "data")
    for phase, health in (("Bound", "Healthy"), ("Lost", "Degraded")):
        await room.cluster.patch(key, {"status": {"phase": phase}}, subresource="status")
        app = await room.until(lambda status, health=health: status["health"]["status"] == health)
        assert app["status"]["sync"]["status"] == "Unknown"


@pytest.mark.tier("all")
async def test_unreachable_git_host_is_reported_after_a_delay(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    app = await synced(room)
    checkout_tried = asyncio.Event()

    async def away(*args: Any, **options: Any) -> Any:
        checkout_tried.set()
        raise SourceUnreachable("gives no answer; try again later", where="git.example")

    with monkeypatch.context() as patch:
        patch.setattr(type(room.engine.repositories), "checkout", away)
        room.clock.leap(121)
        await room.change(other="look")
        async with asyncio.timeout(HANG_SECONDS):
            await checkout_tried.wait()
        assert (await room.app())["status"]["sync"] == app["status"]["sync"]
        room.clock.leap(200)
        message = await room.until_condition("ComparisonError")
        assert "gives no answer" in message
    await room.annotate(refresh="normal")
    await room.until(lambda status: status["sync"]["status"] == "Synced" and "conditions" not in status)


async def test_invalid_application_spec_is_reported_and_synced_once_corrected(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver(syncPolicy={"automated": {}, "retry": {"limit": 1, "backoff": {"duration": "soon"}}})
    message = await room.until_condition("InvalidSpecError")
    assert "duration" in message
    await room.patch_app({"spec": {"syncPolicy": {"retry": None}}})
    app = await room.until_synced()
    assert not conditions(app["status"], "InvalidSpecError")


async def test_ignored_resource_updates_trigger_no_comparison(room: Room) -> None:
    await room.configure({"resource.customizations.ignoreResourceUpdates.ConfigMap": "jsonPointers: [/data]"})
    await synced(room)
    key = ResourceKey("", "ConfigMap", "ml", "settings")
    await room.change(a="changed")
    async with asyncio.timeout(HANG_SECONDS):
        while (room.engine.cache.get(key) or {})["data"]["a"] != "changed" or not room.engine.queue.is_idle:
            await asyncio.sleep(0.02)
    assert (await room.app())["status"]["sync"]["status"] == "Synced"
    assert (await room.settled())["status"]["sync"]["status"] == "OutOfSync"
    await room.cluster.patch(key, {"metadata": {"labels": {"b": "c"}}, "data": {"a": "one"}})
    await room.until(lambda status: status["sync"]["status"] == "Synced")


async def test_server_side_diff_annotation_takes_effect_at_once(room: Room) -> None:
    """The server is asked once for each version of an object, and again after a requested refresh."""
    room.repository.push({"app/other.yaml": config_map("other")})
    app = await synced(room)
    key = ResourceKey("", "ConfigMap", "ml", "settings")
    applied_names: list[Any] = []
    apply = room.engine.cluster.apply

    async def listening(manifest: Manifest, **options: Any) -> Manifest:
        applied_names.append(manifest["metadata"]["name"])
        assert options.get("dry_run")
        return await apply(manifest, **options)

    room.engine.cluster.apply = listening  # type: ignore[method-assign]
    await room.settled()
    assert applied_names == []
    await room.annotate(compare_options="ServerSideDiff=true")
    async with asyncio.timeout(HANG_SECONDS):
        while sorted(applied_names) != ["other", "settings"]:
            await asyncio.sleep(0.02)
    await room.change(b="more")
    async with asyncio.timeout(HANG_SECONDS):
        while sorted(applied_names) != ["other", "settings", "settings"]:
            await asyncio.sleep(0.02)
    await room.settled()
    assert applied_names.count("other") == 2
    assert (await room.app())["status"]["sync"] == app["status"]["sync"]
    assert (await room.cluster.get(key) or {})["data"] == {"a": "one", "b": "more"}


@pytest.mark.tier("all")
async def test_object_left_by_a_deleted_application_is_reported_as_orphaned(room: Room) -> None:
    await room.project(orphanedResources={"warn": True})
    room.repository.push({**ONE, "other/other.yaml": config_map("other")})
    for name, path in (("models", "app"), ("second", "other")):
        await room.deliver(name, path, project="team", syncPolicy={"automated": {}})
        await room.until_synced(name=name)
    assert not conditions((await room.settled())["status"], "OrphanedResourceWarning")
    await room.cluster.delete(ResourceKey("argoproj.io", "Application", CONTROL, "second"))
    await room.until_gone("argoproj.io/Application", "second", CONTROL)
    async with asyncio.timeout(HANG_SECONDS):
        while room.engine.cache.get(ResourceKey("argoproj.io", "Application", CONTROL, "second")):
            await asyncio.sleep(0.02)
    messages = conditions((await room.settled())["status"], "OrphanedResourceWarning")
    assert messages == ["Application has 1 orphaned resources"]
    metrics = render_families(collect_engine_metrics(room.engine))
    assert 'argocd_app_orphaned_resources_count{namespace="argocd",name="models",project="team"} 1' in metrics


@pytest.mark.parametrize("overruns", [True, False], ids=["may overrun", "may not"])
@pytest.mark.tier("all")
async def test_running_sync_continues_in_a_deny_window_only_with_sync_overrun(room: Room, overruns: bool) -> None:
    start = (room.clock.now() + timedelta(hours=2)).astimezone(UTC)
    window = {
        "kind": "deny",
        "schedule": f"{start.minute} {start.hour} * * *",
        "duration": "1h",
        "applications": ["*"],
        "syncOverrun": overruns,
    }
    await room.project(syncWindows=[window])
    hook = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "wait", "annotations": {"argocd.argoproj.io/hook": "PreSync"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "registry.example/a"}]},
    }
    room.repository.push({**ONE, "app/hook.yaml": hook})
    await room.deliver(project="team")
    await room.sync()
    await room.until(lambda status: "waiting for completion of hook" in status["operationState"]["message"])
    room.clock.leap(2 * 3600 + 120)
    key = ResourceKey("", "Pod", "ml", "wait")
    await room.cluster.patch(key, {"status": {"phase": "Succeeded"}}, subresource="status")
    if overruns:
        app = await room.until_over()
        assert app["status"]["operationState"]["phase"] == "Succeeded"
        return
    app = await room.until(lambda status: "blocked by sync window" in status["operationState"]["message"])
    assert app["status"]["operationState"]["phase"] == "Running"


@pytest.mark.tier("all")
async def test_sync_error_condition_stays_during_a_deny_window(room: Room) -> None:
    broken = {**config_map("broken"), "data": {"a": ["no text"]}}
    room.repository.push({"app/broken.yaml": broken})
    await room.project()
    await room.deliver(project="team", syncPolicy={"automated": {}, "retry": {"limit": 0}})
    message = await room.until_condition("SyncError")
    project = ResourceKey("argoproj.io", "AppProject", CONTROL, "team")
    window = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}
    await room.cluster.patch(project, {"spec": {"syncWindows": [window]}})
    async with asyncio.timeout(HANG_SECONDS):
        while not room.engine.settings.current_settings().projects["team"].windows:
            await asyncio.sleep(0.02)
    assert conditions((await room.settled())["status"], "SyncError") == [message]


async def test_named_cluster_is_delivered_to_unless_skip_reconcile_is_set(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver(destination={"name": "near", "namespace": "ml"}, syncPolicy={"automated": {}})
    assert "no clusters with this name" in await room.until_condition("InvalidSpecError")
    labels = {"argocd.argoproj.io/secret-type": "cluster"}
    cluster_secret = await room.cluster.create(secret("near-secret", labels, name="near", server=HERE))
    app = await room.until_synced()
    assert app["status"]["sync"]["comparedTo"]["destination"] == {"name": "near", "namespace": "ml"}
    paused = {"metadata": {"annotations": {"argocd.argoproj.io/skip-reconcile": "true"}}}
    await room.cluster.patch(ResourceKey("", "Secret", CONTROL, cluster_secret["metadata"]["name"]), paused)
    async with asyncio.timeout(HANG_SECONDS):
        while not room.engine.settings.current_settings().clusters.known_clusters[0].is_paused:
            await asyncio.sleep(0.02)
    await room.annotate(refresh="normal")
    await room.deliver("other", destination={"name": "far", "namespace": "ml"})
    await room.until_condition("InvalidSpecError", "other")  # it was created later and has been reconciled
    assert "argocd.argoproj.io/refresh" in (await room.app())["metadata"]["annotations"]


URL = "https://git.example.com/team/app"
KEY = "open sesame"
MOVED = {"ref": "refs/heads/main"}
BRANCH = {"type": "branch", "name": "main", "target": {"hash": "1" * 40}}
PAYLOADS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "x-github-event": (
        {"x-github-event": "push", "x-hub-signature-256": "sha256=SIGNED"},
        {**MOVED, "repository": {"clone_url": f"{URL}.git", "default_branch": "main"}},
    ),
    "x-gitea-event": (
        {"x-gitea-event": "push", "x-gitea-signature": "SIGNED"},
        {**MOVED, "repository": {"clone_url": f"{URL}.git", "default_branch": "main"}},
    ),
    "x-gitlab-event": (
        {"x-gitlab-event": "Push Hook", "x-gitlab-token": KEY},
        {**MOVED, "object_kind": "push", "project": {"git_http_url": f"{URL}.git", "default_branch": "main"}},
    ),
    "x-event-key": (
        {"x-event-key": "repo:push", "x-hook-uuid": KEY},
        {"repository": {"links": {"html": {"href": URL}}}, "push": {"changes": [{"new": BRANCH, "old": BRANCH}]}},
    ),
}


async def test_webhooks_are_accepted_only_with_the_right_secret(room: Room) -> None:
    await room.deliver(source={"repoURL": f"{URL}.git", "path": "app", "targetRevision": "main"})
    names = ("github_secret", "gitlab_secret", "gogs_secret", "bitbucket_uuid")
    secrets = {f"webhook_{name}": KEY for name in names}
    await room.cluster.create(secret("argocd-secret", {}, **secrets))
    await room.until_condition("ComparisonError")
    async with asyncio.timeout(HANG_SECONDS):
        while len(room.engine.settings.load_webhook_secrets().values) < len(secrets):
            await asyncio.sleep(0.02)
    for event, (headers, payload) in PAYLOADS.items():
        body = json.dumps(payload).encode()
        mark = hmac.new(KEY.encode(), body, "sha256").hexdigest()
        signed = {name: text.replace("SIGNED", mark) for name, text in headers.items()}
        assert [key.name for key in await room.engine.handle_webhook(signed, body)] == ["models"], event
        unsigned, forged = {event: signed[event]}, dict.fromkeys(signed, "wrong") | {event: signed[event]}
        for bad in (unsigned, forged):
            with pytest.raises(SourceRefused):
                await room.engine.handle_webhook(bad, body)


class Discreet:
    """A cluster that forbids listing ServiceAccounts, and optionally reading one."""

    def __init__(self, cluster: Cluster, reads: bool) -> None:
        self._cluster, self._reads = cluster, reads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def list(self, kind: GroupKind, **selectors: Any) -> Any:
        if kind == ACCOUNT:
            raise Forbidden("accounts are nobody's business")
        return await self._cluster.list(kind, **selectors)

    async def get(self, key: ResourceKey) -> Any:
        if key.group_kind == ACCOUNT and not self._reads:
            raise Forbidden("accounts are nobody's business")
        return await self._cluster.get(key)


@pytest.mark.parametrize("reads", [True, False], ids=["may be read", "may not"])
@pytest.mark.tier("all")
async def test_kind_that_may_not_be_listed_is_read_by_name_or_unknown(tmp_path: Path, reads: bool) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    async with engine_room(tmp_path, wrap_cluster=lambda cluster: Discreet(cluster, reads)) as room:  # type: ignore[arg-type]
        assert not room.engine.informers.is_synced(ACCOUNT)
        room.repository.push({"app/account.yaml": account})
        await room.cluster.create({**account, "metadata": {"name": "robot", "namespace": "ml"}})
        await room.deliver(syncPolicy={"automated": {}})
        if reads:
            await room.until_synced()
            return
        message = await room.until_condition("ComparisonError")
        assert message.startswith("Failed to load live state: cannot read ServiceAccount robot")
        app = await room.settled()
        assert app["status"]["sync"]["status"] == "Unknown"
        assert app["status"]["health"]["status"] == "Missing"  # argo: no live object is known
        assert "operationState" not in app["status"]


async def _with_account(room: Room) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    room.repository.push({"app/account.yaml": account})
    await room.deliver(syncPolicy={"automated": {}})
    await room.until_synced()


async def test_deleted_object_of_a_kind_that_may_not_be_listed_is_out_of_sync(tmp_path: Path) -> None:
    async with engine_room(tmp_path, wrap_cluster=lambda cluster: Discreet(cluster, True)) as room:  # type: ignore[arg-type]
        await _with_account(room)
        await room.cluster.delete(ResourceKey("", "ServiceAccount", "ml", "robot"))
        app = await room.settled()
        assert app["status"]["sync"]["status"] == "OutOfSync"


class Mute(Discreet):
    """A cluster whose watches of ServiceAccounts deliver no events."""

    async def list(self, kind: GroupKind, **selectors: Any) -> Any:
        return await self._cluster.list(kind, **selectors)

    async def watch(self, kind: GroupKind, **selectors: Any) -> Any:
        if kind == ACCOUNT:
            await asyncio.Event().wait()
        async for event in self._cluster.watch(kind, **selectors):
            yield event


async def test_object_deleted_without_a_watch_event_is_out_of_sync(tmp_path: Path) -> None:
    async with engine_room(tmp_path, wrap_cluster=lambda cluster: Mute(cluster, True)) as room:  # type: ignore[arg-type]
        await _with_account(room)
        assert room.engine.informers.is_synced(ACCOUNT)
        await room.cluster.delete(ResourceKey("", "ServiceAccount", "ml", "robot"))
        room.clock.leap(WATCH_DELIVERY_SECONDS)
        app = await room.settled()
        assert app["status"]["sync"]["status"] == "OutOfSync"

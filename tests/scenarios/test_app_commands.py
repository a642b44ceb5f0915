"""`argosy app list`, `get`, `sync`, `terminate-op` and `wait`, including sync windows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from argosy.gitops.application_client import condition_wait
from argosy.kube.client import Cluster
from argosy.kube.controller.object_condition_wait import wait_for_object
from argosy.kube.objects import Manifest, dump_yaml
from argosy.kube.resource_key import ResourceKey
from support.app_commands import HANG, Scene, scene
from support.deadlines import HANG_SECONDS
from support.engine import config_map

pytestmark = pytest.mark.anyio
AUTOMATED = {"automated": {"prune": True, "selfHeal": True}}
WIDE = [
    "NAME", "CLUSTER", "NAMESPACE", "PROJECT", "STATUS", "HEALTH", "SYNCPOLICY", "CONDITIONS", "REPO", "PATH", "TARGET",
]  # fmt: skip


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "argosy.gitops.application_client.app_list_explanations.TIMEOUT_SECONDS", HANG_SECONDS
    )  # otherwise a busy machine omits the reasons
    async with scene(tmp_path) as opened_scene:
        opened_scene.repository.push({"app/settings.yaml": config_map(a="one")})
        yield opened_scene


def out_of_sync(status: dict[str, object]) -> bool:
    return (status.get("sync") or {}).get("status") == "OutOfSync"  # type: ignore[attr-defined]


async def test_app_list_shows_status_and_reason(desk: Scene) -> None:
    await desk.deliver()
    await desk.until(out_of_sync)
    result = await desk.argosy("app", "list")
    assert result.code == 0, result.err
    head, line = result.out.splitlines()
    assert head.split() == ["NAME", "STATUS", "HEALTH", "WHY", "REVISION", "SYNCPOLICY", "AGE"]
    assert "OutOfSync" in line and "never synced: 1 to create or change" in line and "Manual" in line


@pytest.mark.tier("all")
async def test_wide_app_list_has_the_columns_of_argo_cd(desk: Scene) -> None:
    await desk.deliver()
    await desk.until(out_of_sync)
    columns = [
        "argocd/models", "https://kubernetes.default.svc", "ml", "default", "OutOfSync", "Missing", "Manual", "<none>",
        desk.repository.url, "app", "main",
    ]  # fmt: skip
    head, line = (await desk.argosy("app", "list", "-o", "wide")).out.splitlines()
    assert head.split() == [*WIDE, "WHY"]
    assert line.split()[: len(columns)] == columns and line.endswith("  never synced: 1 to create or change")
    head, line = (await desk.argosy("app", "list", "-o", "wide", program="argocd")).out.splitlines()
    assert (head.split(), line.split()) == (WIDE, columns)


@pytest.mark.tier("all")
async def test_app_list_filters_by_label_project_and_repository(desk: Scene) -> None:
    await desk.deliver(metadata={"labels": {"env": "dev"}})
    await desk.deliver("other", metadata={"labels": {"env": "prod"}})
    assert (await desk.argosy("app", "list", "-l", "env=dev", "-o", "name")).out == "argocd/models\n"
    assert (await desk.argosy("app", "list", "-p", "nobody", "-o", "name")).out == ""
    both = await desk.argosy("app", "list", "--repo", desk.repository.url, "-o", "json")
    assert [application["metadata"]["name"] for application in json.loads(both.out)["items"]] == ["models", "other"]


async def test_sync_records_its_initiator_and_waits_for_completion(desk: Scene) -> None:
    await desk.deliver()
    await desk.until(out_of_sync)
    result = await desk.argosy("app", "sync", "models", "--timeout", HANG)
    assert result.code == 0, result.err
    assert "TIMESTAMP" in result.out and "ConfigMap" in result.out and "configmap/settings created" in result.out
    assert result.err.startswith("target: context plane (https://") and "sync to" in result.err
    app = await desk.app()
    assert app["status"]["operationState"]["operation"]["initiatedBy"]["username"]
    assert (await desk.get("ConfigMap", "settings") or {})["data"] == {"a": "one"}


async def test_failed_sync_exits_1_with_the_reason(desk: Scene) -> None:
    desk.repository.push({"app/wrong.yaml": {**config_map("wrong"), "data": {"not a key!": "x"}}})
    await desk.deliver()
    await desk.until(out_of_sync)
    result = await desk.argosy("app", "sync", "models", "--timeout", HANG)
    assert result.code == 1, (result.out, result.err)
    assert "sync failed\nwhy: " in result.err and "next: argosy app get models --show-operation" in result.err


async def until_a_hook_is_waited_for(
    cluster: Cluster, key: ResourceKey, is_done: Callable[[Manifest | None], bool], seconds: float
) -> bool:
    """Simulate a timeout as soon as the operation waits for its hook."""

    def holds(application: Manifest | None) -> bool:
        state = ((application or {}).get("status") or {}).get("operationState") or {}
        return is_done(application) or "waiting for completion of hook" in state.get("message", "")

    assert await wait_for_object(cluster, key, holds, seconds)
    return False


@pytest.mark.tier("all")
async def test_sync_timeout_exits_4_and_the_operation_continues(desk: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "migrate", "annotations": {"argocd.argoproj.io/hook": "PreSync"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}},
    }
    desk.repository.push({"app/hook.yaml": hook})
    await desk.deliver()
    await desk.until(out_of_sync)
    with monkeypatch.context() as patch:
        patch.setattr(condition_wait, "wait_for_object", until_a_hook_is_waited_for)
        result = await desk.argosy("app", "sync", "models", "--timeout", HANG)
    assert result.code == 4, (result.out, result.err)
    assert f"has not finished after {HANG} s\nwhy: waiting for completion of hook" in result.err
    refused = await desk.argosy("app", "sync", "models")
    assert refused.code == 5 and "another operation is already in progress" in refused.err
    ended = await desk.argosy("app", "terminate-op", "models")
    assert ended.code == 0, ended.err
    app = await desk.until_over()
    assert app["status"]["operationState"]["phase"] == "Failed"
    again = await desk.argosy("app", "terminate-op", "models")
    assert again.code == 2 and "no operation is in progress" in again.err


async def test_local_folder_is_synced(desk: Scene) -> None:
    await desk.deliver()
    await desk.until(out_of_sync)
    folder = desk.repository.path / "app"
    (folder / "settings.yaml").write_text(dump_yaml(config_map(a="unpushed")))
    result = await desk.argosy("app", "sync", "models", "--local", str(folder), "--dry-run")
    assert result.code == 0, result.err
    assert await desk.get("ConfigMap", "settings") is None
    result = await desk.argosy("app", "sync", "models", "--local", str(folder))
    assert result.code == 0 and "the next sync returns to Git" in result.err, result.err
    live = await desk.get("ConfigMap", "settings")
    assert live is not None and live["data"] == {"a": "unpushed"}
    printed = await desk.argosy("app", "manifests", "models")
    assert "a: unpushed" in printed.out, printed
    (folder / "settings.yaml").write_text(dump_yaml(config_map(a="later")))
    for command in (
        ("app", "get"), ("app", "get", "-o", "yaml"), ("app", "history"), ("app", "diff"), ("explain",), ("doctor",),
        ("app", "list"),
    ):  # fmt: skip
        result = await desk.argosy(*command, *(() if command[-1] == "list" else ("models",)))
        assert result.code == 0, (command, result)
    result = await desk.argosy("app", "diff", "models", "--local", str(folder))
    assert result.code == 1 and "later" in result.out, result


async def test_local_folder_is_refused_if_it_cannot_be_synced(desk: Scene, tmp_path: Path) -> None:
    await desk.deliver()
    (tmp_path / "empty").mkdir()
    for arguments, message in (
        (("models", "--local", str(tmp_path / "empty")), "contains no manifests"),
        (("models", "--local", str(tmp_path / "empty"), "--revision", "main"), "cannot be combined"),
        (("models", "other", "--local", "."), "name exactly one"),
    ):
        result = await desk.argosy("app", "sync", *arguments)
        assert result.code == 2 and message in result.err and "next: " in result.err, result
    await desk.patch_app({"spec": {"syncPolicy": AUTOMATED}})
    result = await desk.argosy("app", "sync", "models", "--local", str(desk.repository.path / "app"))
    assert result.code == 5 and "cannot use local sync when Automatic Sync Policy is enabled" in result.err, result


async def test_app_get_matches_the_argo_cd_layout(desk: Scene) -> None:
    await desk.deliver(syncPolicy=AUTOMATED)
    await desk.until_synced()
    result = await desk.argosy("app", "get", "models")
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0] == "Name:               argocd/models"
    assert "Sync Policy:        Automated (Prune)" in lines
    assert f"Sync Status:        Synced to main ({desk.repository.head[:7]})" in lines
    assert "Health Status:      Healthy" in lines
    assert "SyncWindow:         Sync Allowed" in lines
    table = lines[lines.index("") + 1 :]
    assert table[0].split() == ["GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "HOOK", "MESSAGE"]
    assert table[1].split()[:4] == ["ConfigMap", "ml", "settings", "Synced"]


@pytest.mark.tier("all")
async def test_app_get_shows_an_absent_resource_as_missing(desk: Scene) -> None:
    await desk.deliver()
    await desk.until(out_of_sync)
    result = await desk.argosy("app", "get", "models")
    assert result.out.splitlines()[-1].split()[:5] == ["ConfigMap", "ml", "settings", "OutOfSync", "Missing"]


@pytest.mark.tier("all")
async def test_application_in_another_namespace_is_found_by_flag_and_qualified_name(desk: Scene) -> None:
    await desk.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    manifest = await desk.deliver()
    other = {**manifest, "metadata": {"name": "theirs", "namespace": "team"}}
    await desk.cluster.create(other)
    assert (await desk.argosy("app", "get", "theirs")).code == 2
    for words in (("get", "team/theirs"), ("get", "theirs", "-N", "team"), ("get", "theirs", "--app-namespace=team")):
        result = await desk.argosy("app", *words, "-o", "json")
        assert result.code == 0 and json.loads(result.out)["metadata"]["namespace"] == "team", result
    assert (await desk.argosy("app", "list", "-N", "team", "-o", "name")).out == "team/theirs\n"
    assert (await desk.argosy("app", "list", "-A", "-o", "name")).out == "argocd/models\nteam/theirs\n"


@pytest.mark.tier("all")
async def test_app_list_without_the_crd_suggests_starting_the_controller(desk: Scene) -> None:
    kind = ResourceKey("apiextensions.k8s.io", "CustomResourceDefinition", "", "applications.argoproj.io")
    await desk.cluster.delete(kind)
    async with asyncio.timeout(HANG_SECONDS):
        while "does not serve Applications" not in (result := await desk.argosy("app", "list")).err:
            assert result.code in (0, 2)
    assert result.code == 2 and "next: start the controller: argosy controller" in result.err


@pytest.mark.tier("all")
async def test_unknown_application_name_suggests_the_nearest_one(desk: Scene) -> None:
    await desk.deliver()
    result = await desk.argosy("app", "get", "model")
    assert result.code == 2
    assert result.err == (
        "argosy: app get model failed\nwhy: Application 'model' not found in argocd\nnext: did you mean models?\n"
    )


@pytest.mark.tier("all")
async def test_wait_fails_fast_if_nothing_would_sync_the_application(desk: Scene) -> None:
    await desk.deliver()
    await desk.until(out_of_sync)
    result = await desk.argosy("app", "wait", "models", "--sync", "--timeout", HANG)
    assert result.code == 1, result.err
    assert "no sync was requested" in result.err and "next: argosy app diff models" in result.err
    assert "wave 0: ConfigMap/settings -n ml  OutOfSync" in result.err


@pytest.mark.tier("all")
async def test_wait_timeout_exits_4_with_the_unmet_condition(desk: Scene) -> None:
    await desk.deliver()
    await desk.until(out_of_sync)
    result = await desk.argosy("app", "wait", "models", "--sync", "--timeout", "0.5", "--no-fail-fast")
    assert result.code == 4, result.err
    assert "timed out after 0.5 s: sync status is OutOfSync, not Synced" in result.err


async def test_wait_succeeds_when_the_requested_status_is_reached(desk: Scene) -> None:
    await desk.deliver(syncPolicy=AUTOMATED)
    result = await desk.argosy("app", "wait", "models", "--timeout", HANG)
    assert result.code == 0, result.err
    assert "models: reached the requested status" in result.err


# -- sync windows --------------------------------------------------------------------------------------------------

SHUT = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"], "description": "freeze"}


@pytest.mark.parametrize(
    ("program", "words", "code"),
    [
        ("argosy", ("sync", "models"), 5),
        ("argosy", ("sync", "models", "--dry-run"), 5),
        ("argosy", ("sync", "open", "models", "--async"), 5),
        ("argocd", ("sync", "models"), 20),
        ("argosy", ("rollback", "models", "0", "-y"), 5),
    ],
)
async def test_sync_denied_by_a_window_is_refused_without_an_operation(
    desk: Scene, program: str, words: tuple[str, ...], code: int
) -> None:
    await desk.project("team", syncWindows=[{**SHUT, "applications": ["mod*"]}])
    await desk.deliver(project="team")
    await desk.deliver("open", project="team")
    source = {"repoURL": desk.repository.url, "path": "app"}
    entry = {"id": 0, "revision": desk.repository.head, "source": source, "deployedAt": "2026-01-01T00:00:00Z"}
    await desk.patch_app({"status": {"history": [entry, {**entry, "id": 1}]}})
    result = await desk.argosy("app", *words, program=program)
    assert result.code == code, result.err
    window = "a deny window is open without end: * * * * * for 1h (freeze)"
    assert f"cannot sync: blocked by sync window ({window})" in result.err
    assert "wait until it ends" not in result.err, "it has no end"
    for name in ("models", "open"):
        app = await desk.app(name)
        assert "operation" not in app and "operationState" not in (app.get("status") or {})


async def test_malformed_sync_window_is_reported_as_the_cause(desk: Scene) -> None:
    await desk.project("team", syncWindows=[{**SHUT, "schedule": "garbage"}])
    await desk.deliver(project="team")
    result = await desk.argosy("app", "sync", "models")
    assert result.code == 5
    assert "cannot sync: a sync window of project 'team' is malformed: invalid schedule of a sync window" in result.err
    assert "next: correct it: argosy proj windows list team" in result.err
    assert "wait until it ends" not in result.err


async def test_sync_allowed_by_manual_sync_in_a_window_succeeds(desk: Scene) -> None:
    await desk.project("team", syncWindows=[{**SHUT, "manualSync": True}])
    await desk.deliver(project="team")
    result = await desk.argosy("app", "sync", "models", "--timeout", HANG)
    assert result.code == 0, result.err

"""`argosy app` commands that change Applications: create, set, hold, rollback, delete; each records its user."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.features.applications.rollback import cli
from argosy.kube.resource_key import GroupKind
from support.app_commands import HANG, Scene, scene
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, config_map
from support.sync_operations import job

pytestmark = pytest.mark.anyio
AUTOMATED = {"automated": {"prune": True, "selfHeal": True}}


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for limit in (
        "app_list_explanations.TIMEOUT_SECONDS",
        "sync_checks.CHECK_REFS_TIMEOUT_SECONDS",
    ):  # on a busy machine they omit what takes longer
        monkeypatch.setattr(f"argosy.gitops.application_client.{limit}", HANG_SECONDS)
    async with scene(tmp_path) as opened_scene:
        opened_scene.repository.push({"app/settings.yaml": config_map(a="one")})
        yield opened_scene


async def twice_delivered(desk: Scene, **spec: Any) -> tuple[str, str]:
    first = desk.repository.head
    await desk.deliver(syncPolicy=AUTOMATED, **spec)
    await desk.until_synced()
    second = desk.repository.push({"app/settings.yaml": config_map(a="two")})
    await desk.until_synced()
    return first, second


@pytest.mark.tier("all")
async def test_app_create_from_flags_is_idempotent(desk: Scene) -> None:
    words = (
        "app", "create", "models", "--repo", desk.repository.url, "--path", "app", "--revision", "main",
        "--dest-namespace", "ml", "--sync-policy", "automated", "--self-heal", "--sync-option", "CreateNamespace=true",
    )  # fmt: skip
    result = await desk.argosy(*words)
    assert (result.code, result.out) == (0, "application 'models' created\n"), result.err
    app = await desk.until_synced()
    assert app["status"]["health"]["status"] == "Healthy"
    manifest = await desk.app()
    assert manifest["spec"]["syncPolicy"] == {"automated": {"selfHeal": True}, "syncOptions": ["CreateNamespace=true"]}
    assert (await desk.argosy(*words)).out == "application 'models' unchanged\n"
    await desk.project("other")
    refused = await desk.argosy(*words, "--project", "other")
    assert refused.code == 2 and "--upsert" in refused.err
    assert (await desk.argosy(*words, "--project", "other", "--upsert")).out == "application 'models' updated\n"


@pytest.mark.tier("all")
async def test_app_create_reads_a_file_and_flags_override_it(desk: Scene, tmp_path: Path) -> None:
    await desk.deliver()
    manifest = await desk.app()
    file = tmp_path / "app.json"
    spec = manifest["spec"]
    whole = {"apiVersion": manifest["apiVersion"], "kind": "Application", "metadata": {"name": "again"}, "spec": spec}
    file.write_text(json.dumps(whole))
    result = await desk.argosy("app", "create", "-f", str(file), "--path", "other")
    assert result.code == 0, result.err
    assert (await desk.app("again"))["spec"]["source"]["path"] == "other"


@pytest.mark.tier("all")
async def test_app_create_without_a_repository_is_rejected(desk: Scene) -> None:
    result = await desk.argosy("app", "create", "models", "--path", "app")
    assert result.code == 2 and "no repository given" in result.err
    assert (await desk.argosy("app", "list", "-o", "name")).out.strip() == ""


@pytest.mark.tier("all")
async def test_app_set_changes_fields_and_unset_removes_them(desk: Scene) -> None:
    await desk.deliver()
    result = await desk.argosy(
        "app", "set", "models", "--revision", "v2", "--nameprefix", "dev-", "--kustomize-image", "a=b:1",
        "--sync-policy", "auto", "--auto-prune=true", "--self-heal=false",
    )  # fmt: skip
    assert result.out == "application 'models' updated\n", result.err
    spec = (await desk.app())["spec"]
    assert spec["source"]["targetRevision"] == "v2" and spec["source"]["path"] == "app"
    assert spec["source"]["kustomize"] == {"namePrefix": "dev-", "images": ["a=b:1"]}
    assert spec["syncPolicy"]["automated"] == {"prune": True, "selfHeal": False}
    await desk.argosy("app", "set", "models", "--kustomize-image", "a=b:2", "--sync-policy", "none")
    spec = (await desk.app())["spec"]
    assert spec["source"]["kustomize"]["images"] == ["a=b:2"] and "automated" not in spec["syncPolicy"]
    await desk.argosy("app", "unset", "models", "--nameprefix", "--kustomize-image", "a")
    assert "kustomize" not in (await desk.app())["spec"]["source"]
    assert (await desk.argosy("app", "unset", "models", "--nameprefix")).out == "application 'models' unchanged\n"


@pytest.mark.tier("all")
async def test_app_history_lists_revisions_dates_and_initiators(desk: Scene) -> None:
    first, second = await twice_delivered(desk)
    result = await desk.argosy("app", "history", "models")
    head, *lines = result.out.splitlines()
    assert head.split() == ["ID", "DATE", "REVISION", "BY"]
    assert [first[:7] in lines[0], second[:7] in lines[1], "auto-sync" in lines[0]] == [True] * 3
    assert (await desk.argosy("app", "history", "models", "-o", "id")).out == "0\n1\n"


@pytest.mark.tier("all")
async def test_rollback_is_refused_while_auto_sync_is_enabled(desk: Scene) -> None:
    await twice_delivered(desk)
    result = await desk.argosy("app", "rollback", "models", "0")
    assert result.code == 5 and "auto-sync is enabled" in result.err
    assert "next: hold it at the same time: argosy app rollback models 0 --hold" in result.err


async def test_rollback_with_hold_stays_until_release(desk: Scene) -> None:
    _, second = await twice_delivered(desk)
    result = await desk.argosy("app", "rollback", "models", "--hold", "--reason", "latency", "--timeout", HANG)
    assert result.code == 0, result
    assert "rollback to " in result.err and "argosy app release models" in result.err
    assert (await desk.get("ConfigMap", "settings") or {})["data"] == {"a": "one"}
    await desk.until(lambda status: status["sync"]["status"] == "OutOfSync")
    listed = await desk.argosy("app", "list")
    assert "held by" in listed.out and "latency" in listed.out and "Auto-Prune (held)" in listed.out
    assert "Held:" in (await desk.argosy("app", "get", "models")).out
    assert (await desk.argosy("app", "hold", "models")).out.startswith("models: unchanged")
    assert (await desk.argosy("app", "release", "models")).out == "models: released\n"
    await desk.until_synced(second)
    assert (await desk.get("ConfigMap", "settings") or {})["data"] == {"a": "two"}
    events = (await desk.argosy("app", "events", "models")).out
    for words in ("initiated rollback to 0", "held automated sync", "released automated sync"):
        assert words in events, words


SLOW_RETRY = {"limit": 5, "backoff": {"duration": "1h", "maxDuration": "1h"}}


@pytest.mark.parametrize("held", [True, False], ids=["automated and held", "by hand"])
async def test_rollback_terminates_a_failed_sync_that_waits_for_its_retry(desk: Scene, held: bool) -> None:
    await twice_delivered(desk)
    await desk.patch_app({"spec": {"syncPolicy": {"retry": SLOW_RETRY, **({} if held else {"automated": None})}}})
    bad = desk.repository.push({"app/settings.yaml": config_map(a="three"), "app/bad.yaml": config_map("Bad_Name")})
    if not held:
        await desk.argosy("app", "sync", "models", "--async")
    await desk.until(lambda status: "Retrying attempt #1" in status["operationState"]["message"])
    result = await desk.argosy("app", "rollback", "models", "0", *(("--hold",) if held else ()), "--timeout", HANG)
    assert result.code == 0, result.err
    assert (
        "models: terminating the running sync, because it cannot succeed: it failed and will be retried: " in result.err
    )
    app = await desk.until_over()
    assert app["status"]["operationState"]["phase"] == "Succeeded"
    assert app["status"]["operationState"]["syncResult"]["revision"] != bad
    assert (await desk.get("ConfigMap", "settings") or {})["data"] == {"a": "one"}
    events = (await desk.argosy("app", "events", "models")).out
    assert "terminated running operation" in events and events.count("held automated sync") == held


async def test_rollback_does_not_terminate_a_sync_that_may_succeed(desk: Scene) -> None:
    await twice_delivered(desk)
    await desk.patch_app({"spec": {"syncPolicy": {"automated": None}}})
    desk.repository.push({"app/hook.yaml": job("check", hook="PreSync"), "app/settings.yaml": config_map(a="three")})
    await desk.argosy("app", "sync", "models", "--async")
    await desk.until(lambda status: "waiting for completion of hook" in status["operationState"]["message"])
    result = await desk.argosy("app", "rollback", "models", "0")
    assert result.code == 5 and "another operation is already in progress" in result.err
    assert "argosy app terminate-op models" in result.err
    assert (await desk.app())["status"]["operationState"]["phase"] == "Running"


async def test_terminate_op_restores_and_terminates_a_removed_operation(
    desk: Scene,
) -> None:
    """Argo CD ignores a running state without an operation field, so the field is restored before termination."""
    await desk.deliver(metadata={"annotations": {"argocd.argoproj.io/skip-reconcile": "true"}})
    operation = {"sync": {"revision": "main"}, "initiatedBy": {"username": "ann"}}
    state = {"operation": operation, "phase": "Running", "startedAt": "2026-01-01T00:00:00Z", "message": "syncing"}
    await desk.patch_app({"status": {"operationState": state}})
    result = await desk.argosy("app", "terminate-op", "models")
    assert result.code == 0, result.err
    app = await desk.app()
    assert app["status"]["operationState"]["phase"] == "Terminating"
    assert {name: app["operation"][name] for name in operation} == operation


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, says: bool) -> list[str]:
    """Simulate a terminal that always gives the same answer; return the questions asked."""
    questions: list[str] = []
    monkeypatch.setattr(cli, "is_interactive", lambda: True)
    monkeypatch.setattr(cli, "confirm", lambda question: questions.append(question) or says)
    return questions


@pytest.mark.tier("all")
async def test_interactive_rollback_shows_the_diff_and_requires_confirmation(
    desk: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await twice_delivered(desk)
    questions = at_a_terminal(monkeypatch, says=False)
    result = await desk.argosy("app", "rollback", "models")
    assert result.code == 1 and questions == ["models has automated sync. Hold it and roll back?"]
    assert f"rolling back from {second[:7]} to deployment 0: {first[:7]}" in result.err
    assert 'ConfigMap/settings -n ml\n    data.a  "two" → "one"' in result.err, result.err
    assert "rollback cancelled; nothing changed" in result.err
    app = await desk.app()
    assert "operation" not in app and len(app["status"]["history"]) == 2
    assert "argosy.dev/hold" not in (app["metadata"].get("annotations") or {})
    at_a_terminal(monkeypatch, says=True)
    rollback_result = await desk.argosy("app", "rollback", "models", "--timeout", HANG)
    assert rollback_result.code == 0 and "automated sync is held (rolled back to 0)" in rollback_result.err, (
        rollback_result
    )
    assert (await desk.get("ConfigMap", "settings") or {})["data"] == {"a": "one"}


@pytest.mark.tier("all")
async def test_rollback_with_yes_does_not_prompt_or_imply_a_hold(desk: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    await twice_delivered(desk)
    questions = at_a_terminal(monkeypatch, says=True)
    result = await desk.argosy("app", "rollback", "models", "-y")
    assert result.code == 5 and "auto-sync is enabled" in result.err and "data.a" not in result.err
    rollback_result = await desk.argosy("app", "rollback", "models", "-y", "--timeout", HANG, "--hold", "0")
    assert rollback_result.code == 0 and questions == [], rollback_result


@pytest.mark.tier("all")
async def test_rollback_to_an_unknown_id_lists_the_existing_ids(desk: Scene) -> None:
    await twice_delivered(desk)
    result = await desk.argosy("app", "rollback", "models", "7", "--hold")
    assert result.code == 2 and "existing ones: 0, 1" in result.err


@pytest.mark.tier("all")
async def test_app_refresh_reports_the_status_and_records_an_event(desk: Scene) -> None:
    await desk.deliver(syncPolicy=AUTOMATED)
    await desk.until_synced()
    result = await desk.argosy("app", "refresh", "models", "--hard")
    assert result.code == 0 and result.out.startswith("models: Synced, Healthy at "), result
    assert "asked for a hard refresh" in (await desk.argosy("app", "events", "models")).out


async def test_app_delete_requires_yes_and_deletes_managed_resources(desk: Scene) -> None:
    await desk.deliver(syncPolicy=AUTOMATED)
    await desk.until_synced()
    refused = await desk.argosy("app", "delete", "models")
    assert refused.code == 2 and "add -y" in refused.err
    result = await desk.argosy("app", "delete", "models", "-y", "--wait", "--timeout", HANG)
    assert (result.code, result.out) == (0, "application 'models' deleted\n"), result.err
    assert await desk.get("ConfigMap", "settings") is None
    assert (await desk.argosy("app", "wait", "models", "--delete")).code == 0


async def test_app_delete_says_that_the_running_sync_ends_first(desk: Scene) -> None:
    hook = job("before", hook="PreSync")
    desk.repository.push({"app/before.yaml": {**hook, "metadata": {**hook["metadata"], "namespace": "ml"}}})
    await desk.deliver()
    await desk.sync()
    await desk.until(lambda status: "hook" in status.get("operationState", {}).get("message", ""))
    result = await desk.argosy("app", "delete", "models", "-y")
    assert result.code == 0 and "argosy app terminate-op models" in result.err
    assert (await desk.argosy("app", "terminate-op", "models")).code == 0
    await desk.until_gone("argoproj.io/Application", "models", CONTROL)


@pytest.mark.tier("all")
async def test_app_delete_without_cascade_keeps_managed_resources(desk: Scene) -> None:
    await desk.deliver(syncPolicy=AUTOMATED, metadata={"finalizers": ["resources-finalizer.argocd.argoproj.io"]})
    await desk.until_synced()
    result = await desk.argosy("app", "delete", "models", "-y", "--cascade=false", "--wait", "--timeout", HANG)
    assert result.code == 0, result.err
    assert await desk.get("ConfigMap", "settings") is not None


@pytest.mark.tier("all")
async def test_every_cli_action_records_user_time_and_revision_in_an_event(desk: Scene) -> None:
    first = desk.repository.head
    await desk.deliver()
    assert (await desk.argosy("app", "sync", "models", "--timeout", HANG)).code == 0
    second = desk.repository.push({"app/settings.yaml": config_map(a="two")})
    assert (await desk.argosy("app", "sync", "models", "--timeout", HANG)).code == 0
    await desk.until_synced()
    for words in (["refresh", "models"], ["rollback", "models", "0", "--timeout", HANG], ["hold", "models"],
                  ["release", "models"], ["delete", "models", "-y", "--wait", "--timeout", HANG]):  # fmt: skip
        if words[0] == "delete":
            history = (await desk.app())["status"]["history"]
        result = await desk.argosy("app", *words)
        assert result.code == 0, (words, result.err)
    who = {entry["initiatedBy"]["username"] for entry in history}
    assert [entry["revision"] for entry in history] == [first, second, first] and len(who) == 1 and all(who)
    events = (await desk.cluster.list(GroupKind("", "Event"), namespace="argocd")).items
    events_by_message = {
        cluster_event["message"]: cluster_event
        for cluster_event in events
        if cluster_event["metadata"]["annotations"].get("user") in who
    }
    for words, revision in [
        ("initiated sync to", first), ("initiated sync to", second), ("Sync operation to", second),
        ("asked for a refresh at", second), ("initiated rollback to 0", first), ("held automated sync at", second),
        ("released automated sync at", second), ("deleted application at", second),
    ]:  # fmt: skip
        (event,) = [
            cluster_event for text, cluster_event in events_by_message.items() if words in text and revision in text
        ]
        assert event["lastTimestamp"].endswith("Z"), words


@pytest.mark.tier("all")
async def test_confirm_deletion_sets_the_annotation_and_records_an_event(desk: Scene) -> None:
    await desk.deliver()
    assert (await desk.argosy("app", "confirm-deletion", "models")).code == 0
    annotations = (await desk.app())["metadata"]["annotations"]
    assert annotations["argocd.argoproj.io/deletion-approved"].endswith("Z")
    assert "confirmed the deletion" in (await desk.argosy("app", "events", "models")).out


@pytest.mark.tier("all")
async def test_sync_to_another_revision_is_refused_with_auto_sync(desk: Scene) -> None:
    first, _ = await twice_delivered(desk)
    result = await desk.argosy("app", "sync", "models", "--revision", first)
    assert result.code == 5 and "auto-sync is set to main" in result.err


@pytest.mark.tier("all")
async def test_sync_of_selected_resources_rejects_patterns_without_a_match(desk: Scene) -> None:
    desk.repository.push({"app/more.yaml": config_map("more")})
    await desk.deliver()
    await desk.until(lambda status: (status.get("sync") or {}).get("status") == "OutOfSync")
    result = await desk.argosy("app", "sync", "models", "--resource", ":ConfigMap:mo*", "--timeout", HANG)
    assert result.code == 0, result.err
    assert await desk.get("ConfigMap", "more") is not None and await desk.get("ConfigMap", "settings") is None
    sync_result = await desk.argosy("app", "sync", "models", "--resource", ":Secret:*")
    assert sync_result.code == 2 and "manages no object like :Secret:*" in sync_result.err


@pytest.mark.tier("all")
async def test_sync_dry_run_changes_nothing_and_says_so(desk: Scene) -> None:
    await desk.deliver()
    await desk.until(lambda status: (status.get("sync") or {}).get("status") == "OutOfSync")
    result = await desk.argosy("app", "sync", "models", "--dry-run", "--timeout", HANG)
    assert result.code == 0 and "nothing changed" in result.err, result
    assert await desk.get("ConfigMap", "settings") is None


@pytest.mark.tier("all")
async def test_app_create_forbidden_by_its_project_is_rejected(desk: Scene) -> None:
    await desk.project("team", sourceRepos=["https://git.example/*"])
    words = ("app", "create", "models", "--repo", desk.repository.url, "--path", "app", "--dest-namespace", "ml")
    missing = await desk.argosy(*words, "--project", "nobody")
    assert missing.code == 2 and "why: Application referencing project nobody which does not exist" in missing.err
    refused = await desk.argosy(*words, "--project", "team")
    assert refused.code == 5 and "is not permitted in project 'team': " in refused.err, refused
    assert (await desk.argosy("app", "list", "-o", "name")).out.strip() == ""
    assert (await desk.argosy(*words, "--project", "team", "--validate=false")).code == 0
    changed = await desk.argosy("app", "set", "models", "--revision", "v2")
    assert changed.code == 5, changed


@pytest.mark.tier("all")
async def test_boolean_source_flag_can_be_set_and_unset(desk: Scene) -> None:
    await desk.deliver()
    for word, expected in (("--helm-skip-crds", {"skipCrds": True}), ("--helm-skip-crds=false", None)):
        result = await desk.argosy("app", "set", "models", word)
        assert (result.code, result.out) == (0, "application 'models' updated\n"), result
        assert (await desk.app())["spec"]["source"].get("helm") == expected


@pytest.mark.tier("all")
async def test_sync_to_an_unknown_revision_starts_no_operation(desk: Scene) -> None:
    desk.repository.push({"app/settings.yaml": config_map(a="1")})
    await desk.deliver()
    result = await desk.argosy("app", "sync", "models", "--revision", "nope")
    assert result.code == 2 and "there is no branch, tag or commit 'nope'" in result.err, result
    app = await desk.app()
    assert "operation" not in app and "operationState" not in app.get("status", {})

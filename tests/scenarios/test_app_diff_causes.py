"""Causes of field differences, with the next command: `app diff` and `app list`, on a cluster with an engine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.kube.client import AdmissionHandler
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from support.app_commands import HANG, Scene, scene
from support.deadlines import HANG_SECONDS
from support.engine import config_map

pytestmark = pytest.mark.anyio
SETTINGS = ResourceKey("", "ConfigMap", "ml", "settings")
WIDGETS = GroupKind("example.org", "Widget")


def widgets() -> Manifest:
    port = {"type": "object", "properties": {"number": {"type": "integer"}, "protocol": {"type": "string"}}}
    spec = {"type": "object", "properties": {"size": {"type": "integer"}, "ports": {"type": "array", "items": port}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def widget(**spec: Any) -> Manifest:
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": spec}


def deployment(label: str = "predictor", image: str = "predictor:1") -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "predictor"},
        "spec": {
            "selector": {"matchLabels": {"app": label}},
            "template": {
                "metadata": {"labels": {"app": label}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    }


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "argosy.gitops.application_client.app_list_explanations.TIMEOUT_SECONDS", HANG_SECONDS
    )  # otherwise a busy machine omits the causes
    async with scene(tmp_path) as opened_scene:
        opened_scene.repository.push({"app/settings.yaml": config_map(a="one")}, "Begin")
        yield opened_scene


async def synced(desk: Scene, **files: Manifest) -> None:
    """Sync everything in Git once; auto-sync is off, so later changes remain."""
    desk.repository.push({f"app/{name}.yaml": content for name, content in files.items()}, "Deliver")
    await desk.deliver()
    await desk.until(lambda status: bool(status.get("sync")))
    result = await desk.argosy("app", "sync", "models", "--timeout", HANG)
    assert result.code == 0, result.err


async def causes(desk: Scene, *words: str) -> dict[str, dict[str, Any]]:
    """Return the causes by `Kind path`."""
    result = await desk.argosy("app", "diff", "models", "-o", "json", *words)
    assert result.code in (0, 1), result.err
    items = json.loads(result.out)["items"]
    return {f"{item['kind']} {field['path']}".strip(): field["cause"] for item in items for field in item["fields"]}


async def test_git_change_is_reported_with_line_commit_and_author(desk: Scene) -> None:
    await synced(desk)
    commit = desk.repository.push({"app/settings.yaml": config_map(a="two")}, "Raise a")
    (cause,) = (await causes(desk)).values()
    assert (cause["kind"], cause["file"], cause["line"]) == ("YourChange", "app/settings.yaml", 3)
    assert (cause["revision"], cause["author"], cause["subject"]) == (commit, "ann@example.com", "Raise a")
    assert cause["next"] == "argosy app sync models"
    result = await desk.argosy("app", "diff", "models")
    assert f'(app/settings.yaml:3, {commit[:7]} ann@example.com "Raise a")' in result.out, result


async def test_live_change_is_reported_with_manager_and_time(desk: Scene) -> None:
    await synced(desk)
    await desk.cluster.patch(SETTINGS, {"data": {"a": "other"}}, manager="tuner")
    cause = (await causes(desk))["ConfigMap /data/a"]
    assert (cause["kind"], cause["manager"]) == ("OtherController", "tuner")
    assert cause["at"] and cause["at"] in cause["text"]
    result = await desk.argosy("app", "diff", "models")
    assert "drift: changed by tuner" in result.out, result


@pytest.mark.tier("all")
async def test_field_removed_from_git_is_reported_as_a_git_change(desk: Scene) -> None:
    desk.repository.push({"app/settings.yaml": config_map(a="one", b="two")})
    await synced(desk)
    desk.repository.push({"app/settings.yaml": config_map(a="one")}, "Take b away")
    desk.repository.push({"README.md": "nothing"}, "Say nothing")
    cause = (await causes(desk))["ConfigMap /data/b"]
    assert (cause["kind"], cause["text"]) == ("YourChange", "removed from Git")
    assert (cause["file"], cause["subject"]) == ("app/settings.yaml", "Take b away")


@pytest.mark.tier("all")
async def test_immutable_field_is_reported_with_the_recreate_command(desk: Scene) -> None:
    await synced(desk, predictor=deployment())
    desk.repository.push({"app/predictor.yaml": deployment("other")})
    cause = (await causes(desk))["Deployment /spec/selector/matchLabels/app"]
    assert (cause["kind"], cause["file"]) == ("Immutable", "app/predictor.yaml")
    assert "--force --replace --resource apps:Deployment:predictor" in cause["next"]


@pytest.mark.tier("all")
async def test_only_fields_changed_by_admission_have_a_webhook_cause(desk: Scene) -> None:
    await desk.cluster.create(widgets())

    def admit(new: Manifest, old: Manifest | None) -> Manifest:
        return {**new, "spec": {**new["spec"], "size": 3}}

    with desk.cluster.register_admission([AdmissionHandler(WIDGETS, "sizes.example.org", "sizes", admit)]):  # type: ignore[attr-defined]
        await synced(desk, widget=widget(size=1, ports=[{"number": 1}]))
        causes_by_field = await causes(desk)
        assert {name: cause["kind"] for name, cause in causes_by_field.items()} == {"Widget /spec/size": "Webhook"}
        assert "/spec/size" in causes_by_field["Widget /spec/size"]["next"]
        result = await desk.argosy("app", "diff", "models")
        assert "1 of which needs more than a sync; next: argosy explain Widget/one -n ml" in result.err, result


@pytest.mark.tier("all")
async def test_unknown_field_is_reported_with_its_file(desk: Scene) -> None:
    await desk.cluster.create(widgets())
    await synced(desk, widget=widget(size=1, colour="red"))
    cause = (await causes(desk))["Widget /spec/colour"]
    assert (cause["kind"], cause["file"]) == ("UnknownField", "app/widget.yaml")


@pytest.mark.tier("all")
async def test_unknown_kind_is_reported_as_a_missing_crd(desk: Scene) -> None:
    await desk.deliver()
    desk.repository.push({"app/widget.yaml": widget(size=1)})
    cause = (await causes(desk))["Widget"]
    assert cause["kind"] == "MissingCRD" and "Widget.example.org" in cause["text"]


@pytest.mark.tier("all")
async def test_deleted_object_is_distinguished_from_a_new_one(desk: Scene) -> None:
    await synced(desk)
    await desk.cluster.delete(SETTINGS)
    assert (await causes(desk))["ConfigMap"]["kind"] == "Deleted"
    desk.repository.push({"app/new.yaml": config_map("new")})
    items = json.loads((await desk.argosy("app", "diff", "models", "-o", "json")).out)["items"]
    causes_by_name = {item["name"]: item["fields"][0]["cause"] for item in items}
    assert (causes_by_name["new"]["kind"], causes_by_name["new"]["file"]) == ("YourChange", "app/new.yaml")


@pytest.mark.tier("all")
async def test_object_removed_from_git_has_a_prune_cause(desk: Scene) -> None:
    await synced(desk, more=config_map("more"))
    commit = desk.repository.push({"app/more.yaml": None}, "Take more away")
    cause = (await causes(desk))["ConfigMap"]
    assert (cause["file"], cause["revision"], cause["subject"]) == ("app/more.yaml", commit, "Take more away")
    assert (cause["kind"], cause["next"]) == ("Prune", "argosy app sync models --prune")


@pytest.mark.tier("all")
async def test_server_side_apply_causes_come_from_managed_fields(desk: Scene) -> None:
    desk.repository.push({"app/settings.yaml": config_map(a="one", b="one", c="one")})
    await desk.deliver(syncPolicy={"syncOptions": ["ServerSideApply=true"]})
    await desk.until(lambda status: bool(status.get("sync")))
    result = await desk.argosy("app", "sync", "models", "--timeout", HANG)
    assert result.code == 0, result.err
    await desk.cluster.patch(SETTINGS, {"data": {"a": "other"}}, manager="tuner")
    desk.repository.push({"app/settings.yaml": config_map(a="one", b="two")}, "Move b, take c away")
    causes_by_field = await causes(desk)
    assert {name: cause["kind"] for name, cause in causes_by_field.items()} == {
        "ConfigMap /data/a": "OtherController",
        "ConfigMap /data/b": "YourChange",
        "ConfigMap /data/c": "YourChange",
    }
    assert {causes_by_field[f"ConfigMap /data/{name}"]["subject"] for name in "bc"} == {"Move b, take c away"}


@pytest.mark.tier("all")
async def test_webhook_cause_is_omitted_without_permission_for_a_dry_run(desk: Scene) -> None:
    """For a user with read-only access: the same causes, except those that only a dry run shows."""
    await desk.cluster.create(widgets())

    def admit(new: Manifest, old: Manifest | None) -> Manifest:
        return {**new, "spec": {**new["spec"], "size": 3}}

    def refuse(new: Manifest, old: Manifest | None) -> Manifest:
        raise UserError("nobody may write")

    with desk.cluster.register_admission([AdmissionHandler(WIDGETS, "sizes.example.org", "sizes", admit)]):  # type: ignore[attr-defined]
        await synced(desk, widget=widget(size=1))
    with desk.cluster.register_admission([AdmissionHandler(WIDGETS, "closed.example.org", "closed", refuse)]):  # type: ignore[attr-defined]
        cause = (await causes(desk))["Widget /spec/size"]
    assert (cause["kind"], cause["manager"]) == ("OtherController", "sizes")


@pytest.mark.tier("all")
async def test_branch_behind_the_default_branch_is_reported_as_stale(desk: Scene) -> None:
    desk.repository._git("branch", "stage1-complete")
    await synced(desk, more=config_map("more"))
    desk.repository.push({"app/settings.yaml": config_map(a="two")})
    result = await desk.argosy("app", "sync", "models", "--timeout", HANG)
    assert result.code == 0, result.err
    command_result = await desk.argosy("app", "set", "models", "--revision", "stage1-complete")
    assert command_result.code == 0, command_result.err
    items = json.loads((await desk.argosy("app", "diff", "models", "-o", "json")).out)["items"]
    causes_by_name = {item["name"]: item["fields"][0]["cause"] for item in items}
    assert {name: cause["kind"] for name, cause in causes_by_name.items()} == {
        "settings": "StaleBranch",
        "more": "StaleBranch",
    }
    assert causes_by_name["more"]["next"] == "argosy app set models --revision main"


@pytest.mark.tier("all")
async def test_app_list_summarizes_the_causes_of_differences(desk: Scene) -> None:
    desk.repository.push({"app/settings.yaml": config_map(a="one", b="one")})
    await synced(desk)
    await desk.cluster.patch(SETTINGS, {"data": {"a": "other"}}, manager="tuner")
    desk.repository.push({"app/settings.yaml": config_map(a="one", b="two")})
    await desk.until(lambda status: (status.get("sync") or {}).get("status") == "OutOfSync")
    result = await desk.argosy("app", "list")
    assert "2 fields differ: 1 by tuner, 1 Git change" in result.out, result


async def test_causes_do_not_contain_secret_values(desk: Scene) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"key": "hunter2"}}
    await synced(desk, token=secret)
    await desk.cluster.patch(ResourceKey("", "Secret", "ml", "token"), {"data": {"key": "b3RoZXI="}}, manager="tuner")
    cause = (await causes(desk))["Secret /data/key"]
    assert (cause["kind"], cause["manager"]) == ("OtherController", "tuner")
    assert not any(hidden in json.dumps(cause) for hidden in ("hunter2", "aHVudGVyMg", "b3RoZXI"))

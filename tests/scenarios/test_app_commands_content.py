"""`argosy app` commands for desired and live objects: diff, manifests, tree, resources, actions, logs, events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from argosy.kube.objects import dump_yaml
from argosy.kube.resource_key import ResourceKey
from support.app_commands import HANG, Scene, scene
from support.engine import config_map

pytestmark = pytest.mark.anyio
AUTOMATED = {"automated": {"prune": True}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"key": "hunter2"}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "predictor", "labels": {"part": "serving"}},
    "spec": {
        "selector": {"matchLabels": {"app": "predictor"}},
        "template": {
            "metadata": {"labels": {"app": "predictor"}},
            "spec": {"containers": [{"name": "main", "image": "predictor:1"}]},
        },
    },
}


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    async with scene(tmp_path) as opened_scene:
        opened_scene.repository.push({"app/settings.yaml": config_map(a="one")})
        yield opened_scene


async def delivered(desk: Scene, **files: object) -> None:
    """Deliver the files and wait until the Application is Synced."""
    desk.repository.push({f"app/{name}.yaml": content for name, content in files.items()})  # type: ignore[misc]
    await desk.deliver(syncPolicy=AUTOMATED)
    await desk.until_synced()


@pytest.mark.tier("all")
async def test_diff_after_a_sync_is_empty_and_exits_0(desk: Scene) -> None:
    await delivered(desk, predictor=DEPLOYMENT, token=SECRET)
    result = await desk.argosy("app", "diff", "models")
    assert (result.code, result.out) == (0, ""), result
    assert "no differences" in result.err


async def test_diff_shows_each_field_with_live_and_desired_value(desk: Scene) -> None:
    await delivered(desk)
    await desk.cluster.patch(ResourceKey("", "ConfigMap", "ml", "settings"), {"data": {"a": "other"}})
    result = await desk.argosy("app", "diff", "models")
    assert result.code == 1, result
    head, field = result.out.splitlines()
    assert head == "ConfigMap/settings -n ml"
    assert field.split()[:4] == ["data.a", '"other"', "→", '"one"']
    assert "models: 1 field of 1 object to change; next: argosy app sync models" in result.err


@pytest.mark.tier("all")
async def test_diff_output_is_available_as_text_and_json(desk: Scene) -> None:
    await delivered(desk)
    await desk.cluster.patch(ResourceKey("", "ConfigMap", "ml", "settings"), {"data": {"a": "other"}})
    text = await desk.argosy("app", "diff", "models", "-o", "diff")
    assert "-  a: other" in text.out and "+  a: one" in text.out
    data = json.loads((await desk.argosy("app", "diff", "models", "-o", "json")).out)
    assert data["kind"] == "DiffReport"
    assert [field["path"] for field in data["items"][0]["fields"]] == ["/data/a"]


@pytest.mark.tier("all")
async def test_diff_can_compare_another_revision(desk: Scene) -> None:
    first = desk.repository.head
    await delivered(desk)
    desk.repository.push({"app/settings.yaml": config_map(a="two")})
    await desk.until_synced()
    result = await desk.argosy("app", "diff", "models", "--revision", first)
    assert result.code == 1 and '"two" → "one"' in result.out, result
    assert f"another revision: {first[:7]} has a different value" in result.out, result


@pytest.mark.tier("all")
async def test_diff_can_compare_a_local_folder(desk: Scene, tmp_path: Path) -> None:
    await delivered(desk)
    folder = tmp_path / "work" / "app"
    folder.mkdir(parents=True)
    (folder / "settings.yaml").write_text(dump_yaml(config_map(a="one", b="new")))
    result = await desk.argosy("app", "diff", "models", "--local", str(folder))
    assert result.code == 1 and "data.b" in result.out, result
    assert (await desk.argosy("app", "diff", "models", "--local", str(folder), "--exit-code=false")).code == 0


async def test_diff_and_manifests_never_show_secret_values(desk: Scene) -> None:
    await delivered(desk, token=SECRET)
    await desk.cluster.patch(ResourceKey("", "Secret", "ml", "token"), {"data": {"key": "b3RoZXI="}})
    for words in (("diff", "models"), ("diff", "models", "-o", "diff"), ("diff", "models", "-o", "json"),
                  ("manifests", "models"), ("manifests", "models", "--source", "live")):  # fmt: skip
        result = await desk.argosy("app", *words)
        for hidden in ("hunter2", "aHVudGVyMg==", "b3RoZXI=", "other"):
            assert hidden not in result.out + result.err, words
        assert "++++++++" in result.out, (words, result)


@pytest.mark.tier("all")
async def test_manifests_are_rendered_from_git_with_their_namespace(desk: Scene) -> None:
    await delivered(desk)
    result = await desk.argosy("app", "manifests", "models")
    assert result.code == 0 and result.out.startswith("---\n"), result
    assert "namespace: ml" in result.out and "a: one" in result.out
    names = await desk.argosy("app", "manifests", "models", "-o", "name")
    assert names.out == "configmap/settings\n"


@pytest.mark.tier("all")
async def test_tree_shows_objects_with_the_objects_they_own(desk: Scene) -> None:
    await delivered(desk, predictor=DEPLOYMENT)
    owner = await desk.get("apps/Deployment", "predictor") or {}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "predictor", "uid": owner["metadata"]["uid"]}
    child = {
        **DEPLOYMENT, "kind": "ReplicaSet",
        "metadata": {"name": "predictor-1", "namespace": "ml", "ownerReferences": [reference]},
    }  # fmt: skip
    await desk.cluster.create(child)
    result = await desk.argosy("app", "tree", "models")
    lines = result.out.splitlines()
    index = next(number for number, line in enumerate(lines) if line.startswith("Deployment/predictor"))
    assert lines[index + 1].startswith("└─ ReplicaSet/predictor-1"), result
    nodes = json.loads((await desk.argosy("app", "tree", "models", "-o", "json")).out)["nodes"]
    assert {node["kind"] for node in nodes} == {"ConfigMap", "Deployment", "ReplicaSet"}


@pytest.mark.tier("all")
async def test_resources_lists_health_and_orphans_with_a_flag(desk: Scene) -> None:
    await delivered(desk, predictor=DEPLOYMENT)
    result = await desk.argosy("app", "resources", "models")
    assert result.out.splitlines()[0].split()[-2:] == ["WAVE", "MESSAGE"]
    assert "Progressing" in result.out
    wide = await desk.argosy("app", "resources", "models", "-o", "wide")
    assert wide.out.splitlines()[0].split() == ["GROUP", "KIND", "NAMESPACE", "NAME", "ORPHANED"]
    await desk.cluster.create({**config_map("stray"), "metadata": {"name": "stray", "namespace": "ml"}})
    orphans = await desk.argosy("app", "resources", "models", "--orphaned", "-o", "wide")
    assert "stray" in orphans.out and "settings" not in orphans.out and "Yes" in orphans.out


async def test_resource_action_is_listed_run_and_recorded_as_event(desk: Scene) -> None:
    await delivered(desk, predictor=DEPLOYMENT)
    result = await desk.argosy("app", "actions", "list", "models", "--kind", "Deployment")
    assert result.out.splitlines()[0].split() == ["GROUP", "KIND", "NAME", "ACTION", "DISABLED"]
    assert "restart" in result.out
    done = await desk.argosy("app", "actions", "run", "models", "restart", "--kind", "Deployment")
    assert done.code == 0, done.err
    live = await desk.get("apps/Deployment", "predictor") or {}
    assert "kubectl.kubernetes.io/restartedAt" in live["spec"]["template"]["metadata"]["annotations"]
    events = await desk.argosy("app", "events", "models")
    assert "ran action restart on resource Deployment/predictor" in events.out
    assert "toggle-auto-sync" in (await desk.argosy("app", "actions", "list", "models")).out
    toggled = await desk.argosy("app", "actions", "run", "models", "toggle-auto-sync", "--kind", "Application")
    assert toggled.code == 0, toggled.err
    app = await desk.get("argoproj.io/Application", "models", "argocd") or {}
    assert "enabled" in app["spec"]["syncPolicy"]["automated"]
    wrong = await desk.argosy("app", "actions", "run", "models", "restrat", "--kind", "Deployment")
    assert wrong.code == 2 and "its actions are" in wrong.err


@pytest.mark.tier("all")
async def test_logs_of_an_application_without_pods_are_rejected(desk: Scene) -> None:
    await delivered(desk)
    result = await desk.argosy("app", "logs", "models")
    assert result.code == 2 and "has no Pods to read from" in result.err


@pytest.mark.tier("all")
async def test_sync_with_label_syncs_only_matching_resources(desk: Scene) -> None:
    desk.repository.push({"app/predictor.yaml": DEPLOYMENT})
    await desk.deliver()
    await desk.until(lambda status: (status.get("sync") or {}).get("status") == "OutOfSync")
    result = await desk.argosy("app", "sync", "models", "--label", "part=serving", "--timeout", HANG)
    assert result.code == 0, result.err
    assert await desk.get("apps/Deployment", "predictor") is not None
    assert await desk.get("ConfigMap", "settings") is None

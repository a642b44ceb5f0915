"""`argosy preview --live`: compares the repository with live objects on a cluster with an engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from argosy.kube.objects import Manifest, dump_yaml
from argosy.kube.resource_key import ResourceKey
from support.app_commands import HANG, Scene, scene
from support.engine import CONTROL, config_map

pytestmark = pytest.mark.anyio
SETTINGS = ResourceKey("", "ConfigMap", "ml", "settings")


def written(url: str, path: str = "app", name: str = "models") -> Manifest:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": CONTROL},
        "spec": {
            "project": "default",
            "source": {"repoURL": url, "path": path, "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
        },
    }


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    async with scene(tmp_path) as opened_scene:
        repository = opened_scene.repository
        repository.push(
            {"app/settings.yaml": config_map(a="one", b="two"), "apps/models.yaml": written(repository.url)}, "Begin"
        )
        await opened_scene.deliver()
        await opened_scene.until(lambda status: bool(status.get("sync")))
        result = await opened_scene.argosy("app", "sync", "models", "--timeout", HANG)
        assert result.code == 0, result.err
        monkeypatch.chdir(repository.path)
        yield opened_scene


async def test_live_preview_compares_the_working_tree_with_live_state_and_drift(desk: Scene) -> None:
    await desk.cluster.patch(SETTINGS, {"data": {"b": "by hand"}}, manager="kubectl-edit")
    (desk.repository.path / "app/settings.yaml").write_text(dump_yaml(config_map(a="three", b="two")))
    without, live = await desk.argosy("preview"), await desk.argosy("preview", "--live")
    assert ".data.a   one → three   app/settings.yaml:" in without.out and "by hand" not in without.out
    assert ".data.a   one → three" in live.out and ".data.b   by hand → two" in live.out
    assert "against live" in live.out and live.code == 0


@pytest.mark.tier("all")
async def test_live_preview_shows_new_and_deleted_objects_and_unknown_applications(desk: Scene) -> None:
    assert "nothing changes" in (await desk.argosy("preview", "--live", "models")).out
    (desk.repository.path / "app/settings.yaml").unlink()
    more = config_map(c="new")
    more["metadata"]["name"] = "more"
    (desk.repository.path / "app/more.yaml").write_text(dump_yaml(more))
    result = await desk.argosy("preview", "--live")
    assert "+ ConfigMap/more -n ml" in result.out and "- ConfigMap/settings -n ml" in result.out
    assert "deletes 1 object" in result.out
    (desk.repository.path / "apps/second.yaml").write_text(dump_yaml(written(desk.repository.url, name="second")))
    preview_result = await desk.argosy("preview", "--live")
    assert "second: Application not found in the cluster" in preview_result.err

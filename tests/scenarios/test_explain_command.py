"""`argosy explain KIND/NAME [FIELD]`: causes of the state of an object or a field."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from support.app_commands import HANG, Scene, scene
from support.engine import config_map

pytestmark = pytest.mark.anyio
SETTINGS = ResourceKey("", "ConfigMap", "ml", "settings")
PREDICTOR = ResourceKey("apps", "Deployment", "ml", "predictor")
DEPLOYMENT: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "predictor"},
    "spec": {
        "selector": {"matchLabels": {"app": "predictor"}},
        "template": {
            "metadata": {"labels": {"app": "predictor"}},
            "spec": {
                "containers": [{"name": "main", "image": "main:1"}, {"name": "proxy", "image": "proxy:1"}],
            },
        },
    },
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One event loop for all tests of this file, because most share an installation."""
    return "asyncio"


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    """An installation for a test that changes it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    async with synced(tmp_path) as opened_scene:
        yield opened_scene


@pytest.fixture(scope="module")
async def looked_at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """An installation that read-only tests share."""
    folder = tmp_path_factory.mktemp("explained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        async with synced(folder) as opened_scene:
            yield opened_scene


@asynccontextmanager
async def synced(folder: Path) -> AsyncIterator[Scene]:
    async with scene(folder) as opened_scene:
        files = {"app/settings.yaml": config_map(a="one"), "app/predictor.yaml": DEPLOYMENT}
        opened_scene.repository.push(files, "Begin")
        await opened_scene.deliver()
        await opened_scene.until(lambda status: bool(status.get("sync")))
        result = await opened_scene.argosy("app", "sync", "models", "--timeout", HANG)
        assert result.code == 0, result.err
        yield opened_scene


async def data(desk: Scene, *words: str) -> dict[str, Any]:
    result = await desk.argosy("explain", *words, "-o", "json")
    assert result.code == 0, result.err
    explanation: dict[str, Any] = json.loads(result.out)
    assert (explanation["apiVersion"], explanation["kind"]) == ("cli.argosy.dev/v1", "Explanation")
    return explanation


@pytest.mark.tier("all")
async def test_object_in_sync_is_explained_without_differences(looked_at: Scene) -> None:
    result = await looked_at.argosy("explain", "cm/settings")
    assert result.code == 0, result.err
    assert result.out.splitlines()[0].startswith("ConfigMap/settings -n ml of models: ") and "Synced" in result.out
    assert "no differences: the live object matches Git" in result.out


async def test_differing_field_gets_its_cause_source_line_and_next_command(desk: Scene) -> None:
    commit = desk.repository.push({"app/settings.yaml": config_map(a="two")}, "Raise a")
    result = await desk.argosy("explain", "configmap/settings")
    lines = [line.strip() for line in result.out.splitlines()]
    assert '.data.a  live "one", Git "two"' in lines, result
    assert "why      changed in Git" in lines
    assert f'written  app/settings.yaml:3, {commit[:7]} ann@example.com "Raise a"' in lines
    assert "next     argosy app sync models" in lines


async def test_field_without_difference_gets_its_source_line(looked_at: Scene) -> None:
    path = '.spec.template.spec.containers[name="proxy"].image'
    fields = (await data(looked_at, "deploy/predictor", path))["fields"]
    (field,) = fields
    assert (field["path"], field["differs"]) == ("/spec/template/spec/containers/1/image", False)
    cause = field["cause"]
    assert (cause["kind"], cause["file"], cause["subject"]) == ("AsAsked", "app/predictor.yaml", "Begin")
    assert field["manager"] == "argocd-controller"
    text = (looked_at.repository.path / "app/predictor.yaml").read_text().splitlines()
    assert "proxy:1" in text[field["cause"]["line"] - 1]


@pytest.mark.tier("all")
async def test_source_line_is_found_if_the_live_list_has_another_order(desk: Scene) -> None:
    turned = json.loads(json.dumps(DEPLOYMENT))
    containers = turned["spec"]["template"]["spec"]["containers"]
    containers.reverse()
    containers[0]["image"] = "proxy:2"
    desk.repository.push({"app/predictor.yaml": turned})
    causes = {field["path"]: field["cause"] for field in (await data(desk, "deploy/predictor"))["fields"]}
    text = (desk.repository.path / "app/predictor.yaml").read_text().splitlines()
    cause = next(cause for path, cause in causes.items() if path.endswith("/image"))
    assert "proxy:2" in text[cause["line"] - 1], (causes, text)


@pytest.mark.tier("all")
async def test_default_is_distinguished_from_a_value_of_another_manager(desk: Scene) -> None:
    (default,) = (await data(desk, "deploy/predictor", ".spec.revisionHistoryLimit"))["fields"]
    assert default["cause"]["kind"] == "Defaulting"
    await desk.cluster.patch(PREDICTOR, {"spec": {"replicas": 3}}, manager="scaler")
    (field,) = (await data(desk, "deploy/predictor", ".spec.replicas"))["fields"]
    assert (field["cause"]["kind"], field["manager"], field["differs"]) == ("OtherController", "scaler", False)


async def test_unknown_field_gets_a_suggestion(looked_at: Scene) -> None:
    result = await looked_at.argosy("explain", "deploy/predictor", ".spec.replica")
    assert result.code == 2 and "did you mean replicas?" in result.err, result


@pytest.mark.tier("all")
async def test_object_of_no_application_is_an_error_that_names_its_owner(desk: Scene) -> None:
    owner = await desk.get("apps/Deployment", "predictor") or {}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "predictor", "uid": owner["metadata"]["uid"]}
    metadata = {"name": "predictor-1", "namespace": "ml", "ownerReferences": [reference]}
    await desk.cluster.create({**DEPLOYMENT, "kind": "ReplicaSet", "metadata": metadata})
    result = await desk.argosy("explain", "rs/predictor-1", "-n", "ml")
    assert result.code == 2 and "argosy explain Deployment/predictor" in result.err, result
    unknown = await desk.argosy("explain", "cm/other")
    assert unknown.code == 2 and "no Application has ConfigMap/other" in unknown.err, unknown


@pytest.mark.parametrize(
    "words", ["settings", "deploy web", "cm/", "cm/settings a..b", "nonsense/x", "cm/settings --app no"]
)
async def test_invalid_arguments_exit_2_with_a_next_step(looked_at: Scene, words: str) -> None:
    result = await looked_at.argosy("explain", *words.split())
    assert result.code == 2 and "next: " in result.err, result


@pytest.mark.tier("all")
async def test_application_name_alone_and_kind_before_name_are_accepted(looked_at: Scene) -> None:
    whole = await looked_at.argosy("explain", "application/models")
    assert whole.code == 0 and (await looked_at.argosy("explain", "models")).out == whole.out
    assert (await looked_at.argosy("explain", "Application", "models")).out == whole.out
    one = await data(looked_at, "deploy/predictor", ".spec.replicas")
    assert await data(looked_at, "Deployment", "predictor", ".spec.replicas") == one
    near = await looked_at.argosy("explain", "model")
    assert near.code == 2 and "did you mean models?" in near.err, near
    other = await looked_at.argosy("explain", "settings")
    assert "Application 'settings' not found" in other.err and "KIND/NAME" in other.err, other
    many = await looked_at.argosy("explain", "deploy/predictor", ".spec", ".status")
    assert many.code == 2 and "only one field" in many.err, many


@pytest.mark.tier("all")
async def test_path_that_only_the_default_branch_has_means_a_stale_branch(desk: Scene) -> None:
    desk.repository._git("branch", "stage1-complete")
    desk.repository.push({"later/settings.yaml": config_map(a="one")})
    result = await desk.argosy("app", "set", "models", "--revision", "stage1-complete", "--path", "later")
    assert result.code == 0, result.err
    explanation = await data(desk, "cm/settings")
    assert explanation["cause"]["kind"] == "StaleBranch", explanation
    assert explanation["cause"]["next"] == "argosy app set models --revision main"


@pytest.mark.tier("all")
async def test_missing_branch_is_a_stale_branch_in_explain_and_diff(desk: Scene) -> None:
    result = await desk.argosy("app", "set", "models", "--revision", "stage1-complete")
    assert result.code == 0, result.err
    assert (await data(desk, "cm/settings"))["cause"]["kind"] == "StaleBranch"
    diff_result = await desk.argosy("app", "diff", "models")
    assert diff_result.code == 2 and "stage1-complete cannot be rendered, and main can" in diff_result.err, diff_result
    assert "next: argosy app set models --revision main" in diff_result.err


async def test_secret_is_explained_without_its_values(desk: Scene) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"key": "hunter2"}}
    desk.repository.push({"app/token.yaml": secret})
    assert (await desk.argosy("app", "sync", "models", "--timeout", HANG)).code == 0
    await desk.cluster.patch(ResourceKey("", "Secret", "ml", "token"), {"data": {"key": "b3RoZXI="}}, manager="tuner")
    for words in ("secret/token", "secret/token .data.key", "secret/token .data.key -o json"):
        result = await desk.argosy("explain", *words.split())
        assert result.code == 0 and "tuner" in result.out, result
        assert not any(hidden in result.out for hidden in ("hunter2", "aHVudGVyMg", "b3RoZXI", "other")), result

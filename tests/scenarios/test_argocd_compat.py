"""Called as argocd: scripts that were written for that command go on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from app_desk import Said, Scene, scene
from engine_room import config_map

from argosy import __version__
from argosy.model.names import ResourceKey

pytestmark = pytest.mark.anyio
SERVER = "https://kubernetes.default.svc"
HEAD = "NAME           CLUSTER                         NAMESPACE  PROJECT  STATUS     HEALTH   SYNCPOLICY  CONDITIONS"
LINE = "argocd/models  https://kubernetes.default.svc  ml         default  OutOfSync  Missing  Manual      <none>    "
BLOCK = """\
Name:               argocd/models
Project:            default
Server:             https://kubernetes.default.svc
Namespace:          ml
URL:                <none>
Source:
- Repo:             REPO
  Target:           main
  Path:             app
SyncWindow:         Sync Allowed
Sync Policy:        Manual
Sync Status:        Synced to main (COMMIT)
Health Status:      Healthy

GROUP  KIND       NAMESPACE  NAME      STATUS  HEALTH  HOOK  MESSAGE
       ConfigMap  ml         settings  Synced                configmap/settings created
"""


class Argocd:
    def __init__(self, desk: Scene) -> None:
        self.desk = desk

    async def __call__(self, line: str) -> Said:
        return await self.desk.argosy(*line.split(), program="/usr/local/bin/argocd")


@pytest.fixture
async def argocd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Argocd]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    async with scene(tmp_path) as desk:
        desk.repository.push({"app/settings.yaml": config_map(a="one")})
        yield Argocd(desk)


async def created(argocd: Argocd) -> None:
    url = argocd.desk.repository.url
    words = f"app create models --repo {url} --path app --revision main --dest-server {SERVER} --dest-namespace ml"
    said = await argocd(words)
    assert (said.code, said.out) == (0, "application 'models' created\n"), said.err
    await argocd.desk.until(lambda status: (status.get("sync") or {}).get("status") == "OutOfSync")


async def synced(argocd: Argocd) -> None:
    await created(argocd)
    said = await argocd("app sync models --timeout 20")
    assert said.code == 0, said.err
    await argocd.desk.until_synced()


async def test_lists_have_its_columns_names_and_arrays(argocd: Argocd) -> None:
    await created(argocd)
    url = argocd.desk.repository.url
    for words in ("app list", "app list -o wide", "app list --core --server argocd.example --grpc-web"):
        said = await argocd(words)
        first, second = said.out.splitlines()
        assert first == f"{HEAD}  {'REPO'.ljust(len(url))}  PATH  TARGET", said.err
        assert second == f"{LINE}  {url}  app   main"
    assert (await argocd("app list -o name")).out == "argocd/models\n"
    assert json.loads((await argocd("app list -o json")).out)[0]["metadata"]["name"] == "models"
    assert (await argocd("app list -o yaml")).out.startswith("- apiVersion: argoproj.io/v1alpha1")


async def test_get_prints_its_block_and_table(argocd: Argocd) -> None:
    await synced(argocd)
    said = await argocd("app get models")
    repository = argocd.desk.repository
    assert said.out == BLOCK.replace("REPO", repository.url).replace("COMMIT", repository.head[:7])
    assert (await argocd("app get argocd/models --refresh -o name")).code == 20  # there is no such form
    assert json.loads((await argocd("app get models -o json")).out)["kind"] == "Application"
    assert (await argocd("app get models -o yaml --hard-refresh")).out.startswith("apiVersion: ")
    shown = (await argocd("app get models --show-operation")).out
    assert "Operation:          Sync" in shown and "Phase:              Succeeded" in shown


async def test_what_is_not_there_exits_20(argocd: Argocd) -> None:
    for words in (
        "app get nothing", "app sync nothing", "app delete nothing", "app history nothing", "app set nothing --path x",
        "app rollback nothing 1", "app manifests nothing", "app wait nothing --timeout 1", "app list -o nonsense",
        "cluster list", "app terminate-op nothing",
    ):  # fmt: skip
        said = await argocd(words)
        assert said.code == 20, (words, said)
        assert said.err, words


async def test_a_sync_prints_lines_and_then_the_application(argocd: Argocd) -> None:
    await created(argocd)
    said = await argocd("app sync models --prune --timeout 20")
    assert said.code == 0, said.err
    first, *_ = said.out.splitlines()
    assert first.split() == ["TIMESTAMP", "GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "HOOK", "MESSAGE"]
    assert "Phase:              Succeeded" in said.out and "Name:               argocd/models" in said.out


async def test_a_sync_that_fails_exits_20(argocd: Argocd) -> None:
    argocd.desk.repository.push({"app/wrong.yaml": {**config_map("wrong"), "data": {"not a key!": "x"}}})
    await created(argocd)
    assert (await argocd("app sync models --timeout 20")).code == 20


async def test_a_diff_prints_its_headings_and_exits_1(argocd: Argocd) -> None:
    await synced(argocd)
    assert (await argocd("app diff models")).code == 0
    await argocd.desk.cluster.patch(ResourceKey("", "ConfigMap", "ml", "settings"), {"data": {"a": "other"}})
    said = await argocd("app diff models")
    assert said.code == 1, said.err
    lines = said.out.splitlines()
    assert lines[:2] == ["", "===== /ConfigMap ml/settings ======"]
    assert lines[-3:] == ["<   a: other", "---", ">   a: one"]
    assert (await argocd("app diff models --exit-code=false")).code == 0


async def test_waiting_does_not_give_up_early_and_then_exits_20(argocd: Argocd) -> None:
    await created(argocd)
    assert (await argocd("app wait models --sync --timeout 1")).code == 20
    assert (await argocd("app wait models --operation --timeout 20")).code == 0
    await argocd("app sync models --async")
    assert (await argocd("app wait models --sync --health --timeout 20")).code == 0


async def test_history_and_rollback(argocd: Argocd) -> None:
    await synced(argocd)
    repository = argocd.desk.repository
    repository.push({"app/settings.yaml": config_map(a="two")})
    assert (await argocd("app sync models --timeout 20")).code == 0
    source, head, *lines = (await argocd("app history models")).out.splitlines()
    assert source == f"SOURCE  {repository.url}"
    assert head.split() == ["ID", "DATE", "REVISION"]
    assert [line.split()[0] for line in lines] == ["0", "1"]
    assert lines[1].endswith(f"main ({repository.head[:7]})") and " +0000 UTC  " in lines[1]
    assert (await argocd("app history models -o id")).out == "0\n1\n"
    assert (await argocd("app rollback models 0 --timeout 20")).code == 0
    assert (await argocd.desk.get("ConfigMap", "settings") or {})["data"] == {"a": "one"}
    assert (await argocd("app set models --sync-policy automated --auto-prune --self-heal")).code == 0
    assert (await argocd("app rollback models 0")).code == 20


async def test_manifests_resources_actions_projects_and_the_version(argocd: Argocd) -> None:
    await synced(argocd)
    assert (await argocd("app manifests models")).out.startswith("---\napiVersion: v1\n")
    assert "creationTimestamp" in (await argocd("app manifests models --source live")).out
    resources = (await argocd("app resources models")).out.splitlines()
    assert [line.split() for line in resources] == [
        ["GROUP", "KIND", "NAMESPACE", "NAME", "ORPHANED"], ["ConfigMap", "ml", "settings", "No"],
    ]  # fmt: skip
    assert (await argocd("app actions list models")).out.split() == ["GROUP", "KIND", "NAME", "ACTION", "DISABLED"]
    projects = (await argocd("proj list")).out.splitlines()
    assert projects[0].split()[:4] == ["NAME", "DESCRIPTION", "DESTINATIONS", "SOURCES"]
    assert projects[1].split()[:3] == ["default", "*,*", "*"]
    assert (await argocd("proj list -o name")).out == "default\n"
    assert (await argocd("version --client")).out == f"argocd: v{__version__}+argosy\n"


async def test_operations_are_ended_and_applications_deleted_without_a_question(argocd: Argocd) -> None:
    await synced(argocd)
    assert (await argocd("app terminate-op models")).code == 20
    said = await argocd("app delete models --cascade --wait")
    assert (said.code, said.out) == (0, "application 'models' deleted\n"), said.err
    assert await argocd.desk.get("ConfigMap", "settings") is None


async def test_the_flag_does_what_the_name_does(argocd: Argocd) -> None:
    said = await argocd.desk.argosy("--argocd-compat", "app", "get", "nothing")
    assert said.code == 20

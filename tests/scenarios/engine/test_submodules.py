"""Sources with Git submodules: their files are fetched at the commits that the repository names."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from support.engine import CONTROL, Repository, Room, config_map

pytestmark = pytest.mark.anyio
ALLOW_LOCAL = ("-c", "protocol.file.allow=always")


def git(repository: Repository, *arguments: str, folder: str = ".") -> None:
    command = ["git", "-C", str(repository.path / folder), *ALLOW_LOCAL, *arguments]
    subprocess.run(command, check=True, capture_output=True)


def add_library(room: Room, url: str = "../library", **extra: Any) -> Repository:
    """Create a repository with one ConfigMap, and add it to the Room's repository as app/lib."""
    library = Repository(room.repository.path.parent / "library")
    library.push({"shared.yaml": config_map("shared", a="one"), **extra})
    git(room.repository, "remote", "add", "origin", room.repository.url)
    git(room.repository, "submodule", "add", "--quiet", url, "app/lib")
    return library


async def deliver_commit(room: Room) -> None:
    revision = room.repository.push({})
    await room.annotate(refresh="normal")
    await room.until_synced(revision)


async def test_files_of_a_submodule_are_delivered_updated_and_pruned(room: Room) -> None:
    library = add_library(room)
    first = room.repository.push({"app/settings.yaml": config_map(a="one")})
    await room.deliver(
        source={
            "repoURL": room.repository.url,
            "path": "app",
            "targetRevision": "main",
            "directory": {"recurse": True},
        },
        syncPolicy={"automated": {"prune": True}},
    )
    await room.until_synced(first)
    assert (await room.get("ConfigMap", "shared") or {})["data"] == {"a": "one"}
    library.push({"shared.yaml": config_map("shared", a="two")})
    git(room.repository, "pull", "--quiet", "origin", "main", folder="app/lib")
    await deliver_commit(room)
    assert (await room.get("ConfigMap", "shared") or {})["data"] == {"a": "two"}
    git(room.repository, "rm", "--quiet", "-f", "app/lib")
    await deliver_commit(room)
    assert await room.get("ConfigMap", "shared") is None


async def test_submodules_of_a_submodule_are_fetched(room: Room) -> None:
    inner = Repository(room.repository.path.parent / "inner")
    inner.push({"inner.yaml": config_map("inner", a="one")})
    library = Repository(room.repository.path.parent / "library")
    git(library, "submodule", "add", "--quiet", inner.url, "inner")
    library.push({})
    git(room.repository, "submodule", "add", "--quiet", library.url, "lib")
    revision = room.repository.push({})
    source = {"repoURL": room.repository.url, "path": "lib/inner", "targetRevision": "main"}
    await room.deliver(source=source, syncPolicy={"automated": {}})
    await room.until_synced(revision)
    assert await room.get("ConfigMap", "inner") is not None


async def test_submodule_that_the_project_does_not_permit_stops_the_comparison(room: Room) -> None:
    library = add_library(room)
    room.repository.push({"app/settings.yaml": config_map(a="one")})
    await room.project(sourceRepos=[room.repository.url])
    await room.deliver(project="team", syncPolicy={"automated": {}})
    message = await room.until_condition("ComparisonError")
    assert f"{library.path}: it is not permitted in project 'team' (submodule app/lib of " in message
    assert await room.get("ConfigMap", "settings") is None


@pytest.mark.parametrize("modules", [None, "# no submodules", '[submodule "app/lib"]\n\tpath = app/lib\n'])
async def test_submodule_without_an_address_stops_the_comparison_and_its_objects_stay(
    room: Room, modules: str | None
) -> None:
    """git fails for such a submodule; an empty folder in its place would prune its objects."""
    add_library(room)
    first = room.repository.push({"app/settings.yaml": config_map(a="one")})
    source = {"repoURL": room.repository.url, "path": "app", "targetRevision": "main", "directory": {"recurse": True}}
    await room.deliver(source=source, syncPolicy={"automated": {"prune": True}})
    await room.until_synced(first)
    room.repository.push({".gitmodules": modules})
    await room.annotate(refresh="normal")
    message = await room.until_condition("ComparisonError")
    assert "no url found for submodule path 'app/lib' in .gitmodules; add the submodule there, or remove it" in message
    assert await room.get("ConfigMap", "shared") is not None


async def test_gitmodules_that_git_cannot_read_stop_the_comparison(room: Room) -> None:
    add_library(room)
    room.repository.push({".gitmodules": '[submodule "app/lib"\n\tpath = app/lib\n', "app/a.yaml": config_map(a="1")})
    await room.deliver(syncPolicy={"automated": {"prune": True}})
    assert ".gitmodules: bad config line 1" in await room.until_condition("ComparisonError")


async def test_change_of_gitmodules_or_of_the_setting_renders_again(room: Room) -> None:
    """Neither changes a file or folder in the path of the source."""
    add_library(room)
    first = room.repository.push({"app/settings.yaml": config_map(a="one")})
    source = {"repoURL": room.repository.url, "path": "app", "targetRevision": "main", "directory": {"recurse": True}}
    await room.deliver(source=source, syncPolicy={"automated": {"prune": True}})
    await room.until_synced(first)
    modules = (room.repository.path / ".gitmodules").read_text()
    skipped = room.repository.push({".gitmodules": f"{modules}\tupdate = none\n"})
    await room.annotate(refresh="normal")
    await room.until_synced(skipped)
    assert await room.get("ConfigMap", "shared") is None
    fetched = room.repository.push({".gitmodules": modules})
    await room.annotate(refresh="normal")
    await room.until_synced(fetched)
    assert await room.get("ConfigMap", "shared") is not None
    metadata = {"name": "argocd-cmd-params-cm", "namespace": CONTROL}
    data = {"reposerver.enable.git.submodule": "false"}
    await room.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    await room.annotate(refresh="normal")
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")  # its objects are asked for no more


async def test_submodules_are_left_out_if_they_are_disabled(room: Room) -> None:
    parameters = {"reposerver.enable.git.submodule": "false"}
    metadata = {"name": "argocd-cmd-params-cm", "namespace": CONTROL}
    await room.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": parameters})
    add_library(room)
    room.repository.push({})
    await room.deliver(source={"repoURL": room.repository.url, "path": "app/lib", "targetRevision": "main"})
    message = await room.until_condition("ComparisonError")
    assert "app/lib is a Git submodule whose files are not fetched" in message

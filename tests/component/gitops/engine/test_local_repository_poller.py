"""Which Applications a push to a local repository is announced to, with real repositories."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from argosy.gitops.engine.local_repository_poller import LocalRepositoryPoller
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.controller import SYSTEM_CLOCK
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from support.deadlines import HANG_SECONDS
from support.engine import Repository, config_map


class Announcements:
    """A running poller, and the names of the Applications of each push that it announces."""

    def __init__(self, folder: Path) -> None:
        repositories = Repositories(folder / "mirrors", SourceSettings(local_roots=(folder,)))
        self.poller = LocalRepositoryPoller(repositories, SYSTEM_CLOCK, self._on_push)
        self._pushes: asyncio.Queue[set[str]] = asyncio.Queue()

    async def _on_push(self, apps: Sequence[ResourceKey]) -> None:
        self._pushes.put_nowait({key.name for key in apps})

    def change(self, before: Manifest | None, after: Manifest | None) -> None:
        for watch in self.poller.watches:
            watch.on_change(before, after)

    async def next_push(self) -> set[str]:
        async with asyncio.timeout(HANG_SECONDS):
            return await self._pushes.get()


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Announcements]:
    announcements = Announcements(folder)
    task = asyncio.create_task(announcements.poller.run())
    try:
        yield announcements
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def application(name: str, *urls: object) -> Manifest:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"sources": [{"repoURL": url, "path": "."} for url in urls]},
    }


def push(repository: Repository, value: str) -> None:
    repository.push({"settings.yaml": config_map(x=value)})


async def test_push_is_announced_to_applications_that_have_its_repository_now(tmp_path: Path) -> None:
    first, second = Repository(tmp_path / "first"), Repository(tmp_path / "second")
    push(first, "1")
    push(second, "1")
    stays, moves, leaves = (application(name, first.url) for name in ("stays", "moves", "leaves"))
    moved = application("moves", second.url, "https://git.example.com/elsewhere.git", 5)
    async with running(tmp_path) as announcements:
        for app in (stays, moves, leaves):
            announcements.change(None, app)
        assert await announcements.next_push() == {"stays", "moves", "leaves"}
        announcements.change(moves, moved)
        announcements.change(leaves, None)
        assert await announcements.next_push() == {"moves"}  # the other repository, seen for the first time
        push(first, "2")
        assert await announcements.next_push() == {"stays"}
        announcements.change(stays, None)
        push(first, "3")
        push(second, "2")
        assert await announcements.next_push() == {"moves"}


async def test_application_with_several_sources_of_one_repository_is_announced_until_it_leaves(tmp_path: Path) -> None:
    repository, other = Repository(tmp_path / "repository"), Repository(tmp_path / "other")
    push(repository, "1")
    push(other, "1")
    twice, once = application("app", repository.url, repository.url), application("app", repository.url, other.url)
    async with running(tmp_path) as announcements:
        announcements.change(None, twice)
        assert await announcements.next_push() == {"app"}
        announcements.change(twice, once)
        assert await announcements.next_push() == {"app"}  # the other repository
        push(repository, "2")
        assert await announcements.next_push() == {"app"}

"""Files that a client sends are rendered with nothing else: their sender may not read repositories with them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import pytest

from argosy.errors import PolicyError
from argosy.gitops.application import read_application
from argosy.gitops.application.project_spec import Project
from argosy.gitops.application.step_results import Checkout, RenderResult
from argosy.gitops.reconciler.app_memo import AppMemos
from argosy.gitops.reconciler.desired_state_builder import DesiredStateBuilder
from argosy.gitops.reconciler.desired_state_values import DesiredState, DesiredStateRequest
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.render_cache import RenderCache
from argosy.gitops.render import BuildSettings, ChartRequest
from argosy.gitops.render.field_origins import NoOrigins
from argosy.gitops.render.settings import SidecarSettings
from argosy.gitops.source.repository_mirrors import Repositories
from support.file_trees import TextTree

pytestmark = pytest.mark.anyio
APP = read_application(
    {"metadata": {"name": "models"}, "spec": {"source": {"repoURL": "https://git.example/x", "path": "app"}}}
)
SENT = Checkout(TextTree({"app/a.yaml": ""}), "sent")
IN_GIT = Checkout(TextTree({"app/a.yaml": ""}), "1" * 40)


class AskedRepositories:
    """Repositories that note what is asked of them."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    async def checkout(self, url: str, ref: str, **_: Any) -> Checkout:
        self.requests.append(f"commit of {url}")
        return IN_GIT

    async def checkout_chart(self, url: str, chart: str, version: str, **_: Any) -> Checkout:
        self.requests.append(f"chart of {url}")
        return Checkout(TextTree({"Chart.yaml": ""}), version)

    def open_plugin_access(self, url: str, folder: str, **_: Any) -> AbstractAsyncContextManager[Mapping[str, str]]:
        @asynccontextmanager
        async def open_access() -> AsyncIterator[Mapping[str, str]]:
            self.requests.append(f"credentials of {url}")
            yield {"GIT_ASKPASS": "/plugins/askpass"}

        return open_access()


class GreedyWorker:
    """Replaces a worker: its render wants what a source may have."""

    def __init__(self, wish: str) -> None:
        self.wish = wish
        self.environment: Mapping[str, str] = {}

    async def run(self, function: Any, *_: Any) -> RenderResult:
        if self.wish == "chart":
            function.keywords["fetch_charts"]([ChartRequest("https://charts.example", "shop", "1.0.0")])
        elif self.wish == "base":
            function.keywords["fetch"]("https://git.example/base", "main")
        else:
            self.environment = function.keywords["find_git_environment"]()
        return RenderResult([], NoOrigins(), {}, "Plugin")


async def build(repositories: AskedRepositories, worker: GreedyWorker, sent_files: Checkout | None) -> DesiredState:
    memos = AppMemos()
    settings = ReconcilerSettings(
        cast(Repositories, repositories),
        cast(Any, None),
        build=BuildSettings(sidecars=SidecarSettings("/plugins"), fetches_submodules=False),
    )
    request = DesiredStateRequest(APP.sources, ("main",), sent_files=sent_files)
    builder = DesiredStateBuilder(RenderCache(worker, memos), memos)
    return await builder.build(APP, Project(source_repos=("*",)), request, settings, {})


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        ("chart", "shop: charts are not fetched for files that were sent; run `helm dependency build` before"),
        ("base", "remote bases are not fetched for files that were sent; send the base with them"),
    ],
)
async def test_sent_files_fetch_nothing_that_the_files_of_the_source_would_fetch(wish: str, problem: str) -> None:
    repositories = AskedRepositories()
    with pytest.raises(PolicyError, match=problem):
        await build(repositories, GreedyWorker(wish), SENT)
    assert repositories.requests == []
    await build(repositories, GreedyWorker(wish), None)
    assert len(repositories.requests) == 2  # the source, and what its render wants


async def test_plug_in_gets_the_credentials_of_the_source_for_its_own_files_only() -> None:
    repositories, worker = AskedRepositories(), GreedyWorker("credentials")
    assert (await build(repositories, worker, SENT)).revisions == ("sent",)
    assert (worker.environment, repositories.requests) == ({}, [])
    await build(repositories, worker, None)
    assert worker.environment == {"GIT_ASKPASS": "/plugins/askpass"}
    assert repositories.requests == ["commit of https://git.example/x", "credentials of https://git.example/x"]

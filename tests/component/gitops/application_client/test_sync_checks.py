"""Checks before a sync: unresponsive Git hosts do not block it, closed sync windows do."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from argosy.errors import PolicyError, UnknownRef
from argosy.gitops.application import Application, read_application
from argosy.gitops.application.project_spec import read_project
from argosy.gitops.application_client import sync_checks
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.policy.destination_cluster_lookup import DestinationClusters
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest
from support.deadlines import HANG_SECONDS


def an_app(*urls: str) -> Application:
    sources = [{"repoURL": url, "path": ".", "targetRevision": "main"} for url in urls]
    spec = {"sources": sources, "destination": {"namespace": "ml", "server": "https://kubernetes.default.svc"}}
    return read_application({"metadata": {"name": "web", "namespace": "argocd"}, "spec": spec})


def a_reader(
    repositories: Repositories | None = None, data: Manifest | None = None, **project: Any
) -> ApplicationReader:
    """Build a fake reader with only the attributes that the checks use."""
    cache = InformerCache()
    metadata = {"name": "argocd-cm", "namespace": "argocd"}
    cache.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {}})
    parsed_project = read_project({"metadata": {"name": "default"}, "spec": {"sourceRepos": ["*"], **project}})
    rules = SimpleNamespace(repositories=repositories, clusters=DestinationClusters())
    desk = SimpleNamespace(control_namespace="argocd")
    return cast(
        "ApplicationReader",
        SimpleNamespace(
            reconciler_settings=rules, control_cache=cache, service=desk, get_project=lambda app: parsed_project
        ),
    )


async def test_unresponsive_git_hosts_are_waited_for_concurrently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_checks, "CHECK_REFS_TIMEOUT_SECONDS", 0.1)
    waiting: list[str] = []
    most = 0

    class Silent:
        async def checkout(self, url: str, ref: str, **_: object) -> None:
            nonlocal most
            waiting.append(url)
            most = max(most, len(waiting))
            try:
                await asyncio.Event().wait()
            finally:
                waiting.remove(url)

    app = an_app(*(f"https://git.example.com/{number}.git" for number in range(40)))
    checks = sync_checks.check_refs_exist(a_reader(cast("Repositories", Silent())), app, ("main",) * 40)
    await asyncio.wait_for(checks, HANG_SECONDS)
    assert most == 40 and not waiting, "all were waited for at the same time, and none any longer"


async def test_unresponsive_git_host_does_not_fail_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_checks, "CHECK_REFS_TIMEOUT_SECONDS", 0.5)
    repositories = Repositories(tmp_path, SourceSettings(protocols=frozenset({"http"})))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        app = an_app(f"http://127.0.0.1:{silent.getsockname()[1]}/models.git")
        await asyncio.wait_for(sync_checks.check_refs_exist(a_reader(repositories), app, ("main",)), HANG_SECONDS)
    repositories.close()


async def test_missing_revision_raises_unknown_ref(tmp_path: Path) -> None:
    class Nothing:
        async def checkout(self, url: str, ref: str, **_: object) -> None:
            raise UnknownRef(f"there is no branch, tag or commit {ref!r}")

    reader = a_reader(cast("Repositories", Nothing()))
    with pytest.raises(UnknownRef):
        await sync_checks.check_refs_exist(reader, an_app("https://git.example.com/a.git"), ("v9",))


@pytest.mark.parametrize(
    ("said", "needed"),
    [("true", True), ("True", True), ("nonsense", True), (" FALSE", False), ("false", False), ("", False)],
)
def test_revision_override_needs_permission_when_settings_require_it(said: str, needed: bool) -> None:
    reader, app = a_reader(data={sync_checks.REQUIRE_OVERRIDE_KEY: said}), an_app("https://git.example.com/a.git")
    assert sync_checks.needs_override_permission(reader, app, ("v2",)) is needed
    assert not sync_checks.needs_override_permission(reader, app, ("main",))
    assert not sync_checks.needs_override_permission(reader, app, ())


def test_deny_window_blocks_manual_sync_unless_manual_sync_is_allowed() -> None:
    window = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}
    with pytest.raises(PolicyError, match="blocked by sync window"):
        sync_checks.check_sync_window(a_reader(syncWindows=[window]), an_app("https://git.example.com/a.git"))
    sync_checks.check_sync_window(
        a_reader(syncWindows=[{**window, "manualSync": True}]), an_app("https://a.example.com")
    )


async def test_commits_of_refs_are_resolved_only_for_permitted_repositories() -> None:
    class Resolving:
        async def checkout(self, url: str, ref: str, **_: object) -> SimpleNamespace:
            return SimpleNamespace(revision=f"commit of {ref}")

    app, repositories = an_app("https://git.example.com/a.git"), cast("Repositories", Resolving())
    assert await sync_checks.resolve_refs(a_reader(repositories), app, ()) == ("commit of main",)
    assert await sync_checks.resolve_refs(a_reader(repositories), app, ("v1",)) == ("commit of v1",)
    forbidding = a_reader(repositories, sourceRepos=["https://other.example.com/*"])
    assert await sync_checks.resolve_refs(forbidding, app, ()) == ()


async def test_refs_that_must_be_signed_are_left_to_the_engine() -> None:
    """It verifies an annotated tag itself; a commit would be verified without its tag."""

    class Resolving:
        async def checkout(self, url: str, ref: str, **_: object) -> SimpleNamespace:
            return SimpleNamespace(revision=f"commit of {ref}")

    app, repositories = an_app("https://git.example.com/a.git"), cast("Repositories", Resolving())
    for signing in (
        {"signatureKeys": [{"keyID": "0123456789ABCDEF"}]},
        {"sourceIntegrity": {"git": {"policies": [{"repos": [{"url": "*"}], "gpg": {"mode": "head", "keys": []}}]}}},
    ):
        assert await sync_checks.resolve_refs(a_reader(repositories, **signing), app, ("v1",)) == ()

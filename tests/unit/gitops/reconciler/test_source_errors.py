"""Errors about a source name its ref and path, or its chart; a Helm repository is never asked as if it were Git."""

from __future__ import annotations

from typing import Any, cast

import pytest

from argosy.errors import PolicyError, RenderError, SourceError, SourceRefused, UnknownRef, UserError
from argosy.gitops.application import Application, OperationRequest, OperationState, SyncRequest, read_application
from argosy.gitops.application.project_spec import IntegrityPolicy, Project
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.reconciler.app_memo import AppMemos
from argosy.gitops.reconciler.app_state_comparison import AppStateComparer
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.desired_state_builder import DesiredStateBuilder, format_load_error
from argosy.gitops.reconciler.desired_state_values import DesiredStateRequest
from argosy.gitops.reconciler.operation_runner import OperationRunner
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.render_cache import RenderCache, RenderRequest
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.client import Cluster

pytestmark = pytest.mark.anyio
URL = "https://git.example/x"
PROJECT = Project(source_repos=("*",))


class Hosts:
    """Repositories that fail for some refs."""

    def __init__(self, **errors: SourceError) -> None:
        self.errors, self.asked = errors, list[str]()

    async def checkout(self, url: str, ref: str, **_: Any) -> Checkout:
        self.asked.append(url)
        if ref in self.errors:
            raise self.errors[ref]
        return Checkout(cast(Any, None), "1" * 40)

    async def checkout_chart(self, url: str, chart: str, ref: str, **_: Any) -> Checkout:
        return await self.checkout(f"{url} {chart}", ref)


class BrokenRenders:
    async def render(self, request: RenderRequest, *_: Any, **__: Any) -> Any:
        raise RenderError("app path does not exist: correct the source's path", where="x")


def application(*sources: dict[str, Any]) -> Application:
    return read_application({"metadata": {"name": "models"}, "spec": {"sources": list(sources)}})


async def failed(hosts: Hosts, *sources: dict[str, Any], project: Project = PROJECT) -> UserError:
    app = application(*sources)
    rules = ReconcilerSettings(cast(Repositories, hosts), cast(Any, None))
    request = DesiredStateRequest(app.sources, tuple(source.ref for source in app.sources))
    with pytest.raises(UserError) as caught:
        builder = DesiredStateBuilder(cast(RenderCache, BrokenRenders()), AppMemos())
        await builder.build(app, project, request, rules, {})
    return caught.value


async def test_unknown_ref_error_contains_ref_and_path() -> None:
    gone = UnknownRef("there is no branch, tag or commit 'gone'", where=URL)
    error = await failed(Hosts(gone=gone), {"repoURL": URL, "path": "serving/vllm", "targetRevision": "gone"})
    assert isinstance(error, UnknownRef)
    assert format_load_error(error) == (
        f"Failed to load target state: {URL}: there is no branch, tag or commit 'gone'"
        " (targetRevision gone, path serving/vllm)"
    )


async def test_missing_path_error_contains_head_if_no_ref_is_set() -> None:
    error = await failed(Hosts(), {"repoURL": URL, "path": "x"})
    assert format_load_error(error).endswith(": correct the source's path (targetRevision HEAD, path x)")


async def test_error_names_the_failed_one_of_several_sources() -> None:
    refused = SourceRefused("the host wants other credentials", where=URL)
    first = {"repoURL": URL, "path": "a", "targetRevision": "main"}
    error = await failed(Hosts(v2=refused), first, {"repoURL": URL, "path": "b", "targetRevision": "v2"})
    assert format_load_error(error).endswith("(targetRevision v2, path b)")


async def test_shared_error_names_the_source_of_each_application() -> None:
    """A Git host is asked once for many Applications; all get the same error."""
    hosts = Hosts(main=SourceRefused("no", where=URL))
    for path in ("a", "b"):
        error = await failed(hosts, {"repoURL": URL, "path": path, "targetRevision": "main"})
        assert format_load_error(error).endswith(f"(targetRevision main, path {path})")


CHART = {"repoURL": "https://charts.example.com/stable", "chart": "nginx", "targetRevision": "1.2.3"}


async def test_error_of_a_chart_names_the_chart_and_its_version() -> None:
    hosts = Hosts(**{"1.2.3": UnknownRef("chart nginx has no version '1.2.3'", where="https://charts.example.com")})
    message = format_load_error(await failed(hosts, CHART))
    assert message.endswith("chart nginx has no version '1.2.3' (targetRevision 1.2.3, chart nginx)")
    assert hosts.asked == ["https://charts.example.com/stable nginx"]


@pytest.mark.parametrize(
    "project",
    [
        Project(source_repos=("*",), signature_keys=("4AEE18F83AFDEB23",)),
        Project(source_repos=("*",), integrity=(IntegrityPolicy(("https://charts.example.com/*",), "head", ("4A",)),)),
    ],
    ids=["signatureKeys", "sourceIntegrity"],
)
async def test_chart_is_not_fetched_if_the_project_requires_signatures(project: Project) -> None:
    hosts = Hosts()
    error = await failed(hosts, CHART, project=project)
    assert isinstance(error, PolicyError) and "requires signatures for this repository" in str(error)
    assert hosts.asked == []


async def test_chart_is_fetched_if_a_policy_requires_no_signature() -> None:
    policy = IntegrityPolicy(("https://charts.example.com/*",), "none", ())
    hosts = Hosts()
    await failed(hosts, CHART, project=Project(source_repos=("*",), signature_keys=("4A",), integrity=(policy,)))
    assert hosts.asked == ["https://charts.example.com/stable nginx"]


async def test_operation_error_names_the_source_in_the_same_format() -> None:
    app = application({"repoURL": URL, "path": "x", "targetRevision": "gone"})
    rules = ReconcilerSettings(cast(Repositories, Hosts(gone=UnknownRef("there is none", where=URL))), cast(Any, None))
    memos = AppMemos()
    builder = DesiredStateBuilder(cast(RenderCache, BrokenRenders()), memos)
    operator = OperationRunner(cast(Cluster, None), builder, cast(AppStateComparer, None), cast(Any, None), memos)
    with pytest.raises(UserError, match=r"there is none \(targetRevision gone, path x\)$"):
        state = OperationState(OperationRequest(SyncRequest()), started="2026-01-01T00:00:00Z")
        await operator._advance(app, state, PROJECT, rules, {}, cast(AppState, None))

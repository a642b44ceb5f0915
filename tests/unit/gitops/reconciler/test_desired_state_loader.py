"""State of an Application if its desired state, or its live objects, cannot be read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from argosy.errors import UserError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application.project_spec import Project, read_project
from argosy.gitops.application.step_results import Assessment
from argosy.gitops.reconciler.app_memo import AppMemos, ComparisonMemo
from argosy.gitops.reconciler.app_state_comparison import report_unreadable_as_unknown
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.desired_state_builder import DesiredStateBuilder
from argosy.gitops.reconciler.desired_state_loader import DesiredStateLoader
from argosy.gitops.reconciler.desired_state_values import DesiredState
from argosy.gitops.reconciler.destination_cluster import DestinationCluster
from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.watched_cluster import index_by_tracking
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.client import Cluster, User
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

pytestmark = pytest.mark.anyio
CONFIG: Manifest = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "settings",
        "namespace": "default",
        "annotations": {"argocd.argoproj.io/tracking-id": "models:/ConfigMap:default/settings"},
    },
}
KEY = key_of(CONFIG)
LINE = {"kind": "ConfigMap", "version": "v1", "namespace": "default", "name": "settings", "status": "Synced"}


class FixedDesiredState:
    """Returns a rendered ConfigMap, or raises an error."""

    def __init__(self, error: UserError | None = None) -> None:
        self._error = error

    async def build(self, app: Application, *_: Any) -> DesiredState:
        if self._error is not None:
            raise self._error
        return DesiredState(app.sources, ("abc",), [CONFIG], tools=("Kustomize",), keys=[KEY])


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """An embedded cluster that enforces roles."""
    async with EmbeddedCluster.open(rbac=True) as opened:
        yield opened


def build_project(**spec: Any) -> Project:
    destinations = [{"server": "*", "namespace": "*"}]
    return read_project({"metadata": {"name": "default"}, "spec": {"destinations": destinations, **spec}})


async def load(
    cluster: Cluster,
    project: Project,
    *,
    error: UserError | None = None,
    cached: Manifest | None = None,
    are_kinds_cached: bool = False,
) -> AppState:
    desired_states, memos, cache = cast(DesiredStateBuilder, FixedDesiredState(error)), AppMemos(), InformerCache()
    settings = ReconcilerSettings(cast(Repositories, None), assess_nothing)
    index_by_tracking(cache, settings.tracking)
    if cached is not None:
        cache.put(cached)
    destination = DestinationCluster(
        ReadYourWritesClient(cluster, cache.get),
        cache,
        desired_states,
        memos,
        cast(Any, None),
        is_kind_cached=lambda kind: are_kinds_cached,
    )
    source = {"repoURL": "https://git.example/x", "path": "p"}
    app = read_application(
        {
            "metadata": {"name": "models"},
            "spec": {"source": source, "destination": {"server": "https://kubernetes.default.svc"}},
            "status": {"resources": [LINE]},
        }
    )
    kinds = await cluster.kinds()
    desired = await DesiredStateLoader(desired_states, memos, lambda: 0.0).load(
        app, project, settings, kinds, None, 0.0
    )
    comparison = destination.comparer.compare_app_state(app, project, desired, settings, kinds, ComparisonMemo())
    return await report_unreadable_as_unknown(app, desired, comparison)


async def assess_nothing(manifests: Any) -> list[Any]:
    return [Assessment(None) for _ in manifests]


async def test_known_tools_stay_if_only_the_live_objects_cannot_be_read(cluster: Cluster) -> None:
    app_state = await load(cluster.acting_as(User("engine")), build_project())
    [condition] = app_state.conditions
    assert condition.message.startswith("Failed to load live state: cannot read ConfigMap settings")
    assert (app_state.desired.tools, app_state.desired.revisions) == (("Kustomize",), ("abc",))
    assert not app_state.is_complete and not app_state.desired.is_known  # its hooks are not known for a deletion


async def test_tools_are_unknown_if_the_sources_cannot_be_loaded(cluster: Cluster) -> None:
    app_state = await load(cluster, build_project(), error=UserError("no such branch"))
    assert (app_state.desired.tools, app_state.desired.is_known) == ((), False)


@pytest.mark.parametrize("denied", ["ConfigMap", "Secret"])
async def test_objects_of_the_status_are_read_only_if_the_project_permits_them(cluster: Cluster, denied: str) -> None:
    await cluster.create(CONFIG)
    project = build_project(namespaceResourceBlacklist=[{"group": "", "kind": denied}])
    app_state = await load(cluster, project, error=UserError("no such branch"))
    assert list(app_state.live) == ([] if denied == "ConfigMap" else [KEY])


async def test_objects_of_the_status_that_are_cached_are_not_read_again(cluster: Cluster) -> None:
    created = await cluster.create(CONFIG)
    engine = cluster.acting_as(User("engine"))  # may not read ConfigMaps
    app_state = await load(engine, build_project(), error=UserError("no such branch"), cached=created)
    assert app_state.live[KEY] is created and app_state.resources is not None

"""API discovery: aggregated and legacy documents give the same catalog; refresh, errors and unavailable APIs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.errors import ClusterError, TransientError
from argosy.kube.client.discovery import DiscoveryCache, fetch_discovery
from argosy.kube.client.status_errors import ApiServerUnavailable
from argosy.kube.resource_key import GroupKind

pytestmark = pytest.mark.anyio

PODS = {
    "resource": "pods",
    "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
    "scope": "Namespaced",
    "verbs": ["get", "list"],
    "shortNames": ["po"],
    "categories": ["all"],
    "subresources": [
        {"subresource": "eviction", "responseKind": {"group": "policy", "version": "v1", "kind": "Eviction"}},
        {"subresource": "status", "responseKind": {"group": "", "version": "", "kind": "Pod"}},
    ],
}
SCALERS = {
    "resource": "horizontalpodautoscalers",
    "scope": "Namespaced",
    "verbs": ["get"],
    "responseKind": {"group": "", "version": "", "kind": "HorizontalPodAutoscaler"},
}
AGGREGATED = {
    "/api": {"kind": "APIGroupDiscoveryList", "items": [{"versions": [{"version": "v1", "resources": [PODS]}]}]},
    "/apis": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"name": "autoscaling"},
                "versions": [{"version": "v2", "resources": [SCALERS]}, {"version": "v1", "resources": [SCALERS]}],
            }
        ],
    },
}
HPA = {"name": "horizontalpodautoscalers", "kind": "HorizontalPodAutoscaler", "namespaced": True, "verbs": ["get"]}
LEGACY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {
                "name": "pods",
                "kind": "Pod",
                "namespaced": True,
                "verbs": ["get", "list"],
                "shortNames": ["po"],
                "categories": ["all"],
            },
            {"name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1", "namespaced": True},
            {"name": "pods/status", "kind": "Pod", "namespaced": True},
        ],
    },
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "autoscaling",
                "versions": [{"groupVersion": "autoscaling/v1"}, {"groupVersion": "autoscaling/v2"}],
                "preferredVersion": {"groupVersion": "autoscaling/v2"},
            },
            {"name": "metrics.k8s.io", "versions": [{"groupVersion": "metrics.k8s.io/v1beta1"}]},
        ],
    },
    "/apis/autoscaling/v1": {"groupVersion": "autoscaling/v1", "resources": [HPA]},
    "/apis/autoscaling/v2": {"groupVersion": "autoscaling/v2", "resources": [HPA]},
}
GONE = object()
NODE = {"name": "nodes", "kind": "NodeMetrics", "namespaced": False, "verbs": ["get"]}
METRICS = {"groupVersion": "metrics.k8s.io/v1beta1", "resources": [NODE]}
NODES = {"resource": "nodes", "responseKind": {"kind": "NodeMetrics"}, "scope": "Cluster", "verbs": ["get"]}


class Documents:
    def __init__(self, documents: dict[str, Any]) -> None:
        self.documents, self.asked = documents, 0

    async def fetch(self, path: str, accept: str) -> Any:
        self.asked += 1
        await asyncio.sleep(0)
        if path not in self.documents:
            raise TransientError(f"{path}: the extension server is down")
        if self.documents[path] is GONE:
            raise ClusterError("404 page not found", code=404)
        return self.documents[path]


@pytest.mark.parametrize("documents", [AGGREGATED, LEGACY], ids=["aggregated", "legacy"])
async def test_discovery_reads_preferred_versions_and_subresources(documents: dict[str, Any]) -> None:
    catalog, subresources, _ = await fetch_discovery(Documents(documents).fetch)
    assert set(catalog) == {GroupKind("", "Pod"), GroupKind("autoscaling", "HorizontalPodAutoscaler")}
    pods = catalog[GroupKind("", "Pod")]
    assert pods == ("v1", "pods", True, ("v1",), ("get", "list"), ("eviction", "status"), ("po",), ("all",))
    scalers = catalog[GroupKind("autoscaling", "HorizontalPodAutoscaler")]
    assert (scalers.version, scalers.versions) == ("v2", ("v2", "v1"))
    assert subresources[GroupKind("", "Pod"), GroupKind("policy", "Eviction")] == "eviction"


async def test_server_without_api_groups_has_its_core_kinds() -> None:
    async def fetch(path: str, accept: str) -> Any:
        if path == "/apis":
            raise ClusterError("404 page not found", code=404)
        return AGGREGATED[path]

    assert set((await fetch_discovery(fetch)).catalog) == {GroupKind("", "Pod")}


async def test_only_an_unknown_kind_triggers_a_new_discovery() -> None:
    documents = Documents({**AGGREGATED, "/apis": {"kind": "APIGroupDiscoveryList", "items": []}})
    discovery = DiscoveryCache(documents.fetch)
    for _ in range(3):
        assert (await discovery.find_kind(GroupKind("", "Pod")))[1] is not None
    assert documents.asked == 2
    documents.documents = AGGREGATED
    assert (await discovery.find_kind(GroupKind("autoscaling", "HorizontalPodAutoscaler"), "v1"))[1] is not None
    assert documents.asked == 4


async def test_concurrent_lookups_share_discovery_requests() -> None:
    documents = Documents(AGGREGATED)
    discovery = DiscoveryCache(documents.fetch)
    await discovery.refresh()
    await asyncio.gather(*(discovery.find_kind(GroupKind("none", "None")) for _ in range(20)))
    assert documents.asked <= 6  # one discovery, and one more for the lookups that started meanwhile


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        "ok",
        5,
        {},
        {"kind": "Status"},
        {"kind": "APIGroupDiscoveryList", "items": [5]},
        {"kind": "APIGroupList", "groups": [{"versions": [{}]}]},
    ],
)
@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_invalid_discovery_document_is_an_error_with_its_url(path: str, answer: Any) -> None:
    with pytest.raises(ApiServerUnavailable, match=f"far.example:6443{path}: the answer is not a discovery document"):
        await fetch_discovery(Documents({**AGGREGATED, path: answer}).fetch, "far.example:6443")


@pytest.mark.parametrize("answer", [None, {}, {"groupVersion": "metrics.k8s.io/v1beta1", "resources": [{}]}])
async def test_invalid_document_of_an_extension_api_hides_only_its_own_kinds(answer: Any) -> None:
    without = await fetch_discovery(Documents(LEGACY).fetch)
    assert await fetch_discovery(Documents({**LEGACY, "/apis/metrics.k8s.io/v1beta1": answer}).fetch) == without
    with pytest.raises(ApiServerUnavailable, match="/api/v1: the answer"):
        await fetch_discovery(Documents({**LEGACY, "/api/v1": answer}).fetch)


def aggregated(*items: dict[str, Any]) -> dict[str, Any]:
    return {**AGGREGATED, "/apis": {"kind": "APIGroupDiscoveryList", "items": list(items)}}


def metrics(*resources: dict[str, Any], freshness: str = "Current") -> dict[str, Any]:
    version = {"version": "v1beta1", "freshness": freshness, "resources": list(resources)}
    return {"metadata": {"name": "metrics.k8s.io"}, "versions": [version]}


WITHOUT = {**LEGACY, "/apis": {"kind": "APIGroupList", "groups": LEGACY["/apis"]["groups"][:1]}}
FORMS = [
    pytest.param(
        {**LEGACY, "/apis/metrics.k8s.io/v1beta1": METRICS},
        LEGACY,
        [WITHOUT, {**LEGACY, "/apis/metrics.k8s.io/v1beta1": GONE},
         {**LEGACY, "/apis/metrics.k8s.io/v1beta1": {**METRICS, "resources": []}}],
        id="legacy",
    ),
    pytest.param(
        aggregated(metrics(NODES)),
        aggregated(metrics(freshness="Stale")),
        [aggregated(), aggregated(metrics())],
        id="aggregated",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("whole", "hidden", "gone"), FORMS)
async def test_kinds_of_an_unavailable_api_stay_known_until_they_are_removed(
    whole: dict[str, Any], hidden: dict[str, Any], gone: list[dict[str, Any]]
) -> None:
    kind = GroupKind("metrics.k8s.io", "NodeMetrics")
    for without in gone:
        documents = Documents(whole)
        discovery = DiscoveryCache(documents.fetch)
        catalog = (await discovery.refresh()).catalog
        documents.documents = hidden
        for _ in range(2):
            discovery.invalidate()
            assert (await discovery.refresh()).catalog == catalog and not catalog[kind].namespaced
        for documents.documents in (without, hidden):
            assert kind not in (await discovery.refresh()).catalog


@pytest.mark.parametrize("hidden", [LEGACY, aggregated(metrics(freshness="Stale"))], ids=["legacy", "aggregated"])
async def test_api_unavailable_at_start_is_found_once_it_is_available(hidden: dict[str, Any]) -> None:
    kind, documents = GroupKind("metrics.k8s.io", "NodeMetrics"), Documents(hidden)
    discovery = DiscoveryCache(documents.fetch)
    assert (await discovery.find_kind(kind))[1] is None
    documents.documents = aggregated(metrics(NODES, freshness="Stale"))
    assert (await discovery.find_kind(kind))[1] is not None

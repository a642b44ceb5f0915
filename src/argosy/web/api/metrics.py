"""Prometheus metrics of the server, with Argo CD's names.

In: the Applications of the cluster view, request counters. Out: text in Prometheus format. Never: a label value from a
request: cardinality is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Protocol

from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.status.metrics import (
    IN_CLUSTER_NAME,
    IN_CLUSTER_SERVER,
    METRIC_HELP,
    SYNCS_METRIC,
    build_application_metrics,
)
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import APP_PROJECT, APPLICATION
from argosy.observability.metrics import CONTENT_TYPE, MetricFamily, Sample, build_family, render_families
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import build_rbac_name, read_project_name
from argosy.web.responses import TextResponse
from argosy.web.route import FilteredList, Route
from argosy.web.serve_options import ServeOptions
from argosy.web.server_audit_counters_and_limits import ServerState

if TYPE_CHECKING:
    from argosy.gitops.cluster_view.cluster_view import ClusterView
    from argosy.web.auth.authenticator import Authenticator


class MetricSources(Protocol):
    """Services that metrics are read from; a Site and a RequestContext have them."""

    @property
    def service(self) -> ApplicationService: ...

    @property
    def cluster_view(self) -> ClusterView: ...

    @property
    def authenticator(self) -> Authenticator: ...

    @property
    def options(self) -> ServeOptions: ...


def render_metrics(
    sources: MetricSources,
    state: ServerState,
    is_allowed: Callable[[str, str], bool] = lambda resource, rbac_object: True,
) -> str:
    """Render the metrics of objects that `is_allowed` permits: a resource and its RBAC object name."""
    return render_families(_build_families(sources, state, is_allowed))


def _build_families(
    sources: MetricSources, state: ServerState, is_allowed: Callable[[str, str], bool]
) -> Iterator[MetricFamily]:
    cache = sources.cluster_view.cache
    yield build_family("argocd_info", "gauge", "Information about this server.", 1, version=sources.options.version)
    apps = [
        app for app in cache.list(GroupKind(*APPLICATION)) if is_allowed("applications", _get_rbac_name(sources, app))
    ]
    yield from build_application_metrics(apps)
    yield MetricFamily(SYNCS_METRIC, "counter", METRIC_HELP[SYNCS_METRIC], state.sync_counter.count_syncs(apps))
    keys = [key for key in cache.keys(APP_PROJECT) if is_allowed("projects", key.name)]
    projects = [Sample({"name": key.name, "namespace": key.namespace}, 1) for key in keys]
    yield MetricFamily("argocd_project_info", "gauge", "Projects.", projects)
    if is_allowed("clusters", IN_CLUSTER_SERVER):
        yield build_family(
            "argocd_cluster_info", "gauge", "Clusters.", 1, server=IN_CLUSTER_SERVER, name=IN_CLUSTER_NAME
        )
        is_up = int(sources.cluster_view.as_of.is_up)
        yield build_family(
            "argocd_cluster_connection_status",
            "gauge",
            "1 if the cluster is reachable.",
            is_up,
            server=IN_CLUSTER_SERVER,
        )
    logins = [
        Sample({"status": status}, count) for status, count in sorted(sources.authenticator.get_login_counts().items())
    ]
    yield MetricFamily("argocd_login_request_total", "counter", "Logins by result.", logins)
    requests = [
        Sample({"method": method, "route": route or "none", "code": str(code)}, count)
        for (method, route, code), count in sorted(state.request_counter.requests.items())
    ]
    yield MetricFamily("argosy_http_requests_total", "counter", "Handled HTTP requests.", requests)
    limits = state.concurrency_limits
    yield build_family("argosy_http_in_flight", "gauge", "HTTP requests in flight.", limits.in_flight)
    yield build_family("argosy_streams_open", "gauge", "Open streams.", limits.streams)


def _get_rbac_name(sources: MetricSources, manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return build_rbac_name(
        sources.service.control_namespace, read_project_name(manifest), metadata["namespace"], metadata["name"]
    )


async def get_metrics(state: ServerState, request: RequestContext) -> TextResponse:
    def is_allowed(resource: str, rbac_object: str) -> bool:
        return request.is_allowed(resource, "get", rbac_object)

    return TextResponse(render_metrics(request, state, is_allowed), CONTENT_TYPE)


def build_routes(state: ServerState) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            "/metrics",
            FilteredList("applications", "get"),
            partial(get_metrics, state),
            "Prometheus metrics.",
            tag="about",
            response_media_types=("text/plain",),
            operation_id="about_measure",
        ),
    )

"""Prometheus metrics of the server, with Argo CD's names.

In: the Applications of the cluster view, request counters. Out: text in Prometheus format. Never: a label value from a
request: cardinality is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from argosy.gitops.application import APPLICATION_KIND
from argosy.gitops.status.metrics import (
    IN_CLUSTER_NAME,
    IN_CLUSTER_SERVER,
    METRIC_HELP,
    SYNCS_METRIC,
    build_app_labels,
    build_application_metrics,
    build_operation_labels,
)
from argosy.gitops.status.shared_wire_fields import as_mapping
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.observability.metrics import CONTENT_TYPE, MetricFamily, Sample, build_family, render_families
from argosy.web.application_lookup import PROJECT, build_rbac_name, read_project_name
from argosy.web.middleware.asgi import WebApplication
from argosy.web.request import RequestContext
from argosy.web.responses import TextResponse
from argosy.web.route import FilteredList, Route
from argosy.web.site_services import Site


def render_metrics(
    site: Site, application: WebApplication, is_allowed: Callable[[str, str], bool] = lambda resource, thing: True
) -> str:
    """Render the metrics of objects that `is_allowed` permits: a resource and its RBAC object name."""
    return render_families(_build_families(site, application, is_allowed))


def _build_families(
    site: Site, application: WebApplication, is_allowed: Callable[[str, str], bool]
) -> Iterator[MetricFamily]:
    cache = site.cluster_view.cache
    yield build_family("argocd_info", "gauge", "Information about this server.", 1, version=site.options.version)
    apps = [
        app for app in cache.list(GroupKind(*APPLICATION_KIND)) if is_allowed("applications", _get_rbac_name(site, app))
    ]
    yield from build_application_metrics(apps)
    yield MetricFamily(
        SYNCS_METRIC, "counter", METRIC_HELP[SYNCS_METRIC], site.get_module_state(SyncCounter).count_syncs(apps)
    )
    keys = [key for key in cache.keys(PROJECT) if is_allowed("projects", key.name)]
    projects = [Sample({"name": key.name, "namespace": key.namespace}, 1) for key in keys]
    yield MetricFamily("argocd_project_info", "gauge", "Projects.", projects)
    if is_allowed("clusters", IN_CLUSTER_SERVER):
        yield build_family(
            "argocd_cluster_info", "gauge", "Clusters.", 1, server=IN_CLUSTER_SERVER, name=IN_CLUSTER_NAME
        )
        state = int(site.cluster_view.as_of.is_up)
        yield build_family(
            "argocd_cluster_connection_status",
            "gauge",
            "1 if the cluster is reachable.",
            state,
            server=IN_CLUSTER_SERVER,
        )
    logins = [
        Sample({"status": status}, count) for status, count in sorted(site.authenticator.get_login_counts().items())
    ]
    yield MetricFamily("argocd_login_request_total", "counter", "Logins by result.", logins)
    requests = [
        Sample({"method": method, "route": route or "none", "code": str(code)}, count)
        for (method, route, code), count in sorted(application.request_counter.requests.items())
    ]
    yield MetricFamily("argosy_http_requests_total", "counter", "Handled HTTP requests.", requests)
    yield build_family(
        "argosy_http_in_flight", "gauge", "HTTP requests in flight.", application.concurrency_limits.in_flight
    )
    yield build_family("argosy_streams_open", "gauge", "Open streams.", application.concurrency_limits.streams)


class SyncCounter:
    """Counts finished operations. Operations that ended before the first call are not counted."""

    def __init__(self) -> None:
        self._finished_at: dict[tuple[str, str], str] = {}  # finishedAt of the last operation of each
        self._counts: Counter[tuple[tuple[str, str], ...]] = Counter()
        self._has_started = False

    def count_syncs(self, apps: Iterable[Manifest]) -> list[Sample]:
        for app in apps:
            state = as_mapping(as_mapping(app.get("status")).get("operationState"))
            finished_at, app_key = (
                str(state.get("finishedAt") or ""),
                (app["metadata"]["namespace"], app["metadata"]["name"]),
            )
            if finished_at and self._finished_at.get(app_key) != finished_at:
                self._finished_at[app_key] = finished_at
                if self._has_started:
                    self._counts[tuple({**build_app_labels(app), **build_operation_labels(state)}.items())] += 1
        self._has_started = True
        return [Sample(dict(labels), count) for labels, count in sorted(self._counts.items())]


def _get_rbac_name(site: Site, manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return build_rbac_name(site, read_project_name(manifest), metadata["namespace"], metadata["name"])


async def get_metrics(request: RequestContext) -> TextResponse:
    def is_allowed(resource: str, rbac_object: str) -> bool:
        return request.is_allowed(resource, "get", rbac_object)

    return TextResponse(render_metrics(request.site, request.application, is_allowed), CONTENT_TYPE)


ROUTES = (
    Route(
        "GET",
        "/metrics",
        FilteredList("applications", "get"),
        get_metrics,
        "Prometheus metrics.",
        tag="about",
        response_media_types=("text/plain",),
        operation_id="about_measure",
    ),
)

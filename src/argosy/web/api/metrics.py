"""Prometheus metrics of the server, with Argo CD's names.

In: the Applications of the cluster view, request counters. Out: text in Prometheus format. Never: a label value from a
request: cardinality is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from argosy.gitops.application import APPLICATION
from argosy.gitops.status.metrics import ABOUT, HERE, HERE_NAME, SYNCS, identity, of_applications, of_operation
from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.observability.metrics import MEDIA, Family, Sample, one, text
from argosy.web.middleware.asgi import Entry
from argosy.web.object_lookup import PROJECT, policy_name, project_of
from argosy.web.request import Asked
from argosy.web.responses import Text
from argosy.web.route import Filtered, Route
from argosy.web.site import Site


def measured(site: Site, entry: Entry, may: Callable[[str, str], bool] = lambda resource, thing: True) -> str:
    """Render the metrics of objects that `is_allowed` permits: a resource and its RBAC object name."""
    return text(_families(site, entry, may))


def _families(site: Site, entry: Entry, may: Callable[[str, str], bool]) -> Iterator[Family]:
    cache = site.lookout.cache
    yield one("argocd_info", "gauge", "Information about this server.", 1, version=site.options.version)
    apps = [app for app in cache.list(GroupKind(*APPLICATION)) if may("applications", _name(site, app))]
    yield from of_applications(apps)
    yield Family(SYNCS, "counter", ABOUT[SYNCS], site.part(Syncs).counted(apps))
    keys = [key for key in cache.keys(PROJECT) if may("projects", key.name)]
    projects = [Sample({"name": key.name, "namespace": key.namespace}, 1) for key in keys]
    yield Family("argocd_project_info", "gauge", "Projects.", projects)
    if may("clusters", HERE):
        yield one("argocd_cluster_info", "gauge", "Clusters.", 1, server=HERE, name=HERE_NAME)
        state = int(site.lookout.as_of.is_up)
        yield one("argocd_cluster_connection_status", "gauge", "1 if the cluster is reachable.", state, server=HERE)
    logins = [Sample({"status": status}, count) for status, count in sorted(site.identities.logins().items())]
    yield Family("argocd_login_request_total", "counter", "Logins by result.", logins)
    requests = [
        Sample({"method": method, "route": route or "none", "code": str(code)}, count)
        for (method, route, code), count in sorted(entry.tally.requests.items())
    ]
    yield Family("argosy_http_requests_total", "counter", "Handled HTTP requests.", requests)
    yield one("argosy_http_in_flight", "gauge", "HTTP requests in flight.", entry.turnstile.all)
    yield one("argosy_streams_open", "gauge", "Open streams.", entry.turnstile.streams)


class Syncs:
    """Counts finished operations. Operations that ended before the first call are not counted."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], str] = {}  # finishedAt of the last operation of each
        self._counts: Counter[tuple[tuple[str, str], ...]] = Counter()
        self._is_begun = False

    def counted(self, apps: Iterable[Manifest]) -> list[Sample]:
        for app in apps:
            state = mapping(mapping(app.get("status")).get("operationState"))
            ended, place = str(state.get("finishedAt") or ""), (app["metadata"]["namespace"], app["metadata"]["name"])
            if ended and self._seen.get(place) != ended:
                self._seen[place] = ended
                if self._is_begun:
                    self._counts[tuple({**identity(app), **of_operation(state)}.items())] += 1
        self._is_begun = True
        return [Sample(dict(labels), count) for labels, count in sorted(self._counts.items())]


def _name(site: Site, manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return policy_name(site, project_of(manifest), metadata["namespace"], metadata["name"])


async def measure(asked: Asked) -> Text:
    def may(resource: str, thing: str) -> bool:
        return asked.may(resource, "get", thing)

    return Text(measured(asked.site, asked.entry, may), MEDIA)


ROUTES = (
    Route(
        "GET",
        "/metrics",
        Filtered("applications", "get"),
        measure,
        "Prometheus metrics.",
        tag="about",
        makes=("text/plain",),
    ),
)

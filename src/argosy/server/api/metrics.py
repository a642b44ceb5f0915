"""What Prometheus asks for, under Argo CD's names.

In: the lookout's Applications, what the doors counted. Out: text in Prometheus's form. Never: a label that somebody's
request made up: their number is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from argosy.model.application import APPLICATION, IN_CLUSTER
from argosy.model.manifest import Manifest
from argosy.model.names import GroupKind
from argosy.server.answers import Text
from argosy.server.asked import Asked
from argosy.server.doors.entry import Entry
from argosy.server.resolving import PROJECT, policy_name, project_of
from argosy.server.routes import Filtered, Route
from argosy.server.site import Site

HERE, HERE_NAME = IN_CLUSTER
MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"


def measured(site: Site, entry: Entry, may: Callable[[str, str], bool] = lambda resource, thing: True) -> str:
    """Of what `may` be seen: a resource and its name for the policy."""
    return "".join(f"{line}\n" for line in _lines(site, entry, may))


def _lines(site: Site, entry: Entry, may: Callable[[str, str], bool]) -> Iterator[str]:
    cache = site.lookout.cache
    yield from _metric("argocd_info", "gauge", "What serves this.", [({"version": site.options.version}, 1)])
    apps = [app for app in cache.list(GroupKind(*APPLICATION)) if may("applications", _name(site, app))]
    yield from _metric("argocd_app_info", "gauge", "Information about Applications.", map(_application, apps))
    yield from _metric("argocd_app_condition", "gauge", "Conditions of Applications.", _conditions(apps))
    synced = site.part(Syncs).counted(apps)
    yield from _metric("argocd_app_sync_total", "counter", "Operations that have ended since this began.", synced)
    keys = [key for key in cache.keys(PROJECT) if may("projects", key.name)]
    projects = [({"name": key.name, "namespace": key.namespace}, 1) for key in keys]
    yield from _metric("argocd_project_info", "gauge", "Projects.", projects)
    here = {"server": HERE}
    if may("clusters", HERE):
        yield from _metric("argocd_cluster_info", "gauge", "Clusters.", [({**here, "name": HERE_NAME}, 1)])
        state = [(here, int(site.lookout.as_of.is_up))]
        yield from _metric("argocd_cluster_connection_status", "gauge", "Whether a cluster answers.", state)
    failures = [({"status": status}, count) for status, count in sorted(site.identities.logins().items())]
    yield from _metric("argocd_login_request_total", "counter", "Logins by what came of them.", failures)
    requests = [
        ({"method": method, "route": route or "none", "code": str(code)}, count)
        for (method, route, code), count in sorted(entry.tally.requests.items())
    ]
    yield from _metric("argosy_http_requests_total", "counter", "Requests that were answered.", requests)
    yield from _metric("argosy_http_in_flight", "gauge", "Requests being answered.", [({}, entry.turnstile.all)])
    yield from _metric("argosy_streams_open", "gauge", "Streams that are open.", [({}, entry.turnstile.streams)])


def _conditions(apps: Iterable[Manifest]) -> Iterator[tuple[Mapping[str, str], float]]:
    for app in apps:
        found = _mapping(app.get("status")).get("conditions")
        kinds = Counter(str(_mapping(each).get("type", "")) for each in (found if isinstance(found, list) else ()))
        for kind, count in sorted(kinds.items()):
            yield {**_identity(app), "condition": kind}, count


class Syncs:
    """Operations of Applications by how they ended: those that were over when this was first asked for are the past."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], str] = {}  # when the last one of each ended
        self._counts: Counter[tuple[tuple[str, str], ...]] = Counter()
        self._is_begun = False

    def counted(self, apps: Iterable[Manifest]) -> list[tuple[Mapping[str, str], float]]:
        for app in apps:
            state = _mapping(_mapping(app.get("status")).get("operationState"))
            ended, place = str(state.get("finishedAt") or ""), (app["metadata"]["namespace"], app["metadata"]["name"])
            if ended and self._seen.get(place) != ended:
                self._seen[place] = ended
                if self._is_begun:
                    sync = _mapping(_mapping(state.get("operation")).get("sync"))
                    phase = {"phase": str(state.get("phase", "")), "dry_run": str(bool(sync.get("dryRun"))).lower()}
                    self._counts[tuple({**_identity(app), **phase}.items())] += 1
        self._is_begun = True
        return [(dict(labels), count) for labels, count in sorted(self._counts.items())]


def _identity(manifest: Manifest) -> dict[str, str]:
    metadata, target = manifest["metadata"], _mapping(_mapping(manifest.get("spec")).get("destination"))
    return {
        "namespace": str(metadata.get("namespace", "")),
        "name": str(metadata.get("name", "")),
        "project": project_of(manifest),
        "dest_server": _server(target),
    }


def _server(target: Mapping[str, Any]) -> str:
    """argo: its address, also where it is named."""
    return str(target.get("server") or (HERE if target.get("name") == HERE_NAME else ""))


def _name(site: Site, manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return policy_name(site, project_of(manifest), metadata["namespace"], metadata["name"])


def _application(manifest: Manifest) -> tuple[Mapping[str, str], float]:
    """argo: the labels of its own metric, in its own words."""
    metadata, spec, status = (_mapping(manifest.get(each)) for each in ("metadata", "spec", "status"))
    sources = spec.get("sources")
    source = _mapping(spec.get("source") or (sources[0] if isinstance(sources, list) and sources else None))
    target = _mapping(spec.get("destination"))
    automated = _mapping(spec.get("syncPolicy")).get("automated")
    operation = "delete" if metadata.get("deletionTimestamp") else "sync" if manifest.get("operation") else ""
    return {
        "namespace": str(metadata.get("namespace", "")),
        "name": str(metadata.get("name", "")),
        "project": project_of(manifest),
        "autosync_enabled": str(isinstance(automated, dict) and automated.get("enabled") is not False).lower(),
        "repo": _plain(str(source.get("repoURL", ""))),
        "dest_server": _server(target),
        "dest_namespace": str(target.get("namespace", "")),
        "sync_status": str(_mapping(status.get("sync")).get("status") or "Unknown"),
        "health_status": str(_mapping(status.get("health")).get("status") or "Unknown"),
        "operation": operation,
    }, 1


def _plain(url: str) -> str:
    """Without who logs in there."""
    scheme, found, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" if found else url


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _metric(name: str, kind: str, about: str, values: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values:
        told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{told}}} {value}" if told else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


async def measure(asked: Asked) -> Text:
    def may(resource: str, thing: str) -> bool:
        return asked.may(resource, "get", thing)

    return Text(measured(asked.site, asked.entry, may), MEDIA)


ROUTES = (
    Route(
        "GET", "/metrics", Filtered("applications", "get"), measure, "What Prometheus asks for.", tag="about",
        makes=("text/plain",),
    ),
)

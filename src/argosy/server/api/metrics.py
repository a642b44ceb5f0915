"""What Prometheus asks for, under Argo CD's names.

In: the lookout's Applications, what the doors counted. Out: text in Prometheus's form. Never: a label that somebody's
request made up: their number is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from argosy.model.application import APPLICATION
from argosy.model.manifest import Manifest
from argosy.server.answers import Text
from argosy.server.asked import Asked
from argosy.server.doors.entry import Entry
from argosy.server.resolving import PROJECT, policy_name, project_of
from argosy.server.routes import Filtered, Route
from argosy.server.site import Site

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"


def measured(site: Site, entry: Entry, may: Callable[[str, str], bool] = lambda resource, thing: True) -> str:
    """Of what `may` be seen: a resource and its name for the policy."""
    return "".join(f"{line}\n" for line in _lines(site, entry, may))


def _lines(site: Site, entry: Entry, may: Callable[[str, str], bool]) -> Iterator[str]:
    cache = site.lookout.cache
    yield from _metric("argocd_info", "gauge", "What serves this.", [({"version": site.options.version}, 1)])
    apps = [app for app in cache.list(APPLICATION) if may("applications", _name(site, app))]
    yield from _metric("argocd_app_info", "gauge", "Information about Applications.", map(_application, apps))
    keys = [key for key in cache.keys(PROJECT) if may("projects", key.name)]
    projects = [({"name": key.name, "namespace": key.namespace}, 1) for key in keys]
    yield from _metric("argocd_project_info", "gauge", "Projects.", projects)
    logins = getattr(site.identities, "logins", None)
    counted = dict(logins()) if callable(logins) else {}
    failures = [({"status": status}, count) for status, count in sorted(counted.items())]
    yield from _metric("argocd_login_request_total", "counter", "Logins by what came of them.", failures)
    requests = [
        ({"method": method, "route": route or "none", "code": str(code)}, count)
        for (method, route, code), count in sorted(entry.tally.requests.items())
    ]
    yield from _metric("argosy_http_requests_total", "counter", "Requests that were answered.", requests)
    yield from _metric("argosy_http_in_flight", "gauge", "Requests being answered.", [({}, entry.turnstile.all)])
    yield from _metric("argosy_streams_open", "gauge", "Streams that are open.", [({}, entry.turnstile.streams)])


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
        "dest_server": str(target.get("server", "")),
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

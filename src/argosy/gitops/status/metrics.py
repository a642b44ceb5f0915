"""Prometheus metrics of Applications, with Argo CD's names and labels.

In: Applications from the cluster. Out: samples. Never: a credential; more labels than Argo CD has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from argosy.gitops.application import IN_CLUSTER
from argosy.gitops.application.cluster_address import parse_cluster_address
from argosy.gitops.status.wire_format import mapping
from argosy.kube.objects import Manifest
from argosy.observability.metrics import Family, Sample

HERE, HERE_NAME = IN_CLUSTER
INFO, CONDITION, SYNCS = "argocd_app_info", "argocd_app_condition", "argocd_app_sync_total"
SYNC_SECONDS: Final = "argocd_app_sync_duration_seconds_total"
ABOUT: Final = {
    INFO: "Information about Applications.",
    CONDITION: "Conditions of Applications.",
    SYNCS: "Operations that have ended since this began.",
    SYNC_SECONDS: "Seconds that operations took which have ended since this began.",
}

ServerOf = Callable[[Mapping[str, Any]], str]  # destination → server address


def server_of(destination: Mapping[str, Any]) -> str:
    """argo: the server address, also of a destination by name; a caller that knows Secrets passes another function."""
    server = parse_cluster_address(str(destination.get("server") or ""))
    return str(server or (HERE if destination.get("name") == HERE_NAME else ""))


def of_applications(apps: Iterable[Manifest], server: ServerOf = server_of) -> list[Family]:
    apps = list(apps)
    conditions = (each for app in apps for each in _conditions(app, server))
    return [
        Family(INFO, "gauge", ABOUT[INFO], [_info(app, server) for app in apps]),
        Family(CONDITION, "gauge", ABOUT[CONDITION], conditions),
    ]


def identity(manifest: Mapping[str, Any], server: ServerOf = server_of) -> dict[str, str]:
    metadata = manifest["metadata"]
    return {
        "namespace": str(metadata.get("namespace", "")),
        "name": str(metadata.get("name", "")),
        "project": str(mapping(manifest.get("spec")).get("project") or "default"),
        "dest_server": server(mapping(mapping(manifest.get("spec")).get("destination"))),
    }


def of_operation(state: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of a finished operation, besides those of its Application."""
    sync = mapping(mapping(state.get("operation")).get("sync"))
    return {"phase": str(state.get("phase", "")), "dry_run": str(bool(sync.get("dryRun"))).lower()}


def seconds_of(state: Mapping[str, Any]) -> float:
    """Return the seconds that an operation took; 0 if its times are invalid."""
    try:
        began, ended = (datetime.fromisoformat(str(state.get(each))) for each in ("startedAt", "finishedAt"))
        return max(0.0, (ended - began).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _conditions(app: Manifest, server: ServerOf) -> Iterator[Sample]:
    found = mapping(app.get("status")).get("conditions")
    kinds = Counter(str(mapping(each).get("type", "")) for each in (found if isinstance(found, list) else ()))
    for kind, count in sorted(kinds.items()):
        yield Sample({**identity(app, server), "condition": kind}, count)


def _info(manifest: Manifest, server: ServerOf) -> Sample:
    """argo: the labels of argocd_app_info."""
    metadata, spec, status = (mapping(manifest.get(each)) for each in ("metadata", "spec", "status"))
    sources = spec.get("sources")
    source = mapping(spec.get("source") or (sources[0] if isinstance(sources, list) and sources else None))
    automated = mapping(spec.get("syncPolicy")).get("automated")
    operation = "delete" if metadata.get("deletionTimestamp") else "sync" if manifest.get("operation") else ""
    known = identity(manifest, server)
    address = known.pop("dest_server")
    labels = {
        **known,
        "autosync_enabled": str(isinstance(automated, dict) and automated.get("enabled") is not False).lower(),
        "repo": plain(str(source.get("repoURL", ""))),
        "dest_server": address,
        "dest_namespace": str(mapping(spec.get("destination")).get("namespace", "")),
        "sync_status": str(mapping(status.get("sync")).get("status") or "Unknown"),
        "health_status": str(mapping(status.get("health")).get("status") or "Unknown"),
        "operation": operation,
    }
    return Sample(labels, 1)


def plain(url: str) -> str:
    """Remove the user from a URL."""
    scheme, found, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" if found else url

"""Prometheus metrics of Applications, with Argo CD's names and labels.

In: Applications from the cluster. Out: samples. Never: a credential; more labels than Argo CD has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from argosy.gitops.application import IN_CLUSTER
from argosy.gitops.application.canonical_cluster_address import parse_cluster_address
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest
from argosy.observability.metrics import MetricFamily, Sample

IN_CLUSTER_SERVER, IN_CLUSTER_NAME = IN_CLUSTER
INFO_METRIC, CONDITION_METRIC, SYNCS_METRIC = "argocd_app_info", "argocd_app_condition", "argocd_app_sync_total"
SYNC_SECONDS_METRIC: Final = "argocd_app_sync_duration_seconds_total"
ORPHANS_METRIC: Final = "argocd_app_orphaned_resources_count"
METRIC_HELP: Final = {
    INFO_METRIC: "Information about Applications.",
    CONDITION_METRIC: "Conditions of Applications.",
    SYNCS_METRIC: "Operations that have ended since this began.",
    ORPHANS_METRIC: "Objects in the namespace of an Application that no Application tracks.",
    SYNC_SECONDS_METRIC: "Seconds that operations took which have ended since this began.",
}

FindServer = Callable[[Mapping[str, Any]], str]  # destination → server address


def read_destination_server(destination: Mapping[str, Any]) -> str:
    """argo: the server address, also of a destination by name; a caller that knows Secrets passes another function."""
    server = parse_cluster_address(str(destination.get("server") or ""))
    return str(server or (IN_CLUSTER_SERVER if destination.get("name") == IN_CLUSTER_NAME else ""))


def build_application_metrics(
    apps: Iterable[Manifest],
    find_server_address: FindServer = read_destination_server,
    condition_types: Collection[str] = (),
) -> list[MetricFamily]:
    """Build the metrics of Applications. argo: only conditions of the chosen types are exported, by default none."""
    apps = list(apps)
    info_samples = [_build_info_sample(app, find_server_address) for app in apps]
    families = [MetricFamily(INFO_METRIC, "gauge", METRIC_HELP[INFO_METRIC], info_samples)]
    if condition_types:
        samples = [sample for app in apps for sample in _build_condition_samples(app, condition_types)]
        families.append(MetricFamily(CONDITION_METRIC, "gauge", METRIC_HELP[CONDITION_METRIC], samples))
    return families


def build_app_labels(
    manifest: Mapping[str, Any], find_server_address: FindServer = read_destination_server
) -> dict[str, str]:
    metadata = manifest["metadata"]
    return {
        "namespace": str(metadata.get("namespace", "")),
        "name": str(metadata.get("name", "")),
        "project": str(as_mapping(manifest.get("spec")).get("project") or "default"),
        "dest_server": find_server_address(as_mapping(as_mapping(manifest.get("spec")).get("destination"))),
    }


def build_operation_labels(state: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of a finished operation, besides those of its Application."""
    sync = as_mapping(as_mapping(state.get("operation")).get("sync"))
    return {"phase": str(state.get("phase", "")), "dry_run": str(bool(sync.get("dryRun"))).lower()}


def operation_seconds(state: Mapping[str, Any]) -> float:
    """Return the seconds that an operation took; 0 if its times are invalid."""
    try:
        began, ended = (
            datetime.fromisoformat(str(state.get(field_name))) for field_name in ("startedAt", "finishedAt")
        )
        return max(0.0, (ended - began).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _build_condition_samples(app: Manifest, condition_types: Collection[str]) -> Iterator[Sample]:
    conditions = as_mapping(app.get("status")).get("conditions")
    kinds = Counter(
        str(as_mapping(condition).get("type", "")) for condition in (conditions if isinstance(conditions, list) else ())
    )
    labels = build_app_labels(app)
    del labels["dest_server"]  # argo: without it
    for kind, count in sorted(kinds.items()):
        if kind in condition_types:
            yield Sample({**labels, "condition": kind}, count)


def _build_info_sample(manifest: Manifest, find_server_address: FindServer) -> Sample:
    """argo: the labels of argocd_app_info."""
    metadata, spec, status = (as_mapping(manifest.get(field_name)) for field_name in ("metadata", "spec", "status"))
    sources = spec.get("sources")
    source = as_mapping(spec.get("source") or (sources[0] if isinstance(sources, list) and sources else None))
    automated = as_mapping(spec.get("syncPolicy")).get("automated")
    operation = "delete" if metadata.get("deletionTimestamp") else "sync" if manifest.get("operation") else ""
    app_labels = build_app_labels(manifest, find_server_address)
    address = app_labels.pop("dest_server")
    labels = {
        **app_labels,
        "autosync_enabled": str(isinstance(automated, dict) and automated.get("enabled") is not False).lower(),
        "repo": remove_url_user(str(source.get("repoURL", ""))),
        "dest_server": address,
        "dest_namespace": str(as_mapping(spec.get("destination")).get("namespace", "")),
        "sync_status": str(as_mapping(status.get("sync")).get("status") or "Unknown"),
        "health_status": str(as_mapping(status.get("health")).get("status") or "Unknown"),
        "operation": operation,
    }
    return Sample(labels, 1)


def remove_url_user(url: str) -> str:
    """Remove the user from a URL."""
    scheme, separator, remainder = url.partition("://")
    host, slash, path = remainder.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" if separator else url

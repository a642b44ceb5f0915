"""Deployment history and the timeline of Events and syncs, newest first.

In: an Application, Events, commit summaries. Out: DeploymentRow and TimelineEvent values. Never: calls a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from argosy.features.applications.page_parts.url_paths import resource_path
from argosy.gitops.application import Application
from argosy.gitops.status.history import DeploymentRecord, read_deployments
from argosy.gitops.status.rollback_detection import find_restored_id_per_entry
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey, split_api_version

CommitsByRevision = Mapping[str, tuple[str, str, str]]  # subject, author and time by revision


@dataclass(frozen=True, slots=True)
class DeploymentRow:
    id: int
    revisions: tuple[str, ...]
    refs: tuple[str, ...]
    repository: str
    subject: str
    author: str
    deployed: str
    seconds: float | None
    by: str
    is_now: bool
    is_same: bool  # revisions and sources equal the current deployment
    back: int | None = None  # id of the deployment that this rollback restored


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    at: str
    kind: str  # Normal, Warning, Sync
    reason: str
    about: str
    url: str
    message: str
    count: int = 1
    by: str = ""


def list_deployment_rows(app: Application, commits: CommitsByRevision | None = None) -> tuple[DeploymentRow, ...]:
    past_deployments = read_deployments(app.status)
    last = past_deployments[-1] if past_deployments else None
    rollback_targets = find_restored_id_per_entry(as_mappings(app.status.get("history")))
    return tuple(
        _build_deployment_row(deployment, last, commits or {}, rollback_target)
        for deployment, rollback_target in reversed([*zip(past_deployments, rollback_targets, strict=True)])
    )


def _build_deployment_row(
    deployment: DeploymentRecord, last: DeploymentRecord | None, commits: CommitsByRevision, rollback_target: int | None
) -> DeploymentRow:
    subject, author, _ = commits.get(deployment.revisions[0], ("", "", "")) if deployment.revisions else ("", "", "")
    is_same = last is not None and (deployment.revisions, deployment.sources) == (last.revisions, last.sources)
    return DeploymentRow(
        deployment.id,
        deployment.revisions,
        tuple(str(source.get("targetRevision") or "HEAD") for source in deployment.sources),
        str(deployment.sources[0].get("repoURL") or "") if deployment.sources else "",
        subject,
        author,
        deployment.deployed,
        _seconds_between(deployment.started, deployment.deployed),
        "automatic" if deployment.is_automated else deployment.by or "–",
        deployment is last,
        is_same,
        rollback_target,
    )


def _seconds_between(started: str, ended: str) -> float | None:
    try:
        return max((datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None


def list_timeline_events(app: Application, events: Sequence[Manifest], show: str = "all") -> tuple[TimelineEvent, ...]:
    """List Events and syncs, newest first. Syncs come from the history, as clusters delete Events."""
    timeline_events = [build_timeline_event(app, item) for item in events]
    rollback_targets = find_restored_id_per_entry(as_mappings(app.status.get("history")))
    timeline_events += [
        _build_sync_event(*item) for item in zip(read_deployments(app.status), rollback_targets, strict=True)
    ]
    kept = [item for item in timeline_events if show == "all" or item.kind in ("Warning", "Sync")]
    return tuple(sorted(kept, key=lambda item: item.at, reverse=True))


def build_timeline_event(app: Application, event: Manifest) -> TimelineEvent:
    involved_object = as_mapping(event.get("involvedObject"))
    group = split_api_version(str(involved_object.get("apiVersion") or "v1"))[0]
    kind, name = str(involved_object.get("kind") or ""), str(involved_object.get("name") or "")
    key = ResourceKey(group, kind, str(involved_object.get("namespace") or ""), name)
    count = event.get("count")
    return TimelineEvent(
        str(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or ""),
        str(event.get("type") or "Normal"),
        str(event.get("reason") or ""),
        f"{kind}/{name}",
        "" if kind == "Application" else resource_path(app.namespace, app.name, key),
        str(event.get("message") or ""),
        count if isinstance(count, int) else 1,
        str(event.get("reportingComponent") or as_mapping(event.get("source")).get("component") or ""),
    )


def _build_sync_event(deployment: DeploymentRecord, rollback_target: int | None) -> TimelineEvent:
    by = "automatic" if deployment.is_automated else deployment.by
    rollback_text = f"to deployment {rollback_target}, as " if rollback_target is not None else ""
    text = f"{rollback_text}deployment {deployment.id}: {', '.join(deployment.revisions)}"
    return TimelineEvent(
        deployment.deployed, "Sync", "Deployed" if rollback_target is None else "Rolled back", "", "", text, by=by
    )

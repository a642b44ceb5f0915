"""Deployment history and the timeline of Events and syncs, newest first.

In: an Application, Events, commit summaries. Out: DeploymentRow and TimelineEvent values. Never: calls a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from argosy.features.applications.page_parts.addresses import of_resource
from argosy.gitops.application import Application
from argosy.gitops.status.history import Deployment, deployments
from argosy.gitops.status.rollback import gone_back
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import ResourceKey, split_api_version
from argosy.kube.objects import Manifest

Commits = Mapping[str, tuple[str, str, str]]  # subject, author and time by revision


@dataclass(frozen=True, slots=True)
class Entry:
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
class Moment:
    at: str
    kind: str  # Normal, Warning, Sync
    reason: str
    about: str
    url: str
    message: str
    count: int = 1
    by: str = ""


def entries(app: Application, commits: Commits | None = None) -> tuple[Entry, ...]:
    found = deployments(app.status)
    last = found[-1] if found else None
    backs = gone_back(mappings(app.status.get("history")))
    return tuple(_entry(each, last, commits or {}, back) for each, back in reversed([*zip(found, backs, strict=True)]))


def _entry(each: Deployment, last: Deployment | None, commits: Commits, back: int | None) -> Entry:
    subject, author, _ = commits.get(each.revisions[0], ("", "", "")) if each.revisions else ("", "", "")
    is_same = last is not None and (each.revisions, each.sources) == (last.revisions, last.sources)
    return Entry(
        each.id,
        each.revisions,
        tuple(str(source.get("targetRevision") or "HEAD") for source in each.sources),
        str(each.sources[0].get("repoURL") or "") if each.sources else "",
        subject,
        author,
        each.deployed,
        _lasted(each.started, each.deployed),
        "automatic" if each.is_automated else each.by or "–",
        each is last,
        is_same,
        back,
    )


def _lasted(started: str, ended: str) -> float | None:
    try:
        return max((datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None


def moments(app: Application, events: Sequence[Manifest], show: str = "all") -> tuple[Moment, ...]:
    """List Events and syncs, newest first. Syncs come from the history, as clusters delete Events."""
    found = [moment(app, each) for each in events]
    backs = gone_back(mappings(app.status.get("history")))
    found += [_deployed(*each) for each in zip(deployments(app.status), backs, strict=True)]
    kept = [each for each in found if show == "all" or each.kind in ("Warning", "Sync")]
    return tuple(sorted(kept, key=lambda each: each.at, reverse=True))


def moment(app: Application, event: Manifest) -> Moment:
    about = mapping(event.get("involvedObject"))
    group = split_api_version(str(about.get("apiVersion") or "v1"))[0]
    kind, name = str(about.get("kind") or ""), str(about.get("name") or "")
    key = ResourceKey(group, kind, str(about.get("namespace") or ""), name)
    count = event.get("count")
    return Moment(
        str(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or ""),
        str(event.get("type") or "Normal"),
        str(event.get("reason") or ""),
        f"{kind}/{name}",
        "" if kind == "Application" else of_resource(app.namespace, app.name, key),
        str(event.get("message") or ""),
        count if isinstance(count, int) else 1,
        str(event.get("reportingComponent") or mapping(event.get("source")).get("component") or ""),
    )


def _deployed(each: Deployment, back: int | None) -> Moment:
    by = "automatic" if each.is_automated else each.by
    to = f"to deployment {back}, as " if back is not None else ""
    text = f"{to}deployment {each.id}: {', '.join(each.revisions)}"
    return Moment(each.deployed, "Sync", "Deployed" if back is None else "Rolled back", "", "", text, by=by)

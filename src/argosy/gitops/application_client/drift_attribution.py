"""Attributes drift to its authors from status and managedFields, without rendering.

In: an Application, its live objects. Out: a text such as `1 object differs: 1 Git change`, or empty. Never: reports
what is not certain; asks a cluster; renders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypeVar

from argosy.annotations import FIELD_MANAGER
from argosy.gitops.analysis.difference_cause_kinds import CauseKind
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_row import AppRow
from argosy.gitops.application_client.status_summary import is_only_differing, read_synced_revisions
from argosy.gitops.status.history import read_deployments
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

GetLive = Callable[[ResourceKey], Manifest | None]
DriftFingerprint = tuple[Any, ...]
T = TypeVar("T")
CREATE, PRUNE, DELETED = "to create", "to prune", "deleted in the cluster"
MAX_OBJECTS: Final = 500  # objects per Application; above it nothing is attributed
MAX_CACHED_APPLICATIONS: Final = 10_000  # Applications


class DriftTextCache:
    """Caches the results of closer comparisons until Git or the differing objects change."""

    def __init__(self) -> None:
        self._texts: dict[ResourceKey, tuple[DriftFingerprint, str]] = {}
        self._rows: dict[ResourceKey, tuple[AppRow, AppRow]] = {}  # (row, row to show)

    def store(self, app: Application, get_live: GetLive, text: str) -> None:
        self._rows.pop(app.key, None)
        _store_bounded(self._texts, app.key, (build_fingerprint(app, get_live), text))

    def add_drift_text(
        self, row: AppRow, load_application: Callable[[], Application | None], get_live: GetLive
    ) -> AppRow:
        """Return the row with its drift text; the same object as long as the row is unchanged, for speed."""
        cached = self._rows.get(row.key)
        if cached is None or cached[0] is not row:
            app = load_application()
            text = self.describe_drift(app, get_live) if app is not None else ""
            cached = (row, replace(row, why=text) if text else row)
            _store_bounded(self._rows, row.key, cached)
        return cached[1]

    def describe_drift(self, app: Application, get_live: GetLive) -> str:
        """Describe the drift; empty if the Application has other problems or the author is not certain."""
        if not is_only_differing(app):
            return ""
        cached = self._texts.get(app.key)
        return (
            cached[1]
            if cached is not None and cached[0] == build_fingerprint(app, get_live)
            else describe_drift_authors(app, get_live)
        )


def _store_bounded(cache: dict[ResourceKey, T], key: ResourceKey, value: T) -> None:
    cache.pop(key, None)
    cache[key] = value
    if len(cache) > MAX_CACHED_APPLICATIONS:
        cache.pop(next(iter(cache)))


def build_fingerprint(app: Application, get_live: GetLive) -> DriftFingerprint:
    """Build a fingerprint that changes when Git or a differing object changes."""
    versions = (
        (key, _read_metadata(get_live(key)).get("resourceVersion")) for key, _ in _list_out_of_sync(app)[:MAX_OBJECTS]
    )
    return (*read_synced_revisions(app), *versions)


def describe_drift_authors(app: Application, get_live: GetLive) -> str:
    """Count differing objects by author, in the same words as the rendered comparison, which counts fields."""
    resources = _list_out_of_sync(app)
    if not resources or len(resources) > MAX_OBJECTS or not app.destination.is_in_cluster:
        return ""  # objects of other clusters are not cached
    authors = [_find_author(app, resource, get_live(key)) for key, resource in resources]
    if "" in authors:
        return ""
    count = Counter(authors)
    changed = {name: number for name, number in count.most_common() if name not in (CREATE, PRUNE, DELETED)}
    number = sum(changed.values())
    author_counts = ", ".join(f"{resource} {name}" for name, resource in changed.items())
    words = [f"{number} object{' differs' if number == 1 else 's differ'}: {author_counts}"] if changed else []
    words += [f"{count[name]} {name}" for name in (CREATE, PRUNE, DELETED) if count[name]]
    return ", ".join(words)


def _list_out_of_sync(app: Application) -> list[tuple[ResourceKey, Mapping[str, Any]]]:
    resources = (
        resource for resource in as_mappings(app.status.get("resources")) if resource.get("status") == "OutOfSync"
    )
    return [
        (ResourceKey(*(str(resource.get(part) or "") for part in ResourceKey._fields)), resource)
        for resource in resources
    ]


def _find_author(app: Application, resource: Mapping[str, Any], live: Manifest | None) -> str:
    """Return the author of an object's drift; empty if it is not certain."""
    if resource.get("requiresPruning"):
        return PRUNE
    is_new_commit = _is_at_new_commit(app)
    if as_mapping(resource.get("health")).get("status") == "Missing":
        return CREATE if is_new_commit else DELETED
    if live is None:
        return ""  # perhaps not readable
    managers = _list_managers_since(live, app.state.finished or app.state.started if app.state else "")
    if is_new_commit:
        return CauseKind.GIT_CHANGE.label if not managers else ""
    return f"by {managers[-1]}" if managers else ""


def _is_at_new_commit(app: Application) -> bool:
    """True if Git is at another commit than the last deployment; in a large repository nothing may have changed."""
    history = read_deployments(app.status)
    return not history or list(history[-1].revisions) != read_synced_revisions(app)


def _list_managers_since(live: Manifest, since: str) -> Sequence[str]:
    """List managers other than argosy that wrote spec fields since then, latest last."""
    writes = []
    for entry in as_mappings(_read_metadata(live).get("managedFields")):
        written_at, name = _parse_time(entry.get("time")), str(entry.get("manager") or "")
        is_foreign = name != FIELD_MANAGER and not entry.get("subresource")
        if is_foreign and set(as_mapping(entry.get("fieldsV1"))) - {"f:metadata", "f:status"}:
            since_time = _parse_time(since)
            if written_at is None or since_time is None or written_at >= since_time.replace(microsecond=0):
                writes.append((written_at.timestamp() if written_at else 0.0, name))
    return [name for _, name in sorted(writes)]


def _read_metadata(manifest: Manifest | None) -> Mapping[str, Any]:
    return as_mapping((manifest or {}).get("metadata"))


def _parse_time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None

"""Attributes drift to its authors from status and managedFields, without rendering.

In: an Application, its live objects. Out: a text such as `1 object differs: 1 your change`, or empty. Never: reports
what is not certain; asks a cluster; renders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypeVar

from argosy.annotations import FIELD_MANAGER
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_row import AppRow
from argosy.gitops.application_client.summary import is_only_differing, revisions
from argosy.gitops.status.history import deployments
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

Get = Callable[[ResourceKey], Manifest | None]
Mark = tuple[Any, ...]
T = TypeVar("T")
MINE: Final = "your change"
CREATE, PRUNE, DELETED = "to create", "to prune", "deleted in the cluster"
MOST: Final = 500  # objects per Application; above it nothing is attributed
REMEMBERED: Final = 10_000  # Applications


class Doings:
    """Caches the results of closer comparisons until Git or the differing objects change."""

    def __init__(self) -> None:
        self._known: dict[ResourceKey, tuple[Mark, str]] = {}
        self._rows: dict[ResourceKey, tuple[AppRow, AppRow]] = {}  # (row, row to show)

    def keep(self, app: Application, live: Get, text: str) -> None:
        self._rows.pop(app.key, None)
        _remember(self._known, app.key, (mark(app, live), text))

    def shown(self, row: AppRow, read: Callable[[], Application | None], live: Get) -> AppRow:
        """Return the row with its drift text; the same object as long as the row is unchanged, for speed."""
        known = self._rows.get(row.key)
        if known is None or known[0] is not row:
            app = read()
            text = self.told(app, live) if app is not None else ""
            known = (row, replace(row, why=text) if text else row)
            _remember(self._rows, row.key, known)
        return known[1]

    def told(self, app: Application, live: Get) -> str:
        """Describe the drift; empty if the Application has other problems or the author is not certain."""
        if not is_only_differing(app):
            return ""
        known = self._known.get(app.key)
        return known[1] if known is not None and known[0] == mark(app, live) else whose(app, live)


def _remember(among: dict[ResourceKey, T], key: ResourceKey, value: T) -> None:
    among.pop(key, None)
    among[key] = value
    if len(among) > REMEMBERED:
        among.pop(next(iter(among)))


def mark(app: Application, live: Get) -> Mark:
    """Build a fingerprint that changes when Git or a differing object changes."""
    versions = ((key, _metadata(live(key)).get("resourceVersion")) for key, _ in _differing(app)[:MOST])
    return (*revisions(app), *versions)


def whose(app: Application, live: Get) -> str:
    """Count differing objects by author, in the same words as the rendered comparison, which counts fields."""
    found = _differing(app)
    if not found or len(found) > MOST or not app.destination.is_here:
        return ""  # objects of other clusters are not cached
    doings = [_doing(app, each, live(key)) for key, each in found]
    if "" in doings:
        return ""
    count = Counter(doings)
    changed = {name: number for name, number in count.most_common() if name not in (CREATE, PRUNE, DELETED)}
    number = sum(changed.values())
    by = ", ".join(f"{each} {name}" for name, each in changed.items())
    words = [f"{number} object{' differs' if number == 1 else 's differ'}: {by}"] if changed else []
    words += [f"{count[name]} {name}" for name in (CREATE, PRUNE, DELETED) if count[name]]
    return ", ".join(words)


def _differing(app: Application) -> list[tuple[ResourceKey, Mapping[str, Any]]]:
    found = (each for each in mappings(app.status.get("resources")) if each.get("status") == "OutOfSync")
    return [(ResourceKey(*(str(each.get(part) or "") for part in ResourceKey._fields)), each) for each in found]


def _doing(app: Application, row: Mapping[str, Any], live: Manifest | None) -> str:
    """Return the author of an object's drift; empty if it is not certain."""
    if row.get("requiresPruning"):
        return PRUNE
    has_moved = _has_moved(app)
    if mapping(row.get("health")).get("status") == "Missing":
        return CREATE if has_moved else DELETED
    if live is None:
        return ""  # perhaps not readable
    others = _writers(live, app.state.finished or app.state.started if app.state else "")
    if has_moved:
        return MINE if not others else ""
    return f"by {others[-1]}" if others else ""


def _has_moved(app: Application) -> bool:
    """True if Git is at another commit than the last deployment; in a large repository nothing may have changed."""
    history = deployments(app.status)
    return not history or list(history[-1].revisions) != revisions(app)


def _writers(live: Manifest, since: str) -> Sequence[str]:
    """List managers other than argosy that wrote spec fields since then, latest last."""
    found = []
    for each in mappings(_metadata(live).get("managedFields")):
        at, name = _time(each.get("time")), str(each.get("manager") or "")
        is_theirs = name != FIELD_MANAGER and not each.get("subresource")
        if is_theirs and set(mapping(each.get("fieldsV1"))) - {"f:metadata", "f:status"}:
            began = _time(since)
            if at is None or began is None or at >= began.replace(microsecond=0):
                found.append((at.timestamp() if at else 0.0, name))
    return [name for _, name in sorted(found)]


def _metadata(manifest: Manifest | None) -> Mapping[str, Any]:
    return mapping((manifest or {}).get("metadata"))


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None

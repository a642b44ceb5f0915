"""Whose doing it is that an Application differs, as far as that is known without rendering anything.

In: an Application, what lives of it. Out: `1 object differs: 1 your change`, or nothing. Never: more than is certain;
asks a cluster; renders.
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
MOST: Final = 500  # objects of one application; of more it is only counted
REMEMBERED: Final = 10_000  # applications


class Doings:
    """What was found by those who looked closely, until what they looked at changes."""

    def __init__(self) -> None:
        self._known: dict[ResourceKey, tuple[Mark, str]] = {}
        self._rows: dict[ResourceKey, tuple[AppRow, AppRow]] = {}  # as it is known, as it is shown

    def keep(self, app: Application, live: Get, text: str) -> None:
        self._rows.pop(app.key, None)
        _remember(self._known, app.key, (mark(app, live), text))

    def shown(self, row: AppRow, read: Callable[[], Application | None], live: Get) -> AppRow:
        """The same value as long as the row is: thousands are shown again and again."""
        known = self._rows.get(row.key)
        if known is None or known[0] is not row:
            app = read()
            text = self.told(app, live) if app is not None else ""
            known = (row, replace(row, why=text) if text else row)
            _remember(self._rows, row.key, known)
        return known[1]

    def told(self, app: Application, live: Get) -> str:
        """Empty where there is more to say of it than what differs, and where whose doing it is is not certain."""
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
    """The same as long as neither Git nor what differs has changed."""
    versions = ((key, _metadata(live(key)).get("resourceVersion")) for key, _ in _differing(app)[:MOST])
    return (*revisions(app), *versions)


def whose(app: Application, live: Get) -> str:
    """In objects, for fields are counted by who renders; in the words that those use."""
    found = _differing(app)
    if not found or len(found) > MOST or not app.destination.is_here:
        return ""  # what lives elsewhere is not at hand
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
    """Empty where it may be the one's or the other's."""
    if row.get("requiresPruning"):
        return PRUNE
    has_moved = _has_moved(app)
    if mapping(row.get("health")).get("status") == "Missing":
        return CREATE if has_moved else DELETED
    if live is None:
        return ""  # perhaps it may not be read
    others = _writers(live, app.state.finished or app.state.started if app.state else "")
    if has_moved:
        return MINE if not others else ""
    return f"by {others[-1]}" if others else ""


def _has_moved(app: Application) -> bool:
    """Whether Git has another commit than the one that was deployed last; in a large repository that may be no news."""
    history = deployments(app.status)
    return not history or list(history[-1].revisions) != revisions(app)


def _writers(live: Manifest, since: str) -> Sequence[str]:
    """Who but the engine has written what Git may ask for, since then; the latest last."""
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

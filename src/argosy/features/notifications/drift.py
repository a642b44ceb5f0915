"""Drift of live objects from Git while Git did not change: object, field and field manager.

In: an Application, live manifests. Out: plain data for expressions and templates, or None. Never: includes a field
value, which may be secret.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from argosy.annotations import FIELD_MANAGER, LAST_APPLIED
from argosy.errors import PatchError
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, annotation
from argosy.kube.patch.field_sets import path_text
from argosy.kube.patch.managed_fields import Manager, managers_of

MOST_OBJECTS, MOST_FIELDS = 20, 20
NOBODY: Final = "somebody unknown"
_ABSENT: Final = object()


def drifted(app: Manifest) -> list[ResourceKey]:
    """List the keys that are OutOfSync although the source equals the last synced one; empty if nothing drifted."""
    status = _map(app.get("status"))
    sync, history = _map(status.get("sync")), status.get("history")
    last = _map(history[-1]) if isinstance(history, list) and history else {}
    if sync.get("status") != "OutOfSync" or not last or _is_busy(app):
        return []
    if not _is_same_source(app, sync, last):
        return []
    found = []
    for each in status.get("resources") or ():
        if each.get("status") == "OutOfSync" and not each.get("requiresPruning") and not each.get("hook"):
            names = (str(each.get(name) or "") for name in ("group", "kind", "namespace", "name"))
            found.append(ResourceKey(*names))
    return found[:MOST_OBJECTS]


def _is_busy(app: Manifest) -> bool:
    """Return True during a sync and until the next comparison; differences then belong to the sync."""
    status = _map(app.get("status"))
    state = _map(status.get("operationState"))
    is_compared = str(status.get("reconciledAt") or "~") >= str(state.get("finishedAt") or "")
    return bool(app.get("operation")) or state.get("phase") in ("Running", "Terminating") or not is_compared


def _is_same_source(app: Manifest, sync: Mapping[str, Any], last: Mapping[str, Any]) -> bool:
    spec = _map(app.get("spec"))
    if sync.get("revisions"):
        return sync["revisions"] == last.get("revisions") and spec.get("sources") == last.get("sources")
    known = last.get("source")
    return sync.get("revision") == last.get("revision") and (not known or spec.get("source") == known)


def drift_of(app: Manifest, live: Mapping[ResourceKey, Manifest | None]) -> dict[str, Any] | None:
    since = str(_map((_map(app.get("status")).get("history") or [{}])[-1]).get("deployedAt") or "")
    # An object without drifted fields may have been fixed by a sync that the status does not show yet.
    objects = [found for key, each in live.items() if (found := _object(key, each, since)) is not None]
    if not objects:
        return None
    told = orjson.dumps([app["status"]["sync"].get("revision"), objects], option=orjson.OPT_SORT_KEYS)
    return {"id": hashlib.sha256(told).hexdigest()[:16], "objects": objects}


def _object(key: ResourceKey, manifest: Manifest | None, since: str) -> dict[str, Any] | None:
    named = {"group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name}
    if manifest is None:
        return {**named, "fields": [], "why": "it was deleted"}
    fields = sorted(_fields(manifest, since), key=lambda each: str(each["path"]))[:MOST_FIELDS]
    return {**named, "fields": fields, "why": ""} if fields else None


def _fields(manifest: Manifest, since: str) -> Iterator[dict[str, str]]:
    applied = _applied(manifest)
    told: set[str] = set()
    for manager in _others(manifest):
        for path in manager.fields.paths():
            text = path_text(path)
            if text not in told and _is_drift(path, applied, manifest, manager, since):
                told.add(text)
                yield {"path": text, "manager": manager.name, "since": manager.time}
    for path in _lost(applied or {}, manifest, ()):
        yield {"path": path_text(path), "manager": NOBODY, "since": ""}


def _others(manifest: Manifest) -> list[Manager]:
    try:
        found = managers_of(manifest)
        return [each for each in found if each.name != FIELD_MANAGER and not each.subresource and each.fields.tree]
    except PatchError:
        return []


def _is_drift(path: tuple[str, ...], applied: Manifest | None, live: Manifest, manager: Manager, since: str) -> bool:
    """Compare with the last applied manifest; if it is unknown, report fields that others wrote after the last sync."""
    if applied is None:
        return bool(since) and manager.time > since and path[:1] != ("f:status",)
    wanted, found = _at(applied, path), _at(live, path)
    return wanted is not _ABSENT and not isinstance(found, dict) and wanted != found


def _applied(manifest: Manifest) -> Manifest | None:
    text = annotation(manifest, LAST_APPLIED)
    try:
        found = orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for element in path:
        kind, _, text = element.partition(":")
        if kind == "f" and isinstance(value, dict):
            value = value.get(text, _ABSENT)
        elif kind == "i" and isinstance(value, list) and text.isdecimal() and int(text) < len(value):
            value = value[int(text)]
        elif kind == "k" and isinstance(value, list):
            wanted = orjson.loads(text)
            value = next((each for each in value if _has(each, wanted)), _ABSENT)
        elif kind == "v" and isinstance(value, list):
            value = orjson.loads(text) if orjson.loads(text) in value else _ABSENT
        else:
            return _ABSENT
    return value


def _has(item: Any, wanted: Mapping[str, Any]) -> bool:
    """Match a list item by its keys; a missing key matches, because the server may default it."""
    return isinstance(item, dict) and all(item.get(name, value) == value for name, value in wanted.items())


def _lost(applied: Mapping[str, Any], live: Any, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield paths of fields that were applied and are missing in the live object."""
    for name, value in applied.items():
        path = (*at, f"f:{name}")
        if not at and name in ("apiVersion", "kind", "status", "metadata"):
            continue
        if not isinstance(live, dict) or name not in live:
            if value not in (None, {}, [], ""):
                yield path
        elif isinstance(value, dict):
            yield from _lost(value, live[name], path)
        elif isinstance(value, list) and isinstance(live[name], list) and len(live[name]) < len(value):
            yield path


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}

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
from argosy.gitops.application.sources import are_sources_equal
from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.patch.field_sets import format_path
from argosy.kube.patch.managed_fields import Manager, read_managers
from argosy.kube.resource_key import ResourceKey

MAX_DRIFTED_OBJECTS, MAX_DRIFTED_FIELDS = 20, 20
UNKNOWN_MANAGER: Final = "somebody unknown"
_ABSENT: Final = object()


def list_drifted_keys(app: Manifest) -> list[ResourceKey]:
    """List the keys that are OutOfSync although the source equals the last synced one; empty if nothing drifted."""
    status = _as_map(app.get("status"))
    sync, history = _as_map(status.get("sync")), status.get("history")
    last_deployment = _as_map(history[-1]) if isinstance(history, list) and history else {}
    if sync.get("status") != "OutOfSync" or not last_deployment or _is_syncing(app):
        return []
    if not _is_same_source(app, sync, last_deployment):
        return []
    keys = []
    for resource in status.get("resources") or ():
        if resource.get("status") == "OutOfSync" and not resource.get("requiresPruning") and not resource.get("hook"):
            key_parts = (str(resource.get(name) or "") for name in ("group", "kind", "namespace", "name"))
            keys.append(ResourceKey(*key_parts))
    return keys[:MAX_DRIFTED_OBJECTS]


def _is_syncing(app: Manifest) -> bool:
    """Return True during a sync and until the next comparison; differences then belong to the sync."""
    status = _as_map(app.get("status"))
    state = _as_map(status.get("operationState"))
    is_compared = str(status.get("reconciledAt") or "~") >= str(state.get("finishedAt") or "")
    return bool(app.get("operation")) or state.get("phase") in ("Running", "Terminating") or not is_compared


def _is_same_source(app: Manifest, sync: Mapping[str, Any], last_deployment: Mapping[str, Any]) -> bool:
    name = "revisions" if sync.get("revisions") else "revision"
    deployed_sources = _list_sources(last_deployment)
    return sync.get(name) == last_deployment.get(name) and (
        not deployed_sources or are_sources_equal(_list_sources(_as_map(app.get("spec"))), deployed_sources)
    )


def _list_sources(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """argo: Next to `sources`, `source` does not count."""
    sources = fields.get("sources")
    return [_as_map(source) for source in (sources if isinstance(sources, list) else [fields.get("source")]) if source]


def build_drift(app: Manifest, live: Mapping[ResourceKey, Manifest | None]) -> dict[str, Any] | None:
    since = str(_as_map((_as_map(app.get("status")).get("history") or [{}])[-1]).get("deployedAt") or "")
    # An object without drifted fields may have been fixed by a sync that the status does not show yet.
    objects = [
        drifted_object
        for key, manifest in live.items()
        if (drifted_object := _build_object_drift(key, manifest, since)) is not None
    ]
    if not objects:
        return None
    digest_input = orjson.dumps([app["status"]["sync"].get("revision"), objects], option=orjson.OPT_SORT_KEYS)
    return {"id": hashlib.sha256(digest_input).hexdigest()[:16], "objects": objects}


def _build_object_drift(key: ResourceKey, manifest: Manifest | None, since: str) -> dict[str, Any] | None:
    key_fields = {"group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name}
    if manifest is None:
        return {**key_fields, "fields": [], "why": "it was deleted"}
    fields = sorted(_list_drifted_fields(manifest, since), key=lambda drifted_field: str(drifted_field["path"]))[
        :MAX_DRIFTED_FIELDS
    ]
    return {**key_fields, "fields": fields, "why": ""} if fields else None


def _list_drifted_fields(manifest: Manifest, since: str) -> Iterator[dict[str, str]]:
    applied = _read_last_applied(manifest)
    seen_paths: set[str] = set()
    for manager in _list_foreign_managers(manifest):
        for path in manager.fields.paths():
            text = format_path(path)
            if text not in seen_paths and _is_drift(path, applied, manifest, manager, since):
                seen_paths.add(text)
                yield {"path": text, "manager": manager.name, "since": manager.time}
    for path in _list_missing_fields(applied or {}, manifest, ()):
        yield {"path": format_path(path), "manager": UNKNOWN_MANAGER, "since": ""}


def _list_foreign_managers(manifest: Manifest) -> list[Manager]:
    try:
        managers = read_managers(manifest)
        return [
            manager
            for manager in managers
            if manager.name != FIELD_MANAGER and not manager.subresource and manager.fields.tree
        ]
    except PatchError:
        return []


def _is_drift(path: tuple[str, ...], applied: Manifest | None, live: Manifest, manager: Manager, since: str) -> bool:
    """Compare with the last applied manifest; if it is unknown, report fields that others wrote after the last sync."""
    if applied is None:
        return bool(since) and manager.time > since and path[:1] != ("f:status",)
    applied_value, live_value = _get_value(applied, path), _get_value(live, path)
    return applied_value is not _ABSENT and not isinstance(live_value, dict) and applied_value != live_value


def _read_last_applied(manifest: Manifest) -> Manifest | None:
    text = get_annotation(manifest, LAST_APPLIED)
    try:
        applied = orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None
    return applied if isinstance(applied, dict) else None


def _get_value(value: Any, path: tuple[str, ...]) -> Any:
    for element in path:
        kind, _, text = element.partition(":")
        if kind == "f" and isinstance(value, dict):
            value = value.get(text, _ABSENT)
        elif kind == "i" and isinstance(value, list) and text.isdecimal() and int(text) < len(value):
            value = value[int(text)]
        elif kind == "k" and isinstance(value, list):
            key_values = orjson.loads(text)
            value = next((item for item in value if _matches_keys(item, key_values)), _ABSENT)
        elif kind == "v" and isinstance(value, list):
            value = orjson.loads(text) if orjson.loads(text) in value else _ABSENT
        else:
            return _ABSENT
    return value


def _matches_keys(item: Any, key_values: Mapping[str, Any]) -> bool:
    """Match a list item by its keys; a missing key matches, because the server may default it."""
    return isinstance(item, dict) and all(item.get(name, value) == value for name, value in key_values.items())


def _list_missing_fields(
    applied: Mapping[str, Any], live: Any, parent_path: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """Yield paths of fields that were applied and are missing in the live object."""
    for name, value in applied.items():
        path = (*parent_path, f"f:{name}")
        if not parent_path and name in ("apiVersion", "kind", "status", "metadata"):
            continue
        if not isinstance(live, dict) or name not in live:
            if value not in (None, {}, [], ""):
                yield path
        elif isinstance(value, dict):
            yield from _list_missing_fields(value, live[name], path)
        elif isinstance(value, list) and isinstance(live[name], list) and len(live[name]) < len(value):
            yield path


def _as_map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}

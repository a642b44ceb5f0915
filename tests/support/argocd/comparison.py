"""Compares what Argo CD and argosy made of the same Applications: status, live objects, Events.

In: the objects of both clusters. Out: differences by path, without what differs in any two runs (times, uids, versions,
names with a random end). Never: changes an object.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from argosy.annotations import LAST_APPLIED

_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_DURATION_IN_MESSAGE: Final = re.compile(r"(?<=\()\d+(\.\d+)?m?s(?=\))")
_PER_RUN_FIELDS: Final = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "time", "lastTransitionTime", "clusterIP", "clusterIPs"}
    | {"observedGeneration"}  # as metadata.generation: it counts writes
    | {"argocd.argoproj.io/hydrate"}  # each refresh by Argo CD's server asks for it; without a hydrator it stays
)
_WRITTEN_EMPTY_BY_GO: Final = frozenset({"summary", "sourceHydrator"})  # each in some patches only
_METADATA_PER_RUN: Final = frozenset({"generation", "selfLink"})
_RANDOM_NAME_END: Final = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_START_IN_HOOK_NAME: Final = re.compile(r"(?<=sync-)\d{10}\b|(?<=syncfail-)\d{10}\b")
_PORT: Final = re.compile(r"localhost:\d+")
_FILE_OF_KUBECTL: Final = re.compile(r'(?:(?<=error when patching )|(?<=error when replacing ))"(/dev/shm/\d+|STDIN)"')
_PER_RUN_TEXTS: Final = {
    _UID: "<uid>",
    _TIME: "<time>",
    _DURATION_IN_MESSAGE: "0s",
    _RANDOM_NAME_END: "-xxxxx",
    _START_IN_HOOK_NAME: "<start>",
    _PORT: "localhost:<port>",
    _FILE_OF_KUBECTL: '"<file>"',
}
# Argo CD's managed fields name its programs.
_MANAGERS: Final = {"argosy": "argocd-controller", "argocd-application-controller": "argocd-controller"}


class Difference(NamedTuple):
    """One field that differs; a missing value is None."""

    subject: str  # such as `Application guestbook` or `apps/Deployment guestbook-ui`
    path: str
    argocd: Any
    argosy: Any

    def __str__(self) -> str:
        return f"{self.subject}: {self.path}\n    argocd: {_shorten(self.argocd)}\n    argosy: {_shorten(self.argosy)}"


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 600 else f"{text[:600]}…"


def normalize_status(application: Mapping[str, Any]) -> dict[str, Any]:
    """Return spec, operation and status without times; resources in the order of their keys."""
    fields = {name: application[name] for name in ("operation", "status") if name in application}
    normalized: dict[str, Any] = normalize_value(fields)
    status = normalized.get("status", {})
    status.pop("reconciledAt", None)
    for name in _WRITTEN_EMPTY_BY_GO & status.keys():
        if not status[name]:
            del status[name]
    if isinstance(status.get("resources"), list):
        status["resources"] = sorted(status["resources"], key=_resource_order)
    result = (status.get("operationState") or {}).get("syncResult") or {}
    if isinstance(result.get("resources"), list):
        result["resources"] = sorted(result["resources"], key=_resource_order)
    return {
        **normalized,
        "finalizers": application["metadata"].get("finalizers"),
        "annotations": normalize_value(application["metadata"].get("annotations")) or None,
    }


def normalize_object(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a live object as two runs of the same program would leave it, with its owners of fields."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in _METADATA_PER_RUN}
    entries = metadata.pop("managedFields", None) or ()
    annotations = dict(metadata.get("annotations") or {})
    if LAST_APPLIED in annotations:
        annotations[LAST_APPLIED] = json.loads(annotations[LAST_APPLIED])
        metadata["annotations"] = annotations
    normalized: dict[str, Any] = normalize_value({**manifest, "metadata": metadata})
    normalized["managedFields"] = {_name_manager(entry): normalize_value(entry.get("fieldsV1")) for entry in entries}
    return normalized


def _name_manager(entry: Mapping[str, Any]) -> str:
    manager = _MANAGERS.get(entry["manager"], entry["manager"])
    return f"{manager} {entry['operation']} {entry.get('subresource', '')}".rstrip()


def normalize_text(text: str) -> str:
    """Replace what differs in any two runs: times, uids, random ends of names."""
    for pattern, replacement in _PER_RUN_TEXTS.items():
        text = pattern.sub(replacement, text)
    return text


def find_differences(subject: str, argocd: Any, argosy: Any) -> Iterator[Difference]:
    yield from (
        Difference(subject, path or ".", left, right) for path, left, right in _walk_differences("", argocd, argosy)
    )


def compare_objects(
    argocd: Mapping[str, Mapping[str, Any]], argosy: Mapping[str, Mapping[str, Any]]
) -> Iterator[Difference]:
    """Compare objects by key; an object that only one side has is one difference."""
    for key in sorted({*argocd, *argosy}):
        left, right = argocd.get(key), argosy.get(key)
        if left is None or right is None:
            yield Difference(key, "(object)", left and "exists", right and "exists")
        else:
            yield from find_differences(key, normalize_object(left), normalize_object(right))


def _walk_differences(path: str, left: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for name in sorted({*left, *right}):
            yield from _walk_differences(f"{path}.{name}" if path else name, left.get(name), right.get(name))
    elif isinstance(left, list) and isinstance(right, list) and _are_keyed(left) and _are_keyed(right):
        left_items, right_items = _index(left), _index(right)
        for key in sorted({*left_items, *right_items}):
            yield from _walk_differences(f"{path}[{key}]", left_items.get(key), right_items.get(key))
    elif isinstance(left, list) and isinstance(right, list):
        for number, (one, other) in enumerate(itertools.zip_longest(left, right)):
            yield from _walk_differences(f"{path}[{number}]", one, other)
    elif type(left) is not type(right) or left != right:
        yield path, left, right


def _are_keyed(items: Sequence[Any]) -> bool:
    """True for resources of a status, which are compared by kind and name."""
    return all(isinstance(item, Mapping) and "kind" in item and "version" in item for item in items)


def _index(items: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Index by kind, name and phase. Namespaces may differ, and so may names that end with a random part."""
    indexed: dict[str, Mapping[str, Any]] = {}
    for item in items:
        name = str(item.get("name") or "")
        key = f"{item.get('group', '')}/{item['kind']}/{'' if name.endswith('-') else name}/{item.get('syncPhase', '')}"
        indexed[key if key not in indexed else f"{key}#{len(indexed)}"] = item
    return indexed


def _resource_order(resource: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        str(resource.get(name, "")) for name in ("group", "kind", "namespace", "name", "syncPhase", "hookType")
    )


def normalize_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            _UID.sub("<uid>", name): normalize_value(item)
            for name, item in value.items()
            if name not in _PER_RUN_FIELDS
        }
    if isinstance(value, list):
        return [normalize_value(item) for item in value]
    if isinstance(value, str):
        return normalize_text(value)
    return value

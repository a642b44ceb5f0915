"""One manifest on its way into a file, and out of it.

In: a manifest. Out: the part of it that is the same in every cluster. Never: I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from argosy import annotations as names
from argosy.gitops.application import Progress
from argosy.gitops.status.wire_format import mapping
from argosy.kube.objects import Manifest, dump

# Of the moment, and of one cluster
FLEETING: Final = frozenset({names.REFRESH, names.REFRESH_TIMESTAMP, names.NOTIFYING, names.FENCE})
# Written by add-ons where it lives: what they know there is newer than a file
LIVING: Final = frozenset({names.NOTIFIED, names.NOTEBOOK_STATUS, names.NOTEBOOK_SUMMARY})
# Decided by people where it lives: to take it from a file would sync what they hold, or hand over what they adopted
DECIDED: Final = frozenset({names.HOLD, names.ENGINE, names.SKIP_RECONCILE, names.DELETION_APPROVED})
BODIES: Final = {"ConfigMap": ("data", "binaryData"), "Secret": ("type", "data")}
TEXTS: Final = {"ConfigMap": ("data", "binaryData"), "Secret": ("data", "stringData")}  # each a name and its text
FIRST: Final = "# Written by argosy admin export: it is whole if its last line says so"
LAST: Final = "# This is the last line of what argosy admin export wrote"
OVER: Final = frozenset(each.value for each in Progress if each.is_over)


def exported(manifest: Manifest, control: str) -> dict[str, Any]:
    """argo: as its export writes it: without what only that cluster knows, and with a namespace where it is another."""
    metadata = manifest["metadata"]
    kept: dict[str, Any] = {"name": metadata["name"]}
    namespace = metadata.get("namespace")
    if namespace and namespace != control:
        kept["namespace"] = namespace
    annotations = {name: text for name, text in (metadata.get("annotations") or {}).items() if name not in FLEETING}
    for name, value in (("labels", metadata.get("labels")), ("annotations", annotations)):
        if value:
            kept[name] = dict(value)
    if metadata.get("finalizers"):
        kept["finalizers"] = list(metadata["finalizers"])
    found: dict[str, Any] = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": kept}
    for name in BODIES.get(manifest["kind"], ("spec",)):
        if name in manifest:
            found[name] = manifest[name]
    if manifest["kind"] == "Application" and (status := at_rest(mapping(manifest.get("status")))):
        found["status"] = status
    return found


def misshapen(manifest: Manifest) -> str:
    """What of it has a shape that no cluster would take; empty where it can be read."""
    metadata = manifest["metadata"]
    if not metadata.get("name"):
        return "metadata.name is missing"
    if not isinstance(metadata.get("namespace") or "", str):
        return "metadata.namespace is no text"
    texts = {f"metadata.{each}": metadata.get(each) or {} for each in ("labels", "annotations")}
    texts |= {each: manifest.get(each) or {} for each in TEXTS.get(manifest["kind"], ())}
    for place, found in texts.items():
        if not isinstance(found, dict) or not _are_texts(found.values()):
            return f"{place} is no mapping of names to texts"
    finalizers = metadata.get("finalizers") or []
    if not isinstance(finalizers, list) or not _are_texts(finalizers):
        return "metadata.finalizers is no list of texts"
    for place in ("spec", "status"):
        if not isinstance(manifest.get(place) or {}, dict):
            return f"{place} is no mapping"
    is_list = isinstance(mapping(manifest.get("status")).get("history") or [], list)
    return "" if is_list else "status.history is no list"


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(each, str) for each in values)


def at_rest(status: Mapping[str, Any]) -> dict[str, Any]:
    """Without an operation that is not over: it must not go on in another cluster."""
    state = mapping(status.get("operationState"))
    is_over = str(state.get("phase")) in OVER
    return {name: value for name, value in status.items() if name != "operationState" or is_over}


def moved(found: Mapping[str, Any]) -> dict[str, Any]:
    """As it is written where it comes to: of its status, the history alone.

    What was synced, compared and found healthy elsewhere says nothing of here. Worse, an automated sync tries no
    revision twice: where nothing of it lives yet, an operation that goes along would keep it from being delivered.
    """
    history = mapping(found.get("status")).get("history")
    kept = {name: value for name, value in found.items() if name != "status"}
    return {**kept, "status": {"history": history}} if history else kept


def stream(manifests: list[dict[str, Any]]) -> str:
    """argo: a separator after each. The first line says that there is a last one: both are comments for others."""
    return "".join((f"{FIRST}\n", *(f"{dump(each)}---\n" for each in manifests), f"{LAST}\n"))


def is_whole(content: bytes) -> bool:
    """Whether each first line has its last one; what others wrote has neither, and is taken at its word."""
    marks = (FIRST.encode(), LAST.encode())
    found = [line for each in content.splitlines() if (line := each.rstrip()) in marks]
    return found == [*marks] * (len(found) // 2)

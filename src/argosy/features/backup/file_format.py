"""Format of exported manifests, and checks of imported ones.

In: a manifest. Out: the manifest without cluster-specific fields. Never: I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from argosy import annotations as names
from argosy.gitops.application import Progress
from argosy.gitops.status.wire_format import mapping
from argosy.kube.objects import Manifest, dump

# Transient, and specific to one cluster
FLEETING: Final = frozenset({names.REFRESH, names.REFRESH_TIMESTAMP, names.NOTIFYING, names.FENCE})
# Written by add-ons in the cluster: newer there than in a file
LIVING: Final = frozenset({names.NOTIFIED, names.NOTEBOOK_STATUS, names.NOTEBOOK_SUMMARY})
# User decisions in the cluster: overwriting them could sync a held Application, or hand over an adopted one
DECIDED: Final = frozenset({names.HOLD, names.ENGINE, names.SKIP_RECONCILE, names.DELETION_APPROVED})
BODIES: Final = {"ConfigMap": ("data", "binaryData"), "Secret": ("type", "data")}
TEXTS: Final = {"ConfigMap": ("data", "binaryData"), "Secret": ("data", "stringData")}  # maps of strings
FIRST: Final = "# Written by argosy admin export: it is whole if its last line says so"
LAST: Final = "# This is the last line of what argosy admin export wrote"
OVER: Final = frozenset(each.value for each in Progress if each.is_over)


def exported(manifest: Manifest, control: str) -> dict[str, Any]:
    """argo: as `argocd admin export` writes it: without cluster-specific fields and without the control namespace."""
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
    """Describe an invalid field of the manifest; empty if the manifest is valid."""
    metadata = manifest["metadata"]
    if not metadata.get("name"):
        return "metadata.name is missing"
    if not isinstance(metadata.get("namespace") or "", str):
        return "metadata.namespace is not a string"
    texts = {f"metadata.{each}": metadata.get(each) or {} for each in ("labels", "annotations")}
    texts |= {each: manifest.get(each) or {} for each in TEXTS.get(manifest["kind"], ())}
    for place, found in texts.items():
        if not isinstance(found, dict) or not _are_texts(found.values()):
            return f"{place} is not a map of strings"
    finalizers = metadata.get("finalizers") or []
    if not isinstance(finalizers, list) or not _are_texts(finalizers):
        return "metadata.finalizers is not a list of strings"
    for place in ("spec", "status"):
        if not isinstance(manifest.get(place) or {}, dict):
            return f"{place} is not a map"
    is_list = isinstance(mapping(manifest.get("status")).get("history") or [], list)
    return "" if is_list else "status.history is not a list"


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(each, str) for each in values)


def at_rest(status: Mapping[str, Any]) -> dict[str, Any]:
    """The status without a running operation, which must not continue in another cluster."""
    state = mapping(status.get("operationState"))
    is_over = str(state.get("phase")) in OVER
    return {name: value for name, value in status.items() if name != "operationState" or is_over}


def moved(found: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest to write into the target cluster: of the status, only the history.

    Sync and health status of another cluster do not apply here. Also, an automated sync tries each revision once:
    an imported operation would prevent the first sync in the new cluster.
    """
    history = mapping(found.get("status")).get("history")
    kept = {name: value for name, value in found.items() if name != "status"}
    return {**kept, "status": {"history": history}} if history else kept


def stream(manifests: list[dict[str, Any]]) -> str:
    """argo: a separator after each manifest. A comment in the first and the last line detects truncation."""
    return "".join((f"{FIRST}\n", *(f"{dump(each)}---\n" for each in manifests), f"{LAST}\n"))


def is_whole(content: bytes) -> bool:
    """True if every first-line marker has its last-line marker; files of other tools have neither and are accepted."""
    marks = (FIRST.encode(), LAST.encode())
    found = [line for each in content.splitlines() if (line := each.rstrip()) in marks]
    return found == [*marks] * (len(found) // 2)

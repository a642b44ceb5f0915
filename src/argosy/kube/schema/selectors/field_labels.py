"""Selectable fields of each kind, and how to read them.

In: a kind. Out: FieldLabels, which turns a FieldSelector into a predicate, or rejects it with the server's message.
Never: silently matches nothing for an unknown field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy.errors import ManifestError
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.kube.schema.field_error import go_value
from argosy.kube.schema.selectors.fields import FieldSelector

Reader = Callable[[Manifest], str]


class FieldLabels:
    """`readers` read the value of a field label; `error_template` has the placeholders `{label}` and `{quoted}`."""

    __slots__ = ("readers", "words")

    def __init__(self, readers: Mapping[str, Reader], words: str) -> None:
        self.readers = readers
        self.words = words

    def read(self, label: str, manifest: Manifest) -> str:
        return self._reader(label)(manifest)

    def predicate(self, selector: FieldSelector) -> Callable[[Manifest], bool]:
        """Build a predicate of manifests; raise ManifestError if the selector uses an unsupported field."""
        terms = tuple((self._reader(path), value, negated) for path, value, negated in selector.terms)
        return lambda manifest: all((read(manifest) == value) is not negated for read, value, negated in terms)

    def _reader(self, label: str) -> Reader:
        reader = self.readers.get(label)
        if reader is None:
            raise ManifestError(self.words.format(label=label, quoted=go_value(label)))
        return reader


def _walk(manifest: Manifest, steps: tuple[str, ...]) -> Any:
    value: Any = manifest
    for step in steps:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def shown(value: Any) -> str:
    """Format a scalar as Go prints it."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
    return str(value)


def _path(path: str, absent: str = "") -> Reader:
    steps = tuple(path.split("."))
    return lambda manifest: shown(_walk(manifest, steps)) or absent


def _first_of(*paths: str) -> Reader:
    """Read the first path with a value: an Event is stored with the field names of one of its two groups."""
    every = [tuple(path.split(".")) for path in paths]
    return lambda manifest: next((text for steps in every if (text := shown(_walk(manifest, steps)))), "")


def _pod_ip(manifest: Manifest) -> str:
    addresses = _walk(manifest, ("status", "podIPs"))
    if isinstance(addresses, list) and addresses:
        return str(addresses[0].get("ip") or "")
    return shown(_walk(manifest, ("status", "podIP")))


def _plain(*paths: str) -> dict[str, Reader]:
    return {path: _path(path) for path in paths}


_NOT_KNOWN = '{quoted} is not a known field selector: only "metadata.name", "metadata.namespace"'
_NOT_SUPPORTED = "field label not supported: {label}"

_NAME = _plain("metadata.name")
_BOTH = _plain("metadata.name", "metadata.namespace")
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_SOURCE = ("source.component", "deprecatedSource.component", "reportingComponent", "reportingController")

_DEFAULT = FieldLabels(_BOTH, _NOT_KNOWN)

FIELD_LABELS: Mapping[GroupKind, FieldLabels] = {
    GroupKind("", "Pod"): FieldLabels(
        _BOTH
        | _plain("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName")
        | _plain("status.phase", "status.nominatedNodeName")
        | {
            "spec.hostNetwork": _path("spec.hostNetwork", "false"),
            "status.podIP": _pod_ip,
            # k8s: accepted, but always empty.
            "status.podIPs": lambda _: "",
            "spec.host": _path("spec.nodeName"),
        },
        _NOT_SUPPORTED,
    ),
    GroupKind("", "Node"): FieldLabels(
        _NAME | {"spec.unschedulable": _path("spec.unschedulable", "false")}, _NOT_SUPPORTED
    ),
    GroupKind("", "ReplicationController"): FieldLabels(
        _BOTH | {"status.replicas": _path("status.replicas", "0")}, _NOT_SUPPORTED
    ),
    GroupKind("", "Event"): FieldLabels(
        _BOTH
        | _plain("reason", "type")
        | {f"involvedObject.{each}": _first_of(f"involvedObject.{each}", f"regarding.{each}") for each in _REFERENCE}
        | {"reportingComponent": _first_of("reportingComponent", "reportingController"), "source": _first_of(*_SOURCE)},
        _NOT_SUPPORTED,
    ),
    GroupKind("events.k8s.io", "Event"): FieldLabels(
        _BOTH
        | _plain("reason", "type")
        | {f"regarding.{each}": _first_of(f"regarding.{each}", f"involvedObject.{each}") for each in _REFERENCE}
        | {"reportingController": _first_of("reportingController", "reportingComponent")},
        _NOT_SUPPORTED,
    ),
    GroupKind("", "Namespace"): FieldLabels(_NAME | _plain("status.phase"), _NOT_SUPPORTED),
    GroupKind("", "Secret"): FieldLabels(_BOTH | _plain("type"), _NOT_SUPPORTED),
    GroupKind("", "Service"): FieldLabels(_BOTH | _plain("spec.clusterIP", "spec.type"), _NOT_SUPPORTED),
    GroupKind("batch", "Job"): FieldLabels(
        _BOTH | {"status.successful": _path("status.succeeded", "0")}, "field label {quoted} not supported for Job"
    ),
    GroupKind("certificates.k8s.io", "CertificateSigningRequest"): FieldLabels(
        _NAME | _plain("spec.signerName"), _NOT_SUPPORTED
    ),
    GroupKind("certificates.k8s.io", "ClusterTrustBundle"): FieldLabels(
        _NAME | _plain("spec.signerName"), _NOT_SUPPORTED
    ),
    GroupKind("resource.k8s.io", "ResourceSlice"): FieldLabels(
        _NAME | _plain("spec.nodeName", "spec.driver"),
        "field label not supported for resource.k8s.io/v1beta1, Kind=ResourceSlice: {label}",
    ),
}


def field_labels(group_kind: GroupKind) -> FieldLabels:
    """Return the selectable fields of a built-in kind. For custom kinds see `build_custom_field_labels`."""
    return FIELD_LABELS.get(group_kind, _DEFAULT)


def custom_field_labels(selectable: Mapping[str, Reader], *, namespaced: bool) -> FieldLabels:
    """Return the selectable fields of a custom kind: name, namespace, and its CRD's selectableFields."""
    return FieldLabels({**(_BOTH if namespaced else _NAME), **selectable}, _NOT_SUPPORTED)

"""Selectable fields of each kind, and how to read them.

In: a kind. Out: FieldLabels, which turns a FieldSelector into a predicate, or rejects it with the server's message.
Never: silently matches nothing for an unknown field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy.errors import ManifestError
from argosy.kube.objects import Manifest
from argosy.kube.objects.go_format import format_value
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema.field_error import format_go_value
from argosy.kube.schema.selectors.field_selector_parser import FieldSelector
from argosy.kube.well_known_kinds import EVENT, JOB, NAMESPACE, NODE, POD, REPLICATION_CONTROLLER, SECRET, SERVICE

FieldValueReader = Callable[[Manifest], str]


class FieldLabels:
    """`readers` read the value of a field label; `error_template` has the placeholders `{label}` and `{quoted}`."""

    __slots__ = ("error_template", "readers")

    def __init__(self, readers: Mapping[str, FieldValueReader], error_template: str) -> None:
        self.readers = readers
        self.error_template = error_template

    def read(self, label: str, manifest: Manifest) -> str:
        return self._get_reader(label)(manifest)

    def build_predicate(self, selector: FieldSelector) -> Callable[[Manifest], bool]:
        """Build a predicate of manifests; raise ManifestError if the selector uses an unsupported field."""
        terms = tuple((self._get_reader(path), value, negated) for path, value, negated in selector.terms)
        return lambda manifest: all((read(manifest) == value) is not negated for read, value, negated in terms)

    def _get_reader(self, label: str) -> FieldValueReader:
        reader = self.readers.get(label)
        if reader is None:
            raise ManifestError(self.error_template.format(label=label, quoted=format_go_value(label)))
        return reader


def _read_path(manifest: Manifest, steps: tuple[str, ...]) -> Any:
    value: Any = manifest
    for step in steps:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def format_scalar(value: Any) -> str:
    """Format a scalar as Go prints it."""
    return "" if value is None else format_value(value)


def _build_path_reader(path: str, default: str = "") -> FieldValueReader:
    steps = tuple(path.split("."))
    return lambda manifest: format_scalar(_read_path(manifest, steps)) or default


def _build_first_path_reader(*paths: str) -> FieldValueReader:
    """Read the first path with a value: an Event is stored with the field names of one of its two groups."""
    all_steps = [tuple(path.split(".")) for path in paths]
    return lambda manifest: next(
        (text for steps in all_steps if (text := format_scalar(_read_path(manifest, steps)))), ""
    )


def _pod_ip(manifest: Manifest) -> str:
    addresses = _read_path(manifest, ("status", "podIPs"))
    if isinstance(addresses, list) and addresses:
        return str(addresses[0].get("ip") or "")
    return format_scalar(_read_path(manifest, ("status", "podIP")))


def _build_path_readers(*paths: str) -> dict[str, FieldValueReader]:
    return {path: _build_path_reader(path) for path in paths}


_UNKNOWN_FIELD_ERROR = '{quoted} is not a known field selector: only "metadata.name", "metadata.namespace"'
_UNSUPPORTED_FIELD_ERROR = "field label not supported: {label}"

_NAME_READERS = _build_path_readers("metadata.name")
_NAME_AND_NAMESPACE_READERS = _build_path_readers("metadata.name", "metadata.namespace")
_REFERENCE_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_SOURCE_FIELDS = ("source.component", "deprecatedSource.component", "reportingComponent", "reportingController")

_DEFAULT_FIELD_LABELS = FieldLabels(_NAME_AND_NAMESPACE_READERS, _UNKNOWN_FIELD_ERROR)

FIELD_LABELS: Mapping[GroupKind, FieldLabels] = {
    POD: FieldLabels(
        _NAME_AND_NAMESPACE_READERS
        | _build_path_readers("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName")
        | _build_path_readers("status.phase", "status.nominatedNodeName")
        | {
            "spec.hostNetwork": _build_path_reader("spec.hostNetwork", "false"),
            "status.podIP": _pod_ip,
            # k8s: accepted, but always empty.
            "status.podIPs": lambda _: "",
            "spec.host": _build_path_reader("spec.nodeName"),
        },
        _UNSUPPORTED_FIELD_ERROR,
    ),
    NODE: FieldLabels(
        _NAME_READERS | {"spec.unschedulable": _build_path_reader("spec.unschedulable", "false")},
        _UNSUPPORTED_FIELD_ERROR,
    ),
    REPLICATION_CONTROLLER: FieldLabels(
        _NAME_AND_NAMESPACE_READERS | {"status.replicas": _build_path_reader("status.replicas", "0")},
        _UNSUPPORTED_FIELD_ERROR,
    ),
    EVENT: FieldLabels(
        _NAME_AND_NAMESPACE_READERS
        | _build_path_readers("reason", "type")
        | {
            f"involvedObject.{reference_field}": _build_first_path_reader(
                f"involvedObject.{reference_field}", f"regarding.{reference_field}"
            )
            for reference_field in _REFERENCE_FIELDS
        }
        | {
            "reportingComponent": _build_first_path_reader("reportingComponent", "reportingController"),
            "source": _build_first_path_reader(*_SOURCE_FIELDS),
        },
        _UNSUPPORTED_FIELD_ERROR,
    ),
    GroupKind("events.k8s.io", "Event"): FieldLabels(
        _NAME_AND_NAMESPACE_READERS
        | _build_path_readers("reason", "type")
        | {
            f"regarding.{reference_field}": _build_first_path_reader(
                f"regarding.{reference_field}", f"involvedObject.{reference_field}"
            )
            for reference_field in _REFERENCE_FIELDS
        }
        | {"reportingController": _build_first_path_reader("reportingController", "reportingComponent")},
        _UNSUPPORTED_FIELD_ERROR,
    ),
    NAMESPACE: FieldLabels(_NAME_READERS | _build_path_readers("status.phase"), _UNSUPPORTED_FIELD_ERROR),
    SECRET: FieldLabels(_NAME_AND_NAMESPACE_READERS | _build_path_readers("type"), _UNSUPPORTED_FIELD_ERROR),
    SERVICE: FieldLabels(
        _NAME_AND_NAMESPACE_READERS | _build_path_readers("spec.clusterIP", "spec.type"), _UNSUPPORTED_FIELD_ERROR
    ),
    JOB: FieldLabels(
        _NAME_AND_NAMESPACE_READERS | {"status.successful": _build_path_reader("status.succeeded", "0")},
        "field label {quoted} not supported for Job",
    ),
    GroupKind("certificates.k8s.io", "CertificateSigningRequest"): FieldLabels(
        _NAME_READERS | _build_path_readers("spec.signerName"), _UNSUPPORTED_FIELD_ERROR
    ),
    GroupKind("certificates.k8s.io", "ClusterTrustBundle"): FieldLabels(
        _NAME_READERS | _build_path_readers("spec.signerName"), _UNSUPPORTED_FIELD_ERROR
    ),
    GroupKind("resource.k8s.io", "ResourceSlice"): FieldLabels(
        _NAME_READERS | _build_path_readers("spec.nodeName", "spec.driver"),
        "field label not supported for resource.k8s.io/v1beta1, Kind=ResourceSlice: {label}",
    ),
}


def get_field_labels(group_kind: GroupKind) -> FieldLabels:
    """Return the selectable fields of a built-in kind. For custom kinds see `build_custom_field_labels`."""
    return FIELD_LABELS.get(group_kind, _DEFAULT_FIELD_LABELS)


def build_custom_field_labels(selectable: Mapping[str, FieldValueReader], *, namespaced: bool) -> FieldLabels:
    """Return the selectable fields of a custom kind: name, namespace, and its CRD's selectableFields."""
    return FieldLabels(
        {**(_NAME_AND_NAMESPACE_READERS if namespaced else _NAME_READERS), **selectable}, _UNSUPPORTED_FIELD_ERROR
    )

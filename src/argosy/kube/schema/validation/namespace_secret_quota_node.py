"""Validates core kinds: Secret, ConfigMap, Namespace, Endpoints, ResourceQuota, LimitRange, Event, Node."""

from __future__ import annotations

import base64
import binascii
import json

from argosy.kube.schema import name_label_address_syntax, quantity
from argosy.kube.schema.field_error import (
    duplicate,
    forbidden,
    format_go_value,
    invalid,
    not_supported_unsorted,
    required,
    too_long,
)
from argosy.kube.schema.validation import go_struct_format
from argosy.kube.schema.validation.containers import PROTOCOLS
from argosy.kube.schema.validation.shared_field_checks import (
    IMMUTABLE_ERROR,
    FieldErrors,
    ManifestPart,
    check_immutable,
    check_port_number,
    check_quantity,
    check_required_choice,
    check_syntax,
    iterate_items,
)

_MAX_DATA_BYTES = 1024 * 1024
_IMMUTABLE_DATA_ERROR = "field is immutable when `immutable` is set"
_REQUIRED_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_SERVICE_ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"
_QUOTA_NAMES = {
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage",
    "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas",
    "services", "replicationcontrollers", "secrets", "persistentvolumeclaims", "configmaps", "services.nodeports",
    "services.loadbalancers",
}  # fmt: skip
_COUNTED_RESOURCES = _QUOTA_NAMES - {
    name for name in _QUOTA_NAMES if "cpu" in name or "memory" in name or "storage" in name
}


def _base64_decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def validate_secret(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    data = manifest.get("data") or {}
    for key in data:
        check_syntax(errors, f"data[{key}]", key, name_label_address_syntax.check_config_key)
    if sum(_base64_decoded_size(value or "") for value in data.values()) > _MAX_DATA_BYTES:
        errors.append(too_long("data", _MAX_DATA_BYTES))
    secret_type = manifest.get("type") or ""
    if secret_type == "kubernetes.io/service-account-token":
        annotations = (manifest.get("metadata") or {}).get("annotations") or {}
        if not annotations.get(_SERVICE_ACCOUNT_ANNOTATION):
            errors.append(required(f"metadata.annotations[{_SERVICE_ACCOUNT_ANNOTATION}]"))
    elif secret_type == "kubernetes.io/basic-auth" and "username" not in data and "password" not in data:
        errors.extend(required(f"data[{key}]") for key in ("username", "password"))
    for key in _REQUIRED_SECRET_KEYS.get(secret_type, ()):
        if key not in data or (secret_type == "kubernetes.io/ssh-auth" and not data[key]):
            errors.append(required(f"data[{key}]"))
        elif secret_type.startswith("kubernetes.io/dockerc") and (json_error := _find_base64_json_error(data[key])):
            errors.append(invalid(f"data[{key}]", '"<secret contents redacted>"', json_error))
    return errors


def _find_base64_json_error(text: str) -> str:
    try:
        value = json.loads(base64.b64decode(text or "", validate=True))
    except (ValueError, binascii.Error, RecursionError):
        return _find_json_scan_error(base64.b64decode(text or "").decode(errors="replace").strip())
    if value is None or isinstance(value, dict):
        return ""
    kinds = ((bool, "bool"), (str, "string"), (list, "array"), (int, "number"), (float, "number"))
    type_name = next(type_name for kind, type_name in kinds if isinstance(value, kind))
    return f"json: cannot unmarshal {type_name} into Go value of type map[string]interface {{}}"


def _find_json_scan_error(text: str) -> str:
    """Return the error of Go's JSON scanner; only errors at the start are modelled, where plain text fails."""
    if not text:
        return "unexpected end of JSON input"
    literal = next((candidate for candidate in ("null", "true", "false") if candidate[0] == text[0]), "")
    for actual, expected in zip(text[1:], literal[1:]):
        if actual != expected:
            return (
                f"invalid character {_format_go_char(actual)} in literal {literal} (expecting "
                f"{_format_go_char(expected)})"
            )
    if text[0] in "{[":
        return "unexpected end of JSON input"
    return f"invalid character {_format_go_char(text[0])} looking for beginning of value"


def _format_go_char(char: str) -> str:
    return "'\\''" if char == "'" else f"'{char}'"


def _check_immutable_data(manifest: ManifestPart, old: ManifestPart, *names: str) -> FieldErrors:
    if not old.get("immutable"):
        return []
    errors = [] if manifest.get("immutable") else [forbidden("immutable", _IMMUTABLE_DATA_ERROR)]
    changed = [name for name in names if (manifest.get(name) or {}) != (old.get(name) or {})]
    return errors + [forbidden(name, _IMMUTABLE_DATA_ERROR) for name in changed]


def validate_secret_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    check_immutable(errors, "type", manifest.get("type") or "", old.get("type") or "")
    return errors + _check_immutable_data(manifest, old, "data") + validate_secret(manifest)


def validate_config_map(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    data, binary = manifest.get("data") or {}, manifest.get("binaryData") or {}
    total = 0
    for key, value in data.items():
        check_syntax(errors, f"data[{key}]", key, name_label_address_syntax.check_config_key)
        if key in binary:
            errors.append(invalid(f"data[{key}]", format_go_value(key), "duplicate of key present in binaryData"))
        total += len(value or "") if (value or "").isascii() else len(value.encode(errors="surrogatepass"))
    for key, value in binary.items():
        check_syntax(errors, f"binaryData[{key}]", key, name_label_address_syntax.check_config_key)
        total += _base64_decoded_size(value or "")
    if total > _MAX_DATA_BYTES:
        errors.append(too_long("[]", _MAX_DATA_BYTES))  # k8s: the path of the whole object
    return errors


def validate_config_map_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    return _check_immutable_data(manifest, old, "data", "binaryData") + validate_config_map(manifest)


def validate_namespace(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    for finalizer in (manifest.get("spec") or {}).get("finalizers") or ():
        check_syntax(errors, "spec.finalizers", finalizer, name_label_address_syntax.check_qualified_name)
        if "/" not in finalizer and finalizer not in ("kubernetes", "orphan", "foregroundDeletion"):
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid("spec.finalizers", format_go_value(finalizer), detail))
    return errors


def validate_namespace_status(manifest: ManifestPart) -> FieldErrors:
    phase = (manifest.get("status") or {}).get("phase") or ""
    deleting = bool((manifest.get("metadata") or {}).get("deletionTimestamp"))
    if deleting and phase != "Terminating":
        detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        return [invalid("status.Phase", format_go_value(phase), detail)]
    if not deleting and phase != "Active":
        return [invalid("status.Phase", format_go_value(phase), "may only be 'Active' if `deletionTimestamp` is empty")]
    return []


def validate_endpoints(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    for index, subset in enumerate(manifest.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for name in ("addresses", "notReadyAddresses"):
            for field, address in iterate_items(subset, name, path):
                check_syntax(errors, f"{field}.ip", address.get("ip") or "", name_label_address_syntax.check_ip_address)
                if address.get("hostname"):
                    check_syntax(
                        errors, f"{field}.hostname", address["hostname"], name_label_address_syntax.check_dns_label
                    )
                check_syntax(
                    errors, f"{field}.ip", address.get("ip") or "", name_label_address_syntax.check_routable_ip
                )
        has_several_ports = len(subset.get("ports") or ()) > 1
        for field, port in iterate_items(subset, "ports", path):
            if port.get("name"):
                check_syntax(errors, f"{field}.name", port["name"], name_label_address_syntax.check_dns_label)
            elif has_several_ports:
                errors.append(required(f"{field}.name"))
            check_port_number(errors, f"{field}.port", port.get("port"))
            check_required_choice(errors, f"{field}.protocol", port.get("protocol"), PROTOCOLS)
    return errors


def validate_resource_quota(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    for name, value in ((manifest.get("spec") or {}).get("hard") or {}).items():
        field = f"spec.hard[{name}]"
        is_known = "/" in name or name in _QUOTA_NAMES or "hugepages-" in name
        messages = name_label_address_syntax.check_qualified_name(name)
        errors.extend(invalid(field, name, message) for message in messages)
        if not is_known:
            if not messages:
                errors.append(invalid(field, name, "must be a standard resource type or fully qualified"))
            errors.append(invalid(field, name, "must be a standard resource for quota"))
        check_quantity(errors, field, value, must_be_integer=name in _COUNTED_RESOURCES or name.startswith("count/"))
    return errors


def validate_resource_quota_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    errors = validate_resource_quota(manifest)
    new_scopes, old_scopes = ((quota.get("spec") or {}).get("scopes") or [] for quota in (manifest, old))
    if set(new_scopes) != set(old_scopes):
        errors.append(
            invalid(
                "spec.scopes",
                go_struct_format.format_string_list(new_scopes or None, "core.ResourceQuotaScope"),
                IMMUTABLE_ERROR,
            )
        )
    return errors


def validate_limit_range(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    kinds: set[str] = set()
    for field, limit in iterate_items(manifest.get("spec") or {}, "limits", "spec"):
        kind = limit.get("type") or ""
        limit_types = ("Container", "PersistentVolumeClaim", "Pod")
        if messages := name_label_address_syntax.check_qualified_name(kind):
            errors.extend(invalid(f"{field}.type", format_go_value(kind), message) for message in messages)
        elif "/" not in kind and kind not in limit_types:
            errors.append(
                invalid(f"{field}.type", format_go_value(kind), "must be a standard limit type or fully qualified")
            )
        if kind in kinds:
            errors.append(duplicate(f"{field}.type", format_go_value(kind)))
        kinds.add(kind)
        if kind == "Pod":
            forbidden_fields = [name for name in ("default", "defaultRequest") if limit.get(name)]
            detail = "may not be specified when `type` is 'Pod'"
            errors.extend(forbidden(f"{field}.{name}", detail) for name in forbidden_fields)
        _check_limit_order(errors, field, limit)
    return errors


_DEFAULT_REQUEST = "defaultRequest"
_LIMIT_ORDER = (
    # lower field, upper field, field of the error, field of the printed value, message
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        _DEFAULT_REQUEST,
        _DEFAULT_REQUEST,
        _DEFAULT_REQUEST,
        "min value {} is greater than default request value {}",
    ),
    (
        _DEFAULT_REQUEST,
        "max",
        _DEFAULT_REQUEST,
        _DEFAULT_REQUEST,
        "default request value {} is greater than max value {}",
    ),
    (
        _DEFAULT_REQUEST,
        "default",
        _DEFAULT_REQUEST,
        _DEFAULT_REQUEST,
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)


def _check_limit_order(errors: FieldErrors, field: str, limit: ManifestPart) -> None:
    names = {name for part in ("max", "min", "default", "defaultRequest") for name in limit.get(part) or {}}
    for name in sorted(names):
        for lower_field, upper_field, error_field, value_field, message in _LIMIT_ORDER:
            lower, upper = (limit.get(lower_field) or {}).get(name), (limit.get(upper_field) or {}).get(name)
            if lower is not None and upper is not None and quantity.compare(lower, upper) > 0:
                lower, upper = quantity.canonicalize(lower), quantity.canonicalize(upper)
                value = go_struct_format.format_quantity(limit[value_field][name])
                errors.append(invalid(f"{field}.{error_field}[{name}]", value, message.format(lower, upper)))


def validate_event(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    involved_object = manifest.get("involvedObject") or manifest.get("regarding") or {}
    object_namespace, namespace = (
        involved_object.get("namespace") or "",
        (manifest.get("metadata") or {}).get("namespace") or "",
    )
    if manifest.get("eventTime"):
        default_namespaces = ("default", "kube-system")
        _validate_events_v1(errors, manifest)
    else:
        default_namespaces = ("", "default")
    is_mismatch = (
        namespace not in default_namespaces
        if not object_namespace
        else namespace != object_namespace and not manifest.get("eventTime")
    )
    if is_mismatch:
        detail = "does not match event.namespace"
        errors.insert(0, invalid("involvedObject.namespace", format_go_value(object_namespace), detail))
    return errors


def _validate_events_v1(errors: FieldErrors, manifest: ManifestPart) -> None:
    component = "reportingController" if manifest.get("regarding") is not None else "reportingComponent"
    value = manifest.get(component) or ""
    if not value:
        errors.append(required(component))
    check_syntax(errors, component, value, name_label_address_syntax.check_qualified_name)
    for name in ("reportingInstance", "action", "reason"):
        if not manifest.get(name):
            errors.append(required(name))
        elif len(manifest[name]) > 128:
            errors.append(invalid(name, '""', "can have at most 128 characters"))


def validate_node(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    seen: set[tuple[str, str]] = set()
    # k8s: errors name taints as part of the metadata, where they used to be
    for field, taint in iterate_items(manifest.get("spec") or {}, "taints", "metadata"):
        key, effect = taint.get("key") or "", taint.get("effect") or ""
        check_syntax(errors, f"{field}.key", key, name_label_address_syntax.check_qualified_name)
        check_syntax(errors, f"{field}.value", taint.get("value") or "", name_label_address_syntax.check_label_value)
        effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
        if not effect:
            errors.append(required(f"{field}.effect"))
        elif effect not in effects:
            errors.append(not_supported_unsorted(f"{field}.effect", format_go_value(effect), effects))
        if (key, effect) in seen:
            taint_fields = (("Key", key), ("Value", taint.get("value") or ""), ("Effect", effect))
            fields = ", ".join(f"{name}:{format_go_value(value)}" for name, value in taint_fields)
            detail = "taints must be unique by key and effect pair"
            errors.append(duplicate(field, f"core.Taint{{{fields}, TimeAdded:<nil>}}: {detail}"))
        seen.add((key, effect))
    return errors

"""Validates core kinds: Secret, ConfigMap, Namespace, Endpoints, ResourceQuota, LimitRange, Event, Node."""

from __future__ import annotations

import base64
import binascii
import json

from argosy.kube.schema import name_syntax, quantity
from argosy.kube.schema.field_error import duplicate, forbidden, go_value, invalid, required, too_long, unsupported
from argosy.kube.schema.validation import go_format
from argosy.kube.schema.validation.checks import (
    IMMUTABLE,
    Faults,
    Part,
    amount,
    immutable,
    items,
    matches,
    one_of,
    port_number,
)
from argosy.kube.schema.validation.containers import PROTOCOLS

_MEGABYTE = 1024 * 1024
_SEALED = "field is immutable when `immutable` is set"
_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_QUOTA_NAMES = {
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage",
    "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas",
    "services", "replicationcontrollers", "secrets", "persistentvolumeclaims", "configmaps", "services.nodeports",
    "services.loadbalancers",
}  # fmt: skip
_COUNTED = _QUOTA_NAMES - {name for name in _QUOTA_NAMES if "cpu" in name or "memory" in name or "storage" in name}


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def secret(manifest: Part) -> Faults:
    faults: Faults = []
    data = manifest.get("data") or {}
    for key in data:
        matches(faults, f"data[{key}]", key, name_syntax.config_key)
    if sum(_decoded_size(value or "") for value in data.values()) > _MEGABYTE:
        faults.append(too_long("data", _MEGABYTE))
    kind = manifest.get("type") or ""
    if kind == "kubernetes.io/service-account-token":
        annotations = (manifest.get("metadata") or {}).get("annotations") or {}
        if not annotations.get(_ACCOUNT_NAME):
            faults.append(required(f"metadata.annotations[{_ACCOUNT_NAME}]"))
    elif kind == "kubernetes.io/basic-auth" and "username" not in data and "password" not in data:
        faults.extend(required(f"data[{key}]") for key in ("username", "password"))
    for key in _SECRET_KEYS.get(kind, ()):
        if key not in data or (kind == "kubernetes.io/ssh-auth" and not data[key]):
            faults.append(required(f"data[{key}]"))
        elif kind.startswith("kubernetes.io/dockerc") and (wrong := _json_problem(data[key])):
            faults.append(invalid(f"data[{key}]", '"<secret contents redacted>"', wrong))
    return faults


def _json_problem(text: str) -> str:
    try:
        found = json.loads(base64.b64decode(text or "", validate=True))
    except (ValueError, binascii.Error, RecursionError):
        return _scan_problem(base64.b64decode(text or "").decode(errors="replace").strip())
    if found is None or isinstance(found, dict):
        return ""
    kinds = ((bool, "bool"), (str, "string"), (list, "array"), (int, "number"), (float, "number"))
    word = next(word for kind, word in kinds if isinstance(found, kind))
    return f"json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"


def _scan_problem(text: str) -> str:
    """Return the error of Go's JSON scanner; only errors at the start are modelled, where plain text fails."""
    if not text:
        return "unexpected end of JSON input"
    word = next((each for each in ("null", "true", "false") if each[0] == text[0]), "")
    for read, expected in zip(text[1:], word[1:]):
        if read != expected:
            return f"invalid character {_go_char(read)} in literal {word} (expecting {_go_char(expected)})"
    if text[0] in "{[":
        return "unexpected end of JSON input"
    return f"invalid character {_go_char(text[0])} looking for beginning of value"


def _go_char(char: str) -> str:
    return "'\\''" if char == "'" else f"'{char}'"


def _sealed(manifest: Part, old: Part, *names: str) -> Faults:
    if not old.get("immutable"):
        return []
    faults = [] if manifest.get("immutable") else [forbidden("immutable", _SEALED)]
    changed = [name for name in names if (manifest.get(name) or {}) != (old.get(name) or {})]
    return faults + [forbidden(name, _SEALED) for name in changed]


def secret_updated(manifest: Part, old: Part) -> Faults:
    faults: Faults = []
    immutable(faults, "type", manifest.get("type") or "", old.get("type") or "")
    return faults + _sealed(manifest, old, "data") + secret(manifest)


def config_map(manifest: Part) -> Faults:
    faults: Faults = []
    data, binary = manifest.get("data") or {}, manifest.get("binaryData") or {}
    total = 0
    for key, value in data.items():
        matches(faults, f"data[{key}]", key, name_syntax.config_key)
        if key in binary:
            faults.append(invalid(f"data[{key}]", go_value(key), "duplicate of key present in binaryData"))
        total += len(value or "") if (value or "").isascii() else len(value.encode(errors="surrogatepass"))
    for key, value in binary.items():
        matches(faults, f"binaryData[{key}]", key, name_syntax.config_key)
        total += _decoded_size(value or "")
    if total > _MEGABYTE:
        faults.append(too_long("[]", _MEGABYTE))  # k8s: the path of the whole object
    return faults


def config_map_updated(manifest: Part, old: Part) -> Faults:
    return _sealed(manifest, old, "data", "binaryData") + config_map(manifest)


def namespace(manifest: Part) -> Faults:
    faults: Faults = []
    for finalizer in (manifest.get("spec") or {}).get("finalizers") or ():
        matches(faults, "spec.finalizers", finalizer, name_syntax.qualified_name)
        if "/" not in finalizer and finalizer not in ("kubernetes", "orphan", "foregroundDeletion"):
            words = "name is neither a standard finalizer name nor is it fully qualified"
            faults.append(invalid("spec.finalizers", go_value(finalizer), words))
    return faults


def namespace_status(manifest: Part) -> Faults:
    phase = (manifest.get("status") or {}).get("phase") or ""
    deleting = bool((manifest.get("metadata") or {}).get("deletionTimestamp"))
    if deleting and phase != "Terminating":
        words = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        return [invalid("status.Phase", go_value(phase), words)]
    if not deleting and phase != "Active":
        return [invalid("status.Phase", go_value(phase), "may only be 'Active' if `deletionTimestamp` is empty")]
    return []


def endpoints(manifest: Part) -> Faults:
    faults: Faults = []
    for index, subset in enumerate(manifest.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            faults.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for name in ("addresses", "notReadyAddresses"):
            for field, address in items(subset, name, path):
                matches(faults, f"{field}.ip", address.get("ip") or "", name_syntax.ip_address)
                if address.get("hostname"):
                    matches(faults, f"{field}.hostname", address["hostname"], name_syntax.dns_label)
                matches(faults, f"{field}.ip", address.get("ip") or "", name_syntax.ordinary_ip)
        several = len(subset.get("ports") or ()) > 1
        for field, port in items(subset, "ports", path):
            if port.get("name"):
                matches(faults, f"{field}.name", port["name"], name_syntax.dns_label)
            elif several:
                faults.append(required(f"{field}.name"))
            port_number(faults, f"{field}.port", port.get("port"))
            one_of(faults, f"{field}.protocol", port.get("protocol"), PROTOCOLS)
    return faults


def resource_quota(manifest: Part) -> Faults:
    faults: Faults = []
    for name, value in ((manifest.get("spec") or {}).get("hard") or {}).items():
        field = f"spec.hard[{name}]"
        known = "/" in name or name in _QUOTA_NAMES or "hugepages-" in name
        complaints = name_syntax.qualified_name(name)
        faults.extend(invalid(field, name, complaint) for complaint in complaints)
        if not known:
            if not complaints:
                faults.append(invalid(field, name, "must be a standard resource type or fully qualified"))
            faults.append(invalid(field, name, "must be a standard resource for quota"))
        amount(faults, field, value, whole=name in _COUNTED or name.startswith("count/"))
    return faults


def resource_quota_updated(manifest: Part, old: Part) -> Faults:
    faults = resource_quota(manifest)
    new, before = ((each.get("spec") or {}).get("scopes") or [] for each in (manifest, old))
    if set(new) != set(before):
        faults.append(invalid("spec.scopes", go_format.string_list(new or None, "core.ResourceQuotaScope"), IMMUTABLE))
    return faults


def limit_range(manifest: Part) -> Faults:
    faults: Faults = []
    kinds: set[str] = set()
    for field, limit in items(manifest.get("spec") or {}, "limits", "spec"):
        kind = limit.get("type") or ""
        known = ("Container", "PersistentVolumeClaim", "Pod")
        if complaints := name_syntax.qualified_name(kind):
            faults.extend(invalid(f"{field}.type", go_value(kind), complaint) for complaint in complaints)
        elif "/" not in kind and kind not in known:
            faults.append(invalid(f"{field}.type", go_value(kind), "must be a standard limit type or fully qualified"))
        if kind in kinds:
            faults.append(duplicate(f"{field}.type", go_value(kind)))
        kinds.add(kind)
        if kind == "Pod":
            set_here = [name for name in ("default", "defaultRequest") if limit.get(name)]
            words = "may not be specified when `type` is 'Pod'"
            faults.extend(forbidden(f"{field}.{name}", words) for name in set_here)
        _limits_in_order(faults, field, limit)
    return faults


_REQUEST = "defaultRequest"
_ORDER = (
    # lower field, upper field, field of the error, field of the printed value, message
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    ("min", _REQUEST, _REQUEST, _REQUEST, "min value {} is greater than default request value {}"),
    (_REQUEST, "max", _REQUEST, _REQUEST, "default request value {} is greater than max value {}"),
    (_REQUEST, "default", _REQUEST, _REQUEST, "default request value {} is greater than default limit value {}"),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)


def _limits_in_order(faults: Faults, field: str, limit: Part) -> None:
    names = {name for part in ("max", "min", "default", "defaultRequest") for name in limit.get(part) or {}}
    for name in sorted(names):
        for low, high, where, shown, words in _ORDER:
            least, most = (limit.get(low) or {}).get(name), (limit.get(high) or {}).get(name)
            if least is not None and most is not None and quantity.compare(least, most) > 0:
                least, most = quantity.canonical(least), quantity.canonical(most)
                value = go_format.quantity(limit[shown][name])
                faults.append(invalid(f"{field}.{where}[{name}]", value, words.format(least, most)))


def event(manifest: Part) -> Faults:
    faults: Faults = []
    involved = manifest.get("involvedObject") or manifest.get("regarding") or {}
    where, namespace = involved.get("namespace") or "", (manifest.get("metadata") or {}).get("namespace") or ""
    if manifest.get("eventTime"):
        known = ("default", "kube-system")
        _modern_event(faults, manifest)
    else:
        known = ("", "default")
    wrong = namespace not in known if not where else namespace != where and not manifest.get("eventTime")
    if wrong:
        words = "does not match event.namespace"
        faults.insert(0, invalid("involvedObject.namespace", go_value(where), words))
    return faults


def _modern_event(faults: Faults, manifest: Part) -> None:
    component = "reportingController" if manifest.get("regarding") is not None else "reportingComponent"
    value = manifest.get(component) or ""
    if not value:
        faults.append(required(component))
    matches(faults, component, value, name_syntax.qualified_name)
    for name in ("reportingInstance", "action", "reason"):
        if not manifest.get(name):
            faults.append(required(name))
        elif len(manifest[name]) > 128:
            faults.append(invalid(name, '""', "can have at most 128 characters"))


def node(manifest: Part) -> Faults:
    faults: Faults = []
    seen: set[tuple[str, str]] = set()
    # k8s: errors name taints as part of the metadata, where they used to be
    for field, taint in items(manifest.get("spec") or {}, "taints", "metadata"):
        key, effect = taint.get("key") or "", taint.get("effect") or ""
        matches(faults, f"{field}.key", key, name_syntax.qualified_name)
        matches(faults, f"{field}.value", taint.get("value") or "", name_syntax.label_value)
        effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
        if not effect:
            faults.append(required(f"{field}.effect"))
        elif effect not in effects:
            faults.append(unsupported(f"{field}.effect", go_value(effect), effects))
        if (key, effect) in seen:
            shown = (("Key", key), ("Value", taint.get("value") or ""), ("Effect", effect))
            fields = ", ".join(f"{name}:{go_value(value)}" for name, value in shown)
            words = "taints must be unique by key and effect pair"
            faults.append(duplicate(field, f"core.Taint{{{fields}, TimeAdded:<nil>}}: {words}"))
        seen.add((key, effect))
    return faults

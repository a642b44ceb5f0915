"""Validates Pods and Pod templates."""

from __future__ import annotations

import json
from typing import Any

from argosy.kube.schema import name_syntax
from argosy.kube.schema.field_error import forbidden, go_value, invalid, required, unsupported
from argosy.kube.schema.validation.checks import (
    NEGATIVE,
    Faults,
    Part,
    annotation_map,
    items,
    labels,
    matches,
    non_negative,
    one_of,
)  # fmt: skip
from argosy.kube.schema.validation.containers import containers, init_containers
from argosy.kube.schema.validation.volumes import volumes

_MAY_CHANGE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_INT32 = 2**31 - 1


def pod_spec(faults: Faults, spec: Part, path: str, *, of_pod: bool = False) -> None:
    known = volumes(faults, spec, path)
    containers(faults, spec, path, known)
    init_containers(faults, spec, path, known)
    if spec.get("hostNetwork"):
        _host_network(faults, spec, path, of_pod=of_pod)
    one_of(faults, f"{path}.restartPolicy", spec.get("restartPolicy"), ("Always", "OnFailure", "Never"))
    policies = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
    one_of(faults, f"{path}.dnsPolicy", spec.get("dnsPolicy"), policies)
    if spec.get("dnsPolicy") == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        if spec.get("dnsConfig") is None:
            faults.append(required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None"))
        else:
            words = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            faults.append(required(f"{path}.dnsConfig.nameservers", words))
    if spec.get("nodeSelector"):
        labels(faults, f"{path}.nodeSelector", spec["nodeSelector"])
    for name, grammar in (("serviceAccountName", name_syntax.dns_subdomain), ("nodeName", name_syntax.dns_subdomain)):
        if spec.get(name):
            matches(faults, f"{path}.{name}", spec[name], grammar)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _INT32:
        faults.append(invalid(f"{path}.activeDeadlineSeconds", str(deadline), name_syntax.between(1, _INT32)))
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            matches(faults, f"{path}.{name}", spec[name], name_syntax.dns_label)
    if spec.get("tolerations"):
        _tolerations(faults, spec, path)
    for name in ("priorityClassName", "runtimeClassName"):
        if spec.get(name):
            matches(faults, f"{path}.{name}", spec[name], name_syntax.dns_subdomain)
    _spread(faults, spec, path)


def _host_network(faults: Faults, spec: Part, path: str, *, of_pod: bool) -> None:
    for at, container in items(spec, "containers", path):
        for field, port in items(container, "ports", at):
            host = port.get("hostPort") or 0
            if (of_pod or host) and host != (port.get("containerPort") or 0):
                words = "must match `containerPort` when `hostNetwork` is true"
                faults.append(invalid(f"{field}.hostPort", str(host), words))


def _tolerations(faults: Faults, spec: Part, path: str) -> None:
    for field, each in items(spec, "tolerations", path):
        key, operator, effect = each.get("key") or "", each.get("operator") or "", each.get("effect") or ""
        value = each.get("value") or ""
        if key:
            matches(faults, f"{field}.key", key, name_syntax.qualified_name)
        elif operator != "Exists":
            words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            faults.append(invalid(f"{field}.operator", go_value(operator), words))
        if each.get("tolerationSeconds") is not None and effect != "NoExecute":
            words = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            faults.append(invalid(f"{field}.effect", go_value(effect), words))
        if operator in ("", "Equal"):
            if complaints := name_syntax.label_value(value):
                faults.append(invalid(f"{field}.operator", go_value(value), ";".join(complaints)))
        elif operator == "Exists":
            if value:
                words = "value must be empty when `operator` is 'Exists'"
                faults.append(invalid(f"{field}.operator", go_value(value), words))
        else:
            faults.append(unsupported(f"{field}.operator", go_value(operator), ("Equal", "Exists")))
        effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
        if effect and effect not in effects:
            faults.append(unsupported(f"{field}.effect", go_value(effect), effects))


def _spread(faults: Faults, spec: Part, path: str) -> None:
    for field, each in items(spec, "topologySpreadConstraints", path):
        if (each.get("maxSkew") or 0) <= 0:
            faults.append(invalid(f"{field}.maxSkew", str(each.get("maxSkew") or 0), "must be greater than zero"))
        if not each.get("topologyKey"):
            faults.append(required(f"{field}.topologyKey", "can not be empty"))
        action = each.get("whenUnsatisfiable") or ""
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            allowed = ("DoNotSchedule", "ScheduleAnyway")
            faults.append(unsupported(f"{field}.whenUnsatisfiable", go_value(action), allowed))


def template(faults: Faults, given: Part, path: str) -> None:
    metadata, spec = given.get("metadata") or {}, given.get("spec") or {}
    if metadata.get("labels"):
        labels(faults, f"{path}.labels", metadata["labels"])
    if metadata.get("annotations"):
        annotation_map(faults, f"{path}.annotations", metadata["annotations"])
    pod_spec(faults, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        words = "ephemeral containers not allowed in pod template"
        faults.append(forbidden(f"{path}.spec.ephemeralContainers", words))


def pod(manifest: Part) -> Faults:
    faults: Faults = []
    spec = manifest.get("spec") or {}
    pod_spec(faults, spec, "spec", of_pod=True)
    for name in ("containers", "initContainers"):
        _clean_images(faults, spec, name)
    return faults


def _clean_images(faults: Faults, spec: Part, name: str) -> None:
    for field, container in items(spec, name, "spec"):
        image = container.get("image") or ""
        if image != image.strip():
            words = "must not have leading or trailing whitespace"
            faults.append(invalid(f"{field}.image", go_value(image), words))


def pod_created(manifest: Part) -> Faults:
    faults = pod(manifest)
    spec = manifest.get("spec") or {}
    if spec.get("ephemeralContainers"):
        faults.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        faults.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return faults


def pod_updated(manifest: Part, old: Part) -> Faults:
    faults = pod(manifest)
    spec, before = manifest.get("spec") or {}, old.get("spec") or {}
    for name in ("containers", "initContainers"):
        if len(spec.get(name) or ()) != len(before.get(name) or ()):
            faults.append(forbidden(f"spec.{name}", "pod updates may not add or remove containers"))
            return faults
    if not _deadline(faults, spec, before):
        return faults
    _only_added(faults, spec, before)
    gates = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    for field, gate in items(spec, "schedulingGates", "spec"):
        if gate.get("name") not in gates:
            words = "only deletion is allowed, but found new scheduling gate '" + str(gate.get("name")) + "'"
            faults.append(forbidden(field, words))
    if _frozen(spec, before) != _frozen(before, before):
        changes = _difference(_frozen(before, before), _frozen(spec, before))
        faults.append(forbidden("spec", f"pod updates may not change fields other than {_MAY_CHANGE}\n{changes}"))
    return faults


def _deadline(faults: Faults, spec: Part, before: Part) -> bool:
    name = "activeDeadlineSeconds"
    field, new, old = f"spec.{name}", spec.get(name), before.get(name)
    if new is not None:
        if not 0 <= new <= _INT32:
            faults.append(invalid(field, str(new), name_syntax.between(0, _INT32)))
            return False
        if old is not None and old < new:
            faults.append(invalid(field, str(new), "must be less than or equal to previous value"))
            return False
    elif old is not None:
        faults.append(invalid(field, '"null"', "must not update from a positive integer to nil value"))
    return True


def _only_added(faults: Faults, spec: Part, before: Part) -> None:
    tolerations = spec.get("tolerations") or []
    for each in before.get("tolerations") or ():
        if each not in tolerations:
            words = "existing toleration can not be modified except its tolerationSeconds"
            same = [{**other, "tolerationSeconds": each.get("tolerationSeconds")} for other in tolerations]
            if {**each, "tolerationSeconds": each.get("tolerationSeconds")} not in same:
                faults.append(forbidden("spec.tolerations", words))
                return


def _frozen(spec: Part, old: Part) -> Part:
    """Return the spec without the fields that may change in a running Pod."""
    kept = {
        name: value
        for name, value in spec.items()
        if name not in ("activeDeadlineSeconds", "tolerations", "schedulingGates") and value not in (None, [], {}, "")
    }
    for name in ("containers", "initContainers"):
        if kept.get(name):
            kept[name] = [{**container, "image": ""} for container in kept[name]]
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and kept.get("terminationGracePeriodSeconds") == 1:
        kept["terminationGracePeriodSeconds"] = old["terminationGracePeriodSeconds"]
    return kept


def _difference(old: Any, new: Any, path: str = "spec") -> str:
    """Format the changes, two lines per field. k8s: the real server prints a diff of its Go structs."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = sorted(old.keys() | new.keys())
        parts = (_difference(old.get(name), new.get(name), f"{path}.{name}") for name in names)
        return "".join(parts)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return "".join(_difference(*pair, f"{path}[{index}]") for index, pair in enumerate(zip(old, new)))
    return "" if old == new else f"- {path}: {json.dumps(old)}\n+ {path}: {json.dumps(new)}\n"


def pod_status(manifest: Part) -> Faults:
    faults: Faults = []
    status = manifest.get("status") or {}
    for field, each in items(status, "containerStatuses", "status"):
        if (each.get("restartCount") or 0) < 0:
            faults.append(invalid(f"{field}.restartCount", str(each["restartCount"]), NEGATIVE))
    non_negative(faults, "status", status, "observedGeneration")
    return faults

"""Validates Pods and Pod templates."""

from __future__ import annotations

import json
from typing import Any

from argosy.kube.schema import name_label_address_syntax
from argosy.kube.schema.field_error import forbidden, format_go_value, invalid, not_supported_unsorted, required
from argosy.kube.schema.validation.containers import validate_containers, validate_init_containers
from argosy.kube.schema.validation.pod_volumes import validate_volumes
from argosy.kube.schema.validation.shared_field_checks import (
    NEGATIVE_ERROR,
    FieldErrors,
    ManifestPart,
    check_annotations,
    check_labels,
    check_non_negative,
    check_required_choice,
    check_syntax,
    iterate_items,
)  # fmt: skip

_MUTABLE_FIELDS_TEXT = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_MAX_INT32 = 2**31 - 1


def validate_pod_spec(errors: FieldErrors, spec: ManifestPart, path: str, *, is_pod: bool = False) -> None:
    volume_names = validate_volumes(errors, spec, path)
    validate_containers(errors, spec, path, volume_names)
    validate_init_containers(errors, spec, path, volume_names)
    if spec.get("hostNetwork"):
        _check_host_network_ports(errors, spec, path, is_pod=is_pod)
    check_required_choice(errors, f"{path}.restartPolicy", spec.get("restartPolicy"), ("Always", "OnFailure", "Never"))
    policies = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
    check_required_choice(errors, f"{path}.dnsPolicy", spec.get("dnsPolicy"), policies)
    if spec.get("dnsPolicy") == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        if spec.get("dnsConfig") is None:
            errors.append(required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None"))
        else:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errors.append(required(f"{path}.dnsConfig.nameservers", detail))
    if spec.get("nodeSelector"):
        check_labels(errors, f"{path}.nodeSelector", spec["nodeSelector"])
    for name, syntax_check in (
        ("serviceAccountName", name_label_address_syntax.check_dns_subdomain),
        ("nodeName", name_label_address_syntax.check_dns_subdomain),
    ):
        if spec.get(name):
            check_syntax(errors, f"{path}.{name}", spec[name], syntax_check)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_INT32:
        errors.append(
            invalid(
                f"{path}.activeDeadlineSeconds", str(deadline), name_label_address_syntax.range_error(1, _MAX_INT32)
            )
        )
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            check_syntax(errors, f"{path}.{name}", spec[name], name_label_address_syntax.check_dns_label)
    if spec.get("tolerations"):
        _validate_tolerations(errors, spec, path)
    for name in ("priorityClassName", "runtimeClassName"):
        if spec.get(name):
            check_syntax(errors, f"{path}.{name}", spec[name], name_label_address_syntax.check_dns_subdomain)
    _validate_spread_constraints(errors, spec, path)


def _check_host_network_ports(errors: FieldErrors, spec: ManifestPart, path: str, *, is_pod: bool) -> None:
    for container_path, container in iterate_items(spec, "containers", path):
        for field, port in iterate_items(container, "ports", container_path):
            host_port = port.get("hostPort") or 0
            if (is_pod or host_port) and host_port != (port.get("containerPort") or 0):
                detail = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid(f"{field}.hostPort", str(host_port), detail))


def _validate_tolerations(errors: FieldErrors, spec: ManifestPart, path: str) -> None:
    for field, toleration in iterate_items(spec, "tolerations", path):
        key, operator, effect = (
            toleration.get("key") or "",
            toleration.get("operator") or "",
            toleration.get("effect") or "",
        )
        value = toleration.get("value") or ""
        if key:
            check_syntax(errors, f"{field}.key", key, name_label_address_syntax.check_qualified_name)
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{field}.operator", format_go_value(operator), detail))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{field}.effect", format_go_value(effect), detail))
        if operator in ("", "Equal"):
            if messages := name_label_address_syntax.check_label_value(value):
                errors.append(invalid(f"{field}.operator", format_go_value(value), ";".join(messages)))
        elif operator == "Exists":
            if value:
                detail = "value must be empty when `operator` is 'Exists'"
                errors.append(invalid(f"{field}.operator", format_go_value(value), detail))
        else:
            errors.append(not_supported_unsorted(f"{field}.operator", format_go_value(operator), ("Equal", "Exists")))
        effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
        if effect and effect not in effects:
            errors.append(not_supported_unsorted(f"{field}.effect", format_go_value(effect), effects))


def _validate_spread_constraints(errors: FieldErrors, spec: ManifestPart, path: str) -> None:
    for field, constraint in iterate_items(spec, "topologySpreadConstraints", path):
        if (constraint.get("maxSkew") or 0) <= 0:
            errors.append(invalid(f"{field}.maxSkew", str(constraint.get("maxSkew") or 0), "must be greater than zero"))
        if not constraint.get("topologyKey"):
            errors.append(required(f"{field}.topologyKey", "can not be empty"))
        action = constraint.get("whenUnsatisfiable") or ""
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            allowed = ("DoNotSchedule", "ScheduleAnyway")
            errors.append(not_supported_unsorted(f"{field}.whenUnsatisfiable", format_go_value(action), allowed))


def validate_pod_template(errors: FieldErrors, pod_template: ManifestPart, path: str) -> None:
    metadata, spec = pod_template.get("metadata") or {}, pod_template.get("spec") or {}
    if metadata.get("labels"):
        check_labels(errors, f"{path}.labels", metadata["labels"])
    if metadata.get("annotations"):
        check_annotations(errors, f"{path}.annotations", metadata["annotations"])
    validate_pod_spec(errors, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", detail))


def validate_pod(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec = manifest.get("spec") or {}
    validate_pod_spec(errors, spec, "spec", is_pod=True)
    for name in ("containers", "initContainers"):
        _check_image_whitespace(errors, spec, name)
    return errors


def _check_image_whitespace(errors: FieldErrors, spec: ManifestPart, name: str) -> None:
    for field, container in iterate_items(spec, name, "spec"):
        image = container.get("image") or ""
        if image != image.strip():
            detail = "must not have leading or trailing whitespace"
            errors.append(invalid(f"{field}.image", format_go_value(image), detail))


def validate_pod_create(manifest: ManifestPart) -> FieldErrors:
    errors = validate_pod(manifest)
    spec = manifest.get("spec") or {}
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def validate_pod_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    errors = validate_pod(manifest)
    spec, old_spec = manifest.get("spec") or {}, old.get("spec") or {}
    for name in ("containers", "initContainers"):
        if len(spec.get(name) or ()) != len(old_spec.get(name) or ()):
            errors.append(forbidden(f"spec.{name}", "pod updates may not add or remove containers"))
            return errors
    if not _check_deadline_update(errors, spec, old_spec):
        return errors
    _check_tolerations_update(errors, spec, old_spec)
    gates = {gate.get("name") for gate in old_spec.get("schedulingGates") or ()}
    for field, gate in iterate_items(spec, "schedulingGates", "spec"):
        if gate.get("name") not in gates:
            detail = "only deletion is allowed, but found new scheduling gate '" + str(gate.get("name")) + "'"
            errors.append(forbidden(field, detail))
    if _immutable_fields(spec, old_spec) != _immutable_fields(old_spec, old_spec):
        changes = _format_changes(_immutable_fields(old_spec, old_spec), _immutable_fields(spec, old_spec))
        errors.append(
            forbidden("spec", f"pod updates may not change fields other than {_MUTABLE_FIELDS_TEXT}\n{changes}")
        )
    return errors


def _check_deadline_update(errors: FieldErrors, spec: ManifestPart, old_spec: ManifestPart) -> bool:
    name = "activeDeadlineSeconds"
    field, new_deadline, old_deadline = f"spec.{name}", spec.get(name), old_spec.get(name)
    if new_deadline is not None:
        if not 0 <= new_deadline <= _MAX_INT32:
            errors.append(invalid(field, str(new_deadline), name_label_address_syntax.range_error(0, _MAX_INT32)))
            return False
        if old_deadline is not None and old_deadline < new_deadline:
            errors.append(invalid(field, str(new_deadline), "must be less than or equal to previous value"))
            return False
    elif old_deadline is not None:
        errors.append(invalid(field, '"null"', "must not update from a positive integer to nil value"))
    return True


def _check_tolerations_update(errors: FieldErrors, spec: ManifestPart, old_spec: ManifestPart) -> None:
    tolerations = spec.get("tolerations") or []
    for old_toleration in old_spec.get("tolerations") or ():
        if old_toleration not in tolerations:
            detail = "existing toleration can not be modified except its tolerationSeconds"
            comparable_tolerations = [
                {**toleration, "tolerationSeconds": old_toleration.get("tolerationSeconds")}
                for toleration in tolerations
            ]
            if {
                **old_toleration,
                "tolerationSeconds": old_toleration.get("tolerationSeconds"),
            } not in comparable_tolerations:
                errors.append(forbidden("spec.tolerations", detail))
                return


def _immutable_fields(spec: ManifestPart, old_spec: ManifestPart) -> ManifestPart:
    """Return the spec without the fields that may change in a running Pod."""
    kept = {
        name: value
        for name, value in spec.items()
        if name not in ("activeDeadlineSeconds", "tolerations", "schedulingGates") and value not in (None, [], {}, "")
    }
    for name in ("containers", "initContainers"):
        if kept.get(name):
            kept[name] = [{**container, "image": ""} for container in kept[name]]
    if (old_spec.get("terminationGracePeriodSeconds") or 0) < 0 and kept.get("terminationGracePeriodSeconds") == 1:
        kept["terminationGracePeriodSeconds"] = old_spec["terminationGracePeriodSeconds"]
    return kept


def _format_changes(old: Any, new: Any, path: str = "spec") -> str:
    """Format the changes, two lines per field. k8s: the real server prints a diff of its Go structs."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = sorted(old.keys() | new.keys())
        parts = (_format_changes(old.get(name), new.get(name), f"{path}.{name}") for name in names)
        return "".join(parts)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return "".join(_format_changes(*pair, f"{path}[{index}]") for index, pair in enumerate(zip(old, new)))
    return "" if old == new else f"- {path}: {json.dumps(old)}\n+ {path}: {json.dumps(new)}\n"


def validate_pod_status(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    status = manifest.get("status") or {}
    for field, container_status in iterate_items(status, "containerStatuses", "status"):
        if (container_status.get("restartCount") or 0) < 0:
            errors.append(invalid(f"{field}.restartCount", str(container_status["restartCount"]), NEGATIVE_ERROR))
    check_non_negative(errors, "status", status, "observedGeneration")
    return errors

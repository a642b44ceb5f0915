"""Validates containers: names, images, ports, environment, mounts, resources, probes."""

from __future__ import annotations

from argosy.kube.schema import name_label_address_syntax, quantity
from argosy.kube.schema.field_error import (
    duplicate,
    forbidden,
    format_go_value,
    invalid,
    not_found,
    not_supported_unsorted,
    required,
)
from argosy.kube.schema.validation.pod_volumes import check_relative_path
from argosy.kube.schema.validation.shared_field_checks import (
    FieldErrors,
    ManifestPart,
    check_non_negative,
    check_port,
    check_port_number,
    check_quantity,
    check_required_choice,
    check_required_name,
    check_syntax,
    iterate_items,
)  # fmt: skip

PROTOCOLS = ("SCTP", "TCP", "UDP")
_CONTAINER_RESOURCES = {"cpu", "memory", "ephemeral-storage"}
_STANDARD_RESOURCES = _CONTAINER_RESOURCES | {
    "requests.cpu", "requests.memory", "requests.ephemeral-storage", "limits.cpu", "limits.memory",
    "limits.ephemeral-storage", "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
    "persistentvolumeclaims", "storage", "requests.storage", "services.nodeports", "services.loadbalancers",
}  # fmt: skip
_FIELD_PATHS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_PROBE_FIELDS = ("livenessProbe", "readinessProbe", "startupProbe")
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")
_ONE_SOURCE_ERROR = "may not have more than one field specified at a time"


def validate_containers(errors: FieldErrors, spec: ManifestPart, path: str, volumes: set[str]) -> None:
    field = f"{path}.containers"
    if not spec.get("containers"):
        errors.append(required(field))
        return
    names: set[str] = set()
    for container_path, container in iterate_items(spec, "containers", path):
        _validate_container(errors, container_path, container, volumes)
        name = container.get("name") or ""
        if name in names:
            errors.append(duplicate(f"{container_path}.name", format_go_value(name)))
        names.add(name)
        if container.get("lifecycle") is not None:
            _validate_lifecycle(errors, f"{container_path}.lifecycle", container["lifecycle"])
        _validate_probes(errors, container_path, container)
        if container.get("restartPolicy") is not None:
            errors.append(forbidden(f"{container_path}.restartPolicy", "may not be set for non-init containers"))
    _check_duplicate_host_ports(errors, field, spec["containers"])


def validate_init_containers(errors: FieldErrors, spec: ManifestPart, path: str, volumes: set[str]) -> None:
    names = {container.get("name") for container in spec.get("containers") or ()}
    for container_path, container in iterate_items(spec, "initContainers", path):
        _validate_container(errors, container_path, container, volumes)
        policy = container.get("restartPolicy")
        if policy is not None and policy != "Always":
            errors.append(
                not_supported_unsorted(f"{container_path}.restartPolicy", format_go_value(policy), ("Always",))
            )
        name = container.get("name") or ""
        if name in names:
            errors.append(duplicate(f"{container_path}.name", format_go_value(name)))
        elif name:
            names.add(name)
        _check_duplicate_host_ports(errors, f"{path}.initContainers", [container])
        if policy == "Always":
            if container.get("lifecycle") is not None:
                _validate_lifecycle(errors, f"{container_path}.lifecycle", container["lifecycle"])
            _validate_probes(errors, container_path, container)
            continue
        detail = "may not be set for init containers without restartPolicy=Always"
        forbidden_fields = [
            name_in_container
            for name_in_container in ("lifecycle", *_PROBE_FIELDS)
            if container.get(name_in_container) is not None
        ]
        errors.extend(
            forbidden(f"{container_path}.{name_in_container}", detail) for name_in_container in forbidden_fields
        )


def _validate_container(errors: FieldErrors, path: str, container: ManifestPart, volumes: set[str]) -> None:
    check_required_name(errors, f"{path}.name", container.get("name"), name_label_address_syntax.check_dns_label)
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    policies = ("File", "FallbackToLogsOnError")
    check_required_choice(
        errors, f"{path}.terminationMessagePolicy", container.get("terminationMessagePolicy"), policies
    )
    if container.get("ports"):
        _validate_ports(errors, path, container)
    if container.get("env"):
        _validate_environment(errors, path, container)
    if container.get("envFrom"):
        _validate_env_from(errors, path, container)
    if container.get("volumeMounts"):
        _validate_volume_mounts(errors, path, container, volumes)
    check_required_choice(
        errors, f"{path}.imagePullPolicy", container.get("imagePullPolicy"), ("Always", "IfNotPresent", "Never")
    )
    if container.get("resources"):
        validate_resource_requirements(errors, f"{path}.resources", container["resources"])


def _validate_ports(errors: FieldErrors, path: str, container: ManifestPart) -> None:
    names: set[str] = set()
    for field, port in iterate_items(container, "ports", path):
        name = port.get("name") or ""
        if name:
            messages = name_label_address_syntax.check_port_name(name)
            errors.extend(invalid(f"{field}.name", format_go_value(name), message) for message in messages)
            if not messages and name in names:
                errors.append(duplicate(f"{field}.name", format_go_value(name)))
            names.add(name)
        if not port.get("containerPort"):
            errors.append(required(f"{field}.containerPort"))
        else:
            check_port_number(errors, f"{field}.containerPort", port["containerPort"])
        if port.get("hostPort"):
            check_port_number(errors, f"{field}.hostPort", port["hostPort"])
        check_required_choice(errors, f"{field}.protocol", port.get("protocol"), PROTOCOLS)


def _check_duplicate_host_ports(errors: FieldErrors, field: str, containers: list[ManifestPart]) -> None:
    used_ports: set[str] = set()
    for index, container in enumerate(containers):
        for port_path, port in iterate_items(container or {}, "ports", f"{field}[{index}]"):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if key in used_ports:
                errors.append(duplicate(f"{port_path}.hostPort", format_go_value(key)))
            used_ports.add(key)


def _validate_environment(errors: FieldErrors, path: str, container: ManifestPart) -> None:
    for field, variable in iterate_items(container, "env", path):
        check_required_name(
            errors, f"{field}.name", variable.get("name"), name_label_address_syntax.check_variable_name
        )
        source = variable.get("valueFrom")
        if source is None:
            continue
        field = f"{field}.valueFrom"
        kinds = [source_kind for source_kind in _ENV_SOURCES if source.get(source_kind) is not None]
        if "fieldRef" in kinds:
            _validate_field_ref(errors, f"{field}.fieldRef", source["fieldRef"])
        if "resourceFieldRef" in kinds and not source["resourceFieldRef"].get("resource"):
            errors.append(required(f"{field}.resourceFieldRef.resource"))
        for source_kind in ("configMapKeyRef", "secretKeyRef"):
            if source_kind in kinds:
                _validate_key_ref(errors, f"{field}.{source_kind}", source[source_kind])
        if not kinds:
            detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
            errors.append(invalid(field, '""', detail))
        elif variable.get("value"):
            errors.append(invalid(field, '""', "may not be specified when `value` is not empty"))
        elif len(kinds) > 1:
            errors.append(invalid(field, '""', _ONE_SOURCE_ERROR))


def _validate_field_ref(errors: FieldErrors, field: str, ref: ManifestPart) -> None:
    path = ref.get("fieldPath") or ""
    if not path:
        errors.append(required(f"{field}.fieldPath"))
        return
    head, bracket, key = path.partition("['")
    if bracket and key.endswith("']") and head in ("metadata.annotations", "metadata.labels"):
        key = key[:-2].lower() if head == "metadata.annotations" else key[:-2]
        check_syntax(errors, field, key, name_label_address_syntax.check_qualified_name)
    elif path not in (*_FIELD_PATHS, "metadata.annotations", "metadata.labels", "spec.host", "spec.schedulerName"):
        detail = f"error converting fieldPath: field label not supported: {path}"
        errors.append(invalid(f"{field}.fieldPath", format_go_value(path), detail))
    elif path not in _FIELD_PATHS:
        errors.append(not_supported_unsorted(f"{field}.fieldPath", format_go_value(path), _FIELD_PATHS))


def _validate_key_ref(errors: FieldErrors, field: str, ref: ManifestPart) -> None:
    check_syntax(errors, f"{field}.name", ref.get("name") or "", name_label_address_syntax.check_dns_subdomain)
    check_required_name(errors, f"{field}.key", ref.get("key"), name_label_address_syntax.check_config_key)


def _validate_env_from(errors: FieldErrors, path: str, container: ManifestPart) -> None:
    for field, source in iterate_items(container, "envFrom", path):
        if source.get("prefix"):
            check_syntax(errors, f"{field}.prefix", source["prefix"], name_label_address_syntax.check_variable_name)
        kinds = [source_kind for source_kind in ("configMapRef", "secretRef") if source.get(source_kind) is not None]
        for source_kind in kinds:
            check_required_name(
                errors,
                f"{field}.{source_kind}.name",
                source[source_kind].get("name"),
                name_label_address_syntax.check_dns_subdomain,
            )
        if not kinds:
            errors.append(invalid(f"{path}.envFrom", '""', "must specify one of: `configMapRef` or `secretRef`"))
        elif len(kinds) > 1:
            errors.append(invalid(f"{path}.envFrom", '""', _ONE_SOURCE_ERROR))


def _validate_volume_mounts(
    errors: FieldErrors, container_path: str, container: ManifestPart, volumes: set[str]
) -> None:
    paths: set[str] = set()
    for field, mount in iterate_items(container, "volumeMounts", container_path):
        name, path = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(required(f"{field}.name"))
        if name not in volumes:
            errors.append(not_found(f"{field}.name", format_go_value(name)))
        if not path:
            errors.append(required(f"{field}.mountPath"))
        if path in paths:
            errors.append(invalid(f"{field}.mountPath", format_go_value(path), "must be unique"))
        paths.add(path)
        if mount.get("subPath"):
            check_relative_path(errors, f"{container_path}.volumeMounts.subPath", mount["subPath"])
        if mount.get("subPathExpr"):
            if mount.get("subPath"):
                detail = "subPathExpr and subPath are mutually exclusive"
                errors.append(invalid(f"{field}.subPathExpr", format_go_value(mount["subPathExpr"]), detail))
            check_relative_path(errors, f"{container_path}.volumeMounts.subPathExpr", mount["subPathExpr"])


def validate_resource_requirements(errors: FieldErrors, field: str, resources: ManifestPart) -> None:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for part_name, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            resource_path = f"{field}.{part_name}[{name}]"
            _validate_resource_name(errors, resource_path, name)
            check_quantity(errors, resource_path, value, must_be_integer=_is_extended_resource(name))
            if part_name == "requests":
                _check_request_within_limit(errors, field, name, value, limits.get(name))


def _is_extended_resource(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _check_request_within_limit(errors: FieldErrors, field: str, name: str, request: str, limit: str | None) -> None:
    must_equal_limit = _is_extended_resource(name) or name.startswith("hugepages-")
    if limit is None:
        if must_equal_limit:
            errors.append(required(f"{field}.limits", "Limit must be set for non overcommitable resources"))
        return
    order = quantity.compare(request, limit)
    request_text, limit_text = format_go_value(quantity.canonicalize(request)), quantity.canonicalize(limit)
    if must_equal_limit and order:
        errors.append(invalid(f"{field}.requests", request_text, f"must be equal to {name} limit of {limit_text}"))
    elif order > 0:
        errors.append(
            invalid(f"{field}.requests", request_text, f"must be less than or equal to {name} limit of {limit_text}")
        )


def _validate_resource_name(errors: FieldErrors, field: str, name: str) -> None:
    if messages := name_label_address_syntax.check_qualified_name(name):
        errors.extend(invalid(field, name, message) for message in messages)
        return
    if "/" in name:
        return
    is_huge_pages = name.startswith("hugepages-")
    if not is_huge_pages and name not in _STANDARD_RESOURCES:
        errors.append(invalid(field, name, "must be a standard resource type or fully qualified"))
    if not is_huge_pages and name not in _CONTAINER_RESOURCES:
        errors.append(invalid(field, name, "must be a standard resource for containers"))


def _validate_lifecycle(errors: FieldErrors, field: str, lifecycle: ManifestPart) -> None:
    for name in ("postStart", "preStop"):
        if lifecycle.get(name) is not None:
            _validate_handler(errors, f"{field}.{name}", lifecycle[name])


def _validate_probes(errors: FieldErrors, container_path: str, container: ManifestPart) -> None:
    for name in _PROBE_FIELDS:
        probe = container.get(name)
        if probe is None:
            continue
        field = f"{container_path}.{name}"
        _validate_handler(errors, field, probe)
        counts = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
        check_non_negative(errors, field, probe, *counts)
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is not None and grace <= 0:
            errors.append(invalid(f"{field}.terminationGracePeriodSeconds", str(grace), "must be greater than 0"))
        if name == "readinessProbe":
            if grace is not None:
                detail = "must not be set for readinessProbes"
                errors.append(invalid(f"{field}.terminationGracePeriodSeconds", str(grace), detail))
        elif probe.get("successThreshold", 1) != 1:
            errors.append(invalid(f"{field}.successThreshold", str(probe["successThreshold"]), "must be 1"))


def _validate_handler(errors: FieldErrors, field: str, handler_spec: ManifestPart) -> None:
    kinds = [kind for kind in ("exec", "httpGet", "tcpSocket", "grpc", "sleep") if handler_spec.get(kind) is not None]
    if not kinds:
        errors.append(required(field, "must specify a handler type"))
        return
    handler = handler_spec[kinds[0]]
    handler_path = f"{field}.{kinds[0]}"
    if kinds[0] == "exec":
        if not handler.get("command"):
            errors.append(required(f"{handler_path}.command"))
    elif kinds[0] == "httpGet":
        if not handler.get("path"):
            errors.append(required(f"{handler_path}.path"))
        check_port(errors, f"{handler_path}.port", handler.get("port"))
        if handler.get("scheme") not in ("HTTP", "HTTPS"):
            errors.append(
                not_supported_unsorted(
                    f"{handler_path}.scheme", format_go_value(handler.get("scheme") or ""), ("HTTP", "HTTPS")
                )
            )
        for header in handler.get("httpHeaders") or ():
            check_syntax(
                errors,
                f"{handler_path}.httpHeaders",
                header.get("name") or "",
                name_label_address_syntax.check_header_name,
            )
    elif kinds[0] in ("tcpSocket", "grpc"):
        check_port(errors, f"{handler_path}.port", handler.get("port"))
    errors.extend(forbidden(f"{field}.{kind}", "may not specify more than 1 handler type") for kind in kinds[1:])

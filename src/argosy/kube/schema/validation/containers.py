"""Validates containers: names, images, ports, environment, mounts, resources, probes."""

from __future__ import annotations

from argosy.kube.schema import name_syntax, quantity
from argosy.kube.schema.field_error import duplicate, forbidden, go_value, invalid, not_found, required, unsupported
from argosy.kube.schema.validation.checks import (
    Faults,
    Part,
    amount,
    items,
    matches,
    named,
    non_negative,
    one_of,
    port,
    port_number,
)  # fmt: skip
from argosy.kube.schema.validation.volumes import relative_path

PROTOCOLS = ("SCTP", "TCP", "UDP")
_STANDARD = {"cpu", "memory", "ephemeral-storage"}
_STANDARD_ANYWHERE = _STANDARD | {
    "requests.cpu", "requests.memory", "requests.ephemeral-storage", "limits.cpu", "limits.memory",
    "limits.ephemeral-storage", "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
    "persistentvolumeclaims", "storage", "requests.storage", "services.nodeports", "services.loadbalancers",
}  # fmt: skip
_FIELD_PATHS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")
_ONE_SOURCE = "may not have more than one field specified at a time"


def containers(faults: Faults, spec: Part, path: str, volumes: set[str]) -> None:
    field = f"{path}.containers"
    if not spec.get("containers"):
        faults.append(required(field))
        return
    names: set[str] = set()
    for at, container in items(spec, "containers", path):
        _common(faults, at, container, volumes)
        name = container.get("name") or ""
        if name in names:
            faults.append(duplicate(f"{at}.name", go_value(name)))
        names.add(name)
        if container.get("lifecycle") is not None:
            _lifecycle(faults, f"{at}.lifecycle", container["lifecycle"])
        _probes(faults, at, container)
        if container.get("restartPolicy") is not None:
            faults.append(forbidden(f"{at}.restartPolicy", "may not be set for non-init containers"))
    _host_ports(faults, field, spec["containers"])


def init_containers(faults: Faults, spec: Part, path: str, volumes: set[str]) -> None:
    names = {container.get("name") for container in spec.get("containers") or ()}
    for at, container in items(spec, "initContainers", path):
        _common(faults, at, container, volumes)
        policy = container.get("restartPolicy")
        if policy is not None and policy != "Always":
            faults.append(unsupported(f"{at}.restartPolicy", go_value(policy), ("Always",)))
        name = container.get("name") or ""
        if name in names:
            faults.append(duplicate(f"{at}.name", go_value(name)))
        elif name:
            names.add(name)
        _host_ports(faults, f"{path}.initContainers", [container])
        if policy == "Always":
            if container.get("lifecycle") is not None:
                _lifecycle(faults, f"{at}.lifecycle", container["lifecycle"])
            _probes(faults, at, container)
            continue
        words = "may not be set for init containers without restartPolicy=Always"
        set_here = [each for each in ("lifecycle", *_PROBES) if container.get(each) is not None]
        faults.extend(forbidden(f"{at}.{each}", words) for each in set_here)


def _common(faults: Faults, at: str, container: Part, volumes: set[str]) -> None:
    named(faults, f"{at}.name", container.get("name"), name_syntax.dns_label)
    if not container.get("image"):
        faults.append(required(f"{at}.image"))
    policies = ("File", "FallbackToLogsOnError")
    one_of(faults, f"{at}.terminationMessagePolicy", container.get("terminationMessagePolicy"), policies)
    if container.get("ports"):
        _ports(faults, at, container)
    if container.get("env"):
        _environment(faults, at, container)
    if container.get("envFrom"):
        _environment_from(faults, at, container)
    if container.get("volumeMounts"):
        _mounts(faults, at, container, volumes)
    one_of(faults, f"{at}.imagePullPolicy", container.get("imagePullPolicy"), ("Always", "IfNotPresent", "Never"))
    if container.get("resources"):
        resource_requirements(faults, f"{at}.resources", container["resources"])


def _ports(faults: Faults, at: str, container: Part) -> None:
    names: set[str] = set()
    for field, each in items(container, "ports", at):
        name = each.get("name") or ""
        if name:
            complaints = name_syntax.port_name(name)
            faults.extend(invalid(f"{field}.name", go_value(name), complaint) for complaint in complaints)
            if not complaints and name in names:
                faults.append(duplicate(f"{field}.name", go_value(name)))
            names.add(name)
        if not each.get("containerPort"):
            faults.append(required(f"{field}.containerPort"))
        else:
            port_number(faults, f"{field}.containerPort", each["containerPort"])
        if each.get("hostPort"):
            port_number(faults, f"{field}.hostPort", each["hostPort"])
        one_of(faults, f"{field}.protocol", each.get("protocol"), PROTOCOLS)


def _host_ports(faults: Faults, field: str, group: list[Part]) -> None:
    taken: set[str] = set()
    for index, container in enumerate(group):
        for at, each in items(container or {}, "ports", f"{field}[{index}]"):
            if not each.get("hostPort"):
                continue
            key = f"{each.get('protocol') or ''}/{each.get('hostIP') or ''}/{each['hostPort']}"
            if key in taken:
                faults.append(duplicate(f"{at}.hostPort", go_value(key)))
            taken.add(key)


def _environment(faults: Faults, at: str, container: Part) -> None:
    for field, variable in items(container, "env", at):
        named(faults, f"{field}.name", variable.get("name"), name_syntax.variable_name)
        source = variable.get("valueFrom")
        if source is None:
            continue
        field = f"{field}.valueFrom"
        kinds = [each for each in _SOURCES if source.get(each) is not None]
        if "fieldRef" in kinds:
            _field_ref(faults, f"{field}.fieldRef", source["fieldRef"])
        if "resourceFieldRef" in kinds and not source["resourceFieldRef"].get("resource"):
            faults.append(required(f"{field}.resourceFieldRef.resource"))
        for each in ("configMapKeyRef", "secretKeyRef"):
            if each in kinds:
                _key_ref(faults, f"{field}.{each}", source[each])
        if not kinds:
            words = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
            faults.append(invalid(field, '""', words))
        elif variable.get("value"):
            faults.append(invalid(field, '""', "may not be specified when `value` is not empty"))
        elif len(kinds) > 1:
            faults.append(invalid(field, '""', _ONE_SOURCE))


def _field_ref(faults: Faults, field: str, ref: Part) -> None:
    path = ref.get("fieldPath") or ""
    if not path:
        faults.append(required(f"{field}.fieldPath"))
        return
    head, bracket, key = path.partition("['")
    if bracket and key.endswith("']") and head in ("metadata.annotations", "metadata.labels"):
        key = key[:-2].lower() if head == "metadata.annotations" else key[:-2]
        matches(faults, field, key, name_syntax.qualified_name)
    elif path not in (*_FIELD_PATHS, "metadata.annotations", "metadata.labels", "spec.host", "spec.schedulerName"):
        words = f"error converting fieldPath: field label not supported: {path}"
        faults.append(invalid(f"{field}.fieldPath", go_value(path), words))
    elif path not in _FIELD_PATHS:
        faults.append(unsupported(f"{field}.fieldPath", go_value(path), _FIELD_PATHS))


def _key_ref(faults: Faults, field: str, ref: Part) -> None:
    matches(faults, f"{field}.name", ref.get("name") or "", name_syntax.dns_subdomain)
    named(faults, f"{field}.key", ref.get("key"), name_syntax.config_key)


def _environment_from(faults: Faults, at: str, container: Part) -> None:
    for field, source in items(container, "envFrom", at):
        if source.get("prefix"):
            matches(faults, f"{field}.prefix", source["prefix"], name_syntax.variable_name)
        kinds = [each for each in ("configMapRef", "secretRef") if source.get(each) is not None]
        for each in kinds:
            named(faults, f"{field}.{each}.name", source[each].get("name"), name_syntax.dns_subdomain)
        if not kinds:
            faults.append(invalid(f"{at}.envFrom", '""', "must specify one of: `configMapRef` or `secretRef`"))
        elif len(kinds) > 1:
            faults.append(invalid(f"{at}.envFrom", '""', _ONE_SOURCE))


def _mounts(faults: Faults, at: str, container: Part, volumes: set[str]) -> None:
    paths: set[str] = set()
    for field, mount in items(container, "volumeMounts", at):
        name, path = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            faults.append(required(f"{field}.name"))
        if name not in volumes:
            faults.append(not_found(f"{field}.name", go_value(name)))
        if not path:
            faults.append(required(f"{field}.mountPath"))
        if path in paths:
            faults.append(invalid(f"{field}.mountPath", go_value(path), "must be unique"))
        paths.add(path)
        if mount.get("subPath"):
            relative_path(faults, f"{at}.volumeMounts.subPath", mount["subPath"])
        if mount.get("subPathExpr"):
            if mount.get("subPath"):
                words = "subPathExpr and subPath are mutually exclusive"
                faults.append(invalid(f"{field}.subPathExpr", go_value(mount["subPathExpr"]), words))
            relative_path(faults, f"{at}.volumeMounts.subPathExpr", mount["subPathExpr"])


def resource_requirements(faults: Faults, field: str, given: Part) -> None:
    limits, requests = given.get("limits") or {}, given.get("requests") or {}
    for part_name, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            at = f"{field}.{part_name}[{name}]"
            _resource_name(faults, at, name)
            amount(faults, at, value, whole=_counted(name))
            if part_name == "requests":
                _within_limit(faults, field, name, value, limits.get(name))


def _counted(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _within_limit(faults: Faults, field: str, name: str, request: str, limit: str | None) -> None:
    fixed = _counted(name) or name.startswith("hugepages-")
    if limit is None:
        if fixed:
            faults.append(required(f"{field}.limits", "Limit must be set for non overcommitable resources"))
        return
    order = quantity.compare(request, limit)
    shown, most = go_value(quantity.canonical(request)), quantity.canonical(limit)
    if fixed and order:
        faults.append(invalid(f"{field}.requests", shown, f"must be equal to {name} limit of {most}"))
    elif order > 0:
        faults.append(invalid(f"{field}.requests", shown, f"must be less than or equal to {name} limit of {most}"))


def _resource_name(faults: Faults, field: str, name: str) -> None:
    if complaints := name_syntax.qualified_name(name):
        faults.extend(invalid(field, name, complaint) for complaint in complaints)
        return
    if "/" in name:
        return
    huge = name.startswith("hugepages-")
    if not huge and name not in _STANDARD_ANYWHERE:
        faults.append(invalid(field, name, "must be a standard resource type or fully qualified"))
    if not huge and name not in _STANDARD:
        faults.append(invalid(field, name, "must be a standard resource for containers"))


def _lifecycle(faults: Faults, field: str, lifecycle: Part) -> None:
    for name in ("postStart", "preStop"):
        if lifecycle.get(name) is not None:
            _handler(faults, f"{field}.{name}", lifecycle[name])


def _probes(faults: Faults, at: str, container: Part) -> None:
    for name in _PROBES:
        probe = container.get(name)
        if probe is None:
            continue
        field = f"{at}.{name}"
        _handler(faults, field, probe)
        counts = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
        non_negative(faults, field, probe, *counts)
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is not None and grace <= 0:
            faults.append(invalid(f"{field}.terminationGracePeriodSeconds", str(grace), "must be greater than 0"))
        if name == "readinessProbe":
            if grace is not None:
                words = "must not be set for readinessProbes"
                faults.append(invalid(f"{field}.terminationGracePeriodSeconds", str(grace), words))
        elif probe.get("successThreshold", 1) != 1:
            faults.append(invalid(f"{field}.successThreshold", str(probe["successThreshold"]), "must be 1"))


def _handler(faults: Faults, field: str, given: Part) -> None:
    kinds = [kind for kind in ("exec", "httpGet", "tcpSocket", "grpc", "sleep") if given.get(kind) is not None]
    if not kinds:
        faults.append(required(field, "must specify a handler type"))
        return
    first = given[kinds[0]]
    at = f"{field}.{kinds[0]}"
    if kinds[0] == "exec":
        if not first.get("command"):
            faults.append(required(f"{at}.command"))
    elif kinds[0] == "httpGet":
        if not first.get("path"):
            faults.append(required(f"{at}.path"))
        port(faults, f"{at}.port", first.get("port"))
        if first.get("scheme") not in ("HTTP", "HTTPS"):
            faults.append(unsupported(f"{at}.scheme", go_value(first.get("scheme") or ""), ("HTTP", "HTTPS")))
        for header in first.get("httpHeaders") or ():
            matches(faults, f"{at}.httpHeaders", header.get("name") or "", name_syntax.header_name)
    elif kinds[0] in ("tcpSocket", "grpc"):
        port(faults, f"{at}.port", first.get("port"))
    faults.extend(forbidden(f"{field}.{kind}", "may not specify more than 1 handler type") for kind in kinds[1:])

"""Defaults of network, storage, RBAC, webhook and API extension kinds."""

from __future__ import annotations

from collections.abc import Callable

from argosy.kube.schema.defaults.fill import Part, each, fill, filled, part, within
from argosy.kube.schema.quantity import canonical

_RBAC = "rbac.authorization.k8s.io"
_BUDGET_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def _peer_rule(given: Part) -> Part:
    made = dict(given)
    each(made, "ports", lambda port: filled(port, ("protocol", "TCP")))
    return made


def network_policy(manifest: Part) -> Part:
    spec = part(manifest, "spec")
    spec["podSelector"] = spec.get("podSelector") or {}
    for name in ("ingress", "egress"):
        each(spec, name, _peer_rule)
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return {**manifest, "spec": spec}


def _backend(given: Part) -> Part:
    made = dict(given)
    within(made, "service", lambda service: {**service, "port": service.get("port") or {}})
    return made


def _ingress_rule(given: Part) -> Part:
    def path(each_path: Part) -> Part:
        return {"pathType": None, **each_path, "backend": _backend(each_path.get("backend") or {})}

    def http(rule: Part) -> Part:
        made = {"paths": None, **rule}
        each(made, "paths", path)
        return made

    made = dict(given)
    within(made, "http", http)
    return made


def ingress(manifest: Part) -> Part:
    spec, status = part(manifest, "spec"), part(manifest, "status")
    within(spec, "defaultBackend", _backend)
    each(spec, "rules", _ingress_rule)
    status["loadBalancer"] = status.get("loadBalancer") or {}
    return {**manifest, "spec": spec, "status": status}


def ingress_class(manifest: Part) -> Part:
    spec = part(manifest, "spec")
    within(spec, "parameters", lambda given: filled(given, ("scope", "Cluster")))
    return {**manifest, "spec": spec}


def disruption_budget(manifest: Part) -> Part:
    status = filled(manifest.get("status") or {}, *((name, 0) for name in _BUDGET_COUNTS))
    return {**manifest, "spec": manifest.get("spec") or {}, "status": status}


def endpoint_slice(manifest: Part) -> Part:
    made = {"endpoints": None, "ports": None, **manifest}
    each(made, "endpoints", lambda given: {**given, "conditions": given.get("conditions") or {}})
    each(made, "ports", lambda port: filled(port, ("name", ""), ("protocol", "TCP")))
    return made


def role(manifest: Part) -> Part:
    return {"rules": None, **manifest}


def _subject(given: Part) -> Part:
    return filled(given, ("apiGroup", _RBAC)) if given.get("kind") in ("User", "Group") else given


def role_binding(manifest: Part) -> Part:
    made = dict(manifest)
    made["roleRef"] = fill(part(made, "roleRef"), (("apiGroup", _RBAC), ("kind", ""), ("name", "")))
    each(made, "subjects", _subject)
    return made


def priority_class(manifest: Part) -> Part:
    return filled(manifest, ("preemptionPolicy", "PreemptLowerPriority"), ("value", 0))


def storage_class(manifest: Part) -> Part:
    return filled(manifest, ("reclaimPolicy", "Delete"), ("volumeBindingMode", "Immediate"), ("provisioner", ""))


def csi_driver(manifest: Part) -> Part:
    spec = part(manifest, "spec")
    pairs = (
        ("attachRequired", True), ("podInfoOnMount", False), ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"), ("requiresRepublish", False), ("seLinuxMount", False),
    )  # fmt: skip
    fill(spec, pairs)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]
    return {**manifest, "spec": spec}


def csi_node(manifest: Part) -> Part:
    return {**manifest, "spec": {"drivers": None, **part(manifest, "spec")}}


def csi_storage_capacity(manifest: Part) -> Part:
    made = {"storageClassName": "", **manifest}
    for name in ("capacity", "maximumVolumeSize"):
        if made.get(name) is not None:
            made[name] = canonical(made[name])
    return made


def volume_attachment(manifest: Part) -> Part:
    spec = part(manifest, "spec")
    spec["source"] = spec.get("source") or {}
    status = filled(manifest.get("status") or {}, ("attached", False))
    return {**manifest, "spec": spec, "status": status}


def _service_port(given: Part) -> Part:
    made = dict(given)
    within(made, "service", lambda service: filled(service, ("port", 443)))
    return made


def _selectors(made: Part) -> Part:
    for name in ("namespaceSelector", "objectSelector"):
        if made.get(name) is None:
            made[name] = {}
    return fill(made, (("matchPolicy", "Equivalent"),))


def _webhook(given: Part) -> Part:
    made = _selectors(filled(given, ("failurePolicy", "Fail"), ("timeoutSeconds", 10)))
    made["clientConfig"] = _service_port(made.get("clientConfig") or {})
    each(made, "rules", lambda rule: filled(rule, ("scope", "*")))
    return made


def validating_webhooks(manifest: Part) -> Part:
    made = dict(manifest)
    each(made, "webhooks", _webhook)
    return made


def mutating_webhooks(manifest: Part) -> Part:
    made = dict(manifest)
    each(made, "webhooks", lambda given: filled(_webhook(given), ("reinvocationPolicy", "Never")))
    return made


def _match_resources(given: Part) -> Part:
    made = _selectors(dict(given))
    for name in ("resourceRules", "excludeResourceRules"):
        each(made, name, lambda rule: filled(rule, ("scope", "*")))
    return made


def admission_policy(manifest: Part) -> Part:
    spec = fill(part(manifest, "spec"), (("failurePolicy", "Fail"),))
    within(spec, "matchConstraints", _match_resources)
    return {**manifest, "spec": spec, "status": manifest.get("status") or {}}


def admission_policy_binding(manifest: Part) -> Part:
    spec = part(manifest, "spec")
    within(spec, "matchResources", _match_resources)
    return {**manifest, "spec": spec}


def api_service(manifest: Part) -> Part:
    spec = _service_port(part(manifest, "spec"))
    fill(spec, (("groupPriorityMinimum", 0), ("versionPriority", 0)))
    return {**manifest, "spec": spec, "status": manifest.get("status") or {}}


def custom_resource_definition(manifest: Part) -> Part:
    spec, status = part(manifest, "spec"), part(manifest, "status")
    names = part(spec, "names")
    kind = str(names.get("kind") or "")
    fill(names, (("singular", kind.lower()), *((("listKind", f"{kind}List"),) if kind else ())))
    spec["names"] = names
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    else:
        spec["conversion"] = _conversion(spec["conversion"])
    status.setdefault("conditions", None)
    status["acceptedNames"] = fill(part(status, "acceptedNames"), (("plural", ""), ("kind", "")))
    if not status.get("storedVersions"):
        stored = (version for version in spec.get("versions") or () if version.get("storage"))
        status["storedVersions"] = [version["name"] for version in stored][:1] or None
    return {**manifest, "spec": spec, "status": status}


def _conversion(given: Part) -> Part:
    def webhook(each_webhook: Part) -> Part:
        made = dict(each_webhook)
        within(made, "clientConfig", _service_port)
        return made

    made = dict(given)
    within(made, "webhook", webhook)
    return made


def token_request(manifest: Part) -> Part:
    return {**manifest, "spec": filled(manifest.get("spec") or {}, ("expirationSeconds", 3600))}


def always(*names: str) -> Callable[[Part], Part]:
    """Build a function that adds structs that are never omitted: an empty `spec` is stored as `{}`."""

    def apply(manifest: Part) -> Part:
        return {**manifest, **{name: manifest.get(name) or {} for name in names}}

    return apply

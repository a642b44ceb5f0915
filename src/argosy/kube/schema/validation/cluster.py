"""Validates RBAC, autoscalers, disruption budgets, priority classes, leases and webhooks."""

from __future__ import annotations

from argosy.kube.schema import name_syntax
from argosy.kube.schema.field_error import duplicate, forbidden, go_value, invalid, required, unsupported
from argosy.kube.schema.validation import go_format
from argosy.kube.schema.validation.checks import Faults, Part, immutable, items, label_selector, matches, named
from argosy.kube.schema.validation.workloads import at_most_all, int_or_percent

_RBAC = "rbac.authorization.k8s.io"
_METRICS = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "External": "external",
    "ContainerResource": "containerResource",
}


def _rules(manifest: Part, *, namespaced: bool) -> Faults:
    faults: Faults = []
    for index, rule in enumerate(manifest.get("rules") or ()):
        field = f"rules[{index}]"
        if not rule.get("verbs"):
            faults.append(required(f"{field}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs")
        if urls:
            shown = go_format.string_list(urls)
            if namespaced:
                words = "namespaced rules cannot apply to non-resource URLs"
                faults.append(invalid(f"{field}.nonResourceURLs", shown, words))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                words = "rules cannot apply to both regular resources and non-resource URLs"
                faults.append(invalid(f"{field}.nonResourceURLs", shown, words))
            continue
        if not rule.get("apiGroups"):
            faults.append(required(f"{field}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            faults.append(required(f"{field}.resources", "resource rules must supply at least one resource"))
    return faults


def role(manifest: Part) -> Faults:
    return _rules(manifest, namespaced=True)


def cluster_role(manifest: Part) -> Faults:
    faults = _rules(manifest, namespaced=False)
    aggregation = manifest.get("aggregationRule")
    if aggregation is not None:
        field = "aggregationRule.clusterRoleSelectors"
        if not aggregation.get("clusterRoleSelectors"):
            words = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            faults.append(required(field, words))
        for index, selector in enumerate(aggregation.get("clusterRoleSelectors") or ()):
            label_selector(faults, f"{field}[{index}]", selector)
    return faults


def _binding(manifest: Part, kinds: tuple[str, ...], *, namespaced: bool) -> Faults:
    faults: Faults = []
    ref = manifest.get("roleRef") or {}
    if ref.get("apiGroup") != _RBAC:
        faults.append(unsupported("roleRef.apiGroup", go_value(ref.get("apiGroup") or ""), (_RBAC,)))
    if ref.get("kind") not in kinds:
        faults.append(unsupported("roleRef.kind", go_value(ref.get("kind") or ""), kinds))
    named(faults, "roleRef.name", ref.get("name"), name_syntax.path_segment)
    for index, subject in enumerate(manifest.get("subjects") or ()):
        _subject(faults, f"subjects[{index}]", subject, namespaced=namespaced)
    return faults


def _subject(faults: Faults, field: str, subject: Part, *, namespaced: bool) -> None:
    kind, name, group = subject.get("kind") or "", subject.get("name") or "", subject.get("apiGroup") or ""
    if not name:
        faults.append(required(f"{field}.name"))
    if kind == "ServiceAccount":
        if name:
            matches(faults, f"{field}.name", name, name_syntax.dns_subdomain)
        if group:
            faults.append(unsupported(f"{field}.apiGroup", go_value(group), ("",)))
        if not namespaced and not subject.get("namespace"):
            faults.append(required(f"{field}.namespace"))
    elif kind in ("User", "Group"):
        if group != _RBAC:
            faults.append(unsupported(f"{field}.apiGroup", go_value(group), (_RBAC,)))
    else:
        faults.append(unsupported(f"{field}.kind", go_value(kind), ("ServiceAccount", "User", "Group")))


def role_binding(manifest: Part) -> Faults:
    return _binding(manifest, ("Role", "ClusterRole"), namespaced=True)


def cluster_role_binding(manifest: Part) -> Faults:
    return _binding(manifest, ("ClusterRole",), namespaced=False)


def role_ref_changed(manifest: Part, old: Part) -> Faults:
    new, before = manifest.get("roleRef") or {}, old.get("roleRef") or {}
    return [] if new == before else [invalid("roleRef", go_format.role_ref(new), "cannot change roleRef")]


def autoscaler(manifest: Part) -> Faults:
    faults: Faults = []
    spec = manifest.get("spec") or {}
    low, high = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if low is not None and low < 1:
        faults.append(invalid("spec.minReplicas", str(low), "must be greater than or equal to 1"))
    if high < 1:
        faults.append(invalid("spec.maxReplicas", str(high), "must be greater than 0"))
    if low is not None and high < low:
        faults.append(invalid("spec.maxReplicas", str(high), "must be greater than or equal to `minReplicas`"))
    target = spec.get("scaleTargetRef") or {}
    for name in ("kind", "name"):
        named(faults, f"spec.scaleTargetRef.{name}", target.get(name), name_syntax.path_segment)
    for field, metric in items(spec, "metrics", "spec"):
        _metric(faults, field, metric)
    if low == 0 and not any(metric.get("type") in ("Object", "External") for metric in spec.get("metrics") or ()):
        words = "must specify at least one Object or External metric to support scaling to zero replicas"
        faults.append(forbidden("spec.metrics", words))
    return faults


def _metric(faults: Faults, field: str, metric: Part) -> None:
    kind = metric.get("type") or ""
    if not kind:
        faults.append(required(f"{field}.type", "must specify a metric source type"))
    if kind not in _METRICS:
        # k8s: reported once for the type, and once more for the missing source of that type
        faults.extend([unsupported(f"{field}.type", go_value(kind), sorted(_METRICS))] * 2)
        return
    present = [name for name in _METRICS.values() if metric.get(name) is not None]
    expected = _METRICS[kind]
    if expected not in present:
        faults.append(required(f"{field}.{expected}", "must populate information for the given metric source"))
    elif len(present) > 1:
        others = [name for name in present if name != expected]
        words = "must populate the given metric source only"
        faults.extend(forbidden(f"{field}.{name}", words) for name in others)


def disruption_budget(manifest: Part) -> Faults:
    faults: Faults = []
    spec = manifest.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        words = "minAvailable and maxUnavailable cannot be both set"
        faults.append(invalid("spec", go_format.budget(spec), words))
    for name in ("minAvailable", "maxUnavailable"):
        if spec.get(name) is not None:
            int_or_percent(faults, f"spec.{name}", spec[name])
            at_most_all(faults, f"spec.{name}", spec[name])
    label_selector(faults, "spec.selector", spec.get("selector"))
    policy, known = spec.get("unhealthyPodEvictionPolicy"), ("AlwaysAllow", "IfHealthyBudget")
    if policy is not None and policy not in known:
        faults.append(unsupported("spec.unhealthyPodEvictionPolicy", go_value(policy), known))
    return faults


_SYSTEM_CLASSES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


def priority_class(manifest: Part) -> Faults:
    faults: Faults = []
    name, value = (manifest.get("metadata") or {}).get("name") or "", manifest.get("value") or 0
    if name.startswith("system-"):
        if _SYSTEM_CLASSES.get(name) != value:
            words = "priority class names with 'system-' prefix are reserved for system use only. error: "
            faults.append(forbidden("metadata.name", f"{words}{name} is not a known system priority class"))
    elif value > 1000000000:
        faults.append(forbidden("value", "maximum allowed value of a user defined priority is 1000000000"))
    policy, known = manifest.get("preemptionPolicy"), ("PreemptLowerPriority", "Never")
    if policy and policy not in known:
        faults.append(unsupported("preemptionPolicy", go_value(policy), known))
    return faults


def priority_class_updated(manifest: Part, old: Part) -> Faults:
    faults: Faults = []
    if (manifest.get("value") or 0) != (old.get("value") or 0):
        faults.append(forbidden("value", "may not be changed in an update."))
    immutable(faults, "preemptionPolicy", manifest.get("preemptionPolicy"), old.get("preemptionPolicy"))
    return faults


def lease(manifest: Part) -> Faults:
    faults: Faults = []
    spec = manifest.get("spec") or {}
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        faults.append(invalid("spec.leaseDurationSeconds", str(seconds), "must be greater than 0"))
    if transitions is not None and transitions < 0:
        faults.append(invalid("spec.leaseTransitions", str(transitions), "must be greater than or equal to 0"))
    return faults


def webhooks(manifest: Part) -> Faults:
    faults: Faults = []
    names: set[str] = set()
    for index, hook in enumerate(manifest.get("webhooks") or ()):
        field = f"webhooks[{index}]"
        name = hook.get("name") or ""
        if not name:
            faults.append(required(f"{field}.name"))
        elif complaints := name_syntax.dns_subdomain(name):
            faults.append(invalid(f"{field}.name", go_value(name), ",".join(complaints)))
        elif name.count(".") < 2:
            words = "should be a domain with at least three segments separated by dots"
            faults.append(invalid(f"{field}.name", go_value(name), words))
        if hook.get("sideEffects") is None:
            faults.append(required(f"{field}.sideEffects", "must specify one of None, NoneOnDryRun"))
        elif hook["sideEffects"] not in ("None", "NoneOnDryRun"):
            faults.append(unsupported(f"{field}.sideEffects", go_value(hook["sideEffects"]), ("None", "NoneOnDryRun")))
        config = hook.get("clientConfig") or {}
        if (config.get("url") is None) == (config.get("service") is None):
            faults.append(required(f"{field}.clientConfig", "exactly one of url or service is required"))
        if not hook.get("admissionReviewVersions"):
            faults.append(required(f"{field}.admissionReviewVersions", "must specify one of v1, v1beta1"))
        if name in names:
            faults.append(duplicate(f"{field}.name", go_value(name)))
        names.add(name)
    return faults

"""Validates RBAC, autoscalers, disruption budgets, priority classes, leases and webhooks."""

from __future__ import annotations

from argosy.kube.schema import name_label_address_syntax
from argosy.kube.schema.field_error import (
    duplicate,
    forbidden,
    format_go_value,
    invalid,
    not_supported_unsorted,
    required,
)
from argosy.kube.schema.validation import go_struct_format
from argosy.kube.schema.validation.shared_field_checks import (
    FieldErrors,
    ManifestPart,
    check_immutable,
    check_label_selector,
    check_required_name,
    check_syntax,
    iterate_items,
)
from argosy.kube.schema.validation.workloads import check_at_most_100_percent, check_int_or_percent

_RBAC_GROUP = "rbac.authorization.k8s.io"
_METRIC_SOURCE_FIELDS = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "External": "external",
    "ContainerResource": "containerResource",
}


def _validate_policy_rules(manifest: ManifestPart, *, namespaced: bool) -> FieldErrors:
    errors: FieldErrors = []
    for index, rule in enumerate(manifest.get("rules") or ()):
        field = f"rules[{index}]"
        if not rule.get("verbs"):
            errors.append(required(f"{field}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs")
        if urls:
            value_text = go_struct_format.format_string_list(urls)
            if namespaced:
                detail = "namespaced rules cannot apply to non-resource URLs"
                errors.append(invalid(f"{field}.nonResourceURLs", value_text, detail))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                errors.append(invalid(f"{field}.nonResourceURLs", value_text, detail))
            continue
        if not rule.get("apiGroups"):
            errors.append(required(f"{field}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            errors.append(required(f"{field}.resources", "resource rules must supply at least one resource"))
    return errors


def validate_role(manifest: ManifestPart) -> FieldErrors:
    return _validate_policy_rules(manifest, namespaced=True)


def validate_cluster_role(manifest: ManifestPart) -> FieldErrors:
    errors = _validate_policy_rules(manifest, namespaced=False)
    aggregation = manifest.get("aggregationRule")
    if aggregation is not None:
        field = "aggregationRule.clusterRoleSelectors"
        if not aggregation.get("clusterRoleSelectors"):
            detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errors.append(required(field, detail))
        for index, selector in enumerate(aggregation.get("clusterRoleSelectors") or ()):
            check_label_selector(errors, f"{field}[{index}]", selector)
    return errors


def _validate_binding(manifest: ManifestPart, kinds: tuple[str, ...], *, namespaced: bool) -> FieldErrors:
    errors: FieldErrors = []
    ref = manifest.get("roleRef") or {}
    if ref.get("apiGroup") != _RBAC_GROUP:
        errors.append(
            not_supported_unsorted("roleRef.apiGroup", format_go_value(ref.get("apiGroup") or ""), (_RBAC_GROUP,))
        )
    if ref.get("kind") not in kinds:
        errors.append(not_supported_unsorted("roleRef.kind", format_go_value(ref.get("kind") or ""), kinds))
    check_required_name(errors, "roleRef.name", ref.get("name"), name_label_address_syntax.check_path_segment)
    for index, subject in enumerate(manifest.get("subjects") or ()):
        _validate_subject(errors, f"subjects[{index}]", subject, namespaced=namespaced)
    return errors


def _validate_subject(errors: FieldErrors, field: str, subject: ManifestPart, *, namespaced: bool) -> None:
    kind, name, group = subject.get("kind") or "", subject.get("name") or "", subject.get("apiGroup") or ""
    if not name:
        errors.append(required(f"{field}.name"))
    if kind == "ServiceAccount":
        if name:
            check_syntax(errors, f"{field}.name", name, name_label_address_syntax.check_dns_subdomain)
        if group:
            errors.append(not_supported_unsorted(f"{field}.apiGroup", format_go_value(group), ("",)))
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{field}.namespace"))
    elif kind in ("User", "Group"):
        if group != _RBAC_GROUP:
            errors.append(not_supported_unsorted(f"{field}.apiGroup", format_go_value(group), (_RBAC_GROUP,)))
    else:
        errors.append(
            not_supported_unsorted(f"{field}.kind", format_go_value(kind), ("ServiceAccount", "User", "Group"))
        )


def validate_role_binding(manifest: ManifestPart) -> FieldErrors:
    return _validate_binding(manifest, ("Role", "ClusterRole"), namespaced=True)


def validate_cluster_role_binding(manifest: ManifestPart) -> FieldErrors:
    return _validate_binding(manifest, ("ClusterRole",), namespaced=False)


def validate_role_ref_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    new_ref, old_ref = manifest.get("roleRef") or {}, old.get("roleRef") or {}
    return (
        []
        if new_ref == old_ref
        else [invalid("roleRef", go_struct_format.format_role_ref(new_ref), "cannot change roleRef")]
    )


def validate_autoscaler(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec = manifest.get("spec") or {}
    min_replicas, max_replicas = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if min_replicas is not None and min_replicas < 1:
        errors.append(invalid("spec.minReplicas", str(min_replicas), "must be greater than or equal to 1"))
    if max_replicas < 1:
        errors.append(invalid("spec.maxReplicas", str(max_replicas), "must be greater than 0"))
    if min_replicas is not None and max_replicas < min_replicas:
        errors.append(invalid("spec.maxReplicas", str(max_replicas), "must be greater than or equal to `minReplicas`"))
    target = spec.get("scaleTargetRef") or {}
    for name in ("kind", "name"):
        check_required_name(
            errors, f"spec.scaleTargetRef.{name}", target.get(name), name_label_address_syntax.check_path_segment
        )
    for field, metric in iterate_items(spec, "metrics", "spec"):
        _validate_metric(errors, field, metric)
    if min_replicas == 0 and not any(
        metric.get("type") in ("Object", "External") for metric in spec.get("metrics") or ()
    ):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", detail))
    return errors


def _validate_metric(errors: FieldErrors, field: str, metric: ManifestPart) -> None:
    kind = metric.get("type") or ""
    if not kind:
        errors.append(required(f"{field}.type", "must specify a metric source type"))
    if kind not in _METRIC_SOURCE_FIELDS:
        # k8s: reported once for the type, and once more for the missing source of that type
        errors.extend(
            [not_supported_unsorted(f"{field}.type", format_go_value(kind), sorted(_METRIC_SOURCE_FIELDS))] * 2
        )
        return
    present = [name for name in _METRIC_SOURCE_FIELDS.values() if metric.get(name) is not None]
    expected = _METRIC_SOURCE_FIELDS[kind]
    if expected not in present:
        errors.append(required(f"{field}.{expected}", "must populate information for the given metric source"))
    elif len(present) > 1:
        others = [name for name in present if name != expected]
        detail = "must populate the given metric source only"
        errors.extend(forbidden(f"{field}.{name}", detail) for name in others)


def validate_disruption_budget(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec = manifest.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        detail = "minAvailable and maxUnavailable cannot be both set"
        errors.append(invalid("spec", go_struct_format.format_disruption_budget(spec), detail))
    for name in ("minAvailable", "maxUnavailable"):
        if spec.get(name) is not None:
            check_int_or_percent(errors, f"spec.{name}", spec[name])
            check_at_most_100_percent(errors, f"spec.{name}", spec[name])
    check_label_selector(errors, "spec.selector", spec.get("selector"))
    policy, policies = spec.get("unhealthyPodEvictionPolicy"), ("AlwaysAllow", "IfHealthyBudget")
    if policy is not None and policy not in policies:
        errors.append(not_supported_unsorted("spec.unhealthyPodEvictionPolicy", format_go_value(policy), policies))
    return errors


_SYSTEM_PRIORITY_VALUES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


def validate_priority_class(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    name, value = (manifest.get("metadata") or {}).get("name") or "", manifest.get("value") or 0
    if name.startswith("system-"):
        if _SYSTEM_PRIORITY_VALUES.get(name) != value:
            detail = "priority class names with 'system-' prefix are reserved for system use only. error: "
            errors.append(forbidden("metadata.name", f"{detail}{name} is not a known system priority class"))
    elif value > 1000000000:
        errors.append(forbidden("value", "maximum allowed value of a user defined priority is 1000000000"))
    policy, policies = manifest.get("preemptionPolicy"), ("PreemptLowerPriority", "Never")
    if policy and policy not in policies:
        errors.append(not_supported_unsorted("preemptionPolicy", format_go_value(policy), policies))
    return errors


def validate_priority_class_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    if (manifest.get("value") or 0) != (old.get("value") or 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    check_immutable(errors, "preemptionPolicy", manifest.get("preemptionPolicy"), old.get("preemptionPolicy"))
    return errors


def validate_lease(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec = manifest.get("spec") or {}
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", str(seconds), "must be greater than 0"))
    if transitions is not None and transitions < 0:
        errors.append(invalid("spec.leaseTransitions", str(transitions), "must be greater than or equal to 0"))
    return errors


def validate_webhooks(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    names: set[str] = set()
    for index, hook in enumerate(manifest.get("webhooks") or ()):
        field = f"webhooks[{index}]"
        name = hook.get("name") or ""
        if not name:
            errors.append(required(f"{field}.name"))
        elif messages := name_label_address_syntax.check_dns_subdomain(name):
            errors.append(invalid(f"{field}.name", format_go_value(name), ",".join(messages)))
        elif name.count(".") < 2:
            detail = "should be a domain with at least three segments separated by dots"
            errors.append(invalid(f"{field}.name", format_go_value(name), detail))
        if hook.get("sideEffects") is None:
            errors.append(required(f"{field}.sideEffects", "must specify one of None, NoneOnDryRun"))
        elif hook["sideEffects"] not in ("None", "NoneOnDryRun"):
            errors.append(
                not_supported_unsorted(
                    f"{field}.sideEffects", format_go_value(hook["sideEffects"]), ("None", "NoneOnDryRun")
                )
            )
        config = hook.get("clientConfig") or {}
        if (config.get("url") is None) == (config.get("service") is None):
            errors.append(required(f"{field}.clientConfig", "exactly one of url or service is required"))
        if not hook.get("admissionReviewVersions"):
            errors.append(required(f"{field}.admissionReviewVersions", "must specify one of v1, v1beta1"))
        if name in names:
            errors.append(duplicate(f"{field}.name", format_go_value(name)))
        names.add(name)
    return errors

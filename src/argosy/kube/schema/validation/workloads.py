"""Validates workloads: Deployment, ReplicaSet, DaemonSet, StatefulSet, ReplicationController."""

from __future__ import annotations

from argosy.kube.schema import name_label_address_syntax
from argosy.kube.schema.field_error import forbidden, format_go_value, invalid, not_supported_unsorted, required
from argosy.kube.schema.validation import go_struct_format, pod
from argosy.kube.schema.validation.shared_field_checks import (
    IMMUTABLE_ERROR,
    FieldErrors,
    ManifestPart,
    check_annotations,
    check_label_selector,
    check_labels,
    check_non_negative,
    check_required_choice,
    read_label_selector,
)

_SELECTOR_MISMATCH_ERROR = "`selector` does not match template `labels`"
_STATEFUL_SET_MUTABLE_FIELDS = (
    "replicas", "ordinals", "template", "updateStrategy", "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_STATEFUL_SET_IMMUTABLE_ERROR = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def _get_spec(manifest: ManifestPart) -> ManifestPart:
    return manifest.get("spec") or {}


def get_template_labels(template: ManifestPart) -> ManifestPart | None:
    labels: ManifestPart | None = (template.get("metadata") or {}).get("labels")
    return labels


def _validate_selector(errors: FieldErrors, spec: ManifestPart, kind_name: str) -> None:
    selector = spec.get("selector")
    if selector is None:
        errors.append(required("spec.selector"))
        return
    check_label_selector(errors, "spec.selector", selector)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        detail = f"empty selector is invalid for {kind_name}"
        errors.append(invalid("spec.selector", go_struct_format.format_label_selector(selector), detail))


def check_selector_matches_template(errors: FieldErrors, spec: ManifestPart, *, empty_matches: bool = True) -> bool:
    """Report if the selector does not match the template's labels; return False if the selector is invalid."""
    selector = read_label_selector(spec.get("selector"))
    if selector is None:
        return False
    template_labels = get_template_labels(spec.get("template") or {})
    if not (empty_matches and selector.is_empty) and not selector.matches(template_labels):
        errors.append(
            invalid(
                "spec.template.metadata.labels",
                go_struct_format.format_string_map(template_labels),
                _SELECTOR_MISMATCH_ERROR,
            )
        )
    return True


def _check_restart_policy_always(errors: FieldErrors, template: ManifestPart, kind: str) -> None:
    spec = template.get("spec") or {}
    policy = spec.get("restartPolicy") or ""
    if policy != "Always":
        errors.append(not_supported_unsorted("spec.template.spec.restartPolicy", format_go_value(policy), ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", detail))


def _validate_replica_template(errors: FieldErrors, spec: ManifestPart) -> None:
    if not check_selector_matches_template(errors, spec):
        detail = "invalid label selector"
        errors.append(invalid("spec.selector", go_struct_format.format_label_selector(spec.get("selector")), detail))
        return
    pod.validate_pod_template(errors, spec.get("template") or {}, "spec.template")
    _check_restart_policy_always(errors, spec.get("template") or {}, "ReplicaSet")


def validate_deployment(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec = _get_spec(manifest)
    check_non_negative(errors, "spec", spec, "replicas")
    _validate_selector(errors, spec, "deployment")
    _validate_replica_template(errors, spec)
    _validate_deployment_strategy(errors, spec.get("strategy") or {})
    check_non_negative(errors, "spec", spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        detail = "must be greater than minReadySeconds"
        errors.append(invalid("spec.progressDeadlineSeconds", str(deadline), detail))
    return errors


def _validate_deployment_strategy(errors: FieldErrors, strategy: ManifestPart) -> None:
    field, rolling = "spec.strategy", strategy.get("rollingUpdate")
    if strategy.get("type") == "Recreate":
        if rolling is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(forbidden(f"{field}.rollingUpdate", detail))
    elif strategy.get("type") == "RollingUpdate":
        rolling = rolling or {}
        field = f"{field}.rollingUpdate"
        for name in ("maxUnavailable", "maxSurge"):
            check_int_or_percent(errors, f"{field}.{name}", rolling.get(name))
        if (
            _int_or_percent_value(rolling.get("maxUnavailable")) == 0
            and _int_or_percent_value(rolling.get("maxSurge")) == 0
        ):
            value_text = go_struct_format.format_int_or_string(rolling.get("maxUnavailable"))
            errors.append(invalid(f"{field}.maxUnavailable", value_text, "may not be 0 when `maxSurge` is 0"))
        check_at_most_100_percent(errors, f"{field}.maxUnavailable", rolling.get("maxUnavailable"))
    else:
        value_text = go_struct_format.format_strategy(strategy, "DeploymentStrategy", "RollingUpdateDeployment")
        errors.append(not_supported_unsorted(field, value_text, ("Recreate", "RollingUpdate")))


def check_int_or_percent(errors: FieldErrors, field: str, value: object) -> None:
    if isinstance(value, str):
        value_text = go_struct_format.format_int_or_string(value)
        errors.extend(invalid(field, value_text, message) for message in name_label_address_syntax.check_percent(value))
    elif isinstance(value, int) and value < 0:
        errors.append(invalid(field, str(value), "must be greater than or equal to 0"))


def check_at_most_100_percent(errors: FieldErrors, field: str, value: object) -> None:
    if isinstance(value, str) and not name_label_address_syntax.check_percent(value) and int(value[:-1]) > 100:
        errors.append(invalid(field, go_struct_format.format_int_or_string(value), "must not be greater than 100%"))


def _int_or_percent_value(value: object) -> int:
    if isinstance(value, str):
        text = value.removesuffix("%")
        return int(text) if text.isdecimal() else 0
    return value if isinstance(value, int) else 0


def validate_replica_set(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec = _get_spec(manifest)
    check_non_negative(errors, "spec", spec, "replicas", "minReadySeconds")
    _validate_selector(errors, spec, "replicaset")
    _validate_replica_template(errors, spec)
    return errors


def validate_replication_controller(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec = _get_spec(manifest)
    check_non_negative(errors, "spec", spec, "minReadySeconds")
    selector = spec.get("selector") or {}
    if not selector:
        errors.append(required("spec.selector"))
    check_non_negative(errors, "spec", spec, "replicas")
    template = spec.get("template")
    if template is None:
        errors.append(required("spec.template"))
        return errors
    template_labels = get_template_labels(template)
    if selector and not selector.items() <= (template_labels or {}).items():
        errors.append(
            invalid(
                "spec.template.metadata.labels",
                go_struct_format.format_string_map(template_labels),
                _SELECTOR_MISMATCH_ERROR,
            )
        )
    pod.validate_pod_template(errors, template, "spec.template")
    _check_restart_policy_always(errors, template, "ReplicationController")
    return errors


def validate_daemon_set(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec = _get_spec(manifest)
    selector = spec.get("selector")
    check_label_selector(errors, "spec.selector", selector)
    check_selector_matches_template(errors, spec, empty_matches=False)
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        detail = "empty selector is invalid for daemonset"
        errors.append(invalid("spec.selector", go_struct_format.format_label_selector(selector), detail))
    pod.validate_pod_template(errors, spec.get("template") or {}, "spec.template")
    _check_restart_policy_always(errors, spec.get("template") or {}, "DaemonSet")
    check_non_negative(errors, "spec", spec, "minReadySeconds")
    _validate_daemon_set_strategy(errors, spec.get("updateStrategy") or {})
    check_non_negative(errors, "spec", spec, "revisionHistoryLimit")
    return errors


def _validate_daemon_set_strategy(errors: FieldErrors, strategy: ManifestPart) -> None:
    field = "spec.updateStrategy"
    if strategy.get("type") == "OnDelete":
        return
    if strategy.get("type") != "RollingUpdate":
        value_text = go_struct_format.format_strategy(strategy, "DaemonSetUpdateStrategy", "RollingUpdateDaemonSet")
        errors.append(not_supported_unsorted(field, value_text, ("RollingUpdate", "OnDelete")))
        return
    field, rolling = f"{field}.rollingUpdate", strategy.get("rollingUpdate") or {}
    for check in (check_int_or_percent, check_at_most_100_percent):
        for name in ("maxUnavailable", "maxSurge"):
            check(errors, f"{field}.{name}", rolling.get(name))
    max_unavailable, max_surge = (
        _int_or_percent_value(rolling.get("maxUnavailable")),
        _int_or_percent_value(rolling.get("maxSurge")),
    )
    if max_unavailable and max_surge:
        value_text = go_struct_format.format_int_or_string(rolling.get("maxSurge"))
        errors.append(invalid(f"{field}.maxSurge", value_text, "may not be set when maxUnavailable is non-zero"))
    elif not max_unavailable and not max_surge:
        errors.append(required(f"{field}.maxUnavailable", "cannot be 0 when maxSurge is 0"))


def validate_stateful_set(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec = _get_spec(manifest)
    policy = spec.get("podManagementPolicy") or ""
    if policy not in ("OrderedReady", "Parallel"):
        errors.append(
            invalid("spec.podManagementPolicy", format_go_value(policy), "must be 'OrderedReady' or 'Parallel'")
        )
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        value_text = go_struct_format.format_strategy(
            strategy, "StatefulSetUpdateStrategy", "RollingUpdateStatefulSetStrategy"
        )
        errors.append(invalid("spec.updateStrategy", value_text, "must be 'RollingUpdate' or 'OnDelete'"))
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "OnDelete" and rolling is not None:
        detail = "only allowed for updateStrategy 'RollingUpdate'"
        value_text = go_struct_format.format_rolling_update(rolling)
        errors.append(invalid("spec.updateStrategy.rollingUpdate", value_text, detail))
    elif rolling is not None:
        check_non_negative(errors, "spec.updateStrategy.rollingUpdate", rolling, "partition")
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for name in ("whenDeleted", "whenScaled"):
        if retention.get(name):
            check_required_choice(
                errors, f"spec.persistentVolumeClaimRetentionPolicy.{name}", retention[name], ("Retain", "Delete")
            )
    check_non_negative(errors, "spec", spec, "replicas", "minReadySeconds")
    check_non_negative(errors, "spec.ordinals", spec.get("ordinals") or {}, "start")
    _validate_selector(errors, spec, "statefulset")
    template = spec.get("template") or {}
    metadata = template.get("metadata") or {}
    # k8s: the server validates no more of a StatefulSet's template; invalid Pods fail when they are created
    if check_selector_matches_template(errors, spec):
        check_labels(errors, "spec.template.labels", metadata.get("labels"))
        check_annotations(errors, "spec.template.annotations", metadata.get("annotations"))
    _check_restart_policy_always(errors, template, "StatefulSet")
    return errors


def validate_stateful_set_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    def rest(spec: ManifestPart) -> ManifestPart:
        return {
            name: value
            for name, value in spec.items()
            if name not in _STATEFUL_SET_MUTABLE_FIELDS and value is not None
        }

    if rest(_get_spec(manifest)) == rest(_get_spec(old)):
        return []
    return [forbidden("spec", _STATEFUL_SET_IMMUTABLE_ERROR)]


def validate_selector_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    new_selector, old_selector = _get_spec(manifest).get("selector"), _get_spec(old).get("selector")
    if new_selector == old_selector:
        return []
    return [invalid("spec.selector", go_struct_format.format_label_selector(new_selector), IMMUTABLE_ERROR)]

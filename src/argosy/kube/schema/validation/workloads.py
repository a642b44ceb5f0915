"""Validates workloads: Deployment, ReplicaSet, DaemonSet, StatefulSet, ReplicationController."""

from __future__ import annotations

from argosy.kube.schema import name_syntax
from argosy.kube.schema.field_error import forbidden, go_value, invalid, required, unsupported
from argosy.kube.schema.validation import go_format, pod
from argosy.kube.schema.validation.checks import (
    IMMUTABLE,
    Faults,
    Part,
    annotation_map,
    label_selector,
    labels,
    non_negative,
    one_of,
    selector_of,
)

_MISMATCH = "`selector` does not match template `labels`"
_STATEFUL_MAY_CHANGE = (
    "replicas", "ordinals", "template", "updateStrategy", "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_STATEFUL_FORBIDDEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def _spec(manifest: Part) -> Part:
    return manifest.get("spec") or {}


def template_labels(template: Part) -> Part | None:
    found: Part | None = (template.get("metadata") or {}).get("labels")
    return found


def _selector(faults: Faults, spec: Part, what: str) -> None:
    selector = spec.get("selector")
    if selector is None:
        faults.append(required("spec.selector"))
        return
    label_selector(faults, "spec.selector", selector)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        words = f"empty selector is invalid for {what}"
        faults.append(invalid("spec.selector", go_format.label_selector(selector), words))


def mismatch(faults: Faults, spec: Part, *, empty_matches: bool = True) -> bool:
    """Report if the selector does not match the template's labels; return False if the selector is invalid."""
    selector = selector_of(spec.get("selector"))
    if selector is None:
        return False
    given = template_labels(spec.get("template") or {})
    if not (empty_matches and selector.empty) and not selector.matches(given):
        faults.append(invalid("spec.template.metadata.labels", go_format.string_map(given), _MISMATCH))
    return True


def _always(faults: Faults, template: Part, kind: str) -> None:
    spec = template.get("spec") or {}
    policy = spec.get("restartPolicy") or ""
    if policy != "Always":
        faults.append(unsupported("spec.template.spec.restartPolicy", go_value(policy), ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        words = f"activeDeadlineSeconds in {kind} is not Supported"
        faults.append(forbidden("spec.template.spec.activeDeadlineSeconds", words))


def _replica_template(faults: Faults, spec: Part) -> None:
    if not mismatch(faults, spec):
        words = "invalid label selector"
        faults.append(invalid("spec.selector", go_format.label_selector(spec.get("selector")), words))
        return
    pod.template(faults, spec.get("template") or {}, "spec.template")
    _always(faults, spec.get("template") or {}, "ReplicaSet")


def deployment(manifest: Part) -> Faults:
    faults: Faults = []
    spec = _spec(manifest)
    non_negative(faults, "spec", spec, "replicas")
    _selector(faults, spec, "deployment")
    _replica_template(faults, spec)
    _deployment_strategy(faults, spec.get("strategy") or {})
    non_negative(faults, "spec", spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        words = "must be greater than minReadySeconds"
        faults.append(invalid("spec.progressDeadlineSeconds", str(deadline), words))
    return faults


def _deployment_strategy(faults: Faults, strategy: Part) -> None:
    field, rolling = "spec.strategy", strategy.get("rollingUpdate")
    if strategy.get("type") == "Recreate":
        if rolling is not None:
            words = "may not be specified when strategy `type` is 'Recreate'"
            faults.append(forbidden(f"{field}.rollingUpdate", words))
    elif strategy.get("type") == "RollingUpdate":
        rolling = rolling or {}
        field = f"{field}.rollingUpdate"
        for name in ("maxUnavailable", "maxSurge"):
            int_or_percent(faults, f"{field}.{name}", rolling.get(name))
        if _value(rolling.get("maxUnavailable")) == 0 and _value(rolling.get("maxSurge")) == 0:
            shown = go_format.int_or_string(rolling.get("maxUnavailable"))
            faults.append(invalid(f"{field}.maxUnavailable", shown, "may not be 0 when `maxSurge` is 0"))
        at_most_all(faults, f"{field}.maxUnavailable", rolling.get("maxUnavailable"))
    else:
        shown = go_format.strategy(strategy, "DeploymentStrategy", "RollingUpdateDeployment")
        faults.append(unsupported(field, shown, ("Recreate", "RollingUpdate")))


def int_or_percent(faults: Faults, field: str, value: object) -> None:
    if isinstance(value, str):
        shown = go_format.int_or_string(value)
        faults.extend(invalid(field, shown, complaint) for complaint in name_syntax.percent(value))
    elif isinstance(value, int) and value < 0:
        faults.append(invalid(field, str(value), "must be greater than or equal to 0"))


def at_most_all(faults: Faults, field: str, value: object) -> None:
    if isinstance(value, str) and not name_syntax.percent(value) and int(value[:-1]) > 100:
        faults.append(invalid(field, go_format.int_or_string(value), "must not be greater than 100%"))


def _value(value: object) -> int:
    if isinstance(value, str):
        text = value.removesuffix("%")
        return int(text) if text.isdecimal() else 0
    return value if isinstance(value, int) else 0


def replica_set(manifest: Part) -> Faults:
    faults: Faults = []
    spec = _spec(manifest)
    non_negative(faults, "spec", spec, "replicas", "minReadySeconds")
    _selector(faults, spec, "replicaset")
    _replica_template(faults, spec)
    return faults


def replication_controller(manifest: Part) -> Faults:
    faults: Faults = []
    spec = _spec(manifest)
    non_negative(faults, "spec", spec, "minReadySeconds")
    selector = spec.get("selector") or {}
    if not selector:
        faults.append(required("spec.selector"))
    non_negative(faults, "spec", spec, "replicas")
    template = spec.get("template")
    if template is None:
        faults.append(required("spec.template"))
        return faults
    given = template_labels(template)
    if selector and not selector.items() <= (given or {}).items():
        faults.append(invalid("spec.template.metadata.labels", go_format.string_map(given), _MISMATCH))
    pod.template(faults, template, "spec.template")
    _always(faults, template, "ReplicationController")
    return faults


def daemon_set(manifest: Part) -> Faults:
    faults: Faults = []
    spec = _spec(manifest)
    selector = spec.get("selector")
    label_selector(faults, "spec.selector", selector)
    mismatch(faults, spec, empty_matches=False)
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        words = "empty selector is invalid for daemonset"
        faults.append(invalid("spec.selector", go_format.label_selector(selector), words))
    pod.template(faults, spec.get("template") or {}, "spec.template")
    _always(faults, spec.get("template") or {}, "DaemonSet")
    non_negative(faults, "spec", spec, "minReadySeconds")
    _daemon_strategy(faults, spec.get("updateStrategy") or {})
    non_negative(faults, "spec", spec, "revisionHistoryLimit")
    return faults


def _daemon_strategy(faults: Faults, strategy: Part) -> None:
    field = "spec.updateStrategy"
    if strategy.get("type") == "OnDelete":
        return
    if strategy.get("type") != "RollingUpdate":
        shown = go_format.strategy(strategy, "DaemonSetUpdateStrategy", "RollingUpdateDaemonSet")
        faults.append(unsupported(field, shown, ("RollingUpdate", "OnDelete")))
        return
    field, rolling = f"{field}.rollingUpdate", strategy.get("rollingUpdate") or {}
    for check in (int_or_percent, at_most_all):
        for name in ("maxUnavailable", "maxSurge"):
            check(faults, f"{field}.{name}", rolling.get(name))
    unavailable, surge = _value(rolling.get("maxUnavailable")), _value(rolling.get("maxSurge"))
    if unavailable and surge:
        shown = go_format.int_or_string(rolling.get("maxSurge"))
        faults.append(invalid(f"{field}.maxSurge", shown, "may not be set when maxUnavailable is non-zero"))
    elif not unavailable and not surge:
        faults.append(required(f"{field}.maxUnavailable", "cannot be 0 when maxSurge is 0"))


def stateful_set(manifest: Part) -> Faults:
    faults: Faults = []
    spec = _spec(manifest)
    policy = spec.get("podManagementPolicy") or ""
    if policy not in ("OrderedReady", "Parallel"):
        faults.append(invalid("spec.podManagementPolicy", go_value(policy), "must be 'OrderedReady' or 'Parallel'"))
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        shown = go_format.strategy(strategy, "StatefulSetUpdateStrategy", "RollingUpdateStatefulSetStrategy")
        faults.append(invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'"))
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "OnDelete" and rolling is not None:
        words = "only allowed for updateStrategy 'RollingUpdate'"
        shown = go_format.partition(rolling)
        faults.append(invalid("spec.updateStrategy.rollingUpdate", shown, words))
    elif rolling is not None:
        non_negative(faults, "spec.updateStrategy.rollingUpdate", rolling, "partition")
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for name in ("whenDeleted", "whenScaled"):
        if retention.get(name):
            one_of(faults, f"spec.persistentVolumeClaimRetentionPolicy.{name}", retention[name], ("Retain", "Delete"))
    non_negative(faults, "spec", spec, "replicas", "minReadySeconds")
    non_negative(faults, "spec.ordinals", spec.get("ordinals") or {}, "start")
    _selector(faults, spec, "statefulset")
    template = spec.get("template") or {}
    metadata = template.get("metadata") or {}
    # k8s: the server validates no more of a StatefulSet's template; invalid Pods fail when they are created
    if mismatch(faults, spec):
        labels(faults, "spec.template.labels", metadata.get("labels"))
        annotation_map(faults, "spec.template.annotations", metadata.get("annotations"))
    _always(faults, template, "StatefulSet")
    return faults


def stateful_set_changed(manifest: Part, old: Part) -> Faults:
    def rest(spec: Part) -> Part:
        return {name: value for name, value in spec.items() if name not in _STATEFUL_MAY_CHANGE and value is not None}

    if rest(_spec(manifest)) == rest(_spec(old)):
        return []
    return [forbidden("spec", _STATEFUL_FORBIDDEN)]


def selector_changed(manifest: Part, old: Part) -> Faults:
    new, before = _spec(manifest).get("selector"), _spec(old).get("selector")
    if new == before:
        return []
    return [invalid("spec.selector", go_format.label_selector(new), IMMUTABLE)]

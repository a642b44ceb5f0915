"""Defaults of workloads: apps, batch and autoscaling."""

from __future__ import annotations

from argosy.kube.schema.defaults.missing_field_defaults import (
    ManifestPart,
    copy_struct,
    copy_with_defaults,
    set_defaults,
    update_items,
    update_struct,
)
from argosy.kube.schema.defaults.pod import default_claim_spec, default_pod_template
from argosy.kube.schema.quantity import canonicalize

_ROLLING_UPDATE = "RollingUpdate"
_RETENTION_POLICY_FIELD = "persistentVolumeClaimRetentionPolicy"
_SCALE_UP_DEFAULTS = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN_DEFAULTS = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _default_template(manifest: ManifestPart) -> tuple[ManifestPart, ManifestPart]:
    spec = copy_struct(manifest, "spec")
    spec["template"] = default_pod_template(spec.get("template") or {})
    return {**manifest, "spec": spec, "status": manifest.get("status") or {}}, spec


def _default_strategy(spec: ManifestPart, name: str, *rolling_defaults: tuple[str, object]) -> None:
    strategy = set_defaults(copy_struct(spec, name), (("type", _ROLLING_UPDATE),))
    if strategy["type"] == _ROLLING_UPDATE:
        strategy["rollingUpdate"] = set_defaults(copy_struct(strategy, "rollingUpdate"), rolling_defaults)
    spec[name] = strategy


def default_deployment(manifest: ManifestPart) -> ManifestPart:
    defaulted, spec = _default_template(manifest)
    set_defaults(spec, (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)))
    _default_strategy(spec, "strategy", ("maxUnavailable", "25%"), ("maxSurge", "25%"))
    return defaulted


def default_replica_set(manifest: ManifestPart) -> ManifestPart:
    defaulted, spec = _default_template(manifest)
    set_defaults(spec, (("replicas", 1),))
    defaulted["status"] = copy_with_defaults(defaulted["status"], ("replicas", 0))
    return defaulted


def default_daemon_set(manifest: ManifestPart) -> ManifestPart:
    defaulted, spec = _default_template(manifest)
    set_defaults(spec, (("revisionHistoryLimit", 10),))
    _default_strategy(spec, "updateStrategy", ("maxUnavailable", 1), ("maxSurge", 0))
    counts = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
    defaulted["status"] = copy_with_defaults(defaulted["status"], *((name, 0) for name in counts))
    return defaulted


def _default_claim_template(source: ManifestPart) -> ManifestPart:
    defaulted = copy_with_defaults(source, ("apiVersion", "v1"), ("kind", "PersistentVolumeClaim"))
    defaulted["metadata"] = {"creationTimestamp": None, **(defaulted.get("metadata") or {})}
    defaulted["spec"] = default_claim_spec(defaulted.get("spec") or {})
    defaulted["status"] = copy_with_defaults(defaulted.get("status") or {}, ("phase", "Pending"))
    return defaulted


def default_stateful_set(manifest: ManifestPart) -> ManifestPart:
    defaulted, spec = _default_template(manifest)
    set_defaults(spec, (("replicas", 1), ("revisionHistoryLimit", 10), ("podManagementPolicy", "OrderedReady")))
    strategy = copy_struct(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = _ROLLING_UPDATE
        strategy["rollingUpdate"] = copy_struct(strategy, "rollingUpdate")
    if strategy["type"] == _ROLLING_UPDATE:
        update_struct(strategy, "rollingUpdate", lambda item: copy_with_defaults(item, ("partition", 0)))
    spec["updateStrategy"] = strategy
    retention = set_defaults(
        copy_struct(spec, _RETENTION_POLICY_FIELD), (("whenDeleted", "Retain"), ("whenScaled", "Retain"))
    )
    spec[_RETENTION_POLICY_FIELD] = retention
    update_items(spec, "volumeClaimTemplates", _default_claim_template)
    spec.setdefault("serviceName", "")
    defaulted["status"] = copy_with_defaults(defaulted["status"], ("replicas", 0), ("availableReplicas", 0))
    return defaulted


def default_replication_controller(manifest: ManifestPart) -> ManifestPart:
    spec = copy_struct(manifest, "spec")
    defaulted = {**manifest, "spec": spec, "status": copy_with_defaults(manifest.get("status") or {}, ("replicas", 0))}
    set_defaults(spec, (("replicas", 1),))
    update_struct(spec, "template", default_pod_template)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        _inherit_labels(defaulted, labels)
    return defaulted


def _inherit_labels(manifest: ManifestPart, labels: ManifestPart | None) -> None:
    metadata = manifest.get("metadata") or {}
    if labels and not metadata.get("labels"):
        manifest["metadata"] = {**metadata, "labels": dict(labels)}


def _default_failure_policy(source: ManifestPart) -> ManifestPart:
    def rule(each_rule: ManifestPart) -> ManifestPart:
        defaulted = dict(each_rule)
        update_items(defaulted, "onPodConditions", lambda pattern: copy_with_defaults(pattern, ("status", "True")))
        return defaulted

    defaulted = dict(source)
    update_items(defaulted, "rules", rule)
    return defaulted


def default_job(manifest: ManifestPart) -> ManifestPart:
    defaulted, spec = _default_template(manifest)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    has_per_index_limit = spec.get("backoffLimitPerIndex") is not None
    update_struct(spec, "podFailurePolicy", _default_failure_policy)
    replacement = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    set_defaults(
        spec,
        (
            ("parallelism", 1),
            ("backoffLimit", 2**31 - 1 if has_per_index_limit else 6),
            ("completionMode", "NonIndexed"),
            ("suspend", False),
            ("podReplacementPolicy", replacement),
            ("manualSelector", False),
        ),
    )
    _inherit_labels(defaulted, spec["template"]["metadata"].get("labels"))
    return defaulted


def default_cron_job(manifest: ManifestPart) -> ManifestPart:
    spec = copy_struct(manifest, "spec")
    pairs = (
        ("concurrencyPolicy", "Allow"), ("suspend", False),
        ("successfulJobsHistoryLimit", 3), ("failedJobsHistoryLimit", 1),
    )  # fmt: skip
    set_defaults(spec, pairs)
    spec.setdefault("schedule", "")
    job_template = copy_struct(spec, "jobTemplate")
    job_template["metadata"] = {"creationTimestamp": None, **(job_template.get("metadata") or {})}
    job_spec = copy_struct(job_template, "spec")
    # k8s: only the Pod template of a job template is defaulted; the Job's own defaults apply when it is created
    job_spec["template"] = default_pod_template(job_spec.get("template") or {})
    job_template["spec"] = job_spec
    spec["jobTemplate"] = job_template
    return {**manifest, "spec": spec, "status": manifest.get("status") or {}}


def default_autoscaler_v1(manifest: ManifestPart) -> ManifestPart:
    """autoscaling/v1."""
    spec = set_defaults(copy_struct(manifest, "spec"), (("minReplicas", 1),))
    if spec.get("targetCPUUtilizationPercentage") is None and not _has_metrics_annotation(manifest):
        spec["targetCPUUtilizationPercentage"] = 80
    _default_scale_target(spec)
    status = copy_with_defaults(manifest.get("status") or {}, ("currentReplicas", 0), ("desiredReplicas", 0))
    return {**manifest, "spec": spec, "status": status}


def _has_metrics_annotation(manifest: ManifestPart) -> bool:
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    return "autoscaling.alpha.kubernetes.io/metrics" in annotations


def _default_scale_target(spec: ManifestPart) -> None:
    spec["scaleTargetRef"] = set_defaults(copy_struct(spec, "scaleTargetRef"), (("kind", ""), ("name", "")))
    spec.setdefault("maxReplicas", 0)


def _default_metric(metric: ManifestPart) -> ManifestPart:
    defaulted = dict(metric)
    for source in ("resource", "pods", "object", "external", "containerResource"):
        update_struct(defaulted, source, _default_metric_source)
    return defaulted


def _default_metric_source(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    target = copy_struct(defaulted, "target")
    for name in ("value", "averageValue"):
        if target.get(name) is not None:
            target[name] = canonicalize(target[name])
    defaulted["target"] = target
    return defaulted


def default_autoscaler_v2(manifest: ManifestPart) -> ManifestPart:
    spec = set_defaults(copy_struct(manifest, "spec"), (("minReplicas", 1),))
    if not spec.get("metrics"):
        cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
        spec["metrics"] = [{"type": "Resource", "resource": cpu}]
    update_items(spec, "metrics", _default_metric)
    _default_scale_target(spec)
    if spec.get("behavior") is not None:
        behavior = dict(spec["behavior"])
        for name, defaults in (("scaleUp", _SCALE_UP_DEFAULTS), ("scaleDown", _SCALE_DOWN_DEFAULTS)):
            declared = {field: value for field, value in copy_struct(behavior, name).items() if value is not None}
            behavior[name] = {**defaults, **declared}
        spec["behavior"] = behavior
    status = copy_with_defaults(manifest.get("status") or {}, ("desiredReplicas", 0))
    status.setdefault("currentMetrics", None)
    return {**manifest, "spec": spec, "status": status}

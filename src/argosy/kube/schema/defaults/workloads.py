"""Defaults of workloads: apps, batch and autoscaling."""

from __future__ import annotations

from argosy.kube.schema.defaults.fill import Part, each, fill, filled, part, within
from argosy.kube.schema.defaults.pod import claim_spec, template
from argosy.kube.schema.quantity import canonical

_ROLLING = "RollingUpdate"
_RETENTION = "persistentVolumeClaimRetentionPolicy"
_SCALE_UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _spec_and_template(manifest: Part) -> tuple[Part, Part]:
    spec = part(manifest, "spec")
    spec["template"] = template(spec.get("template") or {})
    return {**manifest, "spec": spec, "status": manifest.get("status") or {}}, spec


def _strategy(spec: Part, name: str, *pairs: tuple[str, object]) -> None:
    strategy = fill(part(spec, name), (("type", _ROLLING),))
    if strategy["type"] == _ROLLING:
        strategy["rollingUpdate"] = fill(part(strategy, "rollingUpdate"), pairs)
    spec[name] = strategy


def deployment(manifest: Part) -> Part:
    made, spec = _spec_and_template(manifest)
    fill(spec, (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)))
    _strategy(spec, "strategy", ("maxUnavailable", "25%"), ("maxSurge", "25%"))
    return made


def replica_set(manifest: Part) -> Part:
    made, spec = _spec_and_template(manifest)
    fill(spec, (("replicas", 1),))
    made["status"] = filled(made["status"], ("replicas", 0))
    return made


def daemon_set(manifest: Part) -> Part:
    made, spec = _spec_and_template(manifest)
    fill(spec, (("revisionHistoryLimit", 10),))
    _strategy(spec, "updateStrategy", ("maxUnavailable", 1), ("maxSurge", 0))
    counts = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
    made["status"] = filled(made["status"], *((name, 0) for name in counts))
    return made


def _claim_template(given: Part) -> Part:
    made = filled(given, ("apiVersion", "v1"), ("kind", "PersistentVolumeClaim"))
    made["metadata"] = {"creationTimestamp": None, **(made.get("metadata") or {})}
    made["spec"] = claim_spec(made.get("spec") or {})
    made["status"] = filled(made.get("status") or {}, ("phase", "Pending"))
    return made


def stateful_set(manifest: Part) -> Part:
    made, spec = _spec_and_template(manifest)
    fill(spec, (("replicas", 1), ("revisionHistoryLimit", 10), ("podManagementPolicy", "OrderedReady")))
    strategy = part(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = _ROLLING
        strategy["rollingUpdate"] = part(strategy, "rollingUpdate")
    if strategy["type"] == _ROLLING:
        within(strategy, "rollingUpdate", lambda given: filled(given, ("partition", 0)))
    spec["updateStrategy"] = strategy
    retention = fill(part(spec, _RETENTION), (("whenDeleted", "Retain"), ("whenScaled", "Retain")))
    spec[_RETENTION] = retention
    each(spec, "volumeClaimTemplates", _claim_template)
    spec.setdefault("serviceName", "")
    made["status"] = filled(made["status"], ("replicas", 0), ("availableReplicas", 0))
    return made


def replication_controller(manifest: Part) -> Part:
    spec = part(manifest, "spec")
    made = {**manifest, "spec": spec, "status": filled(manifest.get("status") or {}, ("replicas", 0))}
    fill(spec, (("replicas", 1),))
    within(spec, "template", template)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        _inherit_labels(made, labels)
    return made


def _inherit_labels(made: Part, labels: Part | None) -> None:
    metadata = made.get("metadata") or {}
    if labels and not metadata.get("labels"):
        made["metadata"] = {**metadata, "labels": dict(labels)}


def _failure_policy(given: Part) -> Part:
    def rule(each_rule: Part) -> Part:
        made = dict(each_rule)
        each(made, "onPodConditions", lambda pattern: filled(pattern, ("status", "True")))
        return made

    made = dict(given)
    each(made, "rules", rule)
    return made


def job(manifest: Part) -> Part:
    made, spec = _spec_and_template(manifest)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    unlimited = spec.get("backoffLimitPerIndex") is not None
    within(spec, "podFailurePolicy", _failure_policy)
    replacement = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    fill(
        spec,
        (
            ("parallelism", 1),
            ("backoffLimit", 2**31 - 1 if unlimited else 6),
            ("completionMode", "NonIndexed"),
            ("suspend", False),
            ("podReplacementPolicy", replacement),
            ("manualSelector", False),
        ),
    )
    _inherit_labels(made, spec["template"]["metadata"].get("labels"))
    return made


def cron_job(manifest: Part) -> Part:
    spec = part(manifest, "spec")
    pairs = (
        ("concurrencyPolicy", "Allow"), ("suspend", False),
        ("successfulJobsHistoryLimit", 3), ("failedJobsHistoryLimit", 1),
    )  # fmt: skip
    fill(spec, pairs)
    spec.setdefault("schedule", "")
    job_template = part(spec, "jobTemplate")
    job_template["metadata"] = {"creationTimestamp": None, **(job_template.get("metadata") or {})}
    job_spec = part(job_template, "spec")
    # k8s: only the Pod template of a job template is defaulted; the Job's own defaults apply when it is created
    job_spec["template"] = template(job_spec.get("template") or {})
    job_template["spec"] = job_spec
    spec["jobTemplate"] = job_template
    return {**manifest, "spec": spec, "status": manifest.get("status") or {}}


def autoscaler(manifest: Part) -> Part:
    """autoscaling/v1."""
    spec = fill(part(manifest, "spec"), (("minReplicas", 1),))
    if spec.get("targetCPUUtilizationPercentage") is None and not _has_metrics_annotation(manifest):
        spec["targetCPUUtilizationPercentage"] = 80
    _scale_target(spec)
    status = filled(manifest.get("status") or {}, ("currentReplicas", 0), ("desiredReplicas", 0))
    return {**manifest, "spec": spec, "status": status}


def _has_metrics_annotation(manifest: Part) -> bool:
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    return "autoscaling.alpha.kubernetes.io/metrics" in annotations


def _scale_target(spec: Part) -> None:
    spec["scaleTargetRef"] = fill(part(spec, "scaleTargetRef"), (("kind", ""), ("name", "")))
    spec.setdefault("maxReplicas", 0)


def _metric(given: Part) -> Part:
    made = dict(given)
    for source in ("resource", "pods", "object", "external", "containerResource"):
        within(made, source, _metric_source)
    return made


def _metric_source(given: Part) -> Part:
    made = dict(given)
    target = part(made, "target")
    for name in ("value", "averageValue"):
        if target.get(name) is not None:
            target[name] = canonical(target[name])
    made["target"] = target
    return made


def autoscaler_v2(manifest: Part) -> Part:
    spec = fill(part(manifest, "spec"), (("minReplicas", 1),))
    if not spec.get("metrics"):
        cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
        spec["metrics"] = [{"type": "Resource", "resource": cpu}]
    each(spec, "metrics", _metric)
    _scale_target(spec)
    if spec.get("behavior") is not None:
        behavior = dict(spec["behavior"])
        for name, defaults in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
            given = {field: value for field, value in part(behavior, name).items() if value is not None}
            behavior[name] = {**defaults, **given}
        spec["behavior"] = behavior
    status = filled(manifest.get("status") or {}, ("desiredReplicas", 0))
    status.setdefault("currentMetrics", None)
    return {**manifest, "spec": spec, "status": status}

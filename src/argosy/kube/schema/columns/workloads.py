"""Table rows of workloads: apps, batch and autoscaling."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from argosy.kube.schema.columns.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    ManifestPart,
    format_age,
    format_labels,
    format_names_and_images,
    format_quantity,
    format_selector,
    format_time_since,
    get_name,
    get_spec,
    get_status,
    human_duration,
    is_condition_true,
    parse_timestamp,
)

_METRIC_SOURCE_FIELDS = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _read_status_counts(manifest: ManifestPart, *names: str) -> list[int]:
    object_status = get_status(manifest)
    return [object_status.get(field) or 0 for field in names]


def _build_wide_cells(manifest: ManifestPart) -> list[str]:
    object_spec = get_spec(manifest)
    return [*format_names_and_images(object_spec.get("template")), format_selector(object_spec.get("selector"))]


def build_deployment_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    ready, updated, available = _read_status_counts(manifest, "readyReplicas", "updatedReplicas", "availableReplicas")
    desired = get_spec(manifest).get("replicas") or 0
    return [
        get_name(manifest),
        f"{ready}/{desired}",
        updated,
        available,
        format_age(manifest, now),
        *_build_wide_cells(manifest),
    ]


def build_replica_set_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    desired = get_spec(manifest).get("replicas") or 0
    return [
        get_name(manifest),
        desired,
        *_read_status_counts(manifest, "replicas", "readyReplicas"),
        format_age(manifest, now),
        *_build_wide_cells(manifest),
    ]


def build_replication_controller_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec = get_spec(manifest)
    return [
        get_name(manifest),
        object_spec.get("replicas") or 0,
        *_read_status_counts(manifest, "replicas", "readyReplicas"),
        format_age(manifest, now),
        *format_names_and_images(object_spec.get("template")),
        format_labels(object_spec.get("selector")),
    ]


def build_daemon_set_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    counts = _read_status_counts(
        manifest, "desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled",
        "numberAvailable",
    )  # fmt: skip
    node_selector = ((get_spec(manifest).get("template") or {}).get("spec") or {}).get("nodeSelector")
    return [
        get_name(manifest),
        *counts,
        format_labels(node_selector),
        format_age(manifest, now),
        *_build_wide_cells(manifest),
    ]


def build_stateful_set_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec = get_spec(manifest)
    (ready,) = _read_status_counts(manifest, "readyReplicas")
    ready_text = f"{ready}/{object_spec.get('replicas') or 0}"
    return [
        get_name(manifest),
        ready_text,
        format_age(manifest, now),
        *format_names_and_images(object_spec.get("template")),
    ]


def build_job_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec, object_status = get_spec(manifest), get_status(manifest)
    done, parallel = object_status.get("succeeded") or 0, object_spec.get("parallelism") or 0
    if object_spec.get("completions") is not None:
        completions = f"{done}/{object_spec['completions']}"
    else:
        completions = f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"
    start, end = parse_timestamp(object_status.get("startTime")), parse_timestamp(object_status.get("completionTime"))
    duration = "" if start is None else human_duration(((end or now) - start).total_seconds())
    return [
        get_name(manifest),
        _format_job_status(manifest),
        completions,
        duration,
        format_age(manifest, now),
        *_build_wide_cells(manifest),
    ]


def _format_job_status(manifest: ManifestPart) -> str:
    if is_condition_true(manifest, "Complete"):
        return "Complete"
    if is_condition_true(manifest, "Failed"):
        return "Failed"
    if manifest["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if is_condition_true(manifest, "Suspended"):
        return "Suspended"
    return "FailureTarget" if is_condition_true(manifest, "FailureTarget") else "Running"


def build_cron_job_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec, object_status = get_spec(manifest), get_status(manifest)
    last = object_status.get("lastScheduleTime")
    suspended = UNSET if object_spec.get("suspend") is None else str(bool(object_spec["suspend"]))
    template = (object_spec.get("jobTemplate") or {}).get("spec") or {}
    return [
        get_name(manifest),
        object_spec.get("schedule") or "",
        NONE if object_spec.get("timeZone") is None else object_spec["timeZone"],
        suspended,
        len(object_status.get("active") or ()),
        format_time_since(last, now) if last else NONE,
        format_age(manifest, now),
        *format_names_and_images(template.get("template")),
        format_selector(template.get("selector")),
    ]


def build_pod_template_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    template = manifest.get("template") or {}
    return [
        get_name(manifest),
        *format_names_and_images(template),
        format_labels((template.get("metadata") or {}).get("labels")),
    ]


def build_controller_revision_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    owners = manifest["metadata"].get("ownerReferences") or ()
    owner = next((reference for reference in owners if reference.get("controller")), None)
    controller = NONE
    if owner is not None:
        group = str(owner.get("apiVersion") or "").rpartition("/")[0]
        kind = str(owner.get("kind") or "").lower()
        controller = f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
    return [get_name(manifest), controller, manifest.get("revision") or 0, format_age(manifest, now)]


def build_autoscaler_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec, object_status = get_spec(manifest), get_status(manifest)
    target = object_spec.get("scaleTargetRef") or {}
    metrics, current = object_spec.get("metrics"), object_status.get("currentMetrics")
    if "targetCPUUtilizationPercentage" in object_spec or "currentCPUUtilizationPercentage" in object_status:
        metrics, current = _convert_v1_metrics(object_spec, object_status)
    return [
        get_name(manifest),
        f"{target.get('kind') or ''}/{target.get('name') or ''}",
        _format_metric_targets(metrics or [], current or []),
        UNSET if object_spec.get("minReplicas") is None else str(object_spec["minReplicas"]),
        object_spec.get("maxReplicas") or 0,
        object_status.get("currentReplicas") or 0,
        format_age(manifest, now),
    ]


def build_scale_row(manifest: ManifestPart, now: datetime) -> list[Any]:
    object_spec, object_status = manifest.get("spec") or {}, manifest.get("status") or {}
    return [
        manifest["metadata"]["name"],
        object_spec.get("replicas") or 0,
        object_status.get("replicas") or 0,
        format_age(manifest, now),
    ]


def _convert_v1_metrics(
    object_spec: ManifestPart, object_status: ManifestPart
) -> tuple[list[ManifestPart], list[ManifestPart]]:
    """Convert the single CPU metric of autoscaling/v1 to the metrics of v2."""
    target_percent, current_percent = (
        object_spec.get("targetCPUUtilizationPercentage"),
        object_status.get("currentCPUUtilizationPercentage"),
    )
    target = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": target_percent}}}
    if current_percent is None:
        return [target], []
    return [target], [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": current_percent}}}
    ]


def _format_metric_targets(metrics: list[ManifestPart], current: list[ManifestPart]) -> str:
    if not metrics:
        return NONE
    target_texts = [
        _format_metric_target(metric, current[index] if index < len(current) else {})
        for index, metric in enumerate(metrics)
    ]
    text = ", ".join(target_texts[:2])
    return f"{text} + {len(target_texts) - 2} more..." if len(target_texts) > 2 else text


def _format_metric_target(metric: ManifestPart, current_metric: ManifestPart) -> str:
    field = _METRIC_SOURCE_FIELDS.get(metric.get("type") or "")
    if field is None:
        return "<unknown type>"
    source = metric.get(field) or {}
    target = source.get("target") or {}
    current = (current_metric.get(field) or {}).get("current") or {}
    is_average = target.get("averageValue") is not None
    if field in ("resource", "containerResource") and not is_average:
        current_percent, target_percent = current.get("averageUtilization"), target.get("averageUtilization")
        current_text = UNKNOWN if current_percent is None else f"{current_percent}%"
        return (
            f"{source.get('name') or ''}: {current_text}/{'<auto>' if target_percent is None else f'{target_percent}%'}"
        )
    key = "averageValue" if is_average or field == "pods" else "value"
    current_text = format_quantity(current[key]) if current.get(key) is not None else UNKNOWN
    text = f"{current_text}/{format_quantity(target.get(key))}"
    if field in ("resource", "containerResource"):
        return f"{source.get('name') or ''}: {text}"
    return f"{text} (avg)" if is_average and field != "pods" else text

"""Table rows of workloads: apps, batch and autoscaling."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from argosy.kube.schema.columns.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    Part,
    age,
    amount,
    containers,
    holds,
    human_duration,
    moment,
    name,
    pairs,
    selector,
    since,
    spec,
    status,
)

_METRICS = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _counts(manifest: Part, *names: str) -> list[int]:
    how = status(manifest)
    return [how.get(each) or 0 for each in names]


def _wide(manifest: Part) -> list[str]:
    what = spec(manifest)
    return [*containers(what.get("template")), selector(what.get("selector"))]


def deployment(manifest: Part, now: datetime) -> list[Any]:
    ready, updated, available = _counts(manifest, "readyReplicas", "updatedReplicas", "availableReplicas")
    wanted = spec(manifest).get("replicas") or 0
    return [name(manifest), f"{ready}/{wanted}", updated, available, age(manifest, now), *_wide(manifest)]


def replica_set(manifest: Part, now: datetime) -> list[Any]:
    wanted = spec(manifest).get("replicas") or 0
    return [
        name(manifest), wanted, *_counts(manifest, "replicas", "readyReplicas"), age(manifest, now), *_wide(manifest),
    ]  # fmt: skip


def replication_controller(manifest: Part, now: datetime) -> list[Any]:
    what = spec(manifest)
    return [
        name(manifest),
        what.get("replicas") or 0,
        *_counts(manifest, "replicas", "readyReplicas"),
        age(manifest, now),
        *containers(what.get("template")),
        pairs(what.get("selector")),
    ]


def daemon_set(manifest: Part, now: datetime) -> list[Any]:
    counts = _counts(
        manifest, "desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled",
        "numberAvailable",
    )  # fmt: skip
    where = ((spec(manifest).get("template") or {}).get("spec") or {}).get("nodeSelector")
    return [name(manifest), *counts, pairs(where), age(manifest, now), *_wide(manifest)]


def stateful_set(manifest: Part, now: datetime) -> list[Any]:
    what = spec(manifest)
    (ready,) = _counts(manifest, "readyReplicas")
    counted = f"{ready}/{what.get('replicas') or 0}"
    return [name(manifest), counted, age(manifest, now), *containers(what.get("template"))]


def job(manifest: Part, now: datetime) -> list[Any]:
    what, how = spec(manifest), status(manifest)
    done, parallel = how.get("succeeded") or 0, what.get("parallelism") or 0
    if what.get("completions") is not None:
        completions = f"{done}/{what['completions']}"
    else:
        completions = f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"
    start, end = moment(how.get("startTime")), moment(how.get("completionTime"))
    duration = "" if start is None else human_duration(((end or now) - start).total_seconds())
    return [name(manifest), _job_word(manifest), completions, duration, age(manifest, now), *_wide(manifest)]


def _job_word(manifest: Part) -> str:
    if holds(manifest, "Complete"):
        return "Complete"
    if holds(manifest, "Failed"):
        return "Failed"
    if manifest["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if holds(manifest, "Suspended"):
        return "Suspended"
    return "FailureTarget" if holds(manifest, "FailureTarget") else "Running"


def cron_job(manifest: Part, now: datetime) -> list[Any]:
    what, how = spec(manifest), status(manifest)
    last = how.get("lastScheduleTime")
    suspended = UNSET if what.get("suspend") is None else str(bool(what["suspend"]))
    template = (what.get("jobTemplate") or {}).get("spec") or {}
    return [
        name(manifest),
        what.get("schedule") or "",
        NONE if what.get("timeZone") is None else what["timeZone"],
        suspended,
        len(how.get("active") or ()),
        since(last, now) if last else NONE,
        age(manifest, now),
        *containers(template.get("template")),
        selector(template.get("selector")),
    ]


def pod_template(manifest: Part, now: datetime) -> list[Any]:
    template = manifest.get("template") or {}
    return [name(manifest), *containers(template), pairs((template.get("metadata") or {}).get("labels"))]


def controller_revision(manifest: Part, now: datetime) -> list[Any]:
    owners = manifest["metadata"].get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    controller = NONE
    if owner is not None:
        group = str(owner.get("apiVersion") or "").rpartition("/")[0]
        kind = str(owner.get("kind") or "").lower()
        controller = f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
    return [name(manifest), controller, manifest.get("revision") or 0, age(manifest, now)]


def autoscaler(manifest: Part, now: datetime) -> list[Any]:
    what, how = spec(manifest), status(manifest)
    target = what.get("scaleTargetRef") or {}
    metrics, current = what.get("metrics"), how.get("currentMetrics")
    if "targetCPUUtilizationPercentage" in what or "currentCPUUtilizationPercentage" in how:
        metrics, current = _as_metrics(what, how)
    return [
        name(manifest),
        f"{target.get('kind') or ''}/{target.get('name') or ''}",
        _targets(metrics or [], current or []),
        UNSET if what.get("minReplicas") is None else str(what["minReplicas"]),
        what.get("maxReplicas") or 0,
        how.get("currentReplicas") or 0,
        age(manifest, now),
    ]


def scale(manifest: Part, now: datetime) -> list[Any]:
    what, how = manifest.get("spec") or {}, manifest.get("status") or {}
    return [manifest["metadata"]["name"], what.get("replicas") or 0, how.get("replicas") or 0, age(manifest, now)]


def _as_metrics(what: Part, how: Part) -> tuple[list[Part], list[Part]]:
    """Convert the single CPU metric of autoscaling/v1 to the metrics of v2."""
    wanted, seen = what.get("targetCPUUtilizationPercentage"), how.get("currentCPUUtilizationPercentage")
    target = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": wanted}}}
    if seen is None:
        return [target], []
    return [target], [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": seen}}}]


def _targets(metrics: list[Part], current: list[Part]) -> str:
    if not metrics:
        return NONE
    shown = [_target(metric, current[index] if index < len(current) else {}) for index, metric in enumerate(metrics)]
    text = ", ".join(shown[:2])
    return f"{text} + {len(shown) - 2} more..." if len(shown) > 2 else text


def _target(metric: Part, seen: Part) -> str:
    field = _METRICS.get(metric.get("type") or "")
    if field is None:
        return "<unknown type>"
    source = metric.get(field) or {}
    wanted = source.get("target") or {}
    found = (seen.get(field) or {}).get("current") or {}
    average = wanted.get("averageValue") is not None
    if field in ("resource", "containerResource") and not average:
        has, wants = found.get("averageUtilization"), wanted.get("averageUtilization")
        left = UNKNOWN if has is None else f"{has}%"
        return f"{source.get('name') or ''}: {left}/{'<auto>' if wants is None else f'{wants}%'}"
    key = "averageValue" if average or field == "pods" else "value"
    left = amount(found[key]) if found.get(key) is not None else UNKNOWN
    text = f"{left}/{amount(wanted.get(key))}"
    if field in ("resource", "containerResource"):
        return f"{source.get('name') or ''}: {text}"
    return f"{text} (avg)" if average and field != "pods" else text

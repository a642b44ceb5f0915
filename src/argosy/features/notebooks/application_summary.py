"""Summarizes the notebook jobs of an Application.

In: live NotebookValidationJobs. Out: the Application of each job; counts, and a summary. Never: talks to a cluster;
counts results of an earlier spec.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from argosy.annotations import INSTANCE_LABEL, PART_OF, TRACKING_ID
from argosy.features.notebooks.notebook_validation_job_status import FAILED, SUCCEEDED, get_first_line
from argosy.kube.objects import Manifest, get_annotation, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import CONTROL_NAMESPACES, ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

MAX_FAILED_JOBS: Final = 20
PENDING_PHASES: Final = ("", "Initializing", "Pending")
NO_JOBS: Final = "No notebook validation jobs"
TIME_FIELD: Final = "lastUpdate"


def list_application_keys(job: Manifest) -> list[ResourceKey]:
    """Keys where the Application of a job may be, in order of precedence.

    By tracking id, else by the instance label, else by the part-of label that people set.
    """
    labels = job["metadata"].get("labels") or {}
    instance_names = [str(labels[label]) for label in (INSTANCE_LABEL, PART_OF) if labels.get(label)]
    tracked_instance = _read_tracked_instance(job)
    namespace = str(job["metadata"].get("namespace") or "")
    keys = [
        key
        for name in ([tracked_instance] if tracked_instance else instance_names)
        for key in _list_keys_of_instance(name, namespace)
    ]
    return list(dict.fromkeys(keys))


def _list_keys_of_instance(instance: str, namespace: str) -> list[ResourceKey]:
    """argo: an Application outside of the control namespace has its namespace in its instance name."""
    app_namespace, underscore, name = instance.partition("_")
    if underscore and name:
        return [ResourceKey(*APPLICATION, app_namespace, name)]
    return [
        ResourceKey(*APPLICATION, control_namespace, instance) for control_namespace in (*CONTROL_NAMESPACES, namespace)
    ]


def _read_tracked_instance(job: Manifest) -> str:
    """argo: `app:group/Kind:namespace/name`; ignored if it names another object, because this one is a copy of it."""
    parts = get_annotation(job, TRACKING_ID).split(":", 2)
    key = key_of(job)
    own_id = f"{key.group}/{key.kind}:{key.namespace}/{key.name}"
    return parts[0] if len(parts) == 3 and ":".join(parts[1:]) == own_id else ""


def read_current_phase(job: Manifest) -> str:
    """The phase, or "" if the status is about an earlier spec."""
    status = job.get("status") or {}
    observed_generation = status.get("observedGeneration")
    is_outdated = observed_generation is not None and observed_generation != job["metadata"].get("generation")
    return "" if is_outdated else str(status.get("phase") or "")


def count_jobs(jobs: Sequence[Manifest]) -> dict[str, Any]:
    """Counts for `mlops.dev/notebook-status`, without the time."""
    phases = [read_current_phase(job) for job in jobs]
    succeeded, failed_count = phases.count(SUCCEEDED), phases.count(FAILED)
    pending = sum(phase in PENDING_PHASES for phase in phases)
    failed_jobs = [job for job, phase in zip(jobs, phases, strict=True) if phase == FAILED]
    succeeded_jobs = [job for job, phase in zip(jobs, phases, strict=True) if phase == SUCCEEDED]
    counts: dict[str, Any] = {
        "total": len(jobs),
        "succeeded": succeeded,
        "failed": failed_count,
        "running": len(jobs) - succeeded - failed_count - pending,
        "pending": pending,
    }
    if failed_jobs:
        counts["failedJobs"] = sorted(job["metadata"]["name"] for job in failed_jobs)[:MAX_FAILED_JOBS]
        counts["lastFailure"] = _build_last_failure(max(failed_jobs, key=_get_sort_key))
    if succeeded_jobs and (commit := (max(succeeded_jobs, key=_get_sort_key).get("status") or {}).get("gitCommit")):
        counts["revision"] = commit
    return counts


def _get_sort_key(job: Manifest) -> tuple[str, str]:
    return str((job.get("status") or {}).get("completionTime") or ""), str(job["metadata"]["name"])


def _build_last_failure(job: Manifest) -> dict[str, str]:
    status = job.get("status") or {}
    fields = {"job": job["metadata"]["name"], "time": status.get("completionTime"), "message": status.get("message")}
    return {name: get_first_line(str(value)) for name, value in fields.items() if value}


def render_summary(counts: Mapping[str, Any]) -> str:
    """For example `15/16 succeeded (93.75% success rate)`, with one decimal, or two if needed."""
    if not counts["total"]:
        return NO_JOBS
    rate = f"{100.0 * counts['succeeded'] / counts['total']:.2f}"
    return f"{counts['succeeded']}/{counts['total']} succeeded ({rate.removesuffix('0')}% success rate)"


def counts_to_json(counts: Mapping[str, Any], now: datetime) -> str:
    return json.dumps({**counts, TIME_FIELD: format_timestamp(now)}, separators=(",", ":"))


def counts_from_json(text: str) -> dict[str, Any] | None:
    """The stored counts without the time; None if they are missing or invalid."""
    try:
        counts = json.loads(text)
    except ValueError:
        return None
    return {name: value for name, value in counts.items() if name != TIME_FIELD} if isinstance(counts, dict) else None


def get_urgent_counts(counts: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """The part of the counts whose changes are written soon."""
    current = counts or {}
    return current.get("succeeded"), current.get("failed"), current.get("failedJobs"), current.get("lastFailure")

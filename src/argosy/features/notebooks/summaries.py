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
from argosy.features.notebooks.statuses import FAILED, SUCCEEDED, first_line
from argosy.kube.names import CONTROL_NAMESPACES, GroupKind, ResourceKey
from argosy.kube.objects import Manifest, annotation, key_of
from argosy.kube.objects.timestamps import written

APPLICATION: Final = GroupKind("argoproj.io", "Application")
MOST_FAILED: Final = 20
WAITING: Final = ("", "Initializing", "Pending")
NO_JOBS: Final = "No notebook validation jobs"
WHEN: Final = "lastUpdate"


def places(job: Manifest) -> list[ResourceKey]:
    """Keys where the Application of a job may be, in order of precedence.

    By tracking id, else by the instance label, else by the part-of label that people set.
    """
    labels = job["metadata"].get("labels") or {}
    named = [str(labels[label]) for label in (INSTANCE_LABEL, PART_OF) if labels.get(label)]
    tracked = _tracked(job)
    namespace = str(job["metadata"].get("namespace") or "")
    found = [each for name in ([tracked] if tracked else named) for each in _places(name, namespace)]
    return list(dict.fromkeys(found))


def _places(instance: str, namespace: str) -> list[ResourceKey]:
    """argo: an Application outside of the control namespace has its namespace in its instance name."""
    place, underscore, name = instance.partition("_")
    if underscore and name:
        return [ResourceKey(*APPLICATION, place, name)]
    return [ResourceKey(*APPLICATION, each, instance) for each in (*CONTROL_NAMESPACES, namespace)]


def _tracked(job: Manifest) -> str:
    """argo: `app:group/Kind:namespace/name`; ignored if it names another object, because this one is a copy of it."""
    parts = annotation(job, TRACKING_ID).split(":", 2)
    key = key_of(job)
    named = f"{key.group}/{key.kind}:{key.namespace}/{key.name}"
    return parts[0] if len(parts) == 3 and ":".join(parts[1:]) == named else ""


def phase_of(job: Manifest) -> str:
    """The phase, or "" if the status is about an earlier spec."""
    status = job.get("status") or {}
    observed = status.get("observedGeneration")
    is_old = observed is not None and observed != job["metadata"].get("generation")
    return "" if is_old else str(status.get("phase") or "")


def counted(jobs: Sequence[Manifest]) -> dict[str, Any]:
    """Counts for `mlops.dev/notebook-status`, without the time."""
    phases = [phase_of(job) for job in jobs]
    good, bad = phases.count(SUCCEEDED), phases.count(FAILED)
    pending = sum(phase in WAITING for phase in phases)
    failed = [job for job, phase in zip(jobs, phases, strict=True) if phase == FAILED]
    done = [job for job, phase in zip(jobs, phases, strict=True) if phase == SUCCEEDED]
    found: dict[str, Any] = {
        "total": len(jobs), "succeeded": good, "failed": bad, "running": len(jobs) - good - bad - pending,
        "pending": pending,
    }  # fmt: skip
    if failed:
        found["failedJobs"] = sorted(job["metadata"]["name"] for job in failed)[:MOST_FAILED]
        found["lastFailure"] = _failure(max(failed, key=_ended))
    if done and (commit := (max(done, key=_ended).get("status") or {}).get("gitCommit")):
        found["revision"] = commit
    return found


def _ended(job: Manifest) -> tuple[str, str]:
    return str((job.get("status") or {}).get("completionTime") or ""), str(job["metadata"]["name"])


def _failure(job: Manifest) -> dict[str, str]:
    status = job.get("status") or {}
    told = {"job": job["metadata"]["name"], "time": status.get("completionTime"), "message": status.get("message")}
    return {name: first_line(str(value)) for name, value in told.items() if value}


def sentence(counts: Mapping[str, Any]) -> str:
    """For example `15/16 succeeded (93.75% success rate)`, with one decimal, or two if needed."""
    if not counts["total"]:
        return NO_JOBS
    rate = f"{100.0 * counts['succeeded'] / counts['total']:.2f}"
    return f"{counts['succeeded']}/{counts['total']} succeeded ({rate.removesuffix('0')}% success rate)"


def text_of(counts: Mapping[str, Any], now: datetime) -> str:
    return json.dumps({**counts, WHEN: written(now)}, separators=(",", ":"))


def read(text: str) -> dict[str, Any] | None:
    """The stored counts without the time; None if they are missing or invalid."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return {name: value for name, value in found.items() if name != WHEN} if isinstance(found, dict) else None


def results(counts: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """The part of the counts whose changes are written soon."""
    known = counts or {}
    return known.get("succeeded"), known.get("failed"), known.get("failedJobs"), known.get("lastFailure")

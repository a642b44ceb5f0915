"""Common parts of a run's objects: names, labels, owner, run id; and the ConfigMap of the run.

In: a job, a run. Out: manifests. Never: does I/O; matches objects of another job.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.annotations import NOTEBOOK_RUN
from argosy.features.notebooks.job import API_VERSION, KIND, Job
from argosy.features.notebooks.run_backend import RunKey, pod_name
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, annotation

OPERATOR: Final = "jupyter-notebook-validator-operator"
ERRAND, EVENTS, RESULTS = "errand.json", "events.jsonl", "results.json"
LABEL: Final = "notebookvalidationjob"


def pod_key(job: ResourceKey) -> ResourceKey:
    return ResourceKey("", "Pod", job.namespace, pod_name(job.name))


def map_key(job: ResourceKey) -> ResourceKey:
    return ResourceKey("", "ConfigMap", job.namespace, pod_name(job.name))


def labels(job: Job, component: str = "validation-pod") -> dict[str, str]:
    found = {
        "app": "jupyter-notebook-validator",
        "app.kubernetes.io/name": OPERATOR,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/managed-by": OPERATOR,
    }
    return {**found, LABEL: job.name} if len(job.name) <= 63 else found  # k8s: maximum length of a label value


def owner(job: Job) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND.kind, "name": job.name, "uid": job.uid, "controller": True}


def mark(run: RunKey) -> str:
    return f"{run.uid[:8]}-{run}"


def metadata(job: Job, run: RunKey) -> dict[str, Any]:
    return {
        "name": pod_name(job.name), "namespace": job.namespace, "labels": labels(job),
        "annotations": {NOTEBOOK_RUN: mark(run)}, "ownerReferences": [owner(job)],
    }  # fmt: skip


def config_map(job: Job, run: RunKey, data: dict[str, str]) -> Manifest:
    """Input of the run; also its progress report, if the ServiceAccount may write it."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(job, run), "data": data}


def is_of_run(live: Manifest, run: RunKey) -> bool:
    return annotation(live, NOTEBOOK_RUN) == mark(run)


def is_of_job(live: Manifest, job: ResourceKey) -> bool:
    """Compare owners by name: cleanup after a deleted job does not know its uid."""
    references = live["metadata"].get("ownerReferences") or ()
    return any(each.get("kind") == KIND.kind and each.get("name") == job.name for each in references)

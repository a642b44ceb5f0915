"""Common parts of a run's objects: names, labels, owner, run id; and the ConfigMap of the run.

In: a job, a run. Out: manifests. Never: does I/O; matches objects of another job.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.annotations import NOTEBOOK_RUN
from argosy.features.notebooks.notebook_validation_job_parser import API_VERSION, NotebookJob
from argosy.features.notebooks.run_backend import RunKey, build_pod_name
from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP, NOTEBOOK_JOB, POD

OPERATOR: Final = "jupyter-notebook-validator-operator"
INPUT_FILE, EVENTS_KEY, RESULTS_KEY = "errand.json", "events.jsonl", "results.json"
JOB_LABEL: Final = "notebookvalidationjob"


def pod_key(job: ResourceKey) -> ResourceKey:
    return ResourceKey(*POD, job.namespace, build_pod_name(job.name))


def config_map_key(job: ResourceKey) -> ResourceKey:
    return ResourceKey(*CONFIG_MAP, job.namespace, build_pod_name(job.name))


def build_labels(job: NotebookJob, component: str = "validation-pod") -> dict[str, str]:
    common_labels = {
        "app": "jupyter-notebook-validator",
        "app.kubernetes.io/name": OPERATOR,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/managed-by": OPERATOR,
    }
    # k8s: maximum length of a label value
    return {**common_labels, JOB_LABEL: job.name} if len(job.name) <= 63 else common_labels


def build_owner_reference(job: NotebookJob) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": NOTEBOOK_JOB.kind,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
    }


def build_run_id(run: RunKey) -> str:
    return f"{run.uid[:8]}-{run}"


def build_metadata(job: NotebookJob, run: RunKey) -> dict[str, Any]:
    return {
        "name": build_pod_name(job.name), "namespace": job.namespace, "labels": build_labels(job),
        "annotations": {NOTEBOOK_RUN: build_run_id(run)}, "ownerReferences": [build_owner_reference(job)],
    }  # fmt: skip


def build_config_map(job: NotebookJob, run: RunKey, data: dict[str, str]) -> Manifest:
    """Input of the run; also its progress report, if the ServiceAccount may write it."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": build_metadata(job, run), "data": data}


def belongs_to_run(live: Manifest, run: RunKey) -> bool:
    return get_annotation(live, NOTEBOOK_RUN) == build_run_id(run)


def belongs_to_job(live: Manifest, job: ResourceKey) -> bool:
    """Compare owners by name: cleanup after a deleted job does not know its uid."""
    references = live["metadata"].get("ownerReferences") or ()
    return any(
        reference.get("kind") == NOTEBOOK_JOB.kind and reference.get("name") == job.name for reference in references
    )

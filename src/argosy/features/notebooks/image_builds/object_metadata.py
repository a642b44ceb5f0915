"""Common parts of build objects: names, labels, owner, run id.

In: a job. Out: metadata. Never: does I/O.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from argosy.annotations import NOTEBOOK_RUN
from argosy.features.notebooks.notebook_validation_job_parser import API_VERSION, NotebookJob
from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.well_known_kinds import NOTEBOOK_JOB

MAX_JOB_NAME_CHARACTERS: Final = 50  # k8s: with suffixes added by controllers, a name must still fit into a label


def build_name(job: NotebookJob) -> str:
    if len(job.name) <= MAX_JOB_NAME_CHARACTERS:
        return f"{job.name}-build"
    return (
        f"{job.name[:MAX_JOB_NAME_CHARACTERS].rstrip('-.')}-{hashlib.sha256(job.name.encode()).hexdigest()[:6]}-build"
    )


def build_metadata(job: NotebookJob, run_id: str) -> dict[str, Any]:
    """Metadata with the job as owner, so that its builds are deleted with it."""
    owner = {
        "apiVersion": API_VERSION, "kind": NOTEBOOK_JOB.kind, "name": job.name, "uid": job.uid, "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip
    labels = {"mlops.redhat.com/notebook-validation": "true", "app.kubernetes.io/managed-by": "argosy"}
    if len(job.name) <= 63:
        labels["notebookvalidationjob"] = job.name
    return {
        "name": build_name(job), "namespace": job.namespace, "labels": labels,
        "annotations": {NOTEBOOK_RUN: run_id}, "ownerReferences": [owner],
    }  # fmt: skip


def is_owned_by(job: NotebookJob, live: Manifest) -> bool:
    return any(
        owner_reference.get("uid") == job.uid for owner_reference in live["metadata"].get("ownerReferences") or ()
    )


def read_run_id(live: Manifest) -> str:
    return get_annotation(live, NOTEBOOK_RUN)

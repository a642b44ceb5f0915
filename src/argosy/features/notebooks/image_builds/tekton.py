"""Tekton builds: one PipelineRun that clones, writes a Dockerfile unless the repository has one, and builds.

In: a job; a live PipelineRun. Out: manifests; the state of the build. Never: copies Tasks into the namespace: they are
resolved in the namespace of the platform.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from argosy.features.notebooks import go_durations
from argosy.features.notebooks.image_builds.dockerfile import render_dockerfile
from argosy.features.notebooks.image_builds.object_metadata import build_metadata, build_name
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.state_machine import BuildState
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind

KIND: Final = GroupKind("tekton.dev", "PipelineRun")
ADVICE: Final = "install Tekton, use the strategy s2i"
DEFAULT_REGISTRY: Final = "image-registry.openshift-image-registry.svc:5000"
TASK_NAMESPACE: Final = "openshift-pipelines"
WRITER_IMAGE: Final = "registry.access.redhat.com/ubi9/ubi-minimal:latest"
GENERATED_DOCKERFILE: Final = "Dockerfile.notebook"


def build_manifests(job: NotebookJob, run_id: str) -> list[Manifest]:
    build = job.build
    assert build is not None
    registry = str(build.settings.get("registry") or f"{DEFAULT_REGISTRY}/{job.namespace}").rstrip("/")
    image = f"{registry}/{build_name(job)}:{job.generation}"
    repository_dockerfile = build.dockerfile or ("Dockerfile" if build.prefers_dockerfile else "")
    tasks = [
        _build_clone_task(job),
        *([] if repository_dockerfile else [_build_write_dockerfile_task(job)]),
        _build_image_task(image, repository_dockerfile or GENERATED_DOCKERFILE),
    ]
    results = [
        {"name": name, "value": f"$(tasks.build-image.results.{name})"} for name in ("IMAGE_DIGEST", "IMAGE_URL")
    ]
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    spec = {
        "pipelineSpec": {"workspaces": [{"name": "source"}], "tasks": tasks, "results": results},
        "workspaces": [{"name": "source", "volumeClaimTemplate": claim}],
        "taskRunTemplate": {"serviceAccountName": str(build.settings.get("serviceAccountName") or "pipeline")},
        "timeouts": {"pipeline": go_durations.format_duration(build.timeout)},
    }
    return [
        {"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "metadata": build_metadata(job, run_id), "spec": spec}
    ]


def _build_clone_task(job: NotebookJob) -> dict[str, Any]:
    params = {"URL": job.notebook.url, "REVISION": job.notebook.ref}
    return {
        "name": "fetch",
        "taskRef": _build_task_reference("git-clone"),
        "params": _build_params(params),
        "workspaces": _build_workspace_binding("output"),
    }


def _build_write_dockerfile_task(job: NotebookJob) -> dict[str, Any]:
    """The text is base64-encoded, so that no shell interprets it."""
    text = base64.b64encode(render_dockerfile(job).encode()).decode()
    step = {
        "name": "write", "image": WRITER_IMAGE, "workingDir": "$(workspaces.source.path)",
        "command": ["sh", "-c", f'printf %s "$0" | base64 -d > {GENERATED_DOCKERFILE}', text],
        "securityContext": {"runAsUser": 65532, "runAsNonRoot": True, "allowPrivilegeEscalation": False},
    }  # fmt: skip
    spec = {"workspaces": [{"name": "source"}], "steps": [step]}
    return {
        "name": "generate-dockerfile",
        "runAfter": ["fetch"],
        "taskSpec": spec,
        "workspaces": _build_workspace_binding("source"),
    }


def _build_image_task(image: str, file: str) -> dict[str, Any]:
    after = "generate-dockerfile" if file == GENERATED_DOCKERFILE else "fetch"
    params = {"IMAGE": image, "DOCKERFILE": f"./{file}", "CONTEXT": "."}
    return {
        "name": "build-image",
        "runAfter": [after],
        "taskRef": _build_task_reference("buildah"),
        "params": _build_params(params),
        "workspaces": _build_workspace_binding("source"),
    }


def _build_task_reference(name: str) -> dict[str, Any]:
    params = _build_params({"kind": "task", "name": name, "namespace": TASK_NAMESPACE})
    return {"resolver": "cluster", "params": params}


def _build_workspace_binding(name: str) -> list[dict[str, str]]:
    return [{"name": name, "workspace": "source"}]


def _build_params(params: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in params.items()]


async def load_build_state(job: NotebookJob, live: Manifest, cluster: Cluster) -> BuildState:
    return read_build_state(live)


def read_build_state(run: Manifest) -> BuildState:
    status, name = run.get("status") or {}, str(run["metadata"]["name"])
    condition: Manifest = next(
        (entry for entry in status.get("conditions") or () if entry.get("type") == "Succeeded"), {}
    )
    message = str(condition.get("message") or condition.get("reason") or "not started")
    if condition.get("status") == "True":
        return BuildState("complete", name, _read_image(status), strategy="tekton")
    if condition.get("status") == "False":
        return BuildState("failed", name, message=f"PipelineRun {name}: {message}", strategy="tekton")
    return BuildState("running", name, message=f"PipelineRun {name}: {message}", strategy="tekton")


def _read_image(status: Manifest) -> str:
    results = {
        str(result.get("name")): str(result.get("value") or "").strip() for result in status.get("results") or ()
    }
    url, digest = results.get("IMAGE_URL", ""), results.get("IMAGE_DIGEST", "")
    repository_part, colon, tag = url.rpartition(":")
    repository = repository_part if colon and "/" not in tag else url
    return f"{repository}@{digest}" if repository and digest else url

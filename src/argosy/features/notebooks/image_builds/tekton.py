"""Tekton builds: one PipelineRun that clones, writes a Dockerfile unless the repository has one, and builds.

In: a job; a live PipelineRun. Out: manifests; the state of the build. Never: copies Tasks into the namespace: they are
resolved in the namespace of the platform.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from argosy.features.notebooks import durations
from argosy.features.notebooks.image_builds.dockerfile import dockerfile
from argosy.features.notebooks.image_builds.objects import build_name, metadata
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.state_machine import BuildStanding
from argosy.kube.client import Cluster
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest

KIND: Final = GroupKind("tekton.dev", "PipelineRun")
ADVICE: Final = "install Tekton, use the strategy s2i"
REGISTRY: Final = "image-registry.openshift-image-registry.svc:5000"
TASKS: Final = "openshift-pipelines"
WRITER: Final = "registry.access.redhat.com/ubi9/ubi-minimal:latest"
GENERATED: Final = "Dockerfile.notebook"


def objects(job: Job, mark: str) -> list[Manifest]:
    build = job.build
    assert build is not None
    registry = str(build.settings.get("registry") or f"{REGISTRY}/{job.namespace}").rstrip("/")
    image = f"{registry}/{build_name(job)}:{job.generation}"
    own = build.dockerfile or ("Dockerfile" if build.prefers_dockerfile else "")
    tasks = [_clone(job), *([] if own else [_write(job)]), _build(image, own or GENERATED)]
    results = [
        {"name": name, "value": f"$(tasks.build-image.results.{name})"} for name in ("IMAGE_DIGEST", "IMAGE_URL")
    ]
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    spec = {
        "pipelineSpec": {"workspaces": [{"name": "source"}], "tasks": tasks, "results": results},
        "workspaces": [{"name": "source", "volumeClaimTemplate": claim}],
        "taskRunTemplate": {"serviceAccountName": str(build.settings.get("serviceAccountName") or "pipeline")},
        "timeouts": {"pipeline": durations.written(build.timeout)},
    }
    return [{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "metadata": metadata(job, mark), "spec": spec}]


def _clone(job: Job) -> dict[str, Any]:
    params = {"URL": job.notebook.url, "REVISION": job.notebook.ref}
    return {"name": "fetch", "taskRef": _task("git-clone"), "params": _values(params), "workspaces": _shared("output")}


def _write(job: Job) -> dict[str, Any]:
    """The text is base64-encoded, so that no shell interprets it."""
    text = base64.b64encode(dockerfile(job).encode()).decode()
    step = {
        "name": "write", "image": WRITER, "workingDir": "$(workspaces.source.path)",
        "command": ["sh", "-c", f'printf %s "$0" | base64 -d > {GENERATED}', text],
        "securityContext": {"runAsUser": 65532, "runAsNonRoot": True, "allowPrivilegeEscalation": False},
    }  # fmt: skip
    spec = {"workspaces": [{"name": "source"}], "steps": [step]}
    return {
        "name": "generate-dockerfile", "runAfter": ["fetch"], "taskSpec": spec, "workspaces": _shared("source")
    }  # fmt: skip


def _build(image: str, file: str) -> dict[str, Any]:
    after = "generate-dockerfile" if file == GENERATED else "fetch"
    params = {"IMAGE": image, "DOCKERFILE": f"./{file}", "CONTEXT": "."}
    return {
        "name": "build-image", "runAfter": [after], "taskRef": _task("buildah"), "params": _values(params),
        "workspaces": _shared("source"),
    }  # fmt: skip


def _task(name: str) -> dict[str, Any]:
    params = _values({"kind": "task", "name": name, "namespace": TASKS})
    return {"resolver": "cluster", "params": params}


def _shared(name: str) -> list[dict[str, str]]:
    return [{"name": name, "workspace": "source"}]


def _values(params: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in params.items()]


async def standing(job: Job, live: Manifest, cluster: Cluster) -> BuildStanding:
    return of_run(live)


def of_run(run: Manifest) -> BuildStanding:
    status, name = run.get("status") or {}, str(run["metadata"]["name"])
    found: Manifest = next((each for each in status.get("conditions") or () if each.get("type") == "Succeeded"), {})
    said = str(found.get("message") or found.get("reason") or "not started")
    if found.get("status") == "True":
        return BuildStanding("complete", name, _image(status), strategy="tekton")
    if found.get("status") == "False":
        return BuildStanding("failed", name, message=f"PipelineRun {name}: {said}", strategy="tekton")
    return BuildStanding("running", name, message=f"PipelineRun {name}: {said}", strategy="tekton")


def _image(status: Manifest) -> str:
    results = {str(each.get("name")): str(each.get("value") or "").strip() for each in status.get("results") or ()}
    url, digest = results.get("IMAGE_URL", ""), results.get("IMAGE_DIGEST", "")
    head, colon, tag = url.rpartition(":")
    repository = head if colon and "/" not in tag else url
    return f"{repository}@{digest}" if repository and digest else url

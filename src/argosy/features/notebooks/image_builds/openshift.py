"""OpenShift builds: a BuildConfig, an ImageStream, and the resulting Build.

In: a job; a live BuildConfig. Out: manifests; the state of the Build. Never: uses a Build of another BuildConfig.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.features.notebooks.image_builds.dockerfile import render_dockerfile
from argosy.features.notebooks.image_builds.object_metadata import build_metadata, build_name
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.state_machine import BuildState
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import BUILD, BUILD_CONFIG

KIND: Final = BUILD_CONFIG
ADVICE: Final = "use the strategy tekton"
FAILED_PHASES: Final = ("Failed", "Error", "Cancelled")


def build_manifests(job: NotebookJob, run_id: str) -> list[Manifest]:
    """The object that starts the build comes first. k8s: ConfigChange starts one Build when the BuildConfig is
    created.
    """
    build = job.build
    assert build is not None
    source: dict[str, Any] = {"type": "Git", "git": {"uri": job.notebook.url, "ref": job.notebook.ref}}
    if job.notebook.secret:
        source["sourceSecret"] = {"name": job.notebook.secret}
    base_image = {"kind": "DockerImage", "name": build.base_image}
    if build.prefers_dockerfile or build.dockerfile:
        file = build.dockerfile or "Dockerfile"
        strategy: dict[str, Any] = {"type": "Docker", "dockerStrategy": {"dockerfilePath": file}}
    elif build.generates_requirements or build.requirements or build.requirements_sources:
        source["dockerfile"] = render_dockerfile(job)
        strategy = {"type": "Docker", "dockerStrategy": {"from": base_image}}
    else:
        strategy = {"type": "Source", "sourceStrategy": {"from": base_image}}
    spec = {
        "source": source,
        "strategy": strategy,
        "output": {"to": {"kind": "ImageStreamTag", "name": f"{build_name(job)}:latest"}},
        "triggers": [{"type": "ConfigChange"}],
        "runPolicy": "Serial",
        "completionDeadlineSeconds": max(int(build.timeout), 1),
    }
    shared_metadata = build_metadata(job, run_id)
    config = {"apiVersion": "build.openshift.io/v1", "kind": "BuildConfig", "metadata": shared_metadata, "spec": spec}
    return [config, {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": shared_metadata}]


async def load_build_state(job: NotebookJob, live: Manifest, cluster: Cluster) -> BuildState:
    builds = await cluster.list(BUILD, namespace=job.namespace)
    uid = live["metadata"]["uid"]
    own_builds = [build for build in builds.items if _is_owned_by(build, uid)]
    if not own_builds:
        return BuildState("running", strategy="s2i", message="waiting for the Build")
    return read_build_state(
        max(own_builds, key=lambda build: (build["metadata"]["creationTimestamp"], build["metadata"]["name"]))
    )


def read_build_state(build: Manifest) -> BuildState:
    status, name = build.get("status") or {}, str(build["metadata"]["name"])
    phase = str(status.get("phase") or "New")
    if phase == "Complete":
        return BuildState("complete", name, _read_image(status), strategy="s2i")
    if phase in FAILED_PHASES:
        reason = status.get("message") or status.get("reason") or phase
        snippet = next(iter(reversed(str(status.get("logSnippet") or "").strip().splitlines())), "")
        message = f"Build {name} is {phase}: {reason}" + (f" ({snippet[:200]})" if snippet else "")
        return BuildState("failed", name, message=message, strategy="s2i")
    return BuildState("running", name, message=f"Build {name} is {phase}", strategy="s2i")


def _read_image(status: Manifest) -> str:
    """Image by digest, because a tag can move."""
    reference = str(status.get("outputDockerImageReference") or "")
    digest = ((status.get("output") or {}).get("to") or {}).get("imageDigest")
    repository = reference.partition("@")[0]
    repository_part, colon, tag = repository.rpartition(":")
    if colon and "/" not in tag:
        repository = repository_part
    return f"{repository}@{digest}" if digest and repository else reference


def _is_owned_by(build: Manifest, uid: str) -> bool:
    return any(reference.get("uid") == uid for reference in build["metadata"].get("ownerReferences") or ())

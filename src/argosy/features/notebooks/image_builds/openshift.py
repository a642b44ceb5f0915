"""OpenShift builds: a BuildConfig, an ImageStream, and the resulting Build.

In: a job; a live BuildConfig. Out: manifests; the state of the Build. Never: uses a Build of another BuildConfig.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.features.notebooks.image_builds.dockerfile import dockerfile
from argosy.features.notebooks.image_builds.objects import build_name, metadata
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.state_machine import BuildStanding
from argosy.kube.client import Cluster
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest

KIND: Final = GroupKind("build.openshift.io", "BuildConfig")
BUILD: Final = GroupKind("build.openshift.io", "Build")
ADVICE: Final = "use the strategy tekton"
ENDED_BADLY: Final = ("Failed", "Error", "Cancelled")


def objects(job: Job, mark: str) -> list[Manifest]:
    """The object that starts the build comes first. k8s: ConfigChange starts one Build when the BuildConfig is
    created.
    """
    build = job.build
    assert build is not None
    source: dict[str, Any] = {"type": "Git", "git": {"uri": job.notebook.url, "ref": job.notebook.ref}}
    if job.notebook.secret:
        source["sourceSecret"] = {"name": job.notebook.secret}
    base = {"kind": "DockerImage", "name": build.base_image}
    if build.prefers_dockerfile or build.dockerfile:
        file = build.dockerfile or "Dockerfile"
        strategy: dict[str, Any] = {"type": "Docker", "dockerStrategy": {"dockerfilePath": file}}
    elif build.generates or build.requirements or build.requirements_sources:
        source["dockerfile"] = dockerfile(job)
        strategy = {"type": "Docker", "dockerStrategy": {"from": base}}
    else:
        strategy = {"type": "Source", "sourceStrategy": {"from": base}}
    spec = {
        "source": source,
        "strategy": strategy,
        "output": {"to": {"kind": "ImageStreamTag", "name": f"{build_name(job)}:latest"}},
        "triggers": [{"type": "ConfigChange"}],
        "runPolicy": "Serial",
        "completionDeadlineSeconds": max(int(build.timeout), 1),
    }
    own = metadata(job, mark)
    config = {"apiVersion": "build.openshift.io/v1", "kind": "BuildConfig", "metadata": own, "spec": spec}
    return [config, {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": own}]


async def standing(job: Job, live: Manifest, cluster: Cluster) -> BuildStanding:
    found = await cluster.list(BUILD, namespace=job.namespace)
    uid = live["metadata"]["uid"]
    mine = [each for each in found.items if _is_owned_by(each, uid)]
    if not mine:
        return BuildStanding("running", strategy="s2i", message="waiting for the Build")
    return of_build(max(mine, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"])))


def of_build(build: Manifest) -> BuildStanding:
    status, name = build.get("status") or {}, str(build["metadata"]["name"])
    phase = str(status.get("phase") or "New")
    if phase == "Complete":
        return BuildStanding("complete", name, _image(status), strategy="s2i")
    if phase in ENDED_BADLY:
        why = status.get("message") or status.get("reason") or phase
        snippet = next(iter(reversed(str(status.get("logSnippet") or "").strip().splitlines())), "")
        said = f"Build {name} is {phase}: {why}" + (f" ({snippet[:200]})" if snippet else "")
        return BuildStanding("failed", name, message=said, strategy="s2i")
    return BuildStanding("running", name, message=f"Build {name} is {phase}", strategy="s2i")


def _image(status: Manifest) -> str:
    """Image by digest, because a tag can move."""
    reference = str(status.get("outputDockerImageReference") or "")
    digest = ((status.get("output") or {}).get("to") or {}).get("imageDigest")
    repository = reference.partition("@")[0]
    head, colon, tag = repository.rpartition(":")
    if colon and "/" not in tag:
        repository = head
    return f"{repository}@{digest}" if digest and repository else reference


def _is_owned_by(build: Manifest, uid: str) -> bool:
    return any(each.get("uid") == uid for each in build["metadata"].get("ownerReferences") or ())

"""Build logs: the log of the build Pod, or the Build's status if there is no Pod, as in a sandbox.

In: KubectlSession. Out: a Build, its Pods, a status line. Never: invents log lines.
"""

from __future__ import annotations

from typing import Final

from argosy.features.kubectl.session import KubectlError, KubectlSession, get_field
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import POD

GROUP: Final = "build.openshift.io"
BUILD: Final = GroupKind(GROUP, "Build")
POD_NAME: Final = "openshift.io/build.pod-name"


async def find_build(session: KubectlSession) -> Manifest | None:
    """The named Build, or the newest of the named BuildConfig; None if the arguments name another kind."""
    arguments = session.args.words
    if not arguments or "/" not in arguments[0]:
        return None
    resource = (await session.resolve_resources(arguments[:1]))[0]
    if resource.kind.group != GROUP:
        return None
    manifest = await session.get_object(resource, resource.names[0])
    if resource.kind == BUILD:
        return manifest
    last_version = get_field(manifest, "status", "lastVersion")
    if not last_version:
        raise KubectlError(
            f"no build of {resource.names[0]} has started; start one with: oc start-build {resource.names[0]}"
        )
    name = f"{resource.names[0]}-{last_version}"
    build = await session.cluster.get(ResourceKey(*BUILD, session.namespace, name))
    if build is None:
        raise KubectlError(f"build {name} not found; start another with: oc start-build {resource.names[0]}")
    return build


async def list_build_pods(session: KubectlSession, build: Manifest) -> list[Manifest] | None:
    metadata = build["metadata"]
    name = (metadata.get("annotations") or {}).get(POD_NAME) or f"{metadata['name']}-build"
    pod = await session.cluster.get(ResourceKey(*POD, metadata["namespace"], name))
    return None if pod is None else [pod]


def describe_build_without_pod(build: Manifest) -> str:
    """Status line of a Build without a Pod."""
    name, phase = build["metadata"]["name"], get_field(build, "status", "phase") or "New"
    detail = get_field(build, "status", "message") or get_field(build, "status", "outputDockerImageReference") or ""
    return f"build {name} is {phase}{': ' if detail else ''}{detail}; it has no build Pod, so there is no log"

"""Build logs: the log of the build Pod, or the Build's status if there is no Pod, as in a sandbox.

In: KubectlSession. Out: a Build, its Pods, a status line. Never: invents log lines.
"""

from __future__ import annotations

from typing import Final

from argosy.features.kubectl.session import Refused, Talk, field_of
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

GROUP: Final = "build.openshift.io"
BUILD: Final = GroupKind(GROUP, "Build")
POD: Final = GroupKind("", "Pod")
POD_NAME: Final = "openshift.io/build.pod-name"


async def build_of(talk: Talk) -> Manifest | None:
    """The named Build, or the newest of the named BuildConfig; None if the arguments name another kind."""
    words = talk.asked.words
    if not words or "/" not in words[0]:
        return None
    named = (await talk.named(words[:1]))[0]
    if named.kind.group != GROUP:
        return None
    manifest = await talk.get(named, named.names[0])
    if named.kind == BUILD:
        return manifest
    last = field_of(manifest, "status", "lastVersion")
    if not last:
        raise Refused(f"no build of {named.names[0]} has started; start one with: oc start-build {named.names[0]}")
    name = f"{named.names[0]}-{last}"
    found = await talk.cluster.get(ResourceKey(*BUILD, talk.namespace, name))
    if found is None:
        raise Refused(f"build {name} not found; start another with: oc start-build {named.names[0]}")
    return found


async def pods_of_build(talk: Talk, build: Manifest) -> list[Manifest] | None:
    metadata = build["metadata"]
    name = (metadata.get("annotations") or {}).get(POD_NAME) or f"{metadata['name']}-build"
    found = await talk.cluster.get(ResourceKey(*POD, metadata["namespace"], name))
    return None if found is None else [found]


def told_of(build: Manifest) -> str:
    """Status line of a Build without a Pod."""
    name, phase = build["metadata"]["name"], field_of(build, "status", "phase") or "New"
    why = field_of(build, "status", "message") or field_of(build, "status", "outputDockerImageReference") or ""
    return f"build {name} is {phase}{': ' if why else ''}{why}; it has no build Pod, so there is no log"

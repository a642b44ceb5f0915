"""Verbs of oc that kubectl lacks: whoami, extract, start-build, project, new-project, login.

In: KubectlSession. Out: oc's output. Never: prints a token.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from pathlib import Path
from typing import Final

from argosy.annotations import START_BUILD
from argosy.errors import ClusterError
from argosy.features.kubectl.session import Refused, Talk, field_of, say
from argosy.features.kubectl.write_verbs import LOOK, MANAGER
from argosy.gitops.coexistence.argocd_server_addresses import is_same_address
from argosy.kube.client.resource_names import Named
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

BUILD_CONFIG: Final = GroupKind("build.openshift.io", "BuildConfig")
STARTED_SECONDS: Final = 30.0


async def whoami(talk: Talk) -> int:
    if talk.asked.show_server:
        say(talk.server)
        return 0
    if talk.asked.show_context:
        say(talk.context)
        return 0
    say(await _user(talk))
    return 0


async def _user(talk: Talk) -> str:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    return str(field_of(await talk.cluster.create(review), "status", "userInfo", "username"))


async def extract(talk: Talk) -> int:
    """Write the data of Secrets and ConfigMaps to files, or to standard output."""
    place = talk.asked.to
    async for named, manifest in talk.chosen(await talk.named()):
        for name, value in sorted(_content(named, manifest).items()):
            if talk.asked.keys and name not in talk.asked.keys:
                continue
            if place == "-":
                print(f"# {name}", file=sys.stderr, flush=True)
                text = value.decode(errors="replace")
                sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
            else:
                _write(Path(place) / name, value, confirmed=talk.asked.confirm)
    return 0


def _content(named: Named, manifest: Manifest) -> dict[str, bytes]:
    data = manifest.get("data") or {}
    if named.kind.kind == "Secret":
        return {name: base64.b64decode(value) for name, value in data.items()}
    if named.kind.kind == "ConfigMap":
        return {name: str(value).encode() for name, value in data.items()}
    raise Refused(f"{named.called(manifest['metadata']['name'])} has no data; use a secret or a configmap")


def _write(file: Path, value: bytes, *, confirmed: bool) -> None:
    if file.exists() and not confirmed:
        raise Refused(f"file {file} exists; add --confirm to replace it")
    file.write_bytes(value)
    say(str(file))


async def start_build(talk: Talk) -> int:
    name = (talk.asked.words or [""])[0].rpartition("/")[2]
    if not name:
        raise Refused("must pass a name of a build config; use: oc start-build NAME")
    key = ResourceKey(*BUILD_CONFIG, talk.namespace, name)
    if (started := await _instantiated(talk, key)) is None:
        started = await _started_by_wish(talk, key)
    say(f"build.build.openshift.io/{started} started")
    return await _followed(talk, started) if talk.asked.wait or talk.asked.follow else 0


async def _instantiated(talk: Talk, key: ResourceKey) -> str | None:
    """Start the build by the `instantiate` subresource; None if the cluster does not serve it, as the sandbox."""
    request = {
        "apiVersion": "build.openshift.io/v1", "kind": "BuildRequest",
        "metadata": {"name": key.name, "namespace": key.namespace},
    }  # fmt: skip
    info = (await talk.cluster.kinds()).get(BUILD_CONFIG)
    if info is None or "instantiate" not in info.subresources:
        return None
    made = await talk.cluster.create(request, subresource_of=key, manager=MANAGER)
    return str(made["metadata"]["name"])


async def _started_by_wish(talk: Talk, key: ResourceKey) -> str:
    """Start the build by an annotation, as the sandbox needs it."""
    live = await talk.cluster.get(key)
    if live is None:
        message = f'buildconfigs.build.openshift.io "{key.name}" not found'
        raise ClusterError(message, code=404, reason="NotFound")
    last = int(field_of(live, "status", "lastVersion") or 0)
    await talk.cluster.patch(key, {"metadata": {"annotations": {START_BUILD: "oc start-build"}}}, manager=MANAGER)
    try:
        async with asyncio.timeout(STARTED_SECONDS):
            while True:
                now = int(field_of(await talk.cluster.get(key), "status", "lastVersion") or 0)
                if now > last:
                    return f"{key.name}-{now}"
                await asyncio.sleep(LOOK)
    except TimeoutError:
        raise Refused(
            f"no build of {key.name} started; check whether it is paused, and whether a build controller runs"
        ) from None


async def _followed(talk: Talk, name: str) -> int:
    key = ResourceKey("build.openshift.io", "Build", talk.namespace, name)
    while True:
        phase = field_of(await talk.cluster.get(key), "status", "phase")
        if phase in ("Complete", "Failed", "Error", "Cancelled", None):
            break
        await asyncio.sleep(LOOK)
    if phase != "Complete":
        raise Refused(f"the build {talk.namespace}/{name} status is {phase or 'gone'}; see: oc describe build/{name}")
    return 0


async def project(talk: Talk) -> int:
    if talk.asked.words:
        name = talk.asked.words[0]
        raise Refused(f"argosy does not change the kubeconfig; add -n {name} to your commands, or install oc")
    said = f'Using project "{talk.namespace}" on server "{talk.server}".'
    say(talk.namespace if talk.asked.short else said)
    return 0


async def new_project(talk: Talk) -> int:
    if len(talk.asked.words) != 1:
        raise Refused("must have exactly one argument; use: oc new-project NAME")
    name = talk.asked.words[0]
    await talk.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, manager=MANAGER)
    say(f'Created project "{name}" on server "{talk.server}"; use it with -n {name}.')
    return 0


async def login(talk: Talk) -> int:
    """Print the user of the kubeconfig. Reject another server, because later commands would not use it."""
    for server in (*talk.asked.words, talk.asked.server):
        if server and not is_same_address(server, talk.server):
            advice = "choose it with KUBECONFIG or ARGOSY_CONTEXT, or install oc"
            raise Refused(f"{server} is not the server of the kubeconfig, {talk.server}; {advice}")
    who = await _user(talk)
    say(f"You are logged in to {talk.server} as {who}, from the kubeconfig.")
    return 0

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
from argosy.features.kubectl.session import KubectlError, KubectlSession, get_field, print_lines
from argosy.features.kubectl.write_verbs import FIELD_MANAGER, POLL_INTERVAL_SECONDS
from argosy.gitops.coexistence.argocd_server_addresses import is_same_address
from argosy.kube.client.resource_arguments import NamedResources
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import AUTHENTICATION_API_VERSION, BUILD, BUILD_CONFIG

BUILD_START_TIMEOUT_SECONDS: Final = 30.0


async def whoami(session: KubectlSession) -> int:
    if session.args.show_server:
        print_lines(session.server)
        return 0
    if session.args.show_context:
        print_lines(session.context)
        return 0
    print_lines(await _fetch_user_name(session))
    return 0


async def _fetch_user_name(session: KubectlSession) -> str:
    review = {"apiVersion": AUTHENTICATION_API_VERSION, "kind": "SelfSubjectReview"}
    return str(get_field(await session.cluster.create(review), "status", "userInfo", "username"))


async def extract(session: KubectlSession) -> int:
    """Write the data of Secrets and ConfigMaps to files, or to standard output."""
    target = session.args.to
    async for resource, manifest in session.iterate_objects(await session.resolve_resources()):
        for name, value in sorted(_decode_data(resource, manifest).items()):
            if session.args.keys and name not in session.args.keys:
                continue
            if target == "-":
                print(f"# {name}", file=sys.stderr, flush=True)
                text = value.decode(errors="replace")
                sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
            else:
                _write_file(Path(target) / name, value, confirmed=session.args.confirm)
    return 0


def _decode_data(resource: NamedResources, manifest: Manifest) -> dict[str, bytes]:
    data = manifest.get("data") or {}
    if resource.kind.kind == "Secret":
        return {name: base64.b64decode(value) for name, value in data.items()}
    if resource.kind.kind == "ConfigMap":
        return {name: str(value).encode() for name, value in data.items()}
    raise KubectlError(f"{resource.format_name(manifest['metadata']['name'])} has no data; use a secret or a configmap")


def _write_file(file: Path, value: bytes, *, confirmed: bool) -> None:
    if file.exists() and not confirmed:
        raise KubectlError(f"file {file} exists; add --confirm to replace it")
    file.write_bytes(value)
    print_lines(str(file))


async def start_build(session: KubectlSession) -> int:
    name = (session.args.words or [""])[0].rpartition("/")[2]
    if not name:
        raise KubectlError("must pass a name of a build config; use: oc start-build NAME")
    key = ResourceKey(*BUILD_CONFIG, session.namespace, name)
    if (started := await _instantiate_build(session, key)) is None:
        started = await _start_build_by_annotation(session, key)
    print_lines(f"build.build.openshift.io/{started} started")
    return await _wait_for_build(session, started) if session.args.wait or session.args.follow else 0


async def _instantiate_build(session: KubectlSession, key: ResourceKey) -> str | None:
    """Start the build by the `instantiate` subresource; None if the cluster does not serve it, as the sandbox."""
    request = {
        "apiVersion": "build.openshift.io/v1", "kind": "BuildRequest",
        "metadata": {"name": key.name, "namespace": key.namespace},
    }  # fmt: skip
    info = (await session.cluster.kinds()).get(BUILD_CONFIG)
    if info is None or "instantiate" not in info.subresources:
        return None
    build = await session.cluster.create(request, subresource_of=key, manager=FIELD_MANAGER)
    return str(build["metadata"]["name"])


async def _start_build_by_annotation(session: KubectlSession, key: ResourceKey) -> str:
    """Start the build by an annotation, as the sandbox needs it."""
    live = await session.cluster.get(key)
    if live is None:
        message = f'buildconfigs.build.openshift.io "{key.name}" not found'
        raise ClusterError(message, code=404, reason="NotFound")
    last_version = int(get_field(live, "status", "lastVersion") or 0)
    await session.cluster.patch(
        key, {"metadata": {"annotations": {START_BUILD: "oc start-build"}}}, manager=FIELD_MANAGER
    )
    try:
        async with asyncio.timeout(BUILD_START_TIMEOUT_SECONDS):
            while True:
                current_version = int(get_field(await session.cluster.get(key), "status", "lastVersion") or 0)
                if current_version > last_version:
                    return f"{key.name}-{current_version}"
                await asyncio.sleep(POLL_INTERVAL_SECONDS)
    except TimeoutError:
        raise KubectlError(
            f"no build of {key.name} started; check whether it is paused, and whether a build controller runs"
        ) from None


async def _wait_for_build(session: KubectlSession, name: str) -> int:
    key = ResourceKey(*BUILD, session.namespace, name)
    while True:
        phase = get_field(await session.cluster.get(key), "status", "phase")
        if phase in ("Complete", "Failed", "Error", "Cancelled", None):
            break
        await asyncio.sleep(POLL_INTERVAL_SECONDS)
    if phase != "Complete":
        raise KubectlError(
            f"the build {session.namespace}/{name} status is {phase or 'gone'}; see: oc describe build/{name}"
        )
    return 0


async def project(session: KubectlSession) -> int:
    if session.args.words:
        name = session.args.words[0]
        raise KubectlError(f"argosy does not change the kubeconfig; add -n {name} to your commands, or install oc")
    message = f'Using project "{session.namespace}" on server "{session.server}".'
    print_lines(session.namespace if session.args.short else message)
    return 0


async def new_project(session: KubectlSession) -> int:
    if len(session.args.words) != 1:
        raise KubectlError("must have exactly one argument; use: oc new-project NAME")
    name = session.args.words[0]
    await session.cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, manager=FIELD_MANAGER
    )
    print_lines(f'Created project "{name}" on server "{session.server}"; use it with -n {name}.')
    return 0


async def login(session: KubectlSession) -> int:
    """Print the user of the kubeconfig. Reject another server, because later commands would not use it."""
    for server in (*session.args.words, session.args.server):
        if server and not is_same_address(server, session.server):
            advice = "choose it with KUBECONFIG or ARGOSY_CONTEXT, or install oc"
            raise KubectlError(f"{server} is not the server of the kubeconfig, {session.server}; {advice}")
    user_name = await _fetch_user_name(session)
    print_lines(f"You are logged in to {session.server} as {user_name}, from the kubeconfig.")
    return 0

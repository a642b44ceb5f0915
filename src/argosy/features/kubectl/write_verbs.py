"""The verbs apply, create, patch, annotate, label and delete.

In: KubectlSession. Out: a line for each object, as kubectl prints it. Never: retries a write.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from argosy.errors import ClusterError
from argosy.features.kubectl.session import Refused, Talk, say
from argosy.kube.client import PatchKind, Propagation
from argosy.kube.client.resource_names import Named, called
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest, key_of, load, read_manifests

MANAGER: Final = "argosy-kubectl"
KINDS_OF_PATCH: Final = {"strategic": PatchKind.STRATEGIC, "merge": PatchKind.MERGE, "json": PatchKind.JSON}
SUFFIXES: Final = (".yaml", ".yml", ".json")
LOOK: Final = 0.1


async def manifests(talk: Talk) -> list[Manifest]:
    """Read the manifests of `-f` (files, folders, `-`) and set their namespaces."""
    found: list[Manifest] = []
    catalog = await talk.cluster.kinds()
    for name in talk.asked.filename:
        for file in _files(name):
            text = sys.stdin.buffer.read() if file is None else file.read_bytes()
            found += read_manifests(text, where=str(file or "standard input"))
    if not found:
        raise Refused("no objects passed; pass a file or a folder with -f")
    for manifest in found:
        info = catalog.get(key_of(manifest).group_kind)
        metadata = manifest["metadata"]
        if info is not None and info.namespaced and not metadata.get("namespace"):
            metadata["namespace"] = talk.namespace
    return found


def _files(name: str) -> list[Path | None]:
    if name == "-":
        return [None]
    place = Path(name)
    if place.is_dir():
        return [each for each in sorted(place.iterdir()) if each.suffix in SUFFIXES]
    if not place.exists():
        raise Refused(f'the path "{name}" does not exist')
    return [place]


async def apply(talk: Talk) -> int:
    for manifest in await manifests(talk):
        before = await talk.cluster.get(key_of(manifest))
        after = await talk.cluster.apply(manifest, manager=MANAGER, force=True, dry_run=bool(talk.asked.dry_run))
        done = "created" if before is None else "unchanged" if _version(before) == _version(after) else "configured"
        _done(talk, after, done)
    return 0


async def create(talk: Talk) -> int:
    wanted = await manifests(talk) if talk.asked.filename else [_from_words(talk)]
    for manifest in wanted:
        made = await talk.cluster.create(manifest, manager=MANAGER, dry_run=bool(talk.asked.dry_run))
        _done(talk, made, "created")
    return 0


def _from_words(talk: Talk) -> Manifest:
    match talk.asked.words:
        case ["namespace" | "ns", name]:
            return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        case ["serviceaccount" | "sa", name]:
            return _own(talk, "v1", "ServiceAccount", name)
        case ["configmap" | "cm", name]:
            return {**_own(talk, "v1", "ConfigMap", name), "data": _literals(talk)}
        case ["secret", "generic", name]:
            data = {key: base64.b64encode(value.encode()).decode() for key, value in _literals(talk).items()}
            return {**_own(talk, "v1", "Secret", name), "type": "Opaque", "data": data}
        case ["rolebinding", name]:
            return _binding(talk, name)
    said = " ".join(talk.asked.words)
    raise Refused(f"create {said} is not supported; use a manifest with -f, or install kubectl")


def _own(talk: Talk, version: str, kind: str, name: str) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": talk.namespace}}


def _literals(talk: Talk) -> dict[str, str]:
    pairs = [each.partition("=") for each in talk.asked.from_literal]
    return {name: value for name, _, value in pairs}


def _binding(talk: Talk, name: str) -> Manifest:
    group = "rbac.authorization.k8s.io"
    asked = talk.asked
    kind, role = ("ClusterRole", asked.clusterrole) if asked.clusterrole else ("Role", asked.role)
    if not role:
        raise Refused("exactly one of clusterrole or role must be specified; add --clusterrole or --role")
    subjects: list[dict[str, str]] = []
    for each in asked.serviceaccount:
        namespace, _, account = each.rpartition(":")
        subjects.append({"kind": "ServiceAccount", "name": account, "namespace": namespace or talk.namespace})
    subjects += [{"kind": "User", "name": each, "apiGroup": group} for each in asked.user]
    subjects += [{"kind": "Group", "name": each, "apiGroup": group} for each in asked.group]
    reference = {"apiGroup": group, "kind": kind, "name": role}
    return {**_own(talk, f"{group}/v1", "RoleBinding", name), "roleRef": reference, "subjects": subjects}


async def patch(talk: Talk) -> int:
    asked = talk.asked
    text = _text(asked.patch_file) if asked.patch_file else asked.patch
    if not text:
        raise Refused("must specify --patch or --patch-file")
    if asked.type not in KINDS_OF_PATCH:
        raise Refused(f"--type must be one of {', '.join(KINDS_OF_PATCH)}, not {asked.type!r}; choose one")
    change = load(text, where="-p")
    async for named, before in talk.chosen(await talk.named()):
        key = named.key(before["metadata"]["name"], talk.namespace)
        kind = KINDS_OF_PATCH[asked.type]
        after = await talk.cluster.patch(
            key, change, kind_of_patch=kind, subresource=asked.subresource, manager=MANAGER
        )
        _done(talk, after, "patched" if _version(before) != _version(after) else "patched (no change)")
    return 0


def _text(name: str) -> str:
    return sys.stdin.read() if name == "-" else Path(name).read_text()


async def annotate(talk: Talk) -> int:
    return await _mark(talk, "annotations", "annotated")


async def label(talk: Talk) -> int:
    return await _mark(talk, "labels", "labeled")


async def _mark(talk: Talk, field: str, done: str) -> int:
    changes = [word for word in talk.asked.words if "=" in word or word.endswith("-")]
    words = [word for word in talk.asked.words if word not in changes]
    wanted: dict[str, str | None] = {}
    for word in changes:
        name, sets, value = word.partition("=")
        wanted[name if sets else word[:-1]] = value if sets else None
    if not wanted:
        raise Refused(f"at least one {field[:-1]} update is required; use NAME=VALUE, or NAME- to remove one")
    if not talk.asked.all and not talk.asked.selector and len(words) < 2 and "/" not in "".join(words[:1]):
        raise Refused("one or more resources must be specified as KIND NAME or KIND/NAME; or add --all")
    async for named, live in talk.chosen(await talk.named(words)):
        there = live["metadata"].get(field) or {}
        taken = [name for name, value in wanted.items() if value is not None and there.get(name, value) != value]
        if taken and not talk.asked.overwrite:
            said = f"'{taken[0]}' already has a value ({there[taken[0]]}), and --overwrite is false"
            raise Refused(f"{said}; add --overwrite to replace it")
        key = named.key(live["metadata"]["name"], live["metadata"].get("namespace") or "")
        after = await talk.cluster.patch(key, {"metadata": {field: wanted}}, manager=MANAGER)
        _done(talk, after, done if _version(live) != _version(after) else f"not {done}")
    return 0


async def delete(talk: Talk) -> int:
    gone: list[tuple[Named | None, Manifest]] = []
    propagation = {"orphan": Propagation.ORPHAN, "foreground": Propagation.FOREGROUND}.get(talk.asked.cascade)
    grace = 0 if talk.asked.force else 1 if talk.asked.now else talk.asked.grace_period
    async for manifest in _unwanted(talk):
        key = key_of(manifest)
        await talk.cluster.delete(key, propagation=propagation or Propagation.BACKGROUND, grace=grace)
        group = f".{key.group}" if key.group else ""
        say(f'{key.kind.lower()}{group} "{key.name}" deleted')
        gone.append((None, manifest))
    if not gone and not talk.asked.filename:
        say("No resources found")
    if talk.asked.wait != "false":
        for _, manifest in gone:
            await until_gone(talk, manifest)
    return 0


async def _unwanted(talk: Talk) -> AsyncIterator[Manifest]:
    if talk.asked.filename:
        for wanted in await manifests(talk):
            live = await talk.cluster.get(key_of(wanted))
            if live is not None:
                yield live
            elif not talk.asked.ignore_not_found:
                key = key_of(wanted)
                info = (await talk.cluster.kinds())[key.group_kind]
                message = f'{Named(key.group_kind, info).plural} "{key.name}" not found'
                raise ClusterError(message, code=404, reason="NotFound")
        return
    named = await talk.named()
    if not all(each.names for each in named) and not talk.asked.all and not talk.asked.selector:
        raise Refused("resource(s) were provided, but no name was specified; pass names, -l or --all")
    try:
        async for _, live in talk.chosen(named):
            yield live
    except ClusterError as error:
        if not (error.code == 404 and talk.asked.ignore_not_found):
            raise


async def until_gone(talk: Talk, manifest: Manifest) -> None:
    while (live := await talk.cluster.get(key_of(manifest))) is not None:
        if live["metadata"].get("uid") != manifest["metadata"].get("uid"):
            return
        await asyncio.sleep(LOOK)


def _version(manifest: Manifest) -> Any:
    return manifest["metadata"].get("resourceVersion")


def _done(talk: Talk, manifest: Manifest, done: str) -> None:
    key = key_of(manifest)
    suffix = " (server dry run)" if talk.asked.dry_run else ""
    say(f"{called(GroupKind(key.group, key.kind), key.name)} {done}{suffix}")

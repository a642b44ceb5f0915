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
from argosy.features.kubectl.session import KubectlError, KubectlSession, print_lines
from argosy.kube.client import PatchKind, Propagation
from argosy.kube.client.resource_arguments import NamedResources, format_resource_name
from argosy.kube.objects import Manifest, key_of, read_manifests, read_yaml
from argosy.kube.resource_key import GroupKind

FIELD_MANAGER: Final = "argosy-kubectl"
PATCH_KINDS: Final = {"strategic": PatchKind.STRATEGIC, "merge": PatchKind.MERGE, "json": PatchKind.JSON}
SUFFIXES: Final = (".yaml", ".yml", ".json")
POLL_INTERVAL_SECONDS: Final = 0.1


async def read_manifest_files(session: KubectlSession) -> list[Manifest]:
    """Read the manifests of `-f` (files, folders, `-`) and set their namespaces."""
    manifest_list: list[Manifest] = []
    catalog = await session.cluster.kinds()
    for name in session.args.filename:
        for file in _list_files(name):
            text = sys.stdin.buffer.read() if file is None else file.read_bytes()
            manifest_list += read_manifests(text, where=str(file or "standard input"))
    if not manifest_list:
        raise KubectlError("no objects passed; pass a file or a folder with -f")
    for manifest in manifest_list:
        info = catalog.get(key_of(manifest).group_kind)
        metadata = manifest["metadata"]
        if info is not None and info.namespaced and not metadata.get("namespace"):
            metadata["namespace"] = session.namespace
    return manifest_list


def _list_files(name: str) -> list[Path | None]:
    if name == "-":
        return [None]
    path = Path(name)
    if path.is_dir():
        return [file for file in sorted(path.iterdir()) if file.suffix in SUFFIXES]
    if not path.exists():
        raise KubectlError(f'the path "{name}" does not exist')
    return [path]


async def apply(session: KubectlSession) -> int:
    for manifest in await read_manifest_files(session):
        live = await session.cluster.get(key_of(manifest))
        after = await session.cluster.apply(
            manifest, manager=FIELD_MANAGER, force=True, dry_run=bool(session.args.dry_run)
        )
        outcome = (
            "created"
            if live is None
            else "unchanged"
            if _read_resource_version(live) == _read_resource_version(after)
            else "configured"
        )
        _print_result(session, after, outcome)
    return 0


async def create(session: KubectlSession) -> int:
    new_manifests = (
        await read_manifest_files(session) if session.args.filename else [_build_manifest_from_arguments(session)]
    )
    for manifest in new_manifests:
        created = await session.cluster.create(manifest, manager=FIELD_MANAGER, dry_run=bool(session.args.dry_run))
        _print_result(session, created, "created")
    return 0


def _build_manifest_from_arguments(session: KubectlSession) -> Manifest:
    match session.args.words:
        case ["namespace" | "ns", name]:
            return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        case ["serviceaccount" | "sa", name]:
            return _build_namespaced(session, "v1", "ServiceAccount", name)
        case ["configmap" | "cm", name]:
            return {**_build_namespaced(session, "v1", "ConfigMap", name), "data": _read_literals(session)}
        case ["secret", "generic", name]:
            data = {key: base64.b64encode(value.encode()).decode() for key, value in _read_literals(session).items()}
            return {**_build_namespaced(session, "v1", "Secret", name), "type": "Opaque", "data": data}
        case ["rolebinding", name]:
            return _build_role_binding(session, name)
    command_text = " ".join(session.args.words)
    raise KubectlError(f"create {command_text} is not supported; use a manifest with -f, or install kubectl")


def _build_namespaced(session: KubectlSession, version: str, kind: str, name: str) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": session.namespace}}


def _read_literals(session: KubectlSession) -> dict[str, str]:
    pairs = [literal.partition("=") for literal in session.args.from_literal]
    return {name: value for name, _, value in pairs}


def _build_role_binding(session: KubectlSession, name: str) -> Manifest:
    group = "rbac.authorization.k8s.io"
    args = session.args
    kind, role = ("ClusterRole", args.clusterrole) if args.clusterrole else ("Role", args.role)
    if not role:
        raise KubectlError("exactly one of clusterrole or role must be specified; add --clusterrole or --role")
    subjects: list[dict[str, str]] = []
    for subject in args.serviceaccount:
        namespace, _, account = subject.rpartition(":")
        subjects.append({"kind": "ServiceAccount", "name": account, "namespace": namespace or session.namespace})
    subjects += [{"kind": "User", "name": subject, "apiGroup": group} for subject in args.user]
    subjects += [{"kind": "Group", "name": subject, "apiGroup": group} for subject in args.group]
    reference = {"apiGroup": group, "kind": kind, "name": role}
    return {
        **_build_namespaced(session, f"{group}/v1", "RoleBinding", name),
        "roleRef": reference,
        "subjects": subjects,
    }


async def patch(session: KubectlSession) -> int:
    args = session.args
    text = _read_text(args.patch_file) if args.patch_file else args.patch
    if not text:
        raise KubectlError("must specify --patch or --patch-file")
    if args.type not in PATCH_KINDS:
        raise KubectlError(f"--type must be one of {', '.join(PATCH_KINDS)}, not {args.type!r}; choose one")
    change = read_yaml(text, where="-p")
    async for resource, before in session.iterate_objects(await session.resolve_resources()):
        key = resource.build_key(before["metadata"]["name"], session.namespace)
        kind = PATCH_KINDS[args.type]
        after = await session.cluster.patch(
            key, change, kind_of_patch=kind, subresource=args.subresource, manager=FIELD_MANAGER
        )
        _print_result(
            session,
            after,
            "patched" if _read_resource_version(before) != _read_resource_version(after) else "patched (no change)",
        )
    return 0


def _read_text(name: str) -> str:
    return sys.stdin.read() if name == "-" else Path(name).read_text()


async def annotate(session: KubectlSession) -> int:
    return await _update_metadata(session, "annotations", "annotated")


async def label(session: KubectlSession) -> int:
    return await _update_metadata(session, "labels", "labeled")


async def _update_metadata(session: KubectlSession, field: str, verb_past: str) -> int:
    changes = [word for word in session.args.words if "=" in word or word.endswith("-")]
    resource_arguments = [word for word in session.args.words if word not in changes]
    updates: dict[str, str | None] = {}
    for word in changes:
        name, equals, value = word.partition("=")
        updates[name if equals else word[:-1]] = value if equals else None
    if not updates:
        raise KubectlError(f"at least one {field[:-1]} update is required; use NAME=VALUE, or NAME- to remove one")
    if (
        not session.args.all
        and not session.args.selector
        and len(resource_arguments) < 2
        and "/" not in "".join(resource_arguments[:1])
    ):
        raise KubectlError("one or more resources must be specified as KIND NAME or KIND/NAME; or add --all")
    async for resource, live in session.iterate_objects(await session.resolve_resources(resource_arguments)):
        current_values = live["metadata"].get(field) or {}
        conflicting_names = [
            name for name, value in updates.items() if value is not None and current_values.get(name, value) != value
        ]
        if conflicting_names and not session.args.overwrite:
            message = (
                f"'{conflicting_names[0]}' already has a value ({current_values[conflicting_names[0]]}), and "
                "--overwrite is false"
            )
            raise KubectlError(f"{message}; add --overwrite to replace it")
        key = resource.build_key(live["metadata"]["name"], live["metadata"].get("namespace") or "")
        after = await session.cluster.patch(key, {"metadata": {field: updates}}, manager=FIELD_MANAGER)
        _print_result(
            session,
            after,
            verb_past if _read_resource_version(live) != _read_resource_version(after) else f"not {verb_past}",
        )
    return 0


async def delete(session: KubectlSession) -> int:
    deleted: list[tuple[NamedResources | None, Manifest]] = []
    propagation = {"orphan": Propagation.ORPHAN, "foreground": Propagation.FOREGROUND}.get(session.args.cascade)
    grace = 0 if session.args.force else 1 if session.args.now else session.args.grace_period
    async for manifest in _iterate_objects_to_delete(session):
        key = key_of(manifest)
        await session.cluster.delete(key, propagation=propagation or Propagation.BACKGROUND, grace=grace)
        group = f".{key.group}" if key.group else ""
        print_lines(f'{key.kind.lower()}{group} "{key.name}" deleted')
        deleted.append((None, manifest))
    if not deleted and not session.args.filename:
        print_lines("No resources found")
    if session.args.wait != "false":
        for _, manifest in deleted:
            await wait_until_deleted(session, manifest)
    return 0


async def _iterate_objects_to_delete(session: KubectlSession) -> AsyncIterator[Manifest]:
    if session.args.filename:
        for manifest in await read_manifest_files(session):
            live = await session.cluster.get(key_of(manifest))
            if live is not None:
                yield live
            elif not session.args.ignore_not_found:
                key = key_of(manifest)
                info = (await session.cluster.kinds())[key.group_kind]
                message = f'{NamedResources(key.group_kind, info).qualified_plural} "{key.name}" not found'
                raise ClusterError(message, code=404, reason="NotFound")
        return
    resources = await session.resolve_resources()
    if not all(resource.names for resource in resources) and not session.args.all and not session.args.selector:
        raise KubectlError("resource(s) were provided, but no name was specified; pass names, -l or --all")
    try:
        async for _, live in session.iterate_objects(resources):
            yield live
    except ClusterError as error:
        if not (error.code == 404 and session.args.ignore_not_found):
            raise


async def wait_until_deleted(session: KubectlSession, manifest: Manifest) -> None:
    while (live := await session.cluster.get(key_of(manifest))) is not None:
        if live["metadata"].get("uid") != manifest["metadata"].get("uid"):
            return
        await asyncio.sleep(POLL_INTERVAL_SECONDS)


def _read_resource_version(manifest: Manifest) -> Any:
    return manifest["metadata"].get("resourceVersion")


def _print_result(session: KubectlSession, manifest: Manifest, outcome: str) -> None:
    key = key_of(manifest)
    suffix = " (server dry run)" if session.args.dry_run else ""
    print_lines(f"{format_resource_name(GroupKind(key.group, key.kind), key.name)} {outcome}{suffix}")

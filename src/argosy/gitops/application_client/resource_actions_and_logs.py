"""Runs resource actions on objects of an Application, and reads logs of its Pods.

In: a reader, an Application, an object selector. Out: actions, log lines. Never: acts on objects of others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from argosy.errors import Conflict, PolicyError, UserError
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.application_service import current_timestamp
from argosy.gitops.application_client.status_summary import list_rows
from argosy.gitops.health.actions import ActionRunner, ResourceAction, build_patch, split_status
from argosy.gitops.health.settings import read_config_maps
from argosy.gitops.live.resource_tree import ResourceNode
from argosy.gitops.reconciler.object_permission_and_deletion_check import build_permission_check
from argosy.gitops.status.application_event_manifests import UNKNOWN_USER, EventReason, build_event
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, CONFIG_MAP, POD

CONFIG_MAPS: Final = ("argocd-cm", "argosy-cm")


@dataclass(frozen=True)
class ObjectSelector:
    """Selects objects; empty parts match all. argo: a kind may be given without its group."""

    group: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""

    def matches(self, key: ResourceKey) -> bool:
        wanted_parts = (self.group, self.kind, self.namespace, self.name)
        return all(not requested or requested == actual for requested, actual in zip(wanted_parts, key, strict=True))


class OfferedAction(NamedTuple):
    key: ResourceKey
    action: ResourceAction


def load_actions(reader: ApplicationReader) -> ActionRunner:
    data = []
    for name in CONFIG_MAPS:
        config_map = reader.control_cache.get(ResourceKey(*CONFIG_MAP, reader.service.control_namespace, name)) or {}
        data.append({key: value for key, value in (config_map.get("data") or {}).items() if isinstance(value, str)})
    return ActionRunner(reader.pool, read_config_maps(*data).actions)


async def load_selected_objects(
    reader: ApplicationReader, app: Application, selector: ObjectSelector
) -> list[Manifest]:
    """List selected objects that the project permits: Git, and so the status, may name any object."""
    reader.check_same_destination(app)
    is_permitted = build_permission_check(
        app, reader.get_project(app), reader.reconciler_settings, await reader.list_kinds()
    )
    keys = [row.key for row in list_rows(app) if selector.matches(row.key) and is_permitted(row.key)]
    await reader.load_objects(keys)
    return [manifest for key in keys if (manifest := reader.cache.get(key)) is not None]


async def list_offered_actions(
    reader: ApplicationReader, app: Application, selector: ObjectSelector
) -> list[OfferedAction]:
    actions = load_actions(reader)
    offered = []
    manifests = await load_selected_objects(reader, app, selector)
    if selector.matches(app.key):
        manifests.append(dict(app.wire))
    for manifest in manifests:
        with reader.charge_work_to_project(app):
            offered += [OfferedAction(key_of(manifest), action) for action in await actions.discover(manifest)]
    return offered


async def run_action_on_selected(
    reader: ApplicationReader, app: Application, name: str, selector: ObjectSelector, *, on_all: bool
) -> list[ResourceKey]:
    """Run the action on one object, or on all matching ones if `on_all`; on the Application only if named by kind."""
    if selector.kind == APPLICATION.kind and selector.matches(app.key):
        await run_action_on_application(reader, app, load_actions(reader), name, {})
        return [app.key]
    objects = await load_selected_objects(reader, app, selector)
    if not objects:
        raise UserError(f"{app.name} has no such object; list its objects: argosy app resources {app.name}")
    if len(objects) > 1 and not on_all:
        names = ", ".join(selected["metadata"]["name"] for selected in objects)
        raise UserError(f"multiple objects match: {names}; choose one with --resource-name, or add --all")
    actions = load_actions(reader)
    for manifest in objects:
        await run_action(reader, app, actions, manifest, name, {})
    return [key_of(selected) for selected in objects]


async def run_action(
    reader: ApplicationReader,
    app: Application,
    actions: ActionRunner,
    manifest: Manifest,
    name: str,
    parameters: Mapping[str, str],
) -> None:
    key = key_of(manifest)
    with reader.charge_work_to_project(app):
        impacts = await actions.run(manifest, name, parameters)
    for impact in impacts:
        if impact.operation == "create":
            await _check_permitted(reader, app, key_of(impact.manifest), "create")
            await reader.cluster.create(impact.manifest)
            continue
        patch = build_patch(manifest, impact)
        has_status = "status" in await _list_subresources(reader, key)
        main_patch, status_patch = split_status(patch) if has_status else (patch, {})
        if main_patch:
            await reader.cluster.patch(key, main_patch)
        if status_patch:
            await reader.cluster.patch(key, status_patch, subresource="status")
    await _record_action(reader, app, f"{name} on resource {key.kind}/{key.name}")


async def run_action_on_application(
    reader: ApplicationReader, app: Application, actions: ActionRunner, name: str, parameters: Mapping[str, str]
) -> None:
    """Run an action on the Application itself. argo: the project must permit Applications in its namespace."""
    await _check_permitted(reader, app, app.key, "change")
    with reader.charge_work_to_project(app):
        impacts = await actions.run(dict(app.wire), name, parameters)
    if any(impact.operation == "create" for impact in impacts):
        raise UserError(f"action {name!r} of an Application may only change the Application", where=app.name)
    for impact in impacts:
        if patch := build_patch(dict(app.wire), impact):
            await reader.service.patch_application(app, _build_patch_at(app, patch))
    await _record_action(reader, app, name)


def _build_patch_at(app: Application, patch: Mapping[str, Any]) -> Callable[[Application], dict[str, Any]]:
    """Return the patch, only for the spec that the script saw: toggling another one would undo it."""

    def build(current: Application) -> dict[str, Any]:
        if current.wire.get("spec") != app.wire.get("spec"):
            raise Conflict(f"{app.name} was changed in the meantime; run the action again")
        return dict(patch)

    return build


async def _record_action(reader: ApplicationReader, app: Application, action: str) -> None:
    user = await reader.service.find_user()
    message = f"{user or UNKNOWN_USER} ran action {action}"
    await reader.service.record_event(
        build_event(app, EventReason.RESOURCE_ACTION_RAN, message, timestamp=current_timestamp(), username=user)
    )


async def _list_subresources(reader: ApplicationReader, key: ResourceKey) -> Sequence[str]:
    info = (await reader.cluster.kinds()).get(key.group_kind)
    return info.subresources if info is not None else ()


async def _check_permitted(reader: ApplicationReader, app: Application, key: ResourceKey, verb: str) -> None:
    """argo: the project must permit objects that an action creates, as in a sync."""
    is_permitted = build_permission_check(
        app, reader.get_project(app), reader.reconciler_settings, await reader.list_kinds()
    )
    if not is_permitted(key):
        message = f"the action would {verb} {key.kind}/{key.name}, which project {app.project!r} does not permit"
        raise PolicyError(f"{message}; see: argosy proj get {app.project}", where=app.name)


class ContainerLog(NamedTuple):
    pod: ResourceKey
    container: str


async def list_log_containers(
    reader: ApplicationReader, app: Application, selector: ObjectSelector, container: str
) -> list[ContainerLog]:
    """List each container of each Pod below the selected objects."""
    nodes = await reader.build_tree(app)
    pods = [node for node in nodes if node.key.group_kind == POD and _is_below_selected(node, nodes, selector)]
    logs = []
    for node in pods:
        spec = as_mapping((reader.cache.get(node.key) or {}).get("spec"))
        names = [str(container_spec.get("name")) for container_spec in as_mappings(spec.get("containers"))]
        if container:  # argo: init containers only by name
            names += [str(container_spec.get("name")) for container_spec in as_mappings(spec.get("initContainers"))]
        logs += [ContainerLog(node.key, name) for name in names if not container or name == container]
    if not logs:
        detail = f"with a container {container!r} " if container else ""
        raise UserError(f"{app.name} has no Pods {detail}to read from; see its objects: argosy app tree {app.name}")
    return logs


def _is_below_selected(node: ResourceNode, nodes: list[ResourceNode], selector: ObjectSelector) -> bool:
    by_key = {candidate.key: candidate for candidate in nodes}
    visited: set[ResourceKey] = set()
    pending = [node.key]
    while pending:
        key = pending.pop()
        if selector.matches(key):
            return True
        visited.add(key)
        parents = by_key[key].parents if key in by_key else ()
        pending += [parent.key for parent in parents if parent.key not in visited]
    return False


@dataclass(frozen=True)
class LogOptions:
    """Which lines of a log to read."""

    follow: bool = False
    tail: int | None = None
    since_seconds: int | None = None  # seconds
    previous: bool = False  # log of the previous container instance


def read_log_lines(reader: ApplicationReader, log: ContainerLog, options: LogOptions) -> AsyncIterator[str]:
    return reader.cluster.logs(
        log.pod,
        container=log.container,
        follow=options.follow,
        tail=options.tail,
        since=options.since_seconds,
        previous=options.previous,
    )

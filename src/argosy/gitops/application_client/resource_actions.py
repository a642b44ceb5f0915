"""Runs resource actions on objects of an Application, and reads logs of its Pods.

In: a reader, an Application, an object selector. Out: actions, log lines. Never: acts on objects of others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from argosy.errors import PolicyError, UserError
from argosy.gitops.application import Application
from argosy.gitops.application_client.client import now
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.application_client.summary import rows
from argosy.gitops.health.actions import Action, Actions, patch_of, split_status
from argosy.gitops.health.settings import from_config_maps
from argosy.gitops.live.resource_tree import POD, Node
from argosy.gitops.reconciler.permissions import permission
from argosy.gitops.status.events import NOBODY, Reason, event
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

CONFIG_MAPS: Final = ("argocd-cm", "argosy-cm")


@dataclass(frozen=True)
class Choice:
    """Selects objects; empty parts match all. argo: a kind may be given without its group."""

    group: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""

    def fits(self, key: ResourceKey) -> bool:
        wanted = (self.group, self.kind, self.namespace, self.name)
        return all(not want or want == have for want, have in zip(wanted, key, strict=True))


class Offer(NamedTuple):
    key: ResourceKey
    action: Action


def actions_in_force(reader: Reader) -> Actions:
    data = []
    for name in CONFIG_MAPS:
        found = reader.control_cache.get(ResourceKey("", "ConfigMap", reader.desk.control, name)) or {}
        data.append({key: value for key, value in (found.get("data") or {}).items() if isinstance(value, str)})
    return Actions(reader.pool, from_config_maps(*data).actions)


async def chosen_objects(reader: Reader, app: Application, choice: Choice) -> list[Manifest]:
    """List selected objects that the project permits: Git, and so the status, may name any object."""
    reader.check(app)
    allowed = permission(app, reader.project(app), reader.rules, await reader.kinds())
    keys = [row.key for row in rows(app) if choice.fits(row.key) and allowed(row.key)]
    await reader.load(keys)
    return [found for key in keys if (found := reader.cache.get(key)) is not None]


async def offers(reader: Reader, app: Application, choice: Choice) -> list[Offer]:
    actions = actions_in_force(reader)
    found = []
    for manifest in await chosen_objects(reader, app, choice):
        with reader.on_behalf_of(app):
            found += [Offer(key_of(manifest), each) for each in await actions.discover(manifest)]
    return found


async def act(reader: Reader, app: Application, name: str, choice: Choice, *, on_all: bool) -> list[ResourceKey]:
    """Run the action on one object, or on all matching ones if `on_all`."""
    objects = await chosen_objects(reader, app, choice)
    if not objects:
        raise UserError(f"{app.name} has no such object; list its objects: argosy app resources {app.name}")
    if len(objects) > 1 and not on_all:
        names = ", ".join(each["metadata"]["name"] for each in objects)
        raise UserError(f"multiple objects match: {names}; choose one with --resource-name, or add --all")
    actions = actions_in_force(reader)
    for manifest in objects:
        await run_action(reader, app, actions, manifest, name, {})
    return [key_of(each) for each in objects]


async def run_action(
    reader: Reader, app: Application, actions: Actions, manifest: Manifest, name: str, parameters: Mapping[str, str]
) -> None:
    key = key_of(manifest)
    with reader.on_behalf_of(app):
        impacts = await actions.run(manifest, name, parameters)
    for impact in impacts:
        if impact.operation == "create":
            await _check_new(reader, app, impact.manifest)
            await reader.cluster.create(impact.manifest)
            continue
        whole, status = split_status(patch_of(manifest, impact))
        if whole:
            await reader.cluster.patch(key, whole)
        if status:
            await reader.cluster.patch(key, status, subresource="status")
    by = await reader.desk.who()
    told = f"{by or NOBODY} ran action {name} on resource {key.kind}/{key.name}"
    await reader.desk.record(event(app, Reason.RESOURCE_ACTION_RAN, told, at=now(), by=by))


async def _check_new(reader: Reader, app: Application, manifest: Manifest) -> None:
    """argo: the project must permit objects that an action creates, as in a sync."""
    allowed = permission(app, reader.project(app), reader.rules, await reader.kinds())
    if not allowed(key := key_of(manifest)):
        told = f"the action would create {key.kind}/{key.name}, which project {app.project!r} does not permit"
        raise PolicyError(f"{told}; see: argosy proj get {app.project}", where=app.name)


class Log(NamedTuple):
    pod: ResourceKey
    container: str


async def logs_of(reader: Reader, app: Application, choice: Choice, container: str) -> list[Log]:
    """List each container of each Pod below the selected objects."""
    nodes = await reader.tree(app)
    pods = [node for node in nodes if node.key.group_kind == POD and _is_below(node, nodes, choice)]
    found = []
    for node in pods:
        spec = mapping((reader.cache.get(node.key) or {}).get("spec"))
        names = [str(each.get("name")) for each in mappings(spec.get("containers"))]
        if container:  # argo: init containers only by name
            names += [str(each.get("name")) for each in mappings(spec.get("initContainers"))]
        found += [Log(node.key, name) for name in names if not container or name == container]
    if not found:
        told = f"with a container {container!r} " if container else ""
        raise UserError(f"{app.name} has no Pods {told}to read from; see its objects: argosy app tree {app.name}")
    return found


def _is_below(node: Node, nodes: list[Node], choice: Choice) -> bool:
    by_key = {each.key: each for each in nodes}
    seen: set[ResourceKey] = set()
    todo = [node.key]
    while todo:
        key = todo.pop()
        if choice.fits(key):
            return True
        seen.add(key)
        above = by_key[key].parents if key in by_key else ()
        todo += [parent.key for parent in above if parent.key not in seen]
    return False


@dataclass(frozen=True)
class Excerpt:
    """Which lines of a log to read."""

    follow: bool = False
    tail: int | None = None
    since: int | None = None  # seconds
    previous: bool = False  # log of the previous container instance


def lines(reader: Reader, log: Log, excerpt: Excerpt) -> AsyncIterator[str]:
    return reader.cluster.logs(
        log.pod,
        container=log.container,
        follow=excerpt.follow,
        tail=excerpt.tail,
        since=excerpt.since,
        previous=excerpt.previous,
    )

"""Reads, patches and deletes single objects of an Application.

In: a reader, an Application, an object selector. Out: manifests, keys, rows of fields. Never: changes objects of
others; shows a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.errors import PolicyError, UserError
from argosy.gitops.application import Application
from argosy.gitops.application_client.client import now
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.application_client.resource_actions import Choice, chosen_objects
from argosy.gitops.application_client.spec_patches import read_patch
from argosy.gitops.diff import masked
from argosy.gitops.status.events import NOBODY, Reason, event
from argosy.kube.client import PatchKind, Propagation
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of


async def read_objects(reader: Reader, app: Application, choice: Choice) -> list[Manifest]:
    """argo: search the whole resource tree, not only managed objects."""
    nodes = [node for node in await reader.tree(app) if choice.fits(node.key)]
    found = [manifest for node in nodes if (manifest := reader.cache.get(node.key)) is not None]
    return [each for each in masked(found, reader.rules.compare.masked_annotations) if each is not None]


async def objects_to_change(reader: Reader, app: Application, choice: Choice, *, on_all: bool) -> list[Manifest]:
    """argo: return one object, or several if `on_all`."""
    found = await chosen_objects(reader, app, choice)
    if not found:
        raise UserError(f"no matching resource found; list them: argosy app resources {app.name}")
    if len(found) > 1 and not on_all:
        names = ", ".join(f"{each['kind']}/{each['metadata']['name']}" for each in found)
        raise UserError(f"multiple resources match: {names}; choose one with --resource-name, or add --all")
    return found


async def patch_object(reader: Reader, app: Application, manifest: Manifest, text: str, kind: str) -> None:
    try:
        how = PatchKind(kind)
    except ValueError:
        known = ", ".join(each.value for each in PatchKind)
        raise UserError(f"unknown patch type {kind!r}; choose one of {known}", where="--patch-type") from None
    await reader.cluster.patch(key_of(manifest), read_patch(text), kind_of_patch=how)
    await _told(reader, app, Reason.RESOURCE_UPDATED, f"patched resource {_named(key_of(manifest))}")


async def delete_object(reader: Reader, app: Application, manifest: Manifest, *, orphan: bool, force: bool) -> None:
    how = Propagation.ORPHAN if orphan else Propagation.BACKGROUND if force else Propagation.FOREGROUND
    uid = manifest["metadata"].get("uid")
    await reader.cluster.delete(key_of(manifest), propagation=how, uid=uid, grace=0 if force else None)
    await _told(reader, app, Reason.RESOURCE_DELETED, f"deleted resource {_named(key_of(manifest))}")


async def _told(reader: Reader, app: Application, reason: Reason, what: str) -> None:
    by = await reader.desk.who()
    await reader.desk.record(event(app, reason, f"{by or NOBODY} {what}", at=now(), by=by))


def _named(key: ResourceKey) -> str:
    return f"{key.kind}/{key.name}"


def check_project(app: Application, project: str) -> None:
    if project and project != app.project:
        raise PolicyError(f"{app.name} is in project {app.project!r}, not {project!r}; omit --project")


# -- fields --------------------------------------------------------------------------------------------------------


def picked(manifest: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """Keep only these fields, given as dotted paths; lists are filtered per item."""
    found: dict[str, Any] = {}
    for path in fields:
        found = _merged(found, _pick(manifest, path.split(".")))
    return found


def _pick(value: Any, path: Sequence[str]) -> Any:
    if not path:
        return value
    if isinstance(value, list):
        return [found for each in value if (found := _pick(each, path)) is not None] or None
    if not isinstance(value, Mapping) or path[0] not in value:
        return None
    below = _pick(value[path[0]], path[1:])
    return None if below is None else {path[0]: below}


def _merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{name: _merged(one.get(name), value) for name, value in other.items()}}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [_merged(left, right) for left, right in zip(one, other, strict=True)]
    return one if other is None else other


def flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """argo: yield every value with its path, such as `spec.ports[0].port`."""
    if isinstance(value, Mapping):
        for name in sorted(value):
            yield from flat(value[name], f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from flat(each, f"{path}[{place}]")
    else:
        yield path, _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Collects the activity that the caller may see.

In: a request. Out: entries for syncs, promotions, Events, settings and audit records. Never: activity of an
Application that the caller may not see.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Final

from argosy.features.activity import timeline
from argosy.features.activity.timeline import Happening
from argosy.features.promote.visible_board import looked
from argosy.gitops.cluster_view.owning_application import keys_of
from argosy.gitops.reconciler.permissions import permission
from argosy.gitops.redaction.redaction import Mask
from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest
from argosy.web.caller_clients import reader_of
from argosy.web.event_cache import everywhere
from argosy.web.middleware.application_masks import masks_of
from argosy.web.middleware.audit import Trail
from argosy.web.object_lookup import PROJECT, project_of, readable
from argosy.web.owned_objects import sees_everything, visible_applications
from argosy.web.request import Asked

CONFIG_MAP: Final = GroupKind("", "ConfigMap")
SETTINGS: Final = ("argocd-cm", "argocd-rbac-cm", "argosy-cm", "argocd-notifications-cm", "argocd-ssh-known-hosts-cm")
GROUPS: Final = {
    "Pod": "", "ReplicaSet": "apps", "Deployment": "apps", "StatefulSet": "apps", "DaemonSet": "apps", "Job": "batch",
    "InferenceService": "serving.kserve.io", "NotebookValidationJob": "mlops.mlops.dev",
}  # fmt: skip


async def happenings(asked: Asked) -> AsyncIterator[Happening]:
    """Yield entries with the Secrets of their Application masked before they are searched.

    For an Event without an Application, the Secrets of its object's namespace are masked.
    """
    masks: dict[tuple[str, str], Mask] = {}  # cached, because an Application has many entries
    async for each in _happenings(asked):
        place = (each.url, "" if each.url else each.namespace)
        if place not in masks:
            found = masks_of(asked)
            masks[place] = found.by_path(each.url) if each.url else found.by_namespace(each.namespace)
        hide = masks[place].hide_text
        yield replace(each, title=hide(each.title), text=hide(each.text))


async def _happenings(asked: Asked) -> AsyncIterator[Happening]:
    apps = visible_applications(asked)
    for each in timeline.of_applications(apps):
        yield each
    sees_all = sees_everything(asked, len(apps))
    known = await _listed(asked, apps)
    for each in timeline.of_events((await everywhere(asked)).events, _whose(asked, known, sees_all)):
        yield each
    if sees_all:
        for each in timeline.of_settings(_settings(asked)):
            yield each
        if asked.may("accounts", "get", "*"):
            for each in timeline.of_audit(asked.site.part(Trail).lines):
                yield each
    board, _ = await looked(asked, fetches=False)  # do not wait for a Git host
    for each in timeline.of_promotions(board.history if board else ()):
        yield each


Known = dict[tuple[str, str, str], tuple[str, str] | None]


async def _listed(asked: Asked, apps: list[Manifest]) -> Known:
    """Map objects in the Applications' status to their Application, only as far as the project permits them."""
    known: Known = {}
    reader = reader_of(asked)
    rules, kinds = reader.rules, await reader.kinds()
    for manifest in apps:
        namespace, name = str(manifest["metadata"]["namespace"]), str(manifest["metadata"]["name"])
        place = f"/apps/{namespace}/{name}"
        known["Application", namespace, name] = (name, place)
        app, project = readable(manifest), rules.projects.get(project_of(manifest))
        if app is None or project is None:
            continue
        allowed = permission(app, project, rules, kinds)
        for key in filter(allowed, keys_of(manifest)):
            known[key.kind, key.namespace, key.name] = (name, f"{place}/events")
    return known


def _whose(asked: Asked, known: Known, sees_all: bool) -> timeline.Whose:
    """Look up by status resources, then by owner references. Objects without an Application need full access."""

    def whose(kind: str, namespace: str, name: str) -> tuple[str, str] | None:
        key = (kind, namespace, name)
        if key not in known:
            owner = next((known[each] for each in _owners(asked, *key) if known.get(each)), None)
            known[key] = owner or (("", "") if sees_all else None)
        return known[key]

    return whose


def _owners(asked: Asked, kind: str, namespace: str, name: str) -> Iterator[tuple[str, str, str]]:
    """Follow the owner references as far as they are cached."""
    for _ in range(5):
        if kind not in GROUPS:
            return
        found = asked.site.lookout.cache.get(ResourceKey(GROUPS[kind], kind, namespace, name))
        references = mapping(mapping(found).get("metadata")).get("ownerReferences") or ()
        if not references:
            return
        kind, name = str(references[0].get("kind") or ""), str(references[0].get("name") or "")
        yield kind, namespace, name


def _settings(asked: Asked) -> Iterator[Manifest]:
    control = asked.site.desk.control
    for each in asked.site.lookout.cache.list(CONFIG_MAP, namespace=control):
        if each["metadata"]["name"] in SETTINGS:
            yield {**each, "kind": "ConfigMap"}
    for each in asked.site.lookout.cache.list(PROJECT, namespace=control):
        yield each

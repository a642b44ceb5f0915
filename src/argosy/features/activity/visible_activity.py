"""Collects the activity that the caller may see.

In: a request. Out: entries for syncs, promotions, Events, settings and audit records. Never: activity of an
Application that the caller may not see.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from typing import Final

from argosy.features.activity import timeline
from argosy.features.activity.timeline import ActivityEntry
from argosy.features.promote.visible_board import EnvironmentBoards
from argosy.gitops.cluster_view.owning_application import read_resource_keys
from argosy.gitops.reconciler.object_permission_and_deletion_check import build_permission_check
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APP_PROJECT, CONFIG_MAP
from argosy.observability.redaction.secret_mask import SecretMask
from argosy.web.caller_application_service import build_reader
from argosy.web.objects_of_visible_applications import can_see_all_applications, list_visible_applications
from argosy.web.recent_audit_lines import AuditTrail
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import read_application_or_none, read_project_name

SETTINGS_CONFIG_MAPS: Final = (
    "argocd-cm",
    "argocd-rbac-cm",
    "argosy-cm",
    "argocd-notifications-cm",
    "argocd-ssh-known-hosts-cm",
)
API_GROUP_BY_KIND: Final = {
    "Pod": "", "ReplicaSet": "apps", "Deployment": "apps", "StatefulSet": "apps", "DaemonSet": "apps", "Job": "batch",
    "InferenceService": "serving.kserve.io", "NotebookValidationJob": "mlops.mlops.dev",
}  # fmt: skip


@dataclass(frozen=True)
class ActivitySources:
    """Where activity is read from, besides the cluster view."""

    boards: EnvironmentBoards
    audit_trail: AuditTrail


async def iterate_visible_entries(request: RequestContext, sources: ActivitySources) -> AsyncIterator[ActivityEntry]:
    """Yield entries with the Secrets of their Application masked before they are searched.

    For an Event without an Application, the Secrets of its object's namespace are masked.
    """
    masks: dict[tuple[str, str], SecretMask] = {}  # cached, because an Application has many entries
    async for entry in _iterate_entries(request, sources):
        mask_key = (entry.url, "" if entry.url else entry.namespace)
        if mask_key not in masks:
            masks[mask_key] = (
                request.masks.get_mask_for_path(entry.url)
                if entry.url
                else request.masks.get_mask_for_namespace(entry.namespace)
            )
        hide = masks[mask_key].mask_text
        yield replace(entry, title=hide(entry.title), text=hide(entry.text))


async def _iterate_entries(request: RequestContext, sources: ActivitySources) -> AsyncIterator[ActivityEntry]:
    apps = list_visible_applications(request)
    for entry in timeline.iterate_sync_entries(apps):
        yield entry
    sees_all = can_see_all_applications(request, len(apps))
    owners = await _list_owned_objects(request, apps)
    for entry in timeline.iterate_event_entries(
        (await request.events.list_all()).events, _build_owner_lookup(request, owners, sees_all)
    ):
        yield entry
    if sees_all:
        for entry in timeline.iterate_settings_entries(_list_settings_manifests(request)):
            yield entry
        if request.is_allowed("accounts", "get", "*"):
            for entry in timeline.iterate_audit_entries(sources.audit_trail.lines):
                yield entry
    board, _ = await sources.boards.load_visible(request, fetches=False)  # do not wait for a Git host
    for entry in timeline.iterate_promotion_entries(board.history if board else ()):
        yield entry


OwnerByObject = dict[tuple[str, str, str], tuple[str, str] | None]


async def _list_owned_objects(request: RequestContext, apps: list[Manifest]) -> OwnerByObject:
    """Map objects in the Applications' status to their Application, only as far as the project permits them."""
    owners: OwnerByObject = {}
    reader = build_reader(request)
    rules, kinds = reader.reconciler_settings, await reader.list_kinds()
    for manifest in apps:
        namespace, name = str(manifest["metadata"]["namespace"]), str(manifest["metadata"]["name"])
        page_path = f"/apps/{namespace}/{name}"
        owners["Application", namespace, name] = (name, page_path)
        app, project = read_application_or_none(manifest), rules.projects.get(read_project_name(manifest))
        if app is None or project is None:
            continue
        allowed = build_permission_check(app, project, rules, kinds)
        for key in filter(allowed, read_resource_keys(manifest)):
            owners[key.kind, key.namespace, key.name] = (name, f"{page_path}/events")
    return owners


def _build_owner_lookup(
    request: RequestContext, owners: OwnerByObject, sees_all: bool
) -> timeline.FindOwningApplication:
    """Look up by status resources, then by owner references. Objects without an Application need full access."""

    def find_owner(kind: str, namespace: str, name: str) -> tuple[str, str] | None:
        key = (kind, namespace, name)
        if key not in owners:
            owner = next(
                (owners[owner_key] for owner_key in _iterate_owner_chain(request, *key) if owners.get(owner_key)), None
            )
            owners[key] = owner or (("", "") if sees_all else None)
        return owners[key]

    return find_owner


def _iterate_owner_chain(
    request: RequestContext, kind: str, namespace: str, name: str
) -> Iterator[tuple[str, str, str]]:
    """Follow the owner references as far as they are cached."""
    for _ in range(5):
        if kind not in API_GROUP_BY_KIND:
            return
        manifest = request.cluster_view.cache.get(ResourceKey(API_GROUP_BY_KIND[kind], kind, namespace, name))
        references = as_mapping(as_mapping(manifest).get("metadata")).get("ownerReferences") or ()
        if not references:
            return
        kind, name = str(references[0].get("kind") or ""), str(references[0].get("name") or "")
        yield kind, namespace, name


def _list_settings_manifests(request: RequestContext) -> Iterator[Manifest]:
    control = request.service.control_namespace
    for manifest in request.cluster_view.cache.list(CONFIG_MAP, namespace=control):
        if manifest["metadata"]["name"] in SETTINGS_CONFIG_MAPS:
            yield {**manifest, "kind": "ConfigMap"}
    for manifest in request.cluster_view.cache.list(APP_PROJECT, namespace=control):
        yield manifest

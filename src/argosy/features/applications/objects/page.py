"""`/apps/{ns}/{name}/r/…`: one object of an Application, with its manifests, diff, Events, logs, health and fields.

In: a request. Out: a page. Never: an object outside the Application; a value of a Secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.features.applications.diff.page import add_locations_and_causes
from argosy.features.applications.diff.page_values import ObjectDifference, build_changes
from argosy.features.applications.events.page import list_application_events
from argosy.features.applications.logs.page import LogPageRequest, list_and_select_logs, read_logs
from argosy.features.applications.objects.field_owners import list_field_owners
from argosy.features.applications.page_parts.deployment_history_and_timeline import list_timeline_events
from argosy.features.applications.page_parts.last_applied_and_managed_fields import (
    drop_managed_fields,
    find_last_applied,
)
from argosy.features.applications.page_parts.project_filtered_application_objects import list_permitted_nodes
from argosy.features.applications.page_parts.shared_page_values import build_page_values, get_application
from argosy.features.applications.page_parts.url_paths import read_path_key, resource_path
from argosy.features.applications.tree.page_values import (
    TreeObject,
    build_tree_objects,
    list_rows_without_success_messages,
)
from argosy.gitops.application.step_results import Pair
from argosy.gitops.application_client.diff_presentation import list_differing_objects
from argosy.gitops.application_client.object_health_sentence import summarize_health_reason
from argosy.gitops.application_client.owned_objects import NotOwnedObject, load_owned_object
from argosy.gitops.application_client.resource_actions_and_logs import ObjectSelector, load_actions
from argosy.gitops.diff import mask_secrets
from argosy.gitops.live.resource_tree import ResourceNode
from argosy.gitops.redaction.secret_object_redaction import redact_secrets
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest, dump_yaml
from argosy.kube.resource_key import ResourceKey
from argosy.web import page_templates
from argosy.web.caller_application_service import build_reader
from argosy.web.request import NotFoundOrForbidden, RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import PageResponse, WebResponse
from argosy.web.route import RequiresPermission, Route
from argosy.web.secret_mask_by_request_scope import build_text_mask, find_request_mask

OBJECT_TABS: Final = (
    ("summary", "Summary"),
    ("live", "Live"),
    ("desired", "Desired"),
    ("last-applied", "Last applied"),
    ("diff", "Diff"),
    ("events", "Events"),
    ("logs", "Logs"),
    ("health", "Health"),
    ("fields", "Fields"),
)


async def find_object(request: RequestContext) -> tuple[TreeObject, Manifest | None, list[ResourceNode]]:
    """Return the object, its live manifest and all nodes; raise Refused if it is not part of the Application."""
    app, reader, key = get_application(request), build_reader(request), read_request_key(request)
    nodes = await list_permitted_nodes(request)
    rows = list_rows_without_success_messages(app)
    live = await _find_live(request, key, is_managed=key in {row.key for row in rows})
    reasons = {
        node.key: summarize_health_reason(reader.cache.get(node.key) or {}, node.health.message)
        for node in nodes
        if node.health
    }
    tree_object = build_tree_objects(nodes, rows, reasons, (app.namespace, app.name)).get(key)
    if tree_object is None:
        raise NotFoundOrForbidden
    return tree_object, live, nodes


async def _find_live(request: RequestContext, key: ResourceKey, *, is_managed: bool) -> Manifest | None:
    """Return the live manifest, or None if it is missing; raise Refused if the project does not permit the object."""
    try:
        return await load_owned_object(build_reader(request), get_application(request), ObjectSelector(*key))
    except NotOwnedObject:
        if is_managed and build_reader(request).cache.get(key) is None:
            return None
        raise NotFoundOrForbidden from None


def read_request_key(request: RequestContext) -> ResourceKey:
    return read_path_key(*(request.path_parameters[name] for name in ("group", "kind", "rns", "rname")))


async def render_resource_page(request: RequestContext) -> WebResponse:
    leaf, live, nodes = await find_object(request)
    tab_names = [
        name for name, _ in OBJECT_TABS if name != "logs" or request.is_allowed("logs", "get", request.rbac_object)
    ]
    tab = request.query.get_text("tab") if request.query.get_text("tab") in tab_names else tab_names[0]
    content = await _build_content(request, tab, leaf.key, live, nodes)
    values = await build_page_values(
        request,
        "",
        leaf=leaf,
        tab=tab,
        rtabs=[(name, word, f"{leaf.url}?tab={name}") for name, word in OBJECT_TABS if name in tab_names],
        actions=await _list_actions(request, live),
        may_delete=live is not None and may_delete(request, leaf.key),
        lives=live is not None,
        here_url=leaf.url,
        **content,
    )
    values["is_live"] = True
    values["title"] = f"{leaf.key.kind}/{leaf.key.name}"
    values["crumbs"] = [*values["crumbs"], (values["title"], leaf.url)]
    return PageResponse("applications/resource.html", values)


def may_delete(request: RequestContext, key: ResourceKey) -> bool:
    """argo: Objects have their own permission, separate from that of the Application."""
    return request.is_allowed("applications", f"delete/{'/'.join(key)}", request.rbac_object)


def may_run_action(request: RequestContext, key: ResourceKey, name: str) -> bool:
    return request.is_allowed("applications", f"action/{key.group}/{key.kind}/{name}", request.rbac_object)


async def _list_actions(request: RequestContext, live: Manifest | None) -> list[dict[str, Any]]:
    if live is None:
        return []
    key = read_request_key(request)
    try:
        discovered = await load_actions(build_reader(request)).discover(live)
    except ArgosyError:
        return []
    return [
        {"name": action.name, "word": action.display_name or action.name, "is_disabled": action.disabled}
        for action in discovered
        if not action.parameters and may_run_action(request, key, action.name)
    ]


async def _build_content(
    request: RequestContext, tab: str, key: ResourceKey, live: Manifest | None, nodes: Sequence[ResourceNode]
) -> dict[str, Any]:
    app = get_application(request)
    if tab == "live":
        return {"lines": _render_lines(request, live)}
    if tab == "last-applied":
        return {"lines": _render_lines(request, find_last_applied(live) if live else None)}
    if tab in ("desired", "diff"):
        return await _build_comparison(request, tab, key)
    if tab == "events":
        return {
            "moments": list_timeline_events(app, await _list_events(request, key, nodes), "all")[:200],
            "has_syncs": False,
        }
    if tab == "logs":
        hide_secrets = build_text_mask(request)
        reader, wish = build_reader(request), LogPageRequest(hide_secrets, tail=500, choice=ObjectSelector(*key))
        _, selected_logs = await list_and_select_logs(reader, request, wish)
        log_text = await read_logs(reader, selected_logs, wish)
        return {"log": log_text.lines, "faults": log_text.notes}
    if tab == "health":
        return await _build_health(request, live)
    if tab == "fields":
        masked_manifest = _mask(request, live)
        return {
            "owned": list_field_owners(masked_manifest, live)
            if masked_manifest is not None and live is not None
            else ()
        }
    return _build_summary(request, key, live, nodes)


def _mask(request: RequestContext, manifest: Manifest | None) -> Manifest | None:
    if manifest is None:
        return None
    annotations = build_reader(request).reconciler_settings.diff.masked_annotations
    masked_manifest: Manifest = redact_secrets(mask_secrets([manifest], annotations)[0], annotations)
    return masked_manifest


def _render_lines(request: RequestContext, manifest: Manifest | None) -> list[str]:
    masked_manifest = _mask(request, manifest)
    if masked_manifest is None:
        return []
    return dump_yaml(find_request_mask(request).mask_manifest(drop_managed_fields(masked_manifest))).splitlines()


async def _build_comparison(request: RequestContext, tab: str, key: ResourceKey) -> dict[str, Any]:
    app, reader = get_application(request), build_reader(request)
    try:
        app_state = await reader.compare(app, assess_health=False)
    except ArgosyError as error:
        return {"fault": str(error), "lines": [], "changes": ()}
    pair: Pair | None = next((item for item in app_state.comparison.pairs if item.key == key), None)
    if tab == "desired":
        return {"lines": _render_lines(request, pair.desired if pair else None), "fault": ""}
    differing_objects = [
        item
        for item in list_differing_objects(app_state.comparison, reader.reconciler_settings.diff.masked_annotations)
        if item.key == key
    ]
    object_changes: tuple[ObjectDifference, ...] = build_changes(
        app, await add_locations_and_causes(reader, app, app_state, differing_objects), has_lines=True
    )
    return {"changes": object_changes, "fault": ""}


async def _list_events(request: RequestContext, key: ResourceKey, nodes: Sequence[ResourceNode]) -> list[Manifest]:
    """List Events of the object and of its descendants."""
    keys, size = {key}, 0
    while len(keys) > size:
        size = len(keys)
        keys |= {node.key for node in nodes if any(parent.key in keys for parent in node.parents)}
    names = {(key_below.kind, key_below.namespace, key_below.name) for key_below in keys}
    return [
        event
        for event in (await list_application_events(request)).events
        if (involved_object := as_mapping(event.get("involvedObject")))
        and (involved_object.get("kind"), involved_object.get("namespace") or "", involved_object.get("name")) in names
    ]


async def _build_health(request: RequestContext, live: Manifest | None) -> dict[str, Any]:
    if live is None:
        return {"said": None, "conditions": []}
    assessment = (await build_reader(request).reconciler_settings.assess_all([live]))[0]
    conditions = [
        {name: str(condition.get(name) or "") for name in ("type", "status", "reason", "message", "lastTransitionTime")}
        for condition in as_mappings(as_mapping(live.get("status")).get("conditions"))
    ]
    health_values = None
    if assessment is not None:
        health_text = assessment.health.value if assessment.health else ""
        health_values = {
            "health": health_text,
            "message": assessment.message,
            "rule": assessment.rule,
            "fault": assessment.fault,
        }
    return {"said": health_values, "conditions": conditions}


def _build_summary(
    request: RequestContext, key: ResourceKey, live: Manifest | None, nodes: Sequence[ResourceNode]
) -> dict[str, Any]:
    metadata = as_mapping((_mask(request, live) or {}).get("metadata"))
    child_keys = [node.key for node in nodes if any(parent.key == key for parent in node.parents)]
    own_node = next((node for node in nodes if node.key == key), None)
    return {
        "labels": sorted(as_mapping(metadata.get("labels")).items()),
        "annotations": [
            (name, value)
            for name, value in sorted(as_mapping(metadata.get("annotations")).items())
            if not name.endswith("last-applied-configuration")
        ],
        "owners": [_build_link(request, parent.key) for parent in own_node.parents] if own_node else [],
        "below": [_build_link(request, child_key) for child_key in child_keys[:100]],
        "images": own_node.images if own_node else (),
        "api_version": str((live or {}).get("apiVersion") or ""),
        "uid": str(metadata.get("uid") or ""),
    }


async def render_resource_status_parts(request: RequestContext) -> dict[str, str]:
    """Render only the status: the content does not change while it is read."""
    leaf, live, _ = await find_object(request)
    return {
        "leaf-states": page_templates.render_macro(
            "applications/parts_tree.html", "leaf_states", leaf, live is not None
        )
    }


def _build_link(request: RequestContext, key: ResourceKey) -> tuple[str, str]:
    app = get_application(request)
    return resource_path(app.namespace, app.name, key), f"{key.kind}/{key.name}"


ROUTES = (
    Route(
        "GET",
        "/apps/{ns}/{name}/r/{group}/{kind}/{rns}/{rname}",
        RequiresPermission("applications", "get", resolve_application),
        render_resource_page,
        "An object of an application",
    ),
)

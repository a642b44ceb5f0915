"""`/apps/{ns}/{name}/sync`: plan a sync, choose its options, start it.

In: a request. Out: a page; a requested sync. Never: syncs another revision without the permission to override.
"""

from __future__ import annotations

from argosy.features.applications.diff.page import compare_for_page
from argosy.features.applications.page_parts.shared_page_values import (
    build_page_values,
    get_application,
    redirect_to_application,
)
from argosy.features.applications.sync.panel import (
    PROPAGATIONS,
    REPLACE_WORD,
    get_propagation_policy,
    list_resource_groups,
    list_sync_options,
    read_sync_form,
)
from argosy.gitops.application_client.sync_checks import check_refs_exist, check_sync_window, needs_override_permission
from argosy.gitops.application_client.sync_operation_builder import build_operation_from_flags
from argosy.web.caller_application_service import build_reader, build_service
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import PageResponse, WebResponse
from argosy.web.route import RequiresPermission, Route


async def render_sync_page(request: RequestContext) -> WebResponse:
    app, query = get_application(request), request.query
    ref = query.get_text("revision").strip()
    comparison = await compare_for_page(build_reader(request), app, (ref,) if ref else ())
    target_revision = app.sources[0].ref or "HEAD" if len(app.sources) == 1 else ""
    values = await build_page_values(
        request,
        "",
        made=comparison,
        revision=ref or target_revision,
        own=target_revision,
        has_one_source=len(app.sources) == 1,
        options=list_sync_options(app),
        propagation=get_propagation_policy(app),
        propagations=PROPAGATIONS,
        choices=list_resource_groups(app, query.get_all("resource")),
        replace_word=REPLACE_WORD,
        prunes=bool(app.policy.automated and app.policy.automated.prune),
        prune_asked="prune" in query,
    )
    return PageResponse("applications/sync.html", values)


async def start_sync(request: RequestContext) -> WebResponse:
    app, service = get_application(request), build_service(request)
    wish = read_sync_form(app, await request.read_form())
    reader, refs = build_reader(request), (wish.revision,) if wish.revision else ()
    if needs_override_permission(reader, app, refs):
        request.require_permission("applications", "override", request.rbac_object)
    check_sync_window(reader, app)
    await check_refs_exist(reader, app, refs)
    user = await service.find_user()
    await service.patch_application(app, lambda current: {"operation": build_operation_from_flags(current, wish, user)})
    return redirect_to_application(request, "dry-run" if wish.dry_run else "synced", "operation")


ROUTES = (
    Route(
        "GET",
        "/apps/{ns}/{name}/sync",
        RequiresPermission("applications", "get", resolve_application),
        render_sync_page,
        "Plan a sync",
    ),
    Route(
        "POST",
        "/apps/{ns}/{name}/sync",
        RequiresPermission("applications", "sync", resolve_application),
        start_sync,
        "Sync",
    ),
)

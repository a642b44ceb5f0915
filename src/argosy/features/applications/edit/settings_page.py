"""`/apps/{ns}/{name}/settings`: sync policy, ignored differences, windows and subscriptions of an Application.

In: a request. Out: a page; a changed policy. Never: changes a field that the form does not show.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy.features.applications.page_parts.shared_page_values import (
    build_page_values,
    get_application,
    redirect_to_application,
)
from argosy.gitops.application import Application
from argosy.gitops.application_client.creation_and_update import change_application
from argosy.gitops.application_client.sync_window_description import describe_sync_windows, list_assigned_windows
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.web.caller_application_service import build_reader, build_service
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import PageResponse, WebResponse
from argosy.web.route import RequiresPermission, Route

SUBSCRIBE_ANNOTATION_PREFIX = "notifications.argoproj.io/subscribe."


@dataclass(frozen=True, slots=True)
class IgnoreRow:
    what: str
    fields: tuple[str, ...]
    managers: tuple[str, ...]


def list_ignore_rows(app: Application) -> tuple[IgnoreRow, ...]:
    ignore_list = []
    for ignore_rule in app.ignore_rules:
        name = (
            f" {ignore_rule.namespace}/{ignore_rule.name}"
            if ignore_rule.namespace
            else f" {ignore_rule.name}"
            if ignore_rule.name
            else ""
        )
        kind = f"{ignore_rule.group}/{ignore_rule.kind}" if ignore_rule.group else ignore_rule.kind
        ignore_list.append(
            IgnoreRow(f"{kind}{name}", (*ignore_rule.pointers, *ignore_rule.jq_paths), tuple(ignore_rule.managers))
        )
    return tuple(ignore_list)


def set_automated_policy(
    wire: Mapping[str, Any], *, automated: bool, prune: bool, self_heal: bool
) -> Mapping[str, Any]:
    """argo: Disabling removes the field `automated`; its other fields stay if it is enabled."""
    manifest = copy.deepcopy(dict(wire))
    policy = manifest["spec"].setdefault("syncPolicy", {})
    if not automated:
        policy.pop("automated", None)
    else:
        automated_wire = dict(as_mapping(policy.get("automated")))
        automated_wire.pop("enabled", None)
        policy["automated"] = {**automated_wire, "prune": prune, "selfHeal": self_heal}
    if not policy:
        manifest["spec"].pop("syncPolicy")
    return manifest


async def render_settings_page(request: RequestContext) -> WebResponse:
    app, reader = get_application(request), build_reader(request)
    project = reader.reconciler_settings.projects.get(app.project)
    resolved_app = reader.reconciler_settings.clusters.resolve_destination(app)
    automated = app.policy.automated
    values = await build_page_values(
        request,
        "settings",
        automated=automated._asdict() if automated and automated.is_on else None,
        options=app.policy.options,
        retry=app.policy.retry,
        ignores=list_ignore_rows(app),
        windows=list_assigned_windows(resolved_app, project),
        window=describe_sync_windows(resolved_app, project),
        finalizers=app.finalizers,
        subscriptions=[
            (name.removeprefix(SUBSCRIBE_ANNOTATION_PREFIX), value)
            for name, value in sorted(app.annotations.items())
            if name.startswith(SUBSCRIBE_ANNOTATION_PREFIX)
        ],
        labels=sorted(as_mapping(as_mapping(app.wire.get("metadata")).get("labels")).items()),
    )
    return PageResponse("applications/settings.html", values)


async def save_policy(request: RequestContext) -> WebResponse:
    form = await request.read_form()

    def set_policy(wire: Mapping[str, Any]) -> Mapping[str, Any]:
        return set_automated_policy(
            wire, automated="automated" in form, prune="prune" in form, self_heal="heal" in form
        )

    has_changed = await change_application(build_service(request), get_application(request), set_policy)
    return redirect_to_application(request, "saved" if has_changed else "no-change", "settings")


ROUTES = (
    Route(
        "GET",
        "/apps/{ns}/{name}/settings",
        RequiresPermission("applications", "get", resolve_application),
        render_settings_page,
        "Settings",
    ),
    Route(
        "POST",
        "/apps/{ns}/{name}/policy",
        RequiresPermission("applications", "update", resolve_application),
        save_policy,
        "Set the policy",
    ),
)

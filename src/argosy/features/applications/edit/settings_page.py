"""`/apps/{ns}/{name}/settings`: sync policy, ignored differences, windows and subscriptions of an Application.

In: a request. Out: a page; a changed policy. Never: changes a field that the form does not show.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy.features.applications.page_parts.frame import app_of, back_to, framed
from argosy.gitops.application import Application
from argosy.gitops.application_client.sync_windows import assigned, window_text
from argosy.gitops.application_client.writes import change
from argosy.gitops.status.wire_format import mapping
from argosy.web.caller_clients import desk_of, reader_of
from argosy.web.object_lookup import application
from argosy.web.request import Asked
from argosy.web.responses import Answer, Page
from argosy.web.route import May, Route

SUBSCRIBE = "notifications.argoproj.io/subscribe."


@dataclass(frozen=True, slots=True)
class IgnoreRow:
    what: str
    fields: tuple[str, ...]
    managers: tuple[str, ...]


def ignore_rows(app: Application) -> tuple[IgnoreRow, ...]:
    made = []
    for each in app.ignored:
        name = f" {each.namespace}/{each.name}" if each.namespace else f" {each.name}" if each.name else ""
        kind = f"{each.group}/{each.kind}" if each.group else each.kind
        made.append(IgnoreRow(f"{kind}{name}", (*each.pointers, *each.jq_paths), tuple(each.managers)))
    return tuple(made)


def with_policy(wire: Mapping[str, Any], *, automated: bool, prune: bool, heal: bool) -> Mapping[str, Any]:
    """argo: Disabling removes the field `automated`; its other fields stay if it is enabled."""
    made = copy.deepcopy(dict(wire))
    policy = made["spec"].setdefault("syncPolicy", {})
    if not automated:
        policy.pop("automated", None)
    else:
        before = dict(mapping(policy.get("automated")))
        before.pop("enabled", None)
        policy["automated"] = {**before, "prune": prune, "selfHeal": heal}
    if not policy:
        made["spec"].pop("syncPolicy")
    return made


async def settings_page(asked: Asked) -> Answer:
    app, reader = app_of(asked), reader_of(asked)
    project = reader.rules.projects.get(app.project)
    placed = reader.rules.clusters.placed(app)
    automated = app.policy.automated
    values = await framed(
        asked,
        "settings",
        automated=automated._asdict() if automated and automated.is_on else None,
        options=app.policy.options,
        retry=app.policy.retry._asdict() if app.policy.retry else None,
        ignores=ignore_rows(app),
        windows=assigned(placed, project),
        window=window_text(placed, project),
        finalizers=app.finalizers,
        subscriptions=[
            (name.removeprefix(SUBSCRIBE), value)
            for name, value in sorted(app.annotations.items())
            if name.startswith(SUBSCRIBE)
        ],
        labels=sorted(mapping(mapping(app.wire.get("metadata")).get("labels")).items()),
    )
    return Page("applications/settings.html", values)


async def set_policy(asked: Asked) -> Answer:
    form = await asked.form()
    wanted = {name: name in form for name in ("automated", "prune", "heal")}
    has_changed = await change(desk_of(asked), app_of(asked), lambda wire: with_policy(wire, **wanted))
    return back_to(asked, "saved" if has_changed else "no-change", "settings")


ROUTES = (
    Route("GET", "/apps/{ns}/{name}/settings", May("applications", "get", application), settings_page, "Settings"),
    Route("POST", "/apps/{ns}/{name}/policy", May("applications", "update", application), set_policy, "Set the policy"),
)

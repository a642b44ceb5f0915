"""`/apps/{ns}/{name}/operation`: the current operation by waves, and the object that blocks it.

In: a request. Out: a page, its live parts. Never: writes; shows a log without the permission to read logs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from argosy.errors import ArgosyError
from argosy.features.applications.page_parts.addresses import of_app
from argosy.features.applications.page_parts.frame import app_of, framed, head_parts
from argosy.features.applications.page_parts.owned_objects import nodes_of
from argosy.features.applications.page_parts.timeline import Moment, moment
from argosy.features.applications.sync.operation_waves import Blocker, timeline
from argosy.gitops.application_client.client import clock
from argosy.gitops.application_client.health_reasons import reason
from argosy.gitops.application_client.resource_actions import Choice, Excerpt, lines, logs_of
from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import ResourceKey
from argosy.web import page_templates
from argosy.web.caller_clients import reader_of
from argosy.web.event_cache import of_namespaces
from argosy.web.object_lookup import application
from argosy.web.request import Asked
from argosy.web.responses import Answer, Page
from argosy.web.route import May, Route

SECONDS = 0.7  # to read the last log line
MOST = 200  # characters of the last log line


@dataclass(frozen=True, slots=True)
class Hint:
    """Health, last Event and last log line of the object that blocks the operation."""

    health: str = ""
    why: str = ""
    event: Moment | None = None
    line: str = ""
    pod: str = ""


async def hint_of(asked: Asked, blocker: Blocker | None) -> Hint | None:
    if blocker is None:
        return None
    reader, key = reader_of(asked), blocker.task.key
    manifest = reader.cache.get(key)
    if manifest is None:
        return Hint(event=await _last_event(asked, {key}))
    said = (await reader.rules.assess_all([manifest]))[0]
    below = {node.key for node in await nodes_of(asked) if any(each.key == key for each in node.parents)}
    health = said.health.value if said and said.health else ""
    pod, line = await _last_line(asked, key) if asked.may("logs", "get", asked.thing) else ("", "")
    event = await _last_event(asked, {key, *below})
    return Hint(health, reason(manifest, said.message) if said else "", event, line, pod)


async def _last_event(asked: Asked, keys: set[ResourceKey]) -> Moment | None:
    """Return the latest Warning, else the latest Event."""
    if not app_of(asked).destination.is_here:
        return None  # Events of its objects are in the destination cluster
    wanted = {(key.kind, key.name) for key in keys}
    found = []
    for event in (await of_namespaces(asked, {key.namespace for key in keys})).events:
        about = mapping(event.get("involvedObject"))
        if (about.get("kind"), about.get("name")) in wanted:
            found.append(moment(app_of(asked), event))
    return max(found, key=lambda each: (each.kind == "Warning", each.at), default=None)


async def _last_line(asked: Asked, key: ResourceKey) -> tuple[str, str]:
    reader = reader_of(asked)
    try:
        async with asyncio.timeout(SECONDS):
            for log in await logs_of(reader, app_of(asked), Choice(*key), ""):
                async for line in lines(reader, log, Excerpt(tail=1)):
                    if line.strip():
                        return f"{log.pod.name}/{log.container}", line.strip()[:MOST]
    except (ArgosyError, TimeoutError):
        pass
    return "", ""


async def operation_page(asked: Asked) -> Answer:
    app = app_of(asked)
    made = timeline(app, clock())
    hint = await hint_of(asked, made.blocker if made else None)
    values = await framed(asked, "operation", line=made, hint=hint)
    if made is not None and made.is_running:
        values["reload_after"] = 5  # for browsers without JavaScript
    return Page("applications/operation.html", values)


async def operation_parts(asked: Asked) -> dict[str, str]:
    app = app_of(asked)
    made = timeline(app, clock())
    hint = await hint_of(asked, made.blocker if made else None)
    may = asked.may("applications", "sync", asked.thing)
    body = page_templates.part(
        "applications/parts_operation.html", "operation", made, hint, of_app(app.namespace, app.name), may
    )
    return {**await head_parts(asked), "operation": body}


ROUTES = (
    Route(
        "GET", "/apps/{ns}/{name}/operation", May("applications", "get", application), operation_page, "The operation"
    ),
)

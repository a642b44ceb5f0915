"""`/apps/{ns}/{name}/r/…`: one object of an Application, with its manifests, diff, Events, logs, health and fields.

In: a request. Out: a page. Never: an object outside the Application; a value of a Secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.features.applications.diff.field_changes import Change, changes
from argosy.features.applications.diff.page import told
from argosy.features.applications.events.page import events_of
from argosy.features.applications.logs.page import LogWish, logs_wanted, read
from argosy.features.applications.objects.field_owners import owners
from argosy.features.applications.page_parts.addresses import key_from, of_resource
from argosy.features.applications.page_parts.frame import app_of, framed
from argosy.features.applications.page_parts.manifest_text import last_applied, without_managers
from argosy.features.applications.page_parts.owned_objects import nodes_of
from argosy.features.applications.page_parts.timeline import moments
from argosy.features.applications.tree.nodes import Leaf, leaves, told_rows
from argosy.gitops.application.step_results import Pair
from argosy.gitops.application_client.differences import differing
from argosy.gitops.application_client.health_reasons import reason
from argosy.gitops.application_client.owned_objects import NotIts, belonging
from argosy.gitops.application_client.resource_actions import Choice, actions_in_force
from argosy.gitops.diff import masked
from argosy.gitops.live.resource_tree import Node
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, dump
from argosy.web import page_templates
from argosy.web.caller_clients import reader_of
from argosy.web.middleware.application_masks import masks_of
from argosy.web.object_lookup import application
from argosy.web.request import Asked, Refused
from argosy.web.responses import Answer, Page
from argosy.web.route import May, Route

TABS: Final = (
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


async def found(asked: Asked) -> tuple[Leaf, Manifest | None, list[Node]]:
    """Return the object, its live manifest and all nodes; raise Refused if it is not part of the Application."""
    app, reader, key = app_of(asked), reader_of(asked), key_of_request(asked)
    nodes = await nodes_of(asked)
    rows = told_rows(app)
    live = await _live(asked, key, is_managed=key in {row.key for row in rows})
    said = {node.key: reason(reader.cache.get(node.key) or {}, node.health.message) for node in nodes if node.health}
    known = leaves(nodes, rows, said, (app.namespace, app.name)).get(key)
    if known is None:
        raise Refused
    return known, live, nodes


async def _live(asked: Asked, key: ResourceKey, *, is_managed: bool) -> Manifest | None:
    """Return the live manifest, or None if it is missing; raise Refused if the project does not permit the object."""
    try:
        return await belonging(reader_of(asked), app_of(asked), Choice(*key))
    except NotIts:
        if is_managed and reader_of(asked).cache.get(key) is None:
            return None
        raise Refused from None


def key_of_request(asked: Asked) -> ResourceKey:
    return key_from(*(asked.values[name] for name in ("group", "kind", "rns", "rname")))


async def resource_page(asked: Asked) -> Answer:
    leaf, live, nodes = await found(asked)
    known = [name for name, _ in TABS if name != "logs" or asked.may("logs", "get", asked.thing)]
    tab = asked.query.text("tab") if asked.query.text("tab") in known else known[0]
    content = await _content(asked, tab, leaf.key, live, nodes)
    values = await framed(
        asked,
        "",
        leaf=leaf,
        tab=tab,
        rtabs=[(name, word, f"{leaf.url}?tab={name}") for name, word in TABS if name in known],
        actions=await _actions(asked, live),
        may_delete=live is not None and may_delete(asked, leaf.key),
        lives=live is not None,
        here_url=leaf.url,
        **content,
    )
    values["is_live"] = True
    values["title"] = f"{leaf.key.kind}/{leaf.key.name}"
    values["crumbs"] = [*values["crumbs"], (values["title"], leaf.url)]
    return Page("applications/resource.html", values)


def may_delete(asked: Asked, key: ResourceKey) -> bool:
    """argo: Objects have their own permission, separate from that of the Application."""
    return asked.may("applications", f"delete/{'/'.join(key)}", asked.thing)


def may_act(asked: Asked, key: ResourceKey, name: str) -> bool:
    return asked.may("applications", f"action/{key.group}/{key.kind}/{name}", asked.thing)


async def _actions(asked: Asked, live: Manifest | None) -> list[dict[str, Any]]:
    if live is None:
        return []
    key = key_of_request(asked)
    try:
        offered = await actions_in_force(reader_of(asked)).discover(live)
    except ArgosyError:
        return []
    return [
        {"name": each.name, "word": each.display_name or each.name, "is_disabled": each.disabled}
        for each in offered
        if not each.parameters and may_act(asked, key, each.name)
    ]


async def _content(
    asked: Asked, tab: str, key: ResourceKey, live: Manifest | None, nodes: Sequence[Node]
) -> dict[str, Any]:
    app = app_of(asked)
    if tab == "live":
        return {"lines": _lines(asked, live)}
    if tab == "last-applied":
        return {"lines": _lines(asked, last_applied(live) if live else None)}
    if tab in ("desired", "diff"):
        return await _compared(asked, tab, key)
    if tab == "events":
        return {"moments": moments(app, await _events(asked, key, nodes), "all")[:200], "has_syncs": False}
    if tab == "logs":
        hide = masks_of(asked).hide_for(asked)
        reader, wish = reader_of(asked), LogWish(hide, tail=500, choice=Choice(*key))
        _, wanted = await logs_wanted(reader, asked, wish)
        found = await read(reader, wanted, wish)
        return {"log": found.lines, "faults": found.notes}
    if tab == "health":
        return await _health(asked, live)
    if tab == "fields":
        shown = _masked(asked, live)
        return {"owned": owners(shown, live) if shown is not None and live is not None else ()}
    return _summary(asked, key, live, nodes)


def _masked(asked: Asked, manifest: Manifest | None) -> Manifest | None:
    if manifest is None:
        return None
    return masked([manifest], reader_of(asked).rules.compare.masked_annotations)[0]


def _lines(asked: Asked, manifest: Manifest | None) -> list[str]:
    shown = _masked(asked, manifest)
    if shown is None:
        return []
    return dump(masks_of(asked).for_request(asked).hide_values(without_managers(shown))).splitlines()


async def _compared(asked: Asked, tab: str, key: ResourceKey) -> dict[str, Any]:
    app, reader = app_of(asked), reader_of(asked)
    try:
        look = await reader.look(app, is_judged=False)
    except ArgosyError as error:
        return {"fault": str(error), "lines": [], "changes": ()}
    pair: Pair | None = next((each for each in look.comparison.pairs if each.key == key), None)
    if tab == "desired":
        return {"lines": _lines(asked, pair.desired if pair else None), "fault": ""}
    found = [each for each in differing(look.comparison, reader.rules.compare.masked_annotations) if each.key == key]
    made: tuple[Change, ...] = changes(app, await told(reader, app, look, found), has_lines=True)
    return {"changes": made, "fault": ""}


async def _events(asked: Asked, key: ResourceKey, nodes: Sequence[Node]) -> list[Manifest]:
    """List Events of the object and of its descendants."""
    wanted, size = {key}, 0
    while len(wanted) > size:
        size = len(wanted)
        wanted |= {node.key for node in nodes if any(parent.key in wanted for parent in node.parents)}
    names = {(each.kind, each.namespace, each.name) for each in wanted}
    return [
        event
        for event in (await events_of(asked)).events
        if (about := mapping(event.get("involvedObject")))
        and (about.get("kind"), about.get("namespace") or "", about.get("name")) in names
    ]


async def _health(asked: Asked, live: Manifest | None) -> dict[str, Any]:
    if live is None:
        return {"said": None, "conditions": []}
    said = (await reader_of(asked).rules.assess_all([live]))[0]
    conditions = [
        {name: str(each.get(name) or "") for name in ("type", "status", "reason", "message", "lastTransitionTime")}
        for each in mappings(mapping(live.get("status")).get("conditions"))
    ]
    told = None
    if said is not None:
        word = said.health.value if said.health else ""
        told = {"health": word, "message": said.message, "rule": said.rule, "fault": said.fault}
    return {"said": told, "conditions": conditions}


def _summary(asked: Asked, key: ResourceKey, live: Manifest | None, nodes: Sequence[Node]) -> dict[str, Any]:
    metadata = mapping((_masked(asked, live) or {}).get("metadata"))
    below = [node.key for node in nodes if any(parent.key == key for parent in node.parents)]
    mine = next((node for node in nodes if node.key == key), None)
    return {
        "labels": sorted(mapping(metadata.get("labels")).items()),
        "annotations": [
            (name, value)
            for name, value in sorted(mapping(metadata.get("annotations")).items())
            if not name.endswith("last-applied-configuration")
        ],
        "owners": [_linked(asked, parent.key) for parent in mine.parents] if mine else [],
        "below": [_linked(asked, each) for each in below[:100]],
        "images": mine.images if mine else (),
        "api_version": str((live or {}).get("apiVersion") or ""),
        "uid": str(metadata.get("uid") or ""),
    }


async def resource_parts(asked: Asked) -> dict[str, str]:
    """Render only the status: the content does not change while it is read."""
    leaf, live, _ = await found(asked)
    return {"leaf-states": page_templates.part("applications/parts_tree.html", "leaf_states", leaf, live is not None)}


def _linked(asked: Asked, key: ResourceKey) -> tuple[str, str]:
    app = app_of(asked)
    return of_resource(app.namespace, app.name, key), f"{key.kind}/{key.name}"


ROUTES = (
    Route(
        "GET",
        "/apps/{ns}/{name}/r/{group}/{kind}/{rns}/{rname}",
        May("applications", "get", application),
        resource_page,
        "An object of an application",
    ),
)

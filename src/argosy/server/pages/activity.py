"""`/activity`: what happened, newest first: syncs, promotions, Events, settings.

In: a request. Out: a page of a timeline. Never: what happened to an Application that the caller may not see.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from argosy.desk.boards import activity
from argosy.desk.boards.activity import Happening, Wanted
from argosy.desk.boards.owning import keys_of
from argosy.model.manifest import Manifest
from argosy.model.names import GroupKind, ResourceKey
from argosy.pipeline.permitting import permission
from argosy.report.wire import mapping
from argosy.server.answers import Page
from argosy.server.asked import Asked
from argosy.server.behalf import reader_of
from argosy.server.doors.audit import Trail
from argosy.server.pages.environments import looked
from argosy.server.pages.heard import everywhere
from argosy.server.pages.owned import sees_everything, visible_applications
from argosy.server.resolving import PROJECT, project_of, readable
from argosy.server.routes import Filtered, Route

CONFIG_MAP: Final = GroupKind("", "ConfigMap")
SETTINGS: Final = ("argocd-cm", "argocd-rbac-cm", "argosy-cm", "argocd-notifications-cm", "argocd-ssh-known-hosts-cm")
GROUPS: Final = {
    "Pod": "", "ReplicaSet": "apps", "Deployment": "apps", "StatefulSet": "apps", "DaemonSet": "apps", "Job": "batch",
    "InferenceService": "serving.kserve.io", "NotebookValidationJob": "mlops.mlops.dev",
}  # fmt: skip
COMMANDS: Final = ("argosy app list", "argosy app history NAME", "argosy promote history")


async def page(asked: Asked) -> Page:
    return Page("activity.html", await values(asked))


async def values(asked: Asked) -> dict[str, Any]:
    found = [each async for each in happenings(asked)]
    wanted = _wanted(asked)
    shown = activity.timeline(found, wanted)
    first = (shown.page - 1) * activity.PAGE + 1 if shown.total else 0
    return {
        "title": "Activity",
        "is_live": True,
        "section": "activity",
        "state": "",
        "line": shown,
        "wanted": wanted,
        "apps": activity.apps_of(found),
        "first": first,
        "last": first + len(shown.shown) - 1 if shown.total else 0,
        "chosen": [(key, value) for key in ("kind", "app", "only", "q") for value in asked.query.all(key) if value],
        "commands": COMMANDS,
        "fault": (await everywhere(asked)).fault,
    }


def _wanted(asked: Asked) -> Wanted:
    query = asked.query
    kinds = tuple(each for each in query.all("kind") if each in activity.KINDS)
    severity = "bad" if query.text("only") == "bad" else ""
    given = query.text("page")
    page_number = int(given) if given.isascii() and given.isdecimal() and len(given) < 7 else 1
    return Wanted(kinds, query.text("app"), severity, query.text("q"), page_number)


async def happenings(asked: Asked) -> AsyncIterator[Happening]:
    apps = visible_applications(asked)
    for each in activity.of_applications(apps):
        yield each
    sees_all = sees_everything(asked, len(apps))
    known = await _listed(asked, apps)
    for each in activity.of_events((await everywhere(asked)).events, _whose(asked, known, sees_all)):
        yield each
    if sees_all:
        for each in activity.of_settings(_settings(asked)):
            yield each
        if asked.may("accounts", "get", "*"):
            for each in activity.of_audit(asked.site.part(Trail).lines):
                yield each
    board, _ = await looked(asked)
    for each in activity.of_promotions(board.history if board else ()):
        yield each


Known = dict[tuple[str, str, str], tuple[str, str] | None]


async def _listed(asked: Asked, apps: list[Manifest]) -> Known:
    """What Applications list, as far as their projects permit it: Git may name anything."""
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


def _whose(asked: Asked, known: Known, sees_all: bool) -> activity.Whose:
    """By what Applications list; Pods and the like by their owners. What is nobody's is told to who may see all."""

    def whose(kind: str, namespace: str, name: str) -> tuple[str, str] | None:
        key = (kind, namespace, name)
        if key not in known:
            owner = next((known[each] for each in _owners(asked, *key) if known.get(each)), None)
            known[key] = owner or (("", "") if sees_all else None)
        return known[key]

    return whose


def _owners(asked: Asked, kind: str, namespace: str, name: str) -> Iterator[tuple[str, str, str]]:
    """Up the chain of owners, as far as it is known."""
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


ROUTES = (Route("GET", "/activity", Filtered("applications", "get"), page, "What happened, as a page."),)

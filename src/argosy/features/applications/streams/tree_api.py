"""API to watch the resource tree of an Application.

In: a request. Out: a frame with the whole tree at each change. Never: more than four frames a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.features.applications.read.content_api import FILTER, choice_of, tree_of
from argosy.gitops.application_client.summary import rows
from argosy.web.api.stream_frames import BEAT, MAKES, SIGN, failure, frame, is_events, stream
from argosy.web.caller_clients import reader_of
from argosy.web.live_updates.change_feed import Change, Changes
from argosy.web.middleware import authorization
from argosy.web.middleware.secret_masking import sensitive
from argosy.web.object_lookup import application
from argosy.web.request import Absent, Asked, Refused
from argosy.web.responses import Stream
from argosy.web.route import Found, May, Parameter, Route

BETWEEN: Final = 0.25  # between frames


async def of_application(asked: Asked) -> Found | None:
    return await application(replace(asked, values={"name": asked.values["applicationName"]}))


async def tree(asked: Asked) -> Stream:
    return stream(asked, _trees(asked))


async def _tree(asked: Asked) -> dict[str, Any]:
    return await tree_of(reader_of(asked), asked.subject, choice_of(asked.query))


async def _trees(asked: Asked) -> AsyncIterator[bytes]:
    events, part, told = is_events(asked), Part(), b""
    with Changes(asked.site.lookout, part.matters, is_merged=True) as changes:
        while True:
            try:
                found = await _next(asked, part)
            except ArgosyError as error:
                yield failure(error, events=events)
                return
            if found is None:
                return
            if (made := frame(found, events=events, annotations=sensitive(asked.site))) != told:
                told = made
                yield made
            await asyncio.sleep(BETWEEN)
            while (await changes.next(BEAT)) is None:
                if events:
                    yield SIGN


async def _next(asked: Asked, part: Part) -> dict[str, Any] | None:
    """Return the current tree; None if the Application was deleted or the caller lost access."""
    try:
        now = await authorization.permitted(TREE, replace(asked, subject=None, thing=""))
    except (Refused, Absent, authorization.Unknown):
        return None
    found = await _tree(now)
    part.see(now, found)
    return found


class Part:
    """Decides which changes affect a tree: objects in it, managed objects, and objects owned by one in it."""

    def __init__(self) -> None:
        self._places: set[tuple[str, str, str]] | None = None  # unknown: every change may affect the tree
        self._uids: set[str] = set()

    def see(self, asked: Asked, tree: dict[str, Any]) -> None:
        nodes = [*tree["nodes"], *tree["orphanedNodes"]]
        keys = [asked.subject.key, *(row.key for row in rows(asked.subject))]
        self._places = {(each["kind"], each.get("namespace", ""), each["name"]) for each in nodes}
        self._places |= {(key.kind, key.namespace, key.name) for key in keys}
        self._uids = {each.get("uid", "") for each in nodes} - {""}

    def matters(self, change: Change) -> bool:
        metadata = change.manifest["metadata"]
        place = (str(change.manifest.get("kind")), metadata.get("namespace") or "", metadata["name"])
        if self._places is None or place in self._places:
            return True
        return any(each.get("uid") in self._uids for each in metadata.get("ownerReferences") or ())


TREE: Final = Route(
    "GET", "/api/v1/stream/applications/{applicationName}/resource-tree",
    May("applications", "get", of_application), tree,
    "Watch the managed objects of an Application and their children.",
    query=(*FILTER, Parameter("appNamespace", "The namespace of the Application."),
           Parameter("project", "The project of the Application.")),
    tag="applications", operation="ApplicationService_WatchResourceTree", makes=MAKES,
)  # fmt: skip
ROUTES = (TREE,)

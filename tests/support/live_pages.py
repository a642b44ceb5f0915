"""Two small live pages on a real socket with a static cluster view, to count which updates are sent.

In: objects that a test puts into the cluster view. Out: a World with open pages. Never: mocks the live updates.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from argosy.kube.objects import Manifest
from argosy.web import requested_application_lookup
from argosy.web.auth.caller import Caller
from argosy.web.live_updates.event_stream import build_routes
from argosy.web.live_updates.hub import LivePageHub
from argosy.web.live_updates.live_page_definitions import LivePage
from argosy.web.request import RequestContext
from argosy.web.route import FilteredList, RequiresPermission
from support.event_streams import Opened, opened
from support.page_site import CONTROL, KnownPeople, StillLookout, a_site, anything, nothing, on_a_socket


def app(name: str, word: str = "Synced", project: str = "default") -> Manifest:
    metadata = {"name": name, "namespace": CONTROL, "resourceVersion": word, "uid": name}
    spec = {"project": project, "source": {"repoURL": "https://x/y", "path": "p"}, "destination": {"namespace": "n"}}
    return {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec,
        "status": {"sync": {"status": word}},
    }  # fmt: skip


def word_of(manifest: Manifest) -> str:
    return str(manifest["status"]["sync"]["status"])


class Rendered:
    """Records renders. A test can block a render after it has read its data (`gate`), or make it fail (`fault`)."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.pages: list[str] = []
        self.gate: asyncio.Event | None = None
        self.fault: Exception | None = None


RENDERED = Rendered()


async def one(request: RequestContext) -> Mapping[str, str]:
    RENDERED.pages.append(request.path)
    parts = {"state": f'<b id="state">{html.escape(word_of(request.subject.wire))}</b>', "still": "<i id=still></i>"}
    if RENDERED.gate:
        await RENDERED.gate.wait()
    if RENDERED.fault:
        raise RENDERED.fault
    return parts


async def many(request: RequestContext) -> Mapping[str, str]:
    RENDERED.pages.append(request.path)
    parts = {}
    for manifest in request.cluster_view.cache.list(("argoproj.io", "Application")):
        name = manifest["metadata"]["name"]
        if request.is_allowed(
            "applications", "get", f"{requested_application_lookup.read_project_name(manifest)}/{name}"
        ):
            parts[f"a-{name}"] = (
                f'<tr id="a-{name}"><td>{word_of(manifest)}{"x" * int(request.query.get_text("pad") or 0)}'
            )
    return parts


def is_application(before: Manifest | None, after: Manifest | None) -> bool:
    return (after or before or {}).get("kind") == "Application"


def is_this(request: RequestContext, before: Manifest | None, after: Manifest | None) -> bool:
    return bool((after or before or {})["metadata"]["name"] == request.path_parameters["name"])


LIVES = (
    LivePage("/apps", FilteredList("applications", "get"), many, is_application),
    LivePage(
        "/apps/{ns}/{name}",
        RequiresPermission("applications", "get", requested_application_lookup.resolve_application),
        one,
        is_application,
        is_this,
    ),
)


def permissions(self: KnownPeople, caller: Caller) -> Any:
    return SimpleNamespace(digest=str(self.allowed[caller.name]))


def drop(lookout: StillLookout, name: str) -> None:
    dropped = lookout.cache.drop(requested_application_lookup.ResourceKey("argoproj.io", "Application", CONTROL, name))
    for listener in tuple(lookout._listeners):
        listener(dropped, None)


def his_own(resource: str, action: str, thing: str) -> bool:
    return thing.startswith("mine/")


@dataclass
class World:
    lookout: StillLookout
    people: KnownPeople
    hub: LivePageHub
    port: int

    def live(self, at: str, who: str = "ann", **more: Any) -> contextlib.AbstractAsyncContextManager[Opened]:
        since = more.pop("since", None)
        tail = "" if since is None else f"&since={since}"
        return opened(self.port, f"/live?at={quote(at, safe='')}{tail}", who, **more)


@contextlib.asynccontextmanager
async def live_world() -> AsyncIterator[World]:
    RENDERED.reset()
    people = KnownPeople({"ann": anything, "ben": anything, "bob": nothing, "cid": his_own})
    site = a_site([app("a"), app("b"), app("m", project="mine")], people)
    hub = LivePageHub(site.cluster_view, LIVES)
    async with on_a_socket(replace(site, live_updates=hub), build_routes(site.state.concurrency_limits)) as (client, _):
        yield World(site.cluster_view, people, hub, client.port)
    await hub.close()


async def patch(stream: Opened) -> dict[str, str | None]:
    event = await stream.event("patch")
    assert event is not None
    parts: dict[str, str | None] = event.data["parts"]
    return parts

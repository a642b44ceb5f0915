"""Live pages: which viewers get which patches, how often, and when their streams end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from argosy.features.serve import http_protocol
from argosy.web import request_limits
from argosy.web.live_updates import hub as hubs
from argosy.web.live_updates import viewer_group as groups
from support.deadlines import HANG_SECONDS, wait_until_async
from support.live_pages import RENDERED, World, app, drop, live_world, patch, permissions
from support.page_site import CONTROL, KnownPeople, anything

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with live_world() as opened_world:
        yield opened_world


async def test_change_is_rendered_once_for_two_viewers(world: World) -> None:
    at = "/apps/argocd/a"
    async with world.live(at) as first, world.live(at) as second:
        for window in (first, second):
            assert await patch(window) == {"state": '<b id="state">Synced</b>', "still": "<i id=still></i>"}
        RENDERED.pages.clear()
        world.lookout.put(app("a", "OutOfSync"))
        for window in (first, second):
            assert await patch(window) == {"state": '<b id="state">OutOfSync</b>'}
    assert RENDERED.pages == [at]


async def test_change_of_another_object_renders_nothing(world: World) -> None:
    async with world.live("/apps/argocd/a") as window:
        await patch(window)
        RENDERED.pages.clear()
        world.lookout.put(app("b", "OutOfSync"))
        world.lookout.put(app("a", "Unknown"))
        assert await patch(window) == {"state": '<b id="state">Unknown</b>'}
    assert RENDERED.pages == ["/apps/argocd/a"]


async def test_rapid_changes_are_sent_in_one_patch(world: World) -> None:
    async with world.live("/apps/argocd/a") as window:
        await patch(window)
        RENDERED.pages.clear()
        world.lookout.put(app("a", "word 0"))
        assert await patch(window) == {"state": '<b id="state">word 0</b>'}
        for number in range(1, 200):
            world.lookout.put(app("a", f"word {number}"))
        assert await patch(window) == {"state": '<b id="state">word 199</b>'}
    assert len(RENDERED.pages) == 2


async def test_viewer_with_the_current_position_gets_no_initial_patch(world: World) -> None:
    async with world.live("/apps/argocd/a", since=world.hub.position) as window:
        first = await window.event()
        assert first is not None and first.kind == "beat" and first.data["isUp"] is True
    position = world.hub.position
    world.lookout.put(app("b", "OutOfSync"))
    async with world.live("/apps/argocd/a", since=position) as window:
        assert (event := await window.event()) is not None and event.kind == "beat"
    world.lookout.put(app("a", "OutOfSync"))
    async with world.live("/apps/argocd/a", since=position) as window:
        assert "OutOfSync" in str((await patch(window))["state"])


async def test_reconnecting_viewer_gets_missed_patches(world: World) -> None:
    at = "/apps"
    async with world.live(at) as stays:
        await patch(stays)
        async with world.live(at) as leaves:
            first = await leaves.event("patch")
            assert first is not None
        world.lookout.put(app("a", "one"))
        await patch(stays)
        world.lookout.put(app("b", "two"))
        await patch(stays)
        async with world.live(at, headers={"Last-Event-ID": first.id}) as back:
            assert [list(await patch(back)) for _ in range(2)] == [["a-a"], ["a-b"]]


async def test_reconnecting_viewer_of_an_unviewed_page_gets_missed_patches(world: World) -> None:
    async with world.live("/apps") as window:
        first = await window.event("patch")
        assert first is not None
    world.lookout.put(app("a", "one"))
    async with world.live("/apps", headers={"Last-Event-ID": first.id}) as back:
        assert list(await patch(back)) == ["a-a"]


@pytest.mark.parametrize("last", ["nonsense", "other.3", "x.99999999999999999999", "..", "\u00e9.1"])
async def test_reconnect_with_an_unknown_event_id_sends_the_whole_page(world: World, last: str) -> None:
    async with world.live("/apps", headers={"Last-Event-ID": last.encode().decode("latin-1")}) as back:
        assert list(await patch(back)) == ["a-a", "a-b", "a-m"]


async def test_deleted_object_is_sent_as_removed(world: World) -> None:
    async with world.live("/apps") as window:
        await patch(window)
        drop(world.lookout, "b")
        assert await patch(window) == {"a-b": None}


async def test_viewers_get_only_applications_they_may_see(world: World) -> None:
    async with world.live("/apps") as hers, world.live("/apps", "cid") as his:
        assert list(await patch(hers)) == ["a-a", "a-b", "a-m"]
        assert list(await patch(his)) == ["a-m"]
        world.lookout.put(app("a", "other"))
        world.lookout.put(app("m", "other", "mine"))
        assert list(await patch(his)) == ["a-m"]


async def test_viewers_with_the_same_permissions_share_one_render(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KnownPeople, "permissions", permissions, raising=False)
    async with world.live("/apps", "ann") as hers, world.live("/apps", "ben") as his:
        await patch(hers), await patch(his)
        RENDERED.pages.clear()
        world.lookout.put(app("a", "other"))
        assert await patch(hers) == await patch(his)
    assert RENDERED.pages == ["/apps"]


async def test_forbidden_and_missing_pages_are_the_same_404(world: World) -> None:
    bodies = []
    for at, who in (("/apps/argocd/a", "cid"), ("/apps/argocd/z", "cid"), ("/elsewhere", "ann"), ("//x/apps", "ann")):
        async with world.live(at, who) as refused:
            assert refused.code == 404
            bodies.append((await refused.body()).replace(at.encode(), b"").replace(quote(at, safe="").encode(), b""))
    assert bodies[0] == bodies[1]


async def test_signed_out_viewer_gets_a_bye_event_at_the_next_permission_check(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hubs.PERMISSION_CHECK_SECONDS < 1
    monkeypatch.setattr(hubs, "HEARTBEAT_SECONDS", 9000.0)  # no heartbeat
    async with world.live("/apps/argocd/a") as hers, world.live("/apps/argocd/a", "ben") as his:
        await patch(hers), await patch(his)
        world.people.gone.add("ben")
        assert (bye := await his.event()) is not None and bye.kind == "bye"
        assert await his.event("patch") is None
        world.lookout.put(app("a", "other"))
        assert list(await patch(hers)) == ["state"]


async def test_viewer_who_loses_access_gets_a_bye_event_and_nothing_more(world: World) -> None:
    async with world.live("/apps/argocd/m", "cid") as his:
        await patch(his)
        world.lookout.put(app("m", "secret", "others"))
        assert (bye := await his.event()) is not None and bye.kind == "bye"
        assert await his.event() is None


async def test_permission_change_ends_the_stream_and_applies_after_reconnect(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KnownPeople, "permissions", permissions, raising=False)
    async with world.live("/apps", "cid") as his:
        assert list(await patch(his)) == ["a-m"]
        world.people.allowed["cid"] = anything
        assert await his.event() is None
    async with world.live("/apps", "cid") as his:
        assert list(await patch(his)) == ["a-a", "a-b", "a-m"]


async def test_slow_viewer_is_dropped_and_does_not_delay_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "MIN_RENDER_INTERVAL_SECONDS", 0.0)
    at = f"/apps?pad={400_000}"
    async with world.live(at, window=4096), world.live(at) as other:
        (group,) = world.hub._groups.values()
        slow, quick = group.readers
        await patch(other)
        for number in range(groups.MAX_BUFFERED_BYTES // 400_000 + 12):
            world.lookout.put(app("a", f"word {number}"))
            assert f"word {number}" in str((await patch(other))["a-a"])
        assert slow.is_late and not quick.is_late
        assert sum(len(chunk) for chunk in slow._buffer) == 0


async def test_page_is_rendered_again_after_a_failed_render(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.live("/apps/argocd/a") as window:
        await patch(window)
        broken = app("a", "broken")
        broken["status"] = {}
        world.lookout.put(broken)
        await wait_until_async(lambda: RENDERED.pages[1:], "it was rendered again")
        world.lookout.put(app("a", "well"))
        assert await patch(window) == {"state": '<b id="state">well</b>'}
    assert "cannot render the live page" in caplog.text


async def test_idle_stream_gets_heartbeats(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "HEARTBEAT_SECONDS", 0.0)
    async with world.live("/apps") as window:
        await patch(window)
        beat = await window.event("beat")
        assert beat is not None and beat.data["at"].endswith("Z")


async def test_streams_over_the_limit_per_caller_get_429(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_limits, "MAX_STREAMS_PER_CALLER", 3)
    async with contextlib.AsyncExitStack() as stack:
        codes = []
        for _ in range(30):
            stream = await stack.enter_async_context(world.live("/apps"))
            codes.append(stream.code)
            if stream.code == 429:
                assert stream.headers["retry-after"] == "1" and b"too many open streams" in await stream.body()
        assert codes == [200] * 3 + [429] * 27
        async with world.live("/apps", "ben") as other:
            assert other.code == 200


async def test_unviewed_pages_are_dropped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "UNVIEWED_PAGE_SECONDS", 0.0)
    monkeypatch.setattr(hubs, "PERMISSION_CHECK_SECONDS", 0.01)
    async with world.live("/apps") as window:
        await patch(window)
        assert len(world.hub._groups) == 1
    async with asyncio.timeout(HANG_SECONDS):
        while world.hub._groups or world.hub._watch_task:
            await asyncio.sleep(0.01)
    assert not world.hub._tasks


async def test_stalled_client_is_disconnected(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "STALLED_CLIENT_SECONDS", 0.1)
    async with world.live(f"/apps?pad={3 << 20}", window=4096):
        (group,) = world.hub._groups.values()
        async with asyncio.timeout(HANG_SECONDS):
            while group.readers:
                await asyncio.sleep(0.02)


async def test_new_secret_is_redacted_for_the_next_viewer(world: World) -> None:
    async with world.live("/apps/argocd/a") as window:
        await patch(window)
        world.lookout.put(app("a", "s3cr3t-value-4c2e27100f"))
        assert "s3cr3t-value-4c2e27100f" in str(await patch(window))
        metadata = {"name": "s", "namespace": CONTROL}
        data = {"password": "czNjcjN0LXZhbHVlLTRjMmUyNzEwMGY="}
        world.lookout.put({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
        async with world.live("/apps/argocd/a") as other:
            assert "s3cr3t-value-4c2e27100f" not in str(await patch(other))


async def test_pages_show_that_the_cluster_is_unreachable(world: World) -> None:
    as_of = SimpleNamespace(fresh_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), is_up=True)
    world.lookout.as_of = as_of  # type: ignore[attr-defined]
    async with world.live("/apps", since=world.hub.position) as window:
        assert (beat := await window.event()) is not None and beat.data["isUp"] is True
        as_of.is_up = False
        beat = await window.event("beat")
        assert beat is not None and beat.data == {"at": "2026-01-02T03:04:05Z", "isUp": False}


@pytest.mark.tier("all")
async def test_change_reaches_ninety_pages_and_another_page_still_opens(world: World) -> None:
    async with contextlib.AsyncExitStack() as stack:
        windows = [await stack.enter_async_context(world.live(f"/apps?n={number}")) for number in range(90)]
        for window in windows:
            await patch(window)
        world.lookout.put(app("a", "other"))
        async with world.live("/apps/argocd/b") as other_window:
            assert (await patch(other_window))["state"] == '<b id="state">Synced</b>'
        for window in windows:
            assert list(await patch(window)) == ["a-a"]

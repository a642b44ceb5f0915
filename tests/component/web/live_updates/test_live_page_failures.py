"""Live pages during failures and races: no viewer keeps stale content that looks current."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import TransientError
from argosy.kube.controller.clock import Backoff
from argosy.web import request_limits
from argosy.web.live_updates import hub as hubs
from argosy.web.live_updates.hub import LivePageHub
from support.deadlines import HANG_SECONDS, wait_until_async
from support.event_streams import Opened
from support.live_pages import RENDERED, World, app, drop, live_world, patch
from support.loop_clock import turns
from support.page_site import Client

pytestmark = pytest.mark.anyio
AT = "/apps/argocd/a"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with live_world() as opened_world:
        yield opened_world


@contextlib.asynccontextmanager
async def coming(world: World) -> AsyncIterator[asyncio.Future[Opened]]:
    """A live page whose stream is being opened."""
    async with contextlib.AsyncExitStack() as stack:
        opening = asyncio.ensure_future(stack.enter_async_context(world.live(AT)))
        yield opening
        await opening


def readers(world: World) -> int:
    return sum(len(group.readers) for group in world.hub._groups.values())


async def some_looks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait until the permissions of viewers were checked, and unviewed pages dropped, a few times."""
    looks, look = [0], world.hub._check_group

    async def counted(key: Any, group: Any) -> None:
        looks[0] += 1
        await look(key, group)

    monkeypatch.setattr(world.hub, "_check_group", counted)
    await wait_until_async(lambda: looks[0] > 3, "some looks")


def state(word: str) -> dict[str, str]:
    return {"state": f'<b id="state">{word}</b>'}


async def test_change_during_the_first_render_is_sent(world: World) -> None:
    RENDERED.gate = asyncio.Event()
    async with coming(world) as opening:
        await wait_until_async(lambda: RENDERED.pages)
        world.lookout.put(app("a", "newer"))
        (group,) = world.hub._groups.values()
        await wait_until_async(lambda: not group.is_dirty.is_set(), "who renders what has changed has begun")
        await turns()
        RENDERED.gate.set()
        window = await opening
        async with asyncio.timeout(HANG_SECONDS):
            while "newer" not in str(await patch(window)):
                pass


async def test_page_is_not_dropped_during_its_first_render(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "UNVIEWED_PAGE_SECONDS", 0.0)
    monkeypatch.setattr(hubs, "PERMISSION_CHECK_SECONDS", 0.01)
    RENDERED.gate = asyncio.Event()
    async with coming(world) as opening:
        await wait_until_async(lambda: RENDERED.pages)
        await some_looks(world, monkeypatch)
        RENDERED.gate.set()
        window = await opening
        await patch(window)
        world.lookout.put(app("a", "newer"))
        assert await patch(window) == state("newer")


async def test_page_is_not_dropped_while_it_waits_for_a_render_slot(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "PERMISSION_CHECK_SECONDS", 0.01)
    async with world.live(AT) as window:
        await patch(window)
    await wait_until_async(lambda: not readers(world), "nobody looks")
    for _ in range(hubs.MAX_CONCURRENT_RENDERS):
        await world.hub._render_slots.acquire()
    async with coming(world) as opening:
        await wait_until_async(lambda: readers(world), "one waits for a turn")
        monkeypatch.setattr(hubs, "UNVIEWED_PAGE_SECONDS", 0.0)
        await some_looks(world, monkeypatch)
        for _ in range(hubs.MAX_CONCURRENT_RENDERS):
            world.hub._render_slots.release()
        window = await opening
        await patch(window)
        world.lookout.put(app("a", "newer"))
        assert await patch(window) == state("newer")


async def test_hanging_first_render_times_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "RENDER_TIMEOUT_SECONDS", 0.1)
    RENDERED.gate = asyncio.Event()
    async with world.live(AT) as refused:
        assert refused.code == 503
    RENDERED.gate = None
    monkeypatch.setattr(hubs, "RENDER_TIMEOUT_SECONDS", HANG_SECONDS)
    async with world.live(AT) as window:
        assert "Synced" in str(await patch(window))


async def test_viewer_who_joins_during_a_change_gets_no_duplicate_patch(world: World) -> None:
    async with world.live(AT) as first:
        await patch(first)
        RENDERED.gate = asyncio.Event()
        RENDERED.pages.clear()
        world.lookout.put(app("a", "newer"))
        await wait_until_async(lambda: RENDERED.pages)
        async with coming(world) as opening:
            await wait_until_async(lambda: readers(world) == 2, "the second waits")
            RENDERED.gate.set()
            second = await opening
            assert await patch(first) == state("newer")
            world.lookout.put(app("a", "newest"))
            states = [str((await patch(second))["state"])]
            while "newest" not in states[-1]:
                states.append(str((await patch(second))["state"]))
            assert len(states) == len(set(states))


async def test_failed_render_is_shown_and_retried(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hubs, "RENDER_BACKOFF", Backoff(0.05, 0.2))
    async with world.live(AT) as window:
        await patch(window)
        RENDERED.fault = TransientError("the cluster is away")
        world.lookout.put(app("a", "newer"))
        beat = await window.event()
        assert beat is not None and (beat.kind, beat.data["isUp"]) == ("beat", False)
        await wait_until_async(lambda: len(RENDERED.pages) > 4)
        RENDERED.fault = None
        assert await patch(window) == state("newer")
        beat = await window.event("beat")
        assert beat is not None and beat.data["isUp"] is True
    assert caplog.text.count("cannot render the live page") == 1


async def test_failed_render_is_repeated_for_the_next_viewer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "RENDER_BACKOFF", Backoff(60.0, 60.0))
    async with world.live(AT) as first:
        await patch(first)
        RENDERED.fault = TransientError("the cluster is away")
        world.lookout.put(app("a", "newer"))
        await first.event("beat")
        RENDERED.fault = None
        async with world.live(AT) as second:
            assert "newer" in str(await patch(second))
            assert await patch(first) == state("newer")


async def test_page_of_a_deleted_object_shows_that_it_is_gone(world: World) -> None:
    async with world.live(AT) as window:
        await patch(window)
        drop(world.lookout, "a")
        bye = await window.event("bye")
        assert bye is not None and bye.data == {"why": "gone"}
        assert await window.event() is None


async def test_unreadable_page_ends_the_stream_without_a_traceback(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hubs, "PERMISSION_CHECK_SECONDS", 0.01)
    async with world.live(AT) as window:
        await patch(window)
        broken = app("a", "broken")
        broken["spec"]["source"] = "nothing that can be read"
        world.lookout.put(broken)
        async with asyncio.timeout(HANG_SECONDS):
            assert await window.event("bye") is None  # the stream ends without one
    assert "Traceback" not in caplog.text


async def test_expired_session_ends_the_stream_without_a_bye_event(world: World) -> None:
    """The browser reconnects, perhaps with a newer token; if not, the next response says so."""
    async with world.live(AT) as window:
        await patch(window)
        world.people.past.add("ann")
        assert await window.event() is None


async def test_position_of_another_server_gets_the_whole_page(world: World) -> None:
    other = LivePageHub(world.lookout, ())
    assert other.position.rpartition("-")[2] == world.hub.position.rpartition("-")[2]
    async with world.live(AT, since=other.position) as window:
        assert "Synced" in str(await patch(window))
    async with world.live(AT, since=world.hub.position) as window:
        assert (first := await window.event()) is not None and first.kind == "beat"
    await other.close()


async def test_number_of_unviewed_pages_is_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "MAX_UNVIEWED_PAGES", 5)
    async with contextlib.AsyncExitStack() as stack:
        held: list[Opened] = [await stack.enter_async_context(world.live(f"/apps?held={n}")) for n in range(10)]
        for number in range(20):
            async with world.live(f"/apps?n={number}") as window:
                await patch(window)
        await wait_until_async(lambda: len(world.hub._groups) == 15)
        assert len(world.hub._tasks) == 15
        assert {"n=19", "n=15", "held=0"} <= {words for _, words, *_ in world.hub._groups}
        for window in held:
            await patch(window)
        world.lookout.put(app("a", "newer"))
        for window in held:
            assert list(await patch(window)) == ["a-a"]


async def test_stream_over_the_limit_renders_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_limits, "MAX_STREAMS_PER_CALLER", 1)
    async with world.live(AT) as window:
        await patch(window)
        RENDERED.pages.clear()
        async with world.live("/apps") as refused:
            assert refused.code == 429
    assert RENDERED.pages == []


async def test_head_request_of_a_stream_leaves_no_reader(world: World) -> None:
    answered = await asyncio.to_thread(Client(world.port).bearer, "ann", "HEAD", f"/live?at={AT}")
    assert answered.code == 200
    (group,) = world.hub._groups.values()
    assert not group.readers


@pytest.mark.parametrize("at", ["//[x", "https://[x", "//x]", "//evil.example/apps", "/%ff"])
async def test_stream_of_an_invalid_address_is_a_404(world: World, at: str) -> None:
    async with world.live(at) as refused:
        assert refused.code == 404

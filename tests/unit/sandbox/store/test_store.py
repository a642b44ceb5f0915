"""The contract of the store, in memory and on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from argosy.errors import Gone, TransientError
from argosy.sandbox.store import ADDED, DELETED, MODIFIED, Retention, Store, StoreEntry, StoreEvent, event_window
from support.deadlines import HANG_SECONDS, wait_until_async

B = "core/configmaps"
Scenario = Callable[[Store], Awaitable[None]]


def body(revision: int) -> bytes:
    return b'{"metadata":{"resourceVersion":"%d"}}' % revision


@pytest.fixture(params=["memory", "disk"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Scenario], None]:
    """Run a scenario on a fresh store of each kind."""

    def run_scenario(scenario: Scenario) -> None:
        async def main() -> None:
            store = await Store.open(None if request.param == "memory" else tmp_path / "argosy.db")
            try:
                await asyncio.wait_for(scenario(store), HANG_SECONDS)
            finally:
                await store.close()

        asyncio.run(main())

    return run_scenario


def names(entries: object) -> list[str]:
    return [f"{entry.namespace}/{entry.name}" for entry in entries]  # type: ignore[attr-defined]


async def fill(store: Store, *paths: str, bucket: str = B) -> None:
    for path in paths:
        namespace, _, name = path.rpartition("/")
        await store.put(bucket, namespace, name, body)


def test_put_is_visible_in_latest_at_once_and_in_get_after_commit(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        commit = store.put(B, "ns", "a", body)
        assert store.get_latest(B, "ns", "a") == StoreEntry("ns", "a", 1, body(1))
        assert store.get(B, "ns", "a") is None
        assert store.revision == 0
        assert await commit == store.get(B, "ns", "a") == StoreEntry("ns", "a", 1, body(1))
        assert store.revision == 1

    run(scenario)


def test_removed_object_disappears_from_latest_at_once(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        await fill(store, "ns/a")
        commit = store.remove(B, "ns", "a", body)
        assert store.get_latest(B, "ns", "a") is None
        assert store.get(B, "ns", "a") is not None
        assert (await commit).body == body(2)
        assert store.get(B, "ns", "a") is None
        with pytest.raises(KeyError):
            store.remove(B, "ns", "a", body)

    run(scenario)


def test_staged_updates_of_one_object_commit_in_order(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        commits = [store.put(B, "ns", "a", body) for _ in range(3)]
        commits.append(store.remove(B, "ns", "a", body))
        commits.append(store.put(B, "ns", "a", body))
        watch = store.watch(B, since=0)
        await asyncio.gather(*commits)
        events = await watch.next_batch()
        assert [(event.revision, event.type) for event in events] == [
            (1, ADDED), (2, MODIFIED), (3, MODIFIED), (4, DELETED), (5, ADDED),
        ]  # fmt: skip
        assert [event.previous for event in events] == [None, body(1), body(2), body(3), None]
        assert store.get(B, "ns", "a") == StoreEntry("ns", "a", 5, body(5))

    run(scenario)


def test_failing_body_builder_consumes_no_revision(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        def broken(revision: int) -> bytes:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            store.put(B, "ns", "a", broken)
        assert store.get_latest(B, "ns", "a") is None
        assert (await store.put(B, "ns", "b", body)).revision == 1

    run(scenario)


def test_list_is_ordered_by_the_bytes_of_namespace_slash_name(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        await fill(store, "team/b", "team/a", "team-a/z", "a/é", "a/z", "team0/x")
        assert names(store.list(B)) == ["a/z", "a/é", "team-a/z", "team/a", "team/b", "team0/x"]
        assert names(store.list(B, "team")) == ["team/a", "team/b"]
        assert store.count(B) == 6 and store.count(B, "team") == 2 and store.count("none") == 0
        assert store.list("none") == []

    run(scenario)


def test_list_at_an_old_revision_returns_exactly_that_state(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        await fill(store, "a/1", "a/2", "b/1")  # 1 2 3
        await store.put(B, "a", "1", body)  # 4
        await store.remove(B, "a", "2", body)  # 5
        await store.put(B, "a", "0", body)  # 6
        await store.put("other", "a", "0", body)  # 7
        then = await store.list_at(B, "", 3)
        assert [(entry.name, entry.revision) for entry in then] == [("1", 1), ("2", 2), ("1", 3)]
        assert names(await store.list_at(B, "a", 5)) == ["a/1"]
        assert names(await store.list_at(B, "a", 7)) == ["a/0", "a/1"]
        assert await store.list_at(B, "", 0) == []
        with pytest.raises(ValueError, match="not committed"):
            await store.list_at(B, "", 8)

    run(scenario)


def test_compaction_makes_only_older_reads_and_watches_gone(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        await fill(store, "a/1", "a/1", "a/2", "a/1", "a/3")
        before = await store.list_at(B, "", 3)
        await store.compact(3)
        assert store.compacted == 3
        for revision in (0, 1, 2):
            with pytest.raises(Gone):
                store.watch(B, since=revision)
            with pytest.raises(Gone):
                await store.list_at(B, "", revision)
        assert await store.list_at(B, "", 3) == before
        watch = store.watch(B, since=3)
        assert [event.revision for event in await watch.next_batch()] == [4, 5]
        await store.compact(2)
        assert store.compacted == 3
        with pytest.raises(ValueError, match="not committed"):
            await store.compact(6)

    run(scenario)


def test_watch_receives_its_event_before_the_write_returns(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        order: list[str] = []

        async def follow() -> None:
            async for _ in store.watch(B, since=0):
                order.append("event")
                return

        async def write() -> None:
            await store.put(B, "a", "1", body)
            order.append("answer")

        follower = asyncio.create_task(follow())
        await asyncio.sleep(0)
        await asyncio.gather(write(), follower)
        assert order == ["event", "answer"]

    run(scenario)


def test_watch_of_a_missing_bucket_receives_its_first_object(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        await fill(store, "a/1")
        watch = store.watch("example.com/widgets", since=store.revision)
        task = asyncio.create_task(watch.next_batch())
        await asyncio.sleep(0)
        await fill(store, "a/w", bucket="example.com/widgets")
        assert [(event.type, event.name) for event in await task] == [(ADDED, "w")]
        assert names(store.list("example.com/widgets")) == ["a/w"]

    run(scenario)


def test_watch_from_a_future_revision_is_silent_until_then(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        watch = store.watch(B, since=3)
        await fill(store, "a/1", "a/2", "a/3")
        assert await watch.next_batch(timeout=0.01) == []
        await fill(store, "a/4")
        assert [event.revision for event in await watch.next_batch()] == [4]

    run(scenario)


def test_idle_watch_position_advances_with_the_store(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        watch = store.watch("quiet", since=0)
        await fill(store, "a/1", "a/2")
        assert watch.position == 2
        await fill(store, "a/q", bucket="quiet")
        await fill(store, "a/3")
        assert watch.position == 2
        assert [event.revision for event in await watch.next_batch()] == [3]
        assert watch.position == 4

    run(scenario)


def test_closed_watch_ends_without_an_error(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        watch = store.watch(B, since=0)
        task = asyncio.create_task(watch.next_batch())
        await asyncio.sleep(0)
        watch.close()
        assert await task == [] and watch.is_closed

    run(scenario)


def test_close_commits_staged_writes_and_ends_watches(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        watch = store.watch("quiet", since=0)
        task = asyncio.create_task(watch.next_batch())
        await asyncio.sleep(0)
        commit = store.put(B, "a", "1", body)
        await store.close()
        assert (await commit).revision == 1
        assert await task == []
        with pytest.raises(TransientError):
            store.put(B, "a", "2", body)

    run(scenario)


def test_listeners_receive_every_batch_although_another_one_fails(run: Callable[[Scenario], None]) -> None:
    async def scenario(store: Store) -> None:
        reports: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context["message"]))

        def fail(events: object) -> None:
            raise RuntimeError("listener")

        received_events: list[StoreEvent] = []
        store.subscribe(fail)
        end = store.subscribe(received_events.extend)
        await fill(store, "a/1", "a/2")
        end()
        await fill(store, "a/3")
        assert [event.name for event in received_events] == ["1", "2"]
        assert reports == ["a listener of the store failed"] * 3

    run(scenario)


def test_events_outside_the_window_are_read_from_disk_or_gone(
    run: Callable[[Scenario], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_window, "MAX_WINDOW_EVENTS", 10)

    async def scenario(store: Store) -> None:
        watch = store.watch(B, since=0)
        for number in range(60):
            await fill(store, f"a/{number % 7}")
        if store.compacted:  # in memory
            assert store.compacted == 50
            with pytest.raises(Gone):
                await watch.next_batch()
            assert len(await store.watch(B, since=50).next_batch()) == 10
        else:
            events: list[StoreEvent] = []
            while len(events) < 60:
                events += await watch.next_batch()
            assert [event.revision for event in events] == list(range(1, 61))
            assert events[8].previous == body(2) and events[8].previous_revision == 2
            assert [entry.revision for entry in await store.list_at(B, "a", 30)] == [29, 30, 24, 25, 26, 27, 28]

    run(scenario)


def test_history_is_compacted_by_revision_count(tmp_path: Path) -> None:
    async def main() -> None:
        store = await Store.open(tmp_path / "argosy.db", retention=Retention(max_revisions=64))
        for _ in range(300):
            await fill(store, "a/1")
        await wait_until_async(lambda: store.compacted >= 300 - 64 - 4)
        assert store.compacted <= 300 - 64
        await store.close()

    asyncio.run(main())


def test_history_is_compacted_by_bytes_and_by_age(tmp_path: Path) -> None:
    async def main(retention: Retention, path: Path) -> None:
        store = await Store.open(path, retention=retention)
        for _ in range(50):
            await store.put(B, "a", "1", lambda revision: b"x" * 1_000)
        await wait_until_async(lambda: store.compacted)
        await store.close()

    asyncio.run(main(Retention(max_bytes=20_000), tmp_path / "bytes.db"))
    asyncio.run(main(Retention(max_age_seconds=0.1), tmp_path / "age.db"))


def test_cancelled_writer_does_not_abort_its_commit() -> None:
    async def check() -> None:
        store = await Store.open(None)
        commit = store.put("configmaps", "ns", "a", lambda revision: b"{}")

        async def write() -> None:
            await commit

        writer = asyncio.ensure_future(write())
        await asyncio.sleep(0)
        writer.cancel()
        await store.wait_until_durable()
        assert store.get("configmaps", "ns", "a") is not None
        await store.close()

    asyncio.run(check())

"""A new owner resolves Git revisions again: the previous owner may have delivered a newer commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.controller.sharding.membership import KeyOwnership, ShardMembership
from argosy.kube.controller.sharding.rendezvous_hash import find_owner
from argosy.kube.objects import key_of
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Room, config_map, engine_room
from support.simulated_argocd import MANAGER, at_work

pytestmark = pytest.mark.anyio
APPS = [f"app-{number}" for number in range(20)]
AUTOMATED = {"automated": {"prune": True}}
FENCED = {"annotations": {"argosy.dev/fence": "1/another"}}
ADOPTED = {"annotations": {"argosy.dev/engine": "argosy", "argocd.argoproj.io/skip-reconcile": "true"}}


@pytest.fixture(autouse=True)
def nobody_tells_of_a_push(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable local polling, as for a remote repository, which is polled every two minutes."""
    monkeypatch.setattr("argosy.gitops.engine.local_repository_poller.LOCAL_POLL_SECONDS", 3600.0)


def delivered_by_another(revision: str, room: Room) -> dict[str, Any]:
    source = {"repoURL": room.repository.url, "path": "app", "targetRevision": "main"}
    result = {"revision": revision, "source": source}
    times = {"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"}
    state = {"phase": "Succeeded", "operation": {"sync": {}}, "syncResult": result, **times}
    return {"status": {"operationState": state}}


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not is_so():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def another(room: Room) -> AsyncIterator[ShardMembership]:
    """Add a shard member that reconciles nothing; it leaves when the context ends."""
    membership = ShardMembership(room.cluster, CONTROL, identity="another")
    keeping = asyncio.create_task(membership.run())
    try:
        await until(lambda: len(membership.roster) == 2 and room.engine.sharding.members.roster == membership.roster)
        yield membership
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await membership.leave()


async def heard_of_the_first_commit(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="1")})
    await room.deliver("witness", syncPolicy=AUTOMATED, metadata=ADOPTED)
    await room.until_synced(name="witness")


async def test_new_shard_owner_does_not_deliver_an_older_revision(tmp_path: Path) -> None:
    async with engine_room(tmp_path, member="one") as room:
        await heard_of_the_first_commit(room)
        requests: list[str] = []
        room.engine.repositories.on_request = lambda display_url, request, seconds, is_good: requests.append(request)
        async with another(room) as there:
            new = room.repository.push({"app/settings.yaml": config_map(a="2"), "app/more.yaml": config_map("more")})
            owned_names = [name for name in APPS if there.find_ownership(f"{CONTROL}/{name}") is KeyOwnership.OURS]
            for name in owned_names:
                await room.deliver(name, metadata=FENCED)
                await room.patch_app(delivered_by_another(new, room), name)
            assert owned_names and not requests
        for name in owned_names:
            app = await room.until(lambda status: status["sync"]["revision"], name)
            assert app["status"]["sync"]["revision"] == new
        assert 1 <= requests.count("ls-remote") <= 3, "many that were taken over at once share an answer"


@pytest.mark.tier("all")
async def test_adoption_from_argo_cd_does_not_deliver_an_older_revision(tmp_path: Path) -> None:
    async with engine_room(tmp_path) as room, at_work(room.cluster):
        await until(lambda: bool(room.engine.argocd_detection.engines.controller_names))
        await heard_of_the_first_commit(room)
        new = room.repository.push({"app/settings.yaml": config_map(a="2")})
        await room.deliver(syncPolicy=AUTOMATED)
        observed_app = await room.until(lambda status: status["sync"]["revision"])
        await room.patch_app({**delivered_by_another(new, room), "metadata": ADOPTED})
        before = observed_app["status"]["sync"]
        app = await room.until(lambda status: status["sync"] != before)
        assert app["status"]["sync"]["revision"] == new


async def handed_over_with_an_operation(room: Room, manager: str) -> str:
    """Hand over an Application last seen as Argo CD's, with an operation that the given field manager started."""
    await until(lambda: bool(room.engine.argocd_detection.engines.controller_names))
    name = next(app_name for app_name in APPS if find_owner({"one", "another"}, f"{CONTROL}/{app_name}") == "another")
    application = await room.deliver(name)
    await heard_of_the_first_commit(room)  # by now argosy also knows that Argo CD has the other Application
    async with another(room):
        running = {"phase": "Running", "startedAt": "2026-01-01T00:00:00Z", "operation": {"sync": {}}}
        patch = {"operation": {"sync": {}}, "status": {"operationState": running}}
        await room.cluster.patch(key_of(application), {**patch, "metadata": ADOPTED}, manager=manager)
    return name


async def test_operation_started_by_another_argosy_member_continues_after_handover(tmp_path: Path) -> None:
    async with engine_room(tmp_path, member="one") as room, at_work(room.cluster):
        name = await handed_over_with_an_operation(room, "argosy")
        assert (await room.until_over(name))["status"]["operationState"]["phase"] == "Succeeded"


@pytest.mark.tier("all")
async def test_argo_cd_operation_is_not_continued_on_handover(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with engine_room(tmp_path, member="one") as room, at_work(room.cluster):
        name = await handed_over_with_an_operation(room, MANAGER)
        await until(lambda: f"{CONTROL}/{name}: waiting for a running operation of Argo CD" in caplog.text)
        assert (await room.app(name))["status"]["operationState"]["phase"] == "Running"

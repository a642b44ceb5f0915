"""A render that exhausts its worker is retried with backoff, until something changes or a user requests it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.errors import LimitError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.reconciler.app_memo import AppMemos
from argosy.gitops.reconciler.render_cache import FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS, RenderCache, RenderRequest
from argosy.gitops.render import BuildSettings
from argosy.isolation.errors import TIMED_OUT
from support.file_trees import TextTree

pytestmark = pytest.mark.anyio
NOON = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


class TimingOut:
    """Replaces the process pool: every call exhausts its worker."""

    def __init__(self, exhausted: str = TIMED_OUT) -> None:
        self.calls, self.exhausted = 0, exhausted

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        self.calls += 1
        error = LimitError("it takes longer than 60 s")
        error.exhaustion_reason = self.exhausted
        raise error


class World:
    def __init__(self, crew: TimingOut) -> None:
        self.crew, self.time = crew, 1000.0
        self.memos = AppMemos()
        self.renders = RenderCache(crew, self.memos, lambda: self.time, lambda: NOON)

    async def render(self, revision: str = "1" * 40, *, afresh: bool = False, **spec: Any) -> str:
        """Return the error message."""
        with pytest.raises(LimitError) as error_info:
            await self.renders.render(build_render_request(revision, **spec), 0, nothing_remote, ignores_cache=afresh)
        return str(error_info.value)


async def nothing_remote(url: str, ref: str) -> Checkout:
    raise AssertionError(f"{url} was fetched")


def app(**source: Any) -> Application:
    wire = {"repoURL": "https://git.example/x", "path": "dev", **source}
    return read_application({"metadata": {"name": "models"}, "spec": {"source": wire}})


def build_render_request(revision: str, **source: Any) -> RenderRequest:
    application = app(**source)
    return RenderRequest(
        application, application.sources[0], Checkout(TextTree({"dev/x.yaml": ""}), revision), BuildSettings()
    )


async def test_each_consecutive_timeout_doubles_the_wait_up_to_ten_minutes() -> None:
    world, waits = World(TimingOut()), []
    for times in range(1, 10):
        await world.render()
        assert world.crew.calls == times
        wait = world.renders.seconds_until_retry(app())
        assert wait is not None
        waits.append(wait)
        world.time += wait - 0.1
        await world.render()
        assert world.crew.calls == times, "it was tried before its time"
        world.time += 0.1
    assert waits[:4] == [FIRST_RETRY_SECONDS * 2**power for power in range(4)]
    assert waits[-1] == MAX_RETRY_SECONDS == 600.0


async def test_error_contains_the_timeout_count_and_the_next_retry() -> None:
    world = World(TimingOut())
    assert "; render timed out (1st time); next try 12:00:10 UTC; retry now: " in await world.render()
    world.time += 10
    await world.render()
    world.time += 20
    first = await world.render()
    assert first.endswith(
        "render timed out (3rd time); next try 12:00:40 UTC; retry now: argosy app get models --hard-refresh"
    )
    assert await world.render() == first  # the same text, so that no status is written for it


@pytest.mark.parametrize(
    "change", [{"revision": "2" * 40}, {"afresh": True}, {"helm": {"parameters": [{"name": "a", "value": "b"}]}}]
)
async def test_new_revision_spec_change_or_hard_refresh_retries_at_once_and_resets_backoff(
    change: dict[str, Any],
) -> None:
    world = World(TimingOut())
    await world.render()
    world.time += FIRST_RETRY_SECONDS
    await world.render()
    assert "render timed out (1st time)" in await world.render(**change)
    assert world.crew.calls == 3 and world.renders.seconds_until_retry(app()) == FIRST_RETRY_SECONDS


async def test_limit_error_that_exhausted_no_worker_is_not_delayed() -> None:
    world = World(TimingOut(""))
    assert await world.render() == await world.render() == "it takes longer than 60 s"
    assert world.crew.calls == 2 and world.renders.seconds_until_retry(app()) is None


async def test_forgotten_application_is_retried_at_once() -> None:
    world = World(TimingOut("ran out of memory"))
    assert "render ran out of memory (1st time)" in await world.render()
    world.memos.forget(app().key)
    assert world.renders.seconds_until_retry(app()) is None
    await world.render()
    assert world.crew.calls == 2


async def test_due_retry_is_not_scheduled_again_before_the_next_render() -> None:
    world = World(TimingOut())
    await world.render()
    world.time += FIRST_RETRY_SECONDS
    assert world.renders.seconds_until_retry(app()) is None
    world.time += MAX_RETRY_SECONDS
    assert world.renders.seconds_until_retry(app()) is None
    await world.render()
    assert world.renders.seconds_until_retry(app()) == 2 * FIRST_RETRY_SECONDS, "the wait began anew"


async def test_retry_command_names_a_namespace_other_than_the_control_namespace() -> None:
    renders = RenderCache(TimingOut(), AppMemos(), lambda: 0.0, lambda: NOON)
    renders.control_namespace = "argocd"
    source = {"repoURL": "https://git.example/x", "path": "dev"}
    for namespace, name in (("argocd", "models"), ("shops", "shops/models")):
        metadata = {"name": "models", "namespace": namespace}
        application = read_application({"metadata": metadata, "spec": {"source": source}})
        checkout = Checkout(TextTree({"dev/x.yaml": ""}), "1" * 40)
        settings = BuildSettings()
        with pytest.raises(LimitError) as raised:
            await renders.render(
                RenderRequest(application, application.sources[0], checkout, settings), 0, nothing_remote
            )
        assert str(raised.value).endswith(f"retry now: argosy app get {name} --hard-refresh")

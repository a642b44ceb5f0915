"""Hosts of charts that send a byte at a time keep nothing else waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from argosy.errors import SourceUnreachable
from argosy.gitops.source.limits import SourceLimits
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.http_client.request_threads import MAX_THREADS, MAX_THREADS_PER_HOST
from support.chart_server import chart_server
from support.deadlines import wait_until_async
from support.repositories import Repository
from support.slow_server import SlowServer, slow_server

pytestmark = pytest.mark.anyio
Opened = Callable[..., Repositories]
HEADER = b"HTTP/1.1 200 OK\r\nX-"


def start_checkouts(repositories: Repositories, server: SlowServer) -> list[asyncio.Task[object]]:
    """Start more checkouts of charts than the default thread pool and that of charts have threads."""
    urls = [f"http://127.0.0.1:{server.port}/{number}" for number in range(40)]
    return [asyncio.create_task(repositories.checkout_chart(url, "shop", "1.0.0")) for url in urls]


async def end(checkouts: list[asyncio.Task[object]]) -> list[BaseException | object]:
    for checkout in checkouts:
        checkout.cancel()
    return await asyncio.gather(*checkouts, return_exceptions=True)


async def test_git_is_read_while_chart_hosts_are_slow(opened: Opened, repository: Repository) -> None:
    revision = repository.commit({"a.yaml": "a: 1\n"})
    repositories = opened()
    charts = opened(SourceSettings(protocols=frozenset({"http"})))
    with slow_server(HEADER) as server:
        checkouts = start_checkouts(charts, server)
        await wait_until_async(lambda: server.open_connections == MAX_THREADS_PER_HOST)
        assert (await repositories.checkout(str(repository.path), "main")).revision == revision
        assert not any(checkout.done() for checkout in checkouts)
        await end(checkouts)
        await wait_until_async(lambda: server.open_connections == 0)


async def test_one_slow_host_leaves_threads_to_other_chart_hosts(opened: Opened) -> None:
    assert MAX_THREADS_PER_HOST < MAX_THREADS
    repositories = opened(SourceSettings(protocols=frozenset({"http"})))
    with slow_server(HEADER) as server, chart_server() as host:
        host.publish("shop", "1.0.0")
        checkouts = start_checkouts(repositories, server)
        await wait_until_async(lambda: server.open_connections == MAX_THREADS_PER_HOST)
        url = host.url.replace("127.0.0.1", "localhost")
        assert (await repositories.checkout_chart(url, "shop", "1.0.0")).revision == "1.0.0"
        await end(checkouts)


async def test_fetch_that_waits_for_a_slow_host_ends_at_its_deadline(opened: Opened) -> None:
    limits = SourceLimits(fetch_seconds=0.5)
    repositories = opened(SourceSettings(protocols=frozenset({"http"}), limits=limits))
    with slow_server(HEADER) as server:
        results = await asyncio.gather(*start_checkouts(repositories, server), return_exceptions=True)
    assert {type(result) for result in results} == {SourceUnreachable}
    assert any("other requests wait for slow hosts" in str(result) for result in results)

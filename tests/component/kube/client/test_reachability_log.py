"""The reachability log: one log line when an API server stops answering, and one when it answers again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from types import SimpleNamespace

import pytest

from argosy.errors import ArgosyError, Forbidden
from argosy.kube.client import transport
from argosy.kube.client.cluster_client import connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.reachability_log import OUTAGE_GRACE_SECONDS, ReachabilityLog, choose_log_level
from argosy.kube.client.status_errors import ApiServerUnavailable
from argosy.kube.controller import InformerCache
from argosy.kube.controller.informer import Informer
from argosy.kube.well_known_kinds import CONFIG_MAP
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio


def list_log_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.INFO]


async def test_outage_is_logged_once_after_the_grace_period_and_once_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    moments = iter((0.0, 10.0, 11.0, 12.5, 13.0, 20.0, 31.0))
    contact = ReachabilityLog(lambda: next(moments))
    contact.record_failure("a: connection refused")
    contact.record_answer()
    assert list_log_messages(caplog) == []
    for _ in range(5):
        contact.record_failure("a: connection refused")
    contact.record_answer()
    contact.record_answer()
    assert list_log_messages(caplog) == [
        "API server does not answer, retrying: error=a: connection refused",
        "API server answers again: outage_seconds=21",
    ]


async def test_many_watches_log_one_outage_and_one_recovery(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    request_count, answer = 0, b""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal request_count
        with contextlib.suppress(asyncio.IncompleteReadError):  # a cancelled client closes the connection
            await reader.readuntil(b"\r\n\r\n")
            request_count += 1
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, await connect(Connection(server=f"http://127.0.0.1:{port}")) as cluster:
        cluster.set_reachability_log(ReachabilityLog(grace=0.0))
        watches = [
            asyncio.create_task(Informer(cluster, CONFIG_MAP, InformerCache(), namespace=f"n{at}").run())
            for at in range(5)
        ]
        async with asyncio.timeout(HANG_SECONDS):
            while request_count < 20:
                await asyncio.sleep(0.01)
            (away,) = list_log_messages(caplog)
            answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            while len(list_log_messages(caplog)) < 2:
                await asyncio.sleep(0.01)
        for task in watches:
            task.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
    assert away.startswith(f"API server does not answer, retrying: error=127.0.0.1:{port}: the connection broke")
    assert list_log_messages(caplog)[1].startswith("API server answers again: outage_seconds=")


async def test_cancelled_call_without_an_answer_counts_as_unreachable(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = [0.0]

    def now() -> float:
        return time.monotonic() + ahead[0]

    monkeypatch.setattr(transport, "time", SimpleNamespace(monotonic=now))
    is_asked = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_asked.set()
        await reader.read()

    silent = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with silent, await connect(Connection(server=f"http://127.0.0.1:{port}")) as cluster:
        cluster.set_reachability_log(ReachabilityLog(now))
        question = asyncio.create_task(cluster.version())
        await asyncio.wait_for(is_asked.wait(), HANG_SECONDS)
        ahead[0] += max(transport.NO_ANSWER_SECONDS, OUTAGE_GRACE_SECONDS)
        question.cancel()
        with pytest.raises(asyncio.CancelledError):
            await question
    assert list_log_messages(caplog) == [
        f"API server does not answer, retrying: error=127.0.0.1:{port}: did not answer in time"
    ]


@pytest.mark.parametrize(
    ("error", "level"),
    [(ApiServerUnavailable("a: refused"), logging.DEBUG), (ApiServerUnavailable("a: busy", code=503), logging.INFO),
     (Forbidden("no"), logging.INFO)],
)  # fmt: skip
async def test_only_unreachable_server_errors_are_lowered_to_debug(error: ArgosyError, level: int) -> None:
    assert choose_log_level(error, logging.INFO) == level

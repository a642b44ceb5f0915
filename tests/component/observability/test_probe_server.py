"""The HTTP server for probes and metrics: /healthz, /livez, /readyz, /metrics."""

from __future__ import annotations

import asyncio

import pytest

from argosy.features.controller.process import ControllerOptions, _probe_address
from argosy.observability.probe_server import ProbeSources, serve_probes
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio


async def ask(port: int, question: bytes) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(question)
    writer.write_eof()
    async with asyncio.timeout(HANG_SECONDS):
        answer = await reader.read()
    writer.close()
    return answer.decode()


@pytest.mark.parametrize(("question", "code", "text"), [
    ("GET /healthz HTTP/1.1", "200", "ok\n"),
    ("GET /livez HTTP/1.1", "200", "ok\n"),
    ("GET /readyz?verbose HTTP/1.1", "200", "ok\n"),
    ("GET /metrics HTTP/1.1", "200", "jobs 1\nruns 2\n"),
    ("GET /secrets HTTP/1.1", "404", "not found; available: /healthz"),
    ("POST /metrics HTTP/1.1", "405", "method not allowed"),
])  # fmt: skip
async def test_probe_server_answers_each_path(question: str, code: str, text: str) -> None:
    async with serve_probes(-1, ProbeSources([lambda: "jobs 1\n", lambda: "runs 2\n"])) as port:
        head, _, body = (await ask(port, f"{question}\r\nHost: a\r\n\r\n".encode())).partition("\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {code} ")
    assert body.startswith(text)


async def test_problems_are_a_503_with_one_line_each() -> None:
    troubles = ["its Lease has run out", "nothing moves"]
    signs = ProbeSources(
        health_problems=lambda: troubles, readiness_problems=lambda: ["not yet"], liveness_problems=lambda: troubles[1:]
    )
    async with serve_probes(-1, signs) as port:
        well = await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n")
        alive = await ask(port, b"GET /livez HTTP/1.1\r\n\r\n")
        ready = await ask(port, b"GET /readyz HTTP/1.1\r\n\r\n")
    assert well.startswith("HTTP/1.1 503 ") and well.endswith("\r\n\r\nits Lease has run out\nnothing moves\n")
    assert alive.startswith("HTTP/1.1 503 ") and alive.endswith("\r\n\r\nnothing moves\n")
    assert ready.startswith("HTTP/1.1 503 ") and ready.endswith("\r\n\r\nnot yet\n")


NONSENSE = [b"", b"\r\n\r\n", b"nonsense\r\n\r\n", b"GET " + b"a" * 100_000, b"\xff\xfe \xff\r\n\r\n"]


@pytest.mark.parametrize("question", NONSENSE)
async def test_malformed_request_is_not_answered_and_the_next_one_is(question: bytes) -> None:
    async with serve_probes(-1, ProbeSources()) as port:
        try:
            assert "200 OK" not in await ask(port, question)
        except ConnectionError:
            pass
        assert "200 OK" in await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n")


async def test_occupied_port_is_not_fatal_and_logged_with_the_flag(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        serve_probes(-1, ProbeSources()) as port,
        serve_probes(port, ProbeSources(), flag="--metrics-port") as second,
    ):
        assert second == 0
    assert f"cannot listen on port {port} of 127.0.0.1 (Address already in use): " in caplog.text
    assert "choose another port: --metrics-port N" in caplog.text


@pytest.mark.parametrize(("listen", "is_everywhere"), [("127.0.0.1", False), ("localhost", False), ("::", True)])
async def test_probe_server_listens_only_on_its_address(listen: str, is_everywhere: bool) -> None:
    """Every address of 127.0.0.0/8 belongs to this machine."""
    async with serve_probes(-1, ProbeSources(), address=listen) as port:
        assert "200 OK" in await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n")
        try:
            _, writer = await asyncio.open_connection("127.0.0.2", port)
        except OSError:
            assert not is_everywhere
        else:
            writer.close()
            assert is_everywhere


@pytest.mark.parametrize(
    ("listen", "in_pod", "address"),
    [("", "", "127.0.0.1"), ("", "10.0.0.1", "::"), ("127.0.0.1", "10.0.0.1", "127.0.0.1"), ("::", "", "::")],
)
async def test_controller_probes_listen_on_loopback_and_in_a_pod_on_all_addresses(
    listen: str, in_pod: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", in_pod)
    assert _probe_address(ControllerOptions(listen=listen)) == address


async def test_port_zero_disables_the_probe_server() -> None:
    async with serve_probes(0, ProbeSources()) as port:
        assert port == 0

"""Clients that speak HTTP/2, on a real socket: they are served gRPC only, and HTTP/1.1 is not disturbed."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated

from argosy.features.serve.http2 import connection_count
from argosy.features.serve.http2.preface import PREFACE
from argosy.features.serve.http_server import ServerCertificate, open_listener, serve_application
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from support.certificates import issue
from support.deadlines import HANG_SECONDS
from support.grpc_native import NativeClient, call_native
from support.grpc_web import frame
from support.page_site import CONTROL, a_site, on_a_socket
from support.route_table import build_routes

pytestmark = pytest.mark.anyio
SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
# `:method: GET`, `:scheme: http`, `:path: /`, `:authority: a`, end of headers and stream, stream 1
HEADERS = b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x41\x01a"
REFUSED = b"use HTTP/1.1 for other requests\n"
WATCH = "/application.ApplicationService/Watch"
VERSION = "/version.VersionService/Version"
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


def talk(connection: socket.socket, data: bytes, until: bytes) -> bytes:
    """Send bytes, and read until the answer ends with `until`; b"" reads to the end."""
    connection.settimeout(HANG_SECONDS)
    connection.sendall(data)
    answer = b""
    while not until or not answer.endswith(until):
        chunk = connection.recv(4096)
        if not chunk:
            return answer
        answer += chunk
    return answer


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS)


async def test_a_request_that_is_not_grpc_is_refused_at_once() -> None:
    async with on_a_socket(a_site()) as (client, _):
        with connect(client.port) as connection:
            answer = await asyncio.to_thread(talk, connection, PREFACE + SETTINGS + HEADERS, REFUSED)
            assert answer.endswith(REFUSED)


async def test_a_frame_that_is_too_large_closes_the_connection() -> None:
    async with on_a_socket(a_site()) as (client, _):
        with connect(client.port) as connection:
            answer = await asyncio.to_thread(talk, connection, PREFACE + b"\xff\xff\xff\0\0\0\0\0\1" + b"x" * 20, b"")
            assert answer  # settings, perhaps a GOAWAY, and the end


async def test_connections_of_one_address_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_count, "MAX_CONNECTIONS_PER_ADDRESS", 1)
    async with on_a_socket(a_site()) as (client, _):
        with await asyncio.to_thread(NativeClient, client.port) as first:
            for body in (b"", b""):
                stream = first.begin(VERSION)
                first.send(stream, frame(body), is_last=True)
                assert (await asyncio.to_thread(first.read, stream, VERSION)).status == 0
            with connect(client.port) as connection:
                answer = await asyncio.to_thread(talk, connection, PREFACE + SETTINGS, b"")
                client_side = H2Connection(H2Configuration(client_side=True))
                client_side.initiate_connection()
                (refusal,) = [e for e in client_side.receive_data(answer) if isinstance(e, ConnectionTerminated)]
                assert refusal.error_code == ErrorCodes.ENHANCE_YOUR_CALM
        async with asyncio.timeout(HANG_SECONDS):
            while not await asyncio.to_thread(is_answered, client.port):
                pass


async def test_connections_of_a_trusted_proxy_are_those_of_many_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_count, "MAX_CONNECTIONS_PER_ADDRESS", 1)
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argosy-cm", "namespace": CONTROL}}
    site = a_site([{**settings, "data": {"server.proxies": "10.0.0.0/8, 127.0.0.1"}}])
    async with on_a_socket(site) as (client, _), asyncio.timeout(HANG_SECONDS):
        with await asyncio.to_thread(NativeClient, client.port):
            assert [await asyncio.to_thread(is_answered, client.port) for _ in range(2)] == [True, True]


def is_answered(port: int) -> bool:
    try:
        return call_native(port, VERSION, frame(b"")).status == 0
    except (EOFError, OSError):
        return False


async def test_open_requests_end_with_the_server() -> None:
    async with on_a_socket(a_site()) as (client, entry):
        with await asyncio.to_thread(NativeClient, client.port) as native:
            stream = native.begin(WATCH, {"token": "ann"})
            native.send(stream, frame(b""), is_last=True)
            await asyncio.to_thread(native._receive)
            entry.close()  # as the server does first: h2, unlike other clients, reads nothing after a GOAWAY
            reply = await asyncio.to_thread(native.read, stream, WATCH)
            assert (reply.status, reply.message) == (14, "the server is shutting down")


def test_frames_are_sent_at_once() -> None:
    with open_listener("127.0.0.1", 0) as listener, connect(listener.getsockname()[1]):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_http_1_1_is_answered_as_before() -> None:
    async with on_a_socket(a_site()) as (client, _):
        with connect(client.port) as connection:
            answer = await asyncio.to_thread(talk, connection, REQUEST, b"")
            assert answer.startswith(b"HTTP/1.1 200")


def send_in_pieces(port: int, pieces: list[bytes], until: bytes) -> bytes:
    """Send pieces that the server reads one by one: it answers another connection after each."""
    with connect(port) as connection:
        for piece in pieces[:-1]:
            connection.sendall(piece)
            with connect(port) as other:
                assert talk(other, REQUEST, b"").startswith(b"HTTP/1.1 200")
        return talk(connection, pieces[-1], until)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "PRI"])
async def test_a_request_that_arrives_in_pieces_is_not_taken_for_http_2(method: str) -> None:
    request = (
        f"{method} /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
    )
    async with on_a_socket(a_site()) as (client, _):
        pieces = [request[:1], request[1:2], request[2:4], request[4:]]
        answer = await asyncio.to_thread(send_in_pieces, client.port, pieces, b"")
        assert answer.startswith(b"HTTP/1.1 400" if method == "PRI" else b"HTTP/1.1 405")


async def test_a_preface_that_arrives_in_pieces_is_answered() -> None:
    async with on_a_socket(a_site()) as (client, _):
        pieces = [PREFACE[:1], PREFACE[1:10], PREFACE[10:] + SETTINGS, HEADERS]
        answer = await asyncio.to_thread(send_in_pieces, client.port, pieces, REFUSED)
        assert answer.endswith(REFUSED)


@pytest.fixture
async def tls_port(tmp_path: Path) -> AsyncIterator[tuple[int, Path]]:
    certificate = issue("127.0.0.1")
    files = (tmp_path / "tls.crt", tmp_path / "tls.key")
    files[0].write_bytes(certificate.pem)
    files[1].write_bytes(certificate.key_pem)
    site = a_site(is_tls=True)
    application = WebApplication(site, build_routes(site))
    listener = open_listener("127.0.0.1", 0)
    server = serve_application(
        application, [listener], certificate=ServerCertificate(*files), on_closing=application.close
    )
    async with server as port:
        yield port, files[0]


def negotiate(port: int, protocols: list[str]) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(protocols)
    return context.wrap_socket(connect(port), server_hostname="127.0.0.1")


async def test_a_browser_that_offers_both_protocols_gets_http_1_1(tls_port: tuple[int, Path]) -> None:
    connection = await asyncio.to_thread(negotiate, tls_port[0], ["h2", "http/1.1"])
    with connection:
        assert connection.selected_alpn_protocol() == "http/1.1"
        assert (await asyncio.to_thread(talk, connection, REQUEST, b"")).startswith(b"HTTP/1.1 200")


async def test_grpc_is_negotiated_over_tls(tls_port: tuple[int, Path]) -> None:
    reply = await asyncio.to_thread(call_native, tls_port[0], VERSION, frame(b""), is_tls=True)
    assert (reply.status, reply.document()["Version"]) == (0, "1.2.3")

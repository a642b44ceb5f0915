"""A request ends at its deadline, whichever part of it a host or a name server delays."""

from __future__ import annotations

import socket
import threading

import pytest

from argosy.errors import TransientError
from argosy.http_client.allowed_host_request import DeliveryUnknown, OutboundRequest, send_request
from argosy.http_client.file_download import DownloadRequest, download
from argosy.http_client.request_deadline import RequestDeadline
from support.slow_server import slow_server

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
IN_BODY, IN_HEADER, IN_ENDLESS_BODY = HEAD, b"HTTP/1.1 200 OK\r\nX-", b"HTTP/1.1 200 OK\r\n\r\n"
SECONDS = 0.3
# The head of a TLS record that announces a handshake message of 15 KiB, of which one byte after the other follows.
TLS_RECORD = b"\x16\x03\x03\x3c\x00\x02\x00\x3b\xfc"


@pytest.mark.parametrize("beginning", [IN_BODY, IN_HEADER, IN_ENDLESS_BODY])
def test_request_to_a_slowly_dripping_host_times_out(beginning: bytes) -> None:
    with slow_server(beginning) as server, pytest.raises(DeliveryUnknown, match="no response"):
        send_request(OutboundRequest("GET", f"http://127.0.0.1:{server.port}/", timeout_seconds=SECONDS))


@pytest.mark.parametrize("beginning", [IN_BODY, IN_HEADER, IN_ENDLESS_BODY])
def test_download_from_a_slowly_dripping_host_times_out(beginning: bytes) -> None:
    with slow_server(beginning) as server, pytest.raises(TransientError, match="timed out"):
        download(DownloadRequest(f"http://127.0.0.1:{server.port}/", 1 << 20), RequestDeadline(SECONDS))


def test_download_times_out_in_a_slowly_dripping_tls_handshake() -> None:
    with slow_server(TLS_RECORD, b"\0") as server, pytest.raises(TransientError, match="timed out"):
        download(DownloadRequest(f"https://127.0.0.1:{server.port}/", 1 << 20), RequestDeadline(SECONDS))


def test_download_times_out_while_a_proxy_drips_its_response_to_connect() -> None:
    with slow_server(IN_HEADER) as server, pytest.raises(TransientError, match="timed out"):
        request = DownloadRequest("https://example.com/", 1 << 20, proxy=f"http://127.0.0.1:{server.port}")
        download(request, RequestDeadline(SECONDS))


@pytest.mark.parametrize("proxy", ["", "http://slow.example:3128"])
def test_download_times_out_while_the_name_is_resolved(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def resolve(*_: object, **__: object) -> list[object]:
        answered.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    try:
        with pytest.raises(TransientError, match=r"not found \(timed out\)"):
            request = DownloadRequest("http://slow.example/", 1 << 20, proxy=proxy)
            download(request, RequestDeadline(SECONDS))
    finally:
        answered.set()


def test_expired_deadline_ends_a_running_download() -> None:
    deadline, problems = RequestDeadline(3600), []

    def run(url: str) -> None:
        try:
            download(DownloadRequest(url, 1 << 20), deadline)
        except TransientError as error:
            problems.append(str(error))

    with slow_server(IN_HEADER) as server:
        thread = threading.Thread(target=run, args=(f"http://127.0.0.1:{server.port}/",))
        thread.start()
        deadline.expire()
        thread.join()
    assert len(problems) == 1

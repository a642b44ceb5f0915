"""Requests to models on behalf of users are guarded against SSRF: allowed and rejected addresses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from argosy.errors import ArgosyError, PolicyError, UserError
from argosy.features.models.ssrf_guarded_requests import send_guarded_request


class _Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", "http://169.254.169.254/")
        self.end_headers()

    def log_message(self, *words: Any) -> None: ...


@pytest.fixture
def echo() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


def test_local_server_may_send_requests_to_loopback(echo: str) -> None:
    answered = send_guarded_request(echo, {"instances": [1]}, is_local=True)
    assert json.loads(answered.body) == {"instances": [1]}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "x.localhost", "0.0.0.0", "[::ffff:127.0.0.1]"])
def test_shared_server_rejects_addresses_of_its_own_machine(host: str, echo: str) -> None:
    with pytest.raises(PolicyError, match="own machine"):
        send_guarded_request(echo.replace("127.0.0.1", host), {"a": 1})


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "2852039166"])
def test_cloud_metadata_addresses_are_rejected(host: str, is_local: bool) -> None:
    with pytest.raises(ArgosyError):
        send_guarded_request(f"http://{host}/latest/meta-data", {"a": 1}, timeout_seconds=1.0, is_local=is_local)


def test_redirect_is_returned_and_not_followed(echo: str) -> None:
    assert send_guarded_request(echo, is_local=True).code == 302


@pytest.mark.parametrize("url", ["file:///etc/passwd", "javascript:alert(1)", "gopher://x/", "", "http://"])
def test_non_http_urls_are_rejected(url: str) -> None:
    with pytest.raises(UserError):
        send_guarded_request(url, {"a": 1}, is_local=True)

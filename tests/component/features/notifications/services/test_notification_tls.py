"""Notification services reject untrusted TLS certificates, unless insecureSkipVerify is set."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from argosy.errors import TransientError
from argosy.features.notifications.services import MessageDelivery, deliver
from argosy.sandbox.apiserver.tls import ensure_certificates


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[tuple[str, list[bytes]]]:
    """An HTTPS server with a certificate of an untrusted authority."""
    got: list[bytes] = []

    class Taker(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    certificates = ensure_certificates(tmp_path / "tls")
    server = HTTPServer(("127.0.0.1", 0), Taker)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate, certificates.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"https://127.0.0.1:{server.server_port}", got
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("kind", ["webhook", "slack", "teams", "github"])
def test_untrusted_certificate_is_rejected_by_http_services(kind: str, stranger: tuple[str, list[bytes]]) -> None:
    url, got = stranger
    options = {"url": url, "apiURL": url, "recipientUrls": {"to": url}, "enterpriseBaseURL": url, "token": "t"}
    status = {"repoURLPath": "https://x/a/b", "revisionPath": "abc", "status": {"state": "success"}}
    own = {"method": "POST", "body": "secret"}
    message = {"message": "secret", "webhook": {"webhook": own}, "github": status}
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(TransientError, match="trust its CA"):
        deliver(MessageDelivery(kind, kind, "to", options, message, "mark", now))
    assert got == []
    if kind == "webhook":
        deliver(MessageDelivery(kind, kind, "to", {**options, "insecureSkipVerify": True}, message, "mark", now))
        assert got == [b"secret"]

"""Git hosts with an invalid certificate or broken TLS: a clear error, and no credentials are sent."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import SourceRefused, SourceTimeout, SourceUnreachable
from argosy.gitops.source.credentials import HostTrust, RepositoryCredential, read_credentials
from argosy.gitops.source.repository_access_settings import SourceLimits, SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from support.certificates import YEAR, Certificate, issue, only_old_tls, server_context
from support.git_server import git_host

pytestmark = pytest.mark.anyio
Opened = Callable[..., Repositories]
PASSWORD = "hunter22-very-secret"
AUTHORITY = issue("authority", is_authority=True)
OTHER_AUTHORITY = issue("another authority", is_authority=True)
LEAF = issue("127.0.0.1", AUTHORITY)
UNTRUSTED = "certificate is not trusted; add its authority to the ConfigMap argocd-tls-certs-cm"
OTHER_HOST = "certificate is for another host; check the address"
NOT_VALID_NOW = "certificate has expired or is not valid yet"
# Git with GnuTLS does not say why a certificate is not trusted.
ANY_REASON = "or renew the certificate if it has expired"
HANDSHAKE = "TLS handshake failed; check that the host speaks TLS 1.2 or newer on this port"


def credentials(url: str, **fields: str) -> list[RepositoryCredential]:
    labels = {"argocd.argoproj.io/secret-type": "repo-creds"}
    values = {"url": url, "username": "me", "password": PASSWORD, **fields}
    return read_credentials([{"metadata": {"name": "creds", "labels": labels}, "stringData": values}])


async def checkout(opened: Opened, url: str, trusted: Certificate | None = AUTHORITY, **fields: str) -> Any:
    trust = HostTrust(authorities_by_host={"127.0.0.1": trusted.pem.decode()} if trusted else {})
    repositories = opened(SourceSettings(), credentials=credentials(url, **fields), trust=trust)
    return await repositories.checkout(f"{url}/models.git", "main")


IMPOSTORS: dict[str, tuple[Certificate, Certificate | None, str]] = {
    "another host": (issue("git.example.com", AUTHORITY), AUTHORITY, OTHER_HOST),
    "another address": (issue("127.0.0.2", AUTHORITY), AUTHORITY, OTHER_HOST),
    "expired": (issue("127.0.0.1", AUTHORITY, starts_in=-2 * YEAR, ends_in=-YEAR), AUTHORITY, NOT_VALID_NOW),
    "not valid yet": (issue("127.0.0.1", AUTHORITY, starts_in=YEAR, ends_in=2 * YEAR), AUTHORITY, NOT_VALID_NOW),
    "self-signed": (issue("127.0.0.1"), None, UNTRUSTED),
    "self-signed beside an authority": (issue("127.0.0.1"), AUTHORITY, UNTRUSTED),
    "no authority given": (LEAF, None, UNTRUSTED),
    "another authority": (issue("127.0.0.1", OTHER_AUTHORITY), AUTHORITY, UNTRUSTED),
    "signed by a server's certificate": (
        issue("127.0.0.1", issue("shop.example.com", AUTHORITY)), AUTHORITY, UNTRUSTED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IMPOSTORS)
async def test_invalid_certificate_is_rejected_before_credentials_are_sent(
    repository, opened: Opened, tmp_path: Path, name: str
) -> None:
    certificate, trusted, message = IMPOSTORS[name]
    repository.commit({"a": "1"})
    with git_host(tmp_path / "served", server_context(certificate, tmp_path)) as host:
        with pytest.raises(SourceRefused) as caught:
            await checkout(opened, host.url, trusted)
        assert host.seen == []
    error_message = str(caught.value)
    assert message in error_message or (message == NOT_VALID_NOW and ANY_REASON in error_message)
    assert PASSWORD not in error_message and "CAfile" not in error_message
    assert f"127.0.0.1:{host.server_address[1]}" in error_message, "the message names the repository"


async def test_host_with_valid_certificate_receives_the_credentials(repository, opened: Opened, tmp_path: Path) -> None:
    commit = repository.commit({"a": "1"})
    with git_host(tmp_path / "served", server_context(LEAF, tmp_path)) as host:
        assert (await checkout(opened, host.url)).revision == commit
        assert all(authorization.startswith("Basic ") for _, authorization in host.seen)


async def test_insecure_accepts_any_certificate(repository, opened: Opened, tmp_path: Path) -> None:
    commit = repository.commit({"a": "1"})
    with git_host(tmp_path / "served", server_context(issue("elsewhere"), tmp_path)) as host:
        assert (await checkout(opened, host.url, insecure="true")).revision == commit


BROKEN = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("authority", "fields"),
    [
        (AUTHORITY._replace(pem=BROKEN.encode()), {}),
        (AUTHORITY, {"tlsClientCertData": BROKEN, "tlsClientCertKey": "!"}),
    ],
    ids=["authority", "client certificate"],
)
async def test_unreadable_configured_certificate_raises_source_refused(
    repository, opened: Opened, tmp_path: Path, authority: Certificate, fields: dict[str, str]
) -> None:
    repository.commit({"a": "1"})
    with git_host(tmp_path / "served", server_context(LEAF, tmp_path)) as host:
        with pytest.raises(SourceRefused, match="of the authority or of the client cannot be read") as caught:
            await checkout(opened, host.url, authority, **fields)
        assert host.seen == []
    assert "/certificate" not in str(caught.value) and "/authority" not in str(caught.value)


async def test_host_with_old_tls_only_is_rejected(repository, opened: Opened, tmp_path: Path) -> None:
    repository.commit({"a": "1"})
    with git_host(tmp_path / "served", only_old_tls(server_context(LEAF, tmp_path))) as host:
        with pytest.raises(SourceRefused, match=HANDSHAKE):
            await checkout(opened, host.url)
        assert host.seen == []


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_redirect_to_another_host_is_not_followed(
    repository, opened: Opened, tmp_path: Path, scheme: str
) -> None:
    repository.commit({"a": "1"})
    context = server_context(LEAF, tmp_path)
    with (
        git_host(tmp_path / "served", context if scheme == "https" else None) as other,
        git_host(tmp_path / "served", context) as host,
    ):
        host.redirect = other.url
        with pytest.raises(SourceRefused, match="redirects are not followed"):
            await checkout(opened, host.url)
        assert other.seen == []


class Deaf(socketserver.BaseRequestHandler):
    """Records what it receives, and sends `reply` if it is set."""

    server: Listener

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            self.request.settimeout(0.1)
            while not self.server.is_over.is_set():
                with contextlib.suppress(TimeoutError):
                    if not (piece := self.request.recv(2**16)):
                        return
                    self.server.received += piece
                    if self.server.reply is not None:
                        self.request.sendall(self.server.reply)
                        self.request.shutdown(socket.SHUT_WR)


class Listener(socketserver.ThreadingTCPServer):
    reply: bytes | None = None
    received = b""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Deaf)
        self.is_over = threading.Event()


@pytest.fixture
def listener() -> Iterator[Listener]:
    server = Listener()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("reply", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n"], ids=["HTTP", "SSH"])
async def test_host_without_tls_is_rejected_and_gets_no_credentials(
    opened: Opened, listener: Listener, reply: bytes
) -> None:
    listener.reply = reply
    with pytest.raises(SourceRefused, match=HANDSHAKE):
        await checkout(opened, f"https://127.0.0.1:{listener.server_address[1]}")
    assert listener.received and b"HTTP" not in listener.received


async def test_host_that_closes_the_handshake_raises_source_unreachable(opened: Opened, listener: Listener) -> None:
    listener.reply = b""
    with pytest.raises(SourceUnreachable, match="the host does not answer"):
        await checkout(opened, f"https://127.0.0.1:{listener.server_address[1]}")
    assert b"HTTP" not in listener.received


async def test_host_that_never_answers_raises_source_timeout(opened: Opened, listener: Listener) -> None:
    url = f"https://127.0.0.1:{listener.server_address[1]}"
    settings = SourceSettings(limits=SourceLimits(list_seconds=0.5))
    repositories = opened(settings, credentials=credentials(url))
    with pytest.raises(SourceTimeout, match=r"no answer in 0\.5 s"):
        await repositories.checkout(f"{url}/models.git", "main")
    assert b"HTTP" not in listener.received

"""A server that fails TLS verification gets no token, and the error says what is wrong."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import json
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from argosy.errors import UserError
from argosy.gitops.clusters.cluster_secret import build_connection
from argosy.kube.client.cluster_client import KubeCluster, connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.status_errors import ApiServerNotTrusted, ApiServerUnavailable
from argosy.kube.resource_key import ResourceKey
from support.certificates import YEAR, Certificate, issue, only_old_tls, server_context
from support.deadlines import wait_until_async
from support.loop_clock import LoopClock, turns
from support.lying_cluster import discovery_document, http_answer

TOKEN = "eyJ-a-token-that-nobody-else-may-see"
KEY = ResourceKey("", "ConfigMap", "ml", "settings")
AUTHORITY = issue("authority", is_authority=True)
OTHER_AUTHORITY = issue("authority", is_authority=True)  # of the same name


class Eavesdropper:
    """A server that keeps every byte it receives, after decryption if it uses TLS."""

    def __init__(self, reply: Callable[[bytes], bytes | None] = lambda head: None) -> None:
        self.received = b""
        self.connections = 0
        self.server_names: list[str | None] = []
        self.port = 0
        self._reply = reply
        self._talks: set[asyncio.Task[Any]] = set()

    @contextlib.asynccontextmanager
    async def serving(self, context: ssl.SSLContext | None = None) -> AsyncIterator[Eavesdropper]:
        if context is not None:
            context.sni_callback = lambda connection, name, _: self.server_names.append(name)
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in tuple(self._talks):
                task.cancel()
            await asyncio.gather(*self._talks, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        self.connections += 1
        try:
            with contextlib.suppress(OSError, ssl.SSLError):
                while piece := await reader.read(2**16):
                    self.received += piece
                    if reply := self._reply(piece):
                        writer.write(reply)
                        await writer.drain()
        finally:
            self._talks.discard(task)
            writer.close()


def honest(head: bytes) -> bytes:
    path = head.split(b" ")[1].split(b"?")[0]
    if path == b"/api":
        return http_answer(discovery_document())
    if path == b"/apis":
        return http_answer({"kind": "APIGroupDiscoveryList", "items": []})
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "uid": "u", "resourceVersion": "1"}
    return http_answer({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


def declared(port: int, **tls: Any) -> Connection:
    """The connection of an Argo CD cluster Secret that trusts AUTHORITY."""
    settings = {"caData": base64.b64encode(AUTHORITY.pem).decode(), **tls}
    config = {"bearerToken": TOKEN, "tlsClientConfig": {name: value for name, value in settings.items() if value}}
    return build_connection({"name": "far", "server": f"https://127.0.0.1:{port}", "config": json.dumps(config)})


async def watched(cluster: KubeCluster) -> None:
    async for _ in cluster.watch(KEY.group_kind, since="1"):
        pass


CALLS: dict[str, Callable[[KubeCluster], Any]] = {
    "get": lambda cluster: cluster.get(KEY),
    "watch": watched,
    "create": lambda cluster: cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": KEY.name, "namespace": KEY.namespace}}
    ),
}

LEAF = issue("127.0.0.1", AUTHORITY)
SHOP = issue("shop.example.com", AUTHORITY)
IMPOSTORS: dict[str, tuple[Certificate, dict[str, Any], str]] = {
    "another host": (issue("api.example.com", AUTHORITY), {}, "IP address mismatch"),
    "another address": (issue("127.0.0.2", AUTHORITY), {}, "IP address mismatch"),
    "a name in the subject only": (issue("127.0.0.1", AUTHORITY, has_alternative_names=False), {}, "mismatch"),
    "expired": (issue("127.0.0.1", AUTHORITY, starts_in=-2 * YEAR, ends_in=-YEAR), {}, "certificate has expired"),
    "not valid yet": (issue("127.0.0.1", AUTHORITY, starts_in=YEAR, ends_in=2 * YEAR), {}, "not yet valid"),
    "self-signed": (issue("127.0.0.1"), {"caData": ""}, "self-signed certificate"),
    "self-signed beside an authority": (issue("127.0.0.1"), {}, "self-signed certificate"),
    "no authority given": (LEAF, {"caData": ""}, "self-signed certificate in certificate chain"),
    "another authority of the same name": (issue("127.0.0.1", OTHER_AUTHORITY), {}, "certificate signature failure|"
                                           "self-signed certificate"),
    "signed by a server's certificate": (issue("127.0.0.1", SHOP), {}, "invalid CA certificate"),
    "a client's certificate": (issue("127.0.0.1", AUTHORITY, is_for_clients=True), {}, "unsuitable certificate purpose|"
                               "unsupported certificate purpose"),
    "serverName of another host": (LEAF, {"serverName": "api.inside"}, "Hostname mismatch"),
}  # fmt: skip


def test_issued_certificates_stay_valid_or_invalid_for_30_days() -> None:
    now, days = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=30)
    issued = {**{name: certificate for name, (certificate, *_) in IMPOSTORS.items()}, "authority": AUTHORITY}
    for name, certificate in issued.items():
        read = x509.load_pem_x509_certificate(certificate.pem)
        starts, ends = read.not_valid_before_utc, read.not_valid_after_utc
        assert (starts <= now < ends) == (starts <= now + days < ends) == (name not in ("expired", "not valid yet"))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", IMPOSTORS)
async def test_invalid_certificate_is_refused_before_the_token_is_sent(tmp_path: Path, name: str, call: str) -> None:
    certificate, settings, reason = IMPOSTORS[name]
    async with Eavesdropper(honest).serving(server_context(certificate, tmp_path)) as server:
        async with await connect(declared(server.port, **settings)) as cluster:
            with pytest.raises(ApiServerNotTrusted, match=reason) as caught:
                await CALLS[call](cluster)
        assert server.received == b""
    message = str(caught.value)
    assert message.startswith(f"127.0.0.1:{server.port}: the certificate is not trusted by ") and TOKEN not in message


async def test_valid_certificate_is_accepted_and_the_token_is_sent(tmp_path: Path) -> None:
    async with Eavesdropper(honest).serving(server_context(LEAF, tmp_path)) as server:
        async with await connect(declared(server.port)) as cluster:
            assert ((await cluster.get(KEY)) or {})["metadata"]["name"] == KEY.name
        assert f"Authorization: Bearer {TOKEN}".encode() in server.received


async def test_server_name_is_sent_as_sni_and_verified(tmp_path: Path) -> None:
    certificate = issue("api.inside", AUTHORITY)
    async with Eavesdropper(honest).serving(server_context(certificate, tmp_path)) as server:
        async with await connect(declared(server.port, serverName="api.inside")) as cluster:
            assert await cluster.get(KEY) is not None
        assert set(server.server_names) == {"api.inside"}


async def test_insecure_accepts_any_certificate_and_excludes_ca_data(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"far.*insecure flag is not allowed"):
        declared(1, insecure=True)
    async with (
        Eavesdropper(honest).serving(server_context(issue("elsewhere"), tmp_path)) as server,
        await connect(declared(server.port, insecure=True, caData="")) as cluster,
    ):
        assert await cluster.get(KEY) is not None


@pytest.mark.parametrize("call", CALLS)
async def test_server_with_only_old_tls_is_refused(tmp_path: Path, call: str) -> None:
    async with Eavesdropper(honest).serving(only_old_tls(server_context(LEAF, tmp_path))) as server:
        async with await connect(declared(server.port)) as cluster:
            with pytest.raises(ApiServerUnavailable, match=r"TLS") as caught:
                await CALLS[call](cluster)
        assert server.received == b""
    assert str(caught.value).startswith(f"127.0.0.1:{server.port}: ") and "permitted" not in str(caught.value)


NOT_TLS = {
    "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n", "SSH": b"SSH-2.0-x\r\n", "alert": b"\x15\x03\x03\x00\x02\x02\x28"
}  # fmt: skip


@pytest.mark.parametrize("reply", NOT_TLS.values(), ids=NOT_TLS)
async def test_server_without_tls_gets_no_token(reply: bytes) -> None:
    async with Eavesdropper(lambda _: reply).serving() as server:
        async with await connect(declared(server.port)) as cluster:
            with pytest.raises(ApiServerUnavailable, match=r"TLS") as caught:
                await cluster.get(KEY)
        assert TOKEN.encode() not in server.received and b"HTTP" not in server.received
    assert str(caught.value).startswith(f"127.0.0.1:{server.port}: ") and "permitted" not in str(caught.value)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_redirect_to_another_host_is_not_followed(tmp_path: Path, code: int, call: str) -> None:
    async with Eavesdropper(honest).serving() as other:

        def elsewhere(head: bytes) -> bytes:
            is_discovery = head.split(b" ")[1].split(b"?")[0] in (b"/api", b"/apis")
            target = f"http://127.0.0.1:{other.port}/api/v1/namespaces/ml/configmaps/settings"
            return honest(head) if is_discovery else http_answer({}, code, Location=target)

        async with (
            Eavesdropper(elsewhere).serving(server_context(LEAF, tmp_path)) as server,
            await connect(declared(server.port)) as cluster,
        ):
            with pytest.raises(ApiServerUnavailable, match=f"127.0.0.1:{server.port}: answers with a redirect"):
                await CALLS[call](cluster)
        assert other.connections == 0


@pytest.mark.parametrize("speaks_tls", [False, True])
async def test_server_that_never_answers_times_out(tmp_path: Path, speaks_tls: bool) -> None:
    clock = LoopClock()
    async with (
        Eavesdropper().serving(server_context(LEAF, tmp_path) if speaks_tls else None) as server,
        await connect(declared(server.port)) as cluster,
    ):
        asking = asyncio.create_task(cluster.get(KEY))
        await wait_until_async(lambda: server.received, "the client said something")
        assert (TOKEN.encode() in server.received) == speaks_tls
        await turns()
        clock.leap(300)
        with pytest.raises(ApiServerUnavailable, match=f"127.0.0.1:{server.port}: did not answer in time"):
            await asking


async def test_cut_tls_handshake_is_reported() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.close()

    server = await asyncio.start_server(cut, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    message = f"127.0.0.1:{port}: cannot be reached: the server ended the TLS handshake"
    async with server, await connect(declared(port)) as cluster:
        with pytest.raises(ApiServerUnavailable, match=message):
            await cluster.get(KEY)

"""KubeCluster against failing servers, proxies and networks. Scripted sockets, no cluster."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from argosy.errors import ClusterError, Gone, TransientError, UserError
from argosy.kube.client import User
from argosy.kube.client.before_write_hook import BEFORE_WRITE
from argosy.kube.client.cluster_client import KubeCluster, connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.status_errors import ApiServerNotTrusted, ApiServerUnavailable
from argosy.kube.client.transport import HttpTransport, ThreadedResolver
from argosy.kube.resource_key import GroupKind, ResourceKey
from support.deadlines import HANG_SECONDS, wait_until_async

pytestmark = pytest.mark.anyio
KIND = GroupKind("", "ConfigMap")
KEY = ResourceKey("", "ConfigMap", "n", "a")
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}}
DISCOVERY = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "configmaps",
                            "responseKind": {"kind": "ConfigMap"},
                            "scope": "Namespaced",
                            "verbs": [],
                        }
                    ],
                }
            ]
        }
    ],
}


class Request(NamedTuple):
    method: str
    path: str
    headers: list[tuple[str, str]]

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name.lower()), "")


Script = Callable[[Request], bytes]  # an empty answer closes the connection


def answer(content: object, code: int = 200, **headers: str) -> bytes:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    more = (f"{name.replace('_', '-')}: {value}" for name, value in headers.items())
    return "\r\n".join((f"HTTP/1.1 {code} X", f"Content-Length: {len(data)}", *more)).encode() + b"\r\n\r\n" + data


class Server:
    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[Request] = []
        self.port = 0

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *rest = head.decode().strip().split("\r\n")
                headers = [(k.lower(), v.strip()) for k, _, v in (line.partition(":") for line in rest)]
                request = Request(*first.split(" ")[:2], headers)
                await reader.readexactly(int(request.header("content-length") or 0))
                discovery = request.path in ("/api", "/apis")
                if not discovery:
                    self.requests.append(request)
                document = DISCOVERY if request.path == "/api" else {"kind": "APIGroupDiscoveryList", "items": []}
                response = answer(document) if discovery else self._script(request)
                writer.write(response)
                if not response or b"Content-Length" not in response:
                    break
        writer.close()

    @contextlib.asynccontextmanager
    async def serving(self, context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()


@contextlib.asynccontextmanager
async def against(script: Script) -> AsyncIterator[tuple[KubeCluster, Server]]:
    async with (
        Server(script).serving() as server,
        await connect(Connection(server=f"http://127.0.0.1:{server.port}")) as cluster,
    ):
        yield cluster, server


def status(code: int, reason: str = "", **more: object) -> dict[str, object]:
    return {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": "told so", **more}


@pytest.mark.parametrize(
    "said",
    [
        answer(status(429), 429, Retry_After="3"),
        answer(b"overloaded", 503, Retry_After="3"),
        answer(status(504), 504, Retry_After="3"),
        answer(b"<html>", 502, Retry_After="3"),
        answer(b"boom", 500, Retry_After="3"),
    ],
)
async def test_transient_error_names_host_and_retry_after_and_is_not_retried(said: bytes) -> None:
    async with against(lambda _: said) as (cluster, server):
        with pytest.raises(TransientError) as caught:
            await cluster.get(KEY)
        assert f"127.0.0.1:{server.port}" in str(caught.value)
        assert isinstance(caught.value, ApiServerUnavailable) and caught.value.retry_after == 3
        assert len(server.requests) == 1


async def test_500_with_a_status_is_not_transient() -> None:
    async with against(lambda _: answer(status(500, "InternalError"), 500)) as (cluster, _):
        with pytest.raises(ClusterError) as caught:
            await cluster.get(KEY)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (500, "InternalError", "told so")


async def test_unreachable_server_is_transient() -> None:
    async with Server(lambda _: b"").serving() as server:
        pass
    async with await connect(Connection(server=f"http://127.0.0.1:{server.port}")) as cluster:
        with pytest.raises(TransientError, match=f"127.0.0.1:{server.port}: cannot be reached"):
            await cluster.get(KEY)


async def test_response_that_is_not_json_is_transient() -> None:
    async with against(lambda _: answer(b"<html>log in</html>")) as (cluster, _):
        with pytest.raises(TransientError, match="not JSON"):
            await cluster.get(KEY)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_refused_connection_is_reported_with_the_system_message(host: str) -> None:
    """The message is the same, whether one address or all of them were tried."""
    async with Server(lambda _: b"").serving() as server:
        port = server.port
    async with await connect(Connection(server=f"http://{host}:{port}")) as cluster:
        with pytest.raises(ApiServerUnavailable) as raised:
            await cluster.get(KEY)
    assert str(raised.value) == f"{host}:{port}: cannot be reached: connection refused"


async def test_untrusted_certificate_error_names_the_expected_ca(tmp_path: Path) -> None:
    pki, authority = Pki(), tmp_path / "ca.crt"
    for file, data in zip(("crt", "key"), pki.sign("localhost")):
        (tmp_path / file).write_bytes(data)
    authority.write_bytes(Pki().authority)
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    async with Server(lambda _: answer(CONFIG_MAP)).serving(server_side) as server:
        at = f"https://localhost:{server.port}"
        for file, expected in ((str(authority), f"the CA in {authority}: "), ("", "a CA that")):
            async with await connect(Connection(server=at, ca_file=file)) as cluster:
                with pytest.raises(ApiServerNotTrusted, match=f"the certificate is not trusted by {expected}"):
                    await cluster.get(KEY)


async def test_redirect_is_not_followed() -> None:
    async with against(lambda _: answer(b"", 302, Location="http://127.0.0.1:1/")) as (cluster, server):
        with pytest.raises(TransientError):
            await cluster.get(KEY)
        assert len(server.requests) == 1


async def test_read_is_retried_once_on_a_dropped_connection_and_a_write_never() -> None:
    async with against(lambda _: b"") as (cluster, server):
        with pytest.raises(TransientError):
            await cluster.get(KEY)
        assert [request.method for request in server.requests] == ["GET", "GET"]
        server.requests.clear()
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}}
        for write in (
            cluster.create(manifest),
            cluster.replace(manifest),
            cluster.delete(KEY),
            cluster.patch(KEY, {}),
            cluster.apply(manifest, manager="m"),
        ):
            with pytest.raises(TransientError):
                await write
        assert [request.method for request in server.requests] == ["POST", "PUT", "DELETE", "PATCH", "PATCH"]


async def test_expired_continue_token_restarts_the_list_without_paging() -> None:
    page = {
        "kind": "ConfigMapList",
        "metadata": {"resourceVersion": "5", "continue": "more"},
        "items": [{"metadata": {"name": "a", "namespace": "n"}}],
    }
    whole = {
        "kind": "ConfigMapList",
        "metadata": {"resourceVersion": "9"},
        "items": [{"metadata": {"name": "a", "namespace": "n"}}, {"metadata": {"name": "b", "namespace": "n"}}],
    }

    def script(request: Request) -> bytes:
        if "continue=more" in request.path:
            return answer(status(410, "Expired"), 410)
        return answer(page if "limit=500" in request.path else whole)

    async with against(script) as (cluster, server):
        items, version = await cluster.list(KIND)
        assert ([item["metadata"]["name"] for item in items], version) == (["a", "b"], "9")
        assert items[0] == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}}
        assert len(server.requests) == 3


async def test_server_that_repeats_a_list_page_is_an_error() -> None:
    item = {"metadata": {"name": "a", "namespace": "n"}}
    page = {"kind": "ConfigMapList", "metadata": {"continue": "more"}, "items": [item]}
    async with against(lambda _: answer(page)) as (cluster, server):
        with pytest.raises(ApiServerUnavailable, match="the same page again"):
            await asyncio.wait_for(cluster.list(KIND), HANG_SECONDS)
        assert len(server.requests) == 2


def streamed(*lines: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(
        b"%x\r\n%s\r\n" % (len(line), line) for line in lines
    )


async def test_watch_cut_within_a_line_ends_after_the_last_complete_event() -> None:
    event = json.dumps({"type": "ADDED", "object": {"metadata": {"name": "a", "namespace": "n"}}}).encode()
    async with against(lambda _: streamed(event + b"\n" + event[:20])) as (cluster, server):
        events = [event async for event in cluster.watch(KIND, since="7")]
        assert [(event.type, event.manifest["kind"]) for event in events] == [("ADDED", "ConfigMap")]
        assert "resourceVersion=7" in server.requests[0].path and "allowWatchBookmarks=true" in server.requests[0].path


async def test_410_error_event_raises_gone() -> None:
    event = json.dumps({"type": "ERROR", "object": status(410, "Expired")}).encode()
    async with against(lambda _: streamed(event + b"\n")) as (cluster, _):
        with pytest.raises(Gone):
            async for _ in cluster.watch(KIND, since="7"):
                pass


async def test_refused_watch_is_an_error() -> None:
    async with against(lambda _: answer(status(403, "Forbidden"), 403)) as (cluster, _):
        with pytest.raises(ClusterError, match="told so"):
            async for _ in cluster.watch(KIND, since="7"):
                pass


async def test_impersonation_headers_contain_every_group_and_extra() -> None:
    user = User("jane", ("a", "b"), "7", {"example.com/why": ("x", "y")})
    async with against(lambda _: answer(CONFIG_MAP)) as (cluster, server):
        await cluster.acting_as(user).get(KEY)
        sent = [header for header in server.requests[0].headers if header[0].startswith("impersonate")]
        assert sent == [
            ("impersonate-user", "jane"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
            ("impersonate-uid", "7"),
            ("impersonate-extra-example.com%2fwhy", "x"),
            ("impersonate-extra-example.com%2fwhy", "y"),
        ]
        with pytest.raises(ClusterError, match="line break"):
            await cluster.acting_as(User("jane\r\nImpersonate-Group: system:masters")).get(KEY)


async def test_names_are_escaped_in_request_paths() -> None:
    async with against(lambda _: answer(status(404, details={"name": "../secrets/x?y"}), 404)) as (cluster, server):
        assert await cluster.get(ResourceKey("", "ConfigMap", "n/../m", "../secrets/x?y")) is None
        assert server.requests[0].path == "/api/v1/namespaces/n%2F..%2Fm/configmaps/..%2Fsecrets%2Fx%3Fy"


async def test_http_proxy_gets_the_request_for_the_server() -> None:
    async with Server(lambda _: answer(b"<html>")).serving() as proxy:
        connection = Connection(server="http://api.example:8080", proxy_url=f"http://127.0.0.1:{proxy.port}")
        async with await connect(connection) as cluster:
            with pytest.raises(TransientError, match=r"api\.example:8080: the answer"):
                await cluster.get(KEY)
        paths = {request.path for request in proxy.requests}
        assert paths == {"http://api.example:8080/api", "http://api.example:8080/apis"}


class Pki:
    """A CA and the certificates it signs, as PEM."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.authority, _ = self.sign("authority", authority=True)

    def sign(self, name: str, *, authority: bool = False) -> tuple[bytes, bytes]:
        key = self._key if authority else ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.9"))])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_named(name))
            .issuer_name(_named("authority"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(names, critical=False)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return certificate.public_bytes(serialization.Encoding.PEM), private


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


async def test_tls_requires_the_ca_the_server_name_and_the_client_certificate(tmp_path: Path) -> None:
    pki = Pki()
    for file, data in zip(("crt", "key"), pki.sign("api.inside")):
        (tmp_path / file).write_bytes(data)
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=pki.authority.decode())
    server_side.verify_mode = ssl.CERT_REQUIRED
    server_side.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    cert, key = pki.sign("jane")
    async with Server(lambda _: answer(CONFIG_MAP)).serving(server_side) as server:
        good = {"ca_data": pki.authority, "tls_server_name": "api.inside", "cert_data": cert, "key_data": key}
        wrong = [{**good, "ca_data": b""}, {**good, "tls_server_name": ""}, {**good, "cert_data": b"", "key_data": b""}]
        for settings, works in [(good, True), *((one, False) for one in wrong)]:
            connection = Connection(server=f"https://127.0.0.1:{server.port}", token="s3cret", **settings)
            async with await connect(connection) as cluster:
                if works:
                    assert await cluster.get(KEY) == CONFIG_MAP
                    continue
                with pytest.raises(TransientError) as caught:
                    await cluster.get(KEY)
                assert "s3cret" not in str(caught.value)
        assert [request.header("authorization") for request in server.requests] == ["Bearer s3cret"]


async def test_proxy_tunnels_tls_and_sees_no_token(tmp_path: Path) -> None:
    pki, heads = Pki(), []
    for file, data in zip(("crt", "key"), pki.sign("api.inside")):
        (tmp_path / file).write_bytes(data)
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(tmp_path / "crt", tmp_path / "key")

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
        writer.close()

    async with Server(lambda _: answer(CONFIG_MAP)).serving(server_side) as server:

        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            inward, outward = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await asyncio.gather(pipe(reader, outward), pipe(inward, writer))

        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        connection = Connection(
            server="https://api.inside:6443",
            ca_data=pki.authority,
            token="s3cret",
            proxy_url=f"http://me:pass@127.0.0.1:{proxy.sockets[0].getsockname()[1]}",
        )
        async with await connect(connection) as cluster:
            assert await cluster.get(KEY) == CONFIG_MAP
        proxy.close()
    assert server.requests[0].header("authorization") == "Bearer s3cret"
    assert all(head.startswith("CONNECT api.inside:6443 HTTP/1.1") for head in heads)
    assert all("Proxy-Authorization: Basic" in head and "s3cret" not in head for head in heads)


async def test_unusable_certificates_are_a_user_error() -> None:
    for settings in ({"ca_data": b"nonsense"}, {"ca_file": "/nowhere"}, {"cert_data": b"x", "key_data": b"y"}):
        with pytest.raises(UserError, match="broken"):
            await connect(Connection(server="https://a.example", name="broken", **settings))


async def test_401_is_retried_once_with_fresh_credentials(tmp_path: Path) -> None:
    pki, token = Pki(), tmp_path / "token"
    for file, data in zip(("crt", "key"), pki.sign("localhost")):
        (tmp_path / file).write_bytes(data)
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    token.write_text("old")

    def script(request: Request) -> bytes:
        good = request.header("authorization") == "Bearer new"
        token.write_text("new")
        return answer(CONFIG_MAP) if good else answer(status(401, "Unauthorized"), 401)

    async with Server(script).serving(server_side) as server:
        connection = Connection(server=f"https://localhost:{server.port}", ca_data=pki.authority, token_file=str(token))
        async with await connect(connection) as cluster:
            new = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "n"}}
            assert await cluster.create(new) == CONFIG_MAP
        assert len(server.requests) == 2


async def test_write_hook_runs_after_the_connection_is_established(tmp_path: Path) -> None:
    """A process may be suspended while it connects, and its Lease may have expired when it resumes."""
    pki, server_names = Pki(), list[str]()
    for file, data in zip(("crt", "key"), pki.sign("localhost")):
        (tmp_path / file).write_bytes(data)
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    server_side.sni_callback = lambda _socket, name, _context: server_names.append(name)

    def ask() -> None:
        if server_names:
            raise TransientError("the Lease is over")

    async with Server(lambda _: answer(CONFIG_MAP)).serving(server_side) as server:
        wire = HttpTransport(Connection(server=f"https://localhost:{server.port}", ca_data=pki.authority))
        before = BEFORE_WRITE.set(ask)
        try:
            for _ in range(2):  # on a new connection
                with pytest.raises(TransientError, match="the Lease is over"):
                    await wire.request("POST", "/api/v1/namespaces", {})
            assert server.requests == []
            await wire.request("GET", "/api/v1/namespaces")
            with pytest.raises(TransientError, match="the Lease is over"):  # and on a kept connection
                await wire.request("DELETE", "/api/v1/namespaces/n")
            assert [request.method for request in server.requests] == ["GET"]
        finally:
            BEFORE_WRITE.reset(before)
            await wire.close()
        with pytest.raises(ApiServerUnavailable, match="the connection was closed"):
            await wire.request("GET", "/api/v1/namespaces")


async def test_close_during_name_resolution_fails_pending_requests_without_cancelling_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked, over = threading.Event(), threading.Event()

    def look_up(*_: object, **__: object) -> list[object]:
        looked.set()
        over.wait(HANG_SECONDS)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    wire = HttpTransport(Connection(server="http://far.example"))
    first, second, unwanted = (asyncio.create_task(wire.request("GET", "/api")) for _ in range(3))
    try:
        await wait_until_async(looked.is_set, "somebody looks the name up")
        unwanted.cancel()
        await asyncio.wait({unwanted})
        await wire.close()
        for task in (first, second):
            with pytest.raises(ApiServerUnavailable, match=r"far\.example: the connection was closed"):
                await task
        assert unwanted.cancelled()
    finally:
        over.set()


async def test_slow_name_resolution_does_not_block_the_default_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    over, lookups = threading.Event(), threading.Semaphore(0)

    def silent(*_: object) -> list[object]:
        lookups.release()
        over.wait(2 * HANG_SECONDS)  # longer than any wait below
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    wires = [HttpTransport(Connection(server=f"http://far-{number}.example")) for number in range(3)]
    calls = [asyncio.create_task(wire.request("GET", "/api")) for wire in wires]
    try:
        for _ in wires[:2]:
            await wait_until_async(lambda: lookups.acquire(blocking=False), "somebody looks a name up")
        assert await asyncio.wait_for(asyncio.to_thread(int), HANG_SECONDS) == 0
        over.set()
        for call in calls:
            with pytest.raises(ApiServerUnavailable, match="cannot be reached: Temporary failure in name resolution"):
                await call
    finally:
        over.set()
        for wire in wires:
            await wire.close()


@pytest.mark.parametrize(
    ("address", "host"),
    [
        (("10.0.0.1", 443), "10.0.0.1"),
        (("fd00::1", 443, 0, 0), "fd00::1"),
        (("fe80::1", 443, 0, 2), "fe80::1%2"),
    ],
)
async def test_threaded_resolver_returns_resolved_addresses(
    monkeypatch: pytest.MonkeyPatch, address: tuple[str, int, int, int], host: str
) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    addresses = [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: addresses)
    (one,) = await ThreadedResolver().resolve("far.example", 443)
    assert (one["hostname"], one["host"], one["port"], one["family"]) == ("far.example", host, 443, family)

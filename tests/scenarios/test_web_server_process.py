"""Pages and API on a real socket over an embedded cluster, started like `argosy serve` and the demo do."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import re
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from argosy.errors import UserError
from argosy.features.serve.web_server_run import RunningServer, WebServerOptions, check_options, serve_web
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.apiserver.tls import create_self_signed_certificate, read_fingerprint
from support.app_commands import write_kubeconfig
from support.clusters import environment, served
from support.deadlines import HANG_SECONDS, wait_until_async
from support.engine import CONTROL, shared_crew
from support.failure_report import record_log
from support.forked_commands import start
from support.grpc_web import call
from support.page_site import Client

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def plane(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    folder = tmp_path_factory.mktemp("plane")
    async with served(folder / "plane") as api_server:
        cluster = EmbeddedCluster(api_server.plane)
        for name in ("applications.argoproj.io", "appprojects.argoproj.io"):
            await cluster.create(load_definition(name))
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONTROL}})
        write_kubeconfig(folder / "kubeconfig", api_server)
        yield cluster, folder


def ask(url: str, path: str, tls: ssl.SSLContext | None = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(url)
    assert parts.hostname
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    more: dict[str, Any] = {"context": tls} if tls else {}
    connection = kind("127.0.0.1", parts.port, timeout=HANG_SECONDS, **more)
    try:
        connection.request("GET", path, headers={"Host": parts.netloc, **headers})
        got = connection.getresponse()
        response_headers = {name.lower(): value for name, value in reversed(got.getheaders())}  # first one wins
        return got.status, response_headers, got.read()
    finally:
        connection.close()


async def ask_in_thread(*words: Any, **more: Any) -> tuple[int, dict[str, str], bytes]:
    return await asyncio.to_thread(ask, *words, **more)


async def open_page(plane: Any, tmp_path: Path, **options: Any) -> Any:
    cluster, _ = plane
    server_options = WebServerOptions(folder=tmp_path / "page", **{"port": 0, **options})
    return serve_web(cluster, "a test", server_options, namespace=CONTROL, crew=shared_crew())


async def test_printed_login_url_works_once(plane: Any, tmp_path: Path) -> None:
    async with await open_page(plane, tmp_path) as server:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", server.url)
        entrance = server.create_login_url().removeprefix(server.url)
        code, headers, _ = await ask_in_thread(server.url, entrance)
        assert code == 200  # a page, not a redirect: browsers omit a strict cookie after a cross-site redirect
        cookie = headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
        name, _, value = cookie.partition(";")[0].partition("=")
        assert name == f"argosy-{urlsplit(server.url).port}"
        code, _, body = await ask_in_thread(server.url, "/api/openapi.json", Cookie=f"{name}={value}")
        assert (code, json.loads(body)["openapi"]) == (200, "3.1.0")
        assert "set-cookie" not in (await ask_in_thread(server.url, entrance))[1]


@pytest.mark.tier("all")
async def test_two_servers_do_not_share_a_session(plane: Any, tmp_path: Path) -> None:
    async with (
        await open_page(plane, tmp_path / "one") as first,
        await open_page(plane, tmp_path / "two") as second,
    ):
        assert first.url != second.url
        _, headers, _ = await ask_in_thread(first.url, first.create_login_url().removeprefix(first.url))
        cookie = headers["set-cookie"].partition(";")[0]
        assert (await ask_in_thread(first.url, "/api/openapi.json", Cookie=cookie))[0] == 200
        assert (await ask_in_thread(second.url, "/api/openapi.json", Cookie=cookie))[0] == 401


@pytest.mark.tier("all")
async def test_taken_default_port_is_replaced_and_taken_explicit_port_is_refused(
    plane: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await open_page(plane, tmp_path / "one") as first:
        taken = urlsplit(first.url).port
        assert taken
        monkeypatch.setattr("argosy.features.serve.web_server_run.DEFAULT_PORT", taken)
        async with await open_page(plane, tmp_path / "two", port=None) as second:
            assert (second.taken_port, urlsplit(second.url).port != taken) == (taken, True)
        with pytest.raises(UserError, match="cannot listen on port"):
            async with await open_page(plane, tmp_path / "three", port=taken):
                pass


async def test_non_loopback_server_uses_tls_with_fingerprint_and_no_login_code(plane: Any, tmp_path: Path) -> None:
    async with await open_page(plane, tmp_path, listen="0.0.0.0", hostnames=("argosy.example.com",)) as server:
        assert server.url.startswith("https://argosy.example.com:")
        assert server.create_login_url() == server.url
        assert re.fullmatch(r"([0-9A-F]{2}:){31}[0-9A-F]{2}", server.fingerprint)
        trust = ssl.create_default_context(cafile=str(tmp_path / "page" / "tls.crt"))
        trust.check_hostname = False
        code, headers, _ = await ask_in_thread(server.url, "/api/version", trust)
        assert (code, headers["strict-transport-security"]) == (200, "max-age=31536000")
        assert (await ask_in_thread(server.url, "/api/version", trust, Host="evil.example.com"))[0] == 421
        assert (await ask_in_thread(server.url, "/healthz", trust, Host="10.1.2.3:8484"))[0] == 200
        assert (tmp_path / "page" / "tls.key").stat().st_mode & 0o777 == 0o600
    async with await open_page(plane, tmp_path, listen="0.0.0.0", hostnames=("argosy.example.com",)) as again:
        assert again.fingerprint == server.fingerprint


@pytest.mark.tier("all")
@pytest.mark.parametrize(("has_ipv6", "by"), [(True, ("::1", "127.0.0.1")), (False, ("127.0.0.1",))])
async def test_listen_on_all_addresses_serves_ipv6_and_ipv4(
    plane: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_ipv6: bool, by: tuple[str, ...]
) -> None:
    """For Pods of IPv6 clusters, of IPv4 clusters, and of nodes whose kernel has no IPv6."""
    if has_ipv6 and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 on this machine")
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: has_ipv6)
    async with await open_page(plane, tmp_path, listen="::", hostnames=("argosy.example.com",)) as server:
        assert server.url.startswith("https://argosy.example.com:")
        for address in by:
            to = address, urlsplit(server.url).port
            assert await asyncio.to_thread(ssl.get_server_certificate, to, timeout=HANG_SECONDS)


async def test_renewed_certificate_is_served_without_a_restart(
    plane: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The files are replaced by symlinks to another folder, as the kubelet does for a Secret."""
    monkeypatch.setattr("argosy.features.serve.http_server.CERTIFICATE_CHECK_SECONDS", 0.02)
    files = tmp_path / "tls.crt", tmp_path / "tls.key"

    def bring(name: str, *, has_key: bool = True) -> str:
        create_self_signed_certificate(tmp_path / name / "tls.crt", tmp_path / name / "tls.key", ["localhost"], [])
        for file in files if has_key else files[:1]:
            (tmp_path / "next").symlink_to(tmp_path / name / file.name)
            (tmp_path / "next").replace(file)
        return read_fingerprint(tmp_path / name / "tls.crt").replace(":", "").lower()

    async def shown(port: int) -> str:
        pem = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port), timeout=HANG_SECONDS)
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()

    first = bring("one")
    async with await open_page(plane, tmp_path, listen="0.0.0.0", certificate=files[0], key=files[1]) as server:
        port = urlsplit(server.url).port
        assert port and await shown(port) == first
        bring("half", has_key=False)  # it does not match the current key
        await wait_until_async(lambda: "cannot load the changed TLS certificate" in caplog.text, "it is looked at")
        assert await shown(port) == first
        second = bring("two")
        async with asyncio.timeout(HANG_SECONDS):
            while await shown(port) != second:
                await asyncio.sleep(0.02)


@pytest.mark.tier("all")
async def test_metrics_path_on_the_web_port_needs_a_login(plane: Any, tmp_path: Path) -> None:
    async with await open_page(plane, tmp_path, metrics_port=-1) as server:
        assert isinstance(server, RunningServer)
        assert (await ask_in_thread(server.url, "/metrics"))[0] == 401


async def test_all_probes_fail_after_the_cluster_watches_end(plane: Any, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    async with await open_page(plane, tmp_path, metrics_port=port) as server:
        for path in ("/healthz", "/livez", "/readyz"):
            assert (await ask_in_thread(f"http://127.0.0.1:{port}", path))[::2] == (200, b"ok\n")
        (watching,) = [task for task in asyncio.all_tasks() if task.get_coro().__qualname__ == "ClusterView.run"]  # type: ignore[union-attr]
        watching.cancel()
        await asyncio.wait({watching})
        for path in ("/healthz", "/livez", "/readyz"):
            code, _, body = await ask_in_thread(f"http://127.0.0.1:{port}", path)
            assert (code, body) == (503, b"the cluster watches have ended\n")
        assert (await ask_in_thread(server.url, "/healthz"))[0] == 503


@pytest.mark.parametrize("flags", [{"certificate": Path("a")}, {"key": Path("a")}, {"repository": Path("/nowhere")}])
def test_inconsistent_options_are_refused(flags: dict[str, Path]) -> None:
    with pytest.raises(UserError):
        check_options(WebServerOptions(**flags))


def test_invalid_certificate_file_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("none")
    with pytest.raises(UserError, match="PEM"):
        check_options(WebServerOptions(certificate=tmp_path / "a", key=tmp_path / "b"))


async def test_serve_command_answers_and_stops_on_sigint(plane: Any, tmp_path: Path) -> None:
    _, folder = plane
    words = ["serve", "--kubeconfig", str(folder / "kubeconfig"), "--port", "0", "--no-browser", "-n", CONTROL]
    with record_log(tmp_path / "log").open("w") as log:
        process = await asyncio.to_thread(start, words, env=environment(tmp_path), stderr=log.fileno())
    try:
        printed = await asyncio.to_thread(_until_ready, process.stdout)
        (entrance,) = re.findall(r"page +(http\S+)", printed)
        url = entrance.partition("/enter")[0]
        assert (await ask_in_thread(url, "/api/version"))[0] == 200
        await _check_grpc_web(int(url.rpartition(":")[2]))
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, HANG_SECONDS) == 0
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


async def _check_grpc_web(port: int) -> None:
    client = Client(port)
    version = await asyncio.to_thread(call, client, "", "/version.VersionService/Version")
    assert version.document()["Version"]
    refused = await asyncio.to_thread(call, client, "", "/application.ApplicationService/List")
    assert (refused.http_code, refused.status, refused.message) == (200, 16, "no session information")
    wrong = {"username": "admin", "password": "wrong"}
    login = await asyncio.to_thread(call, client, "", "/session.SessionService/Create", wrong)
    assert (login.status, login.message) == (16, "Invalid username or password")


def _until_ready(out: Iterator[str]) -> str:
    output = ""
    for line in out:
        output += line
        if "Ctrl-C" in line:
            return output
    raise AssertionError(output)


@pytest.mark.tier("all")
def test_other_commands_do_not_import_web_dependencies() -> None:
    import subprocess

    modules = "argosy.cli, argosy.features.local_sandbox.sandbox, argosy.features.demo.in_process_demo_stack"
    modules += ", argosy.features.demo.cli"
    code = f"import sys, {modules}; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [name for name in ("starlette", "minijinja", "bcrypt", "jwt") if f"'{name}'" in done.stdout] == []

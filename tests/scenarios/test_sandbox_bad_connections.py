"""Malformed connections and requests, and clients that stall or disconnect: the sandbox keeps serving the others."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clusters import ARGOSY, Sandbox, configmap, sandbox
from support.deadlines import HANG_SECONDS, wait_until
from support.http_attacks import code_of, head, listen, talk, wire

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
MEGABYTE = 1 << 20


@pytest.fixture(autouse=True)
def goes_on(shared: Sandbox) -> Iterator[None]:
    """After every test: the server answers, its log has no new lines, and its memory is bounded."""
    already = len(shared.log())
    yield
    assert shared.request("GET", CONFIGMAPS).code == 200
    assert shared.log()[already:] == ""
    assert shared.memory() < 400 * MEGABYTE


# -- request lines and headers -----------------------------------------------------------------------------------


def test_10_000_headers_return_431_with_a_status(shared: Sandbox) -> None:
    answer = talk(shared.endpoint, head(shared.endpoint, "GET", CONFIGMAPS, *(f"X-{n}: y" for n in range(10_000))))
    assert code_of(answer) == 431 and b'"kind":"Status"' in answer


def test_header_of_2_mib_returns_431_with_a_status(shared: Sandbox) -> None:
    answer = talk(shared.endpoint, head(shared.endpoint, "GET", CONFIGMAPS, "X-Long: " + "y" * 2 * MEGABYTE))
    assert code_of(answer) == 431 and b'"kind":"Status"' in answer


ENDLESS = 300 * MEGABYTE  # more than the kernels buffer between a client and a server that no longer reads
MAX_GROWTH = 150 * MEGABYTE  # for a server that keeps none of the data; memory that its allocator holds back is less


def send_until_cut_off(connection: socket.socket, start: bytes, piece: bytes) -> int:
    """Return the number of bytes sent before the server closed the connection; `ENDLESS` if it never did."""
    sent = 0
    with contextlib.suppress(OSError):
        connection.sendall(start)
        while sent < ENDLESS:
            connection.sendall(piece)
            sent += len(piece)
    return sent


def test_endless_header_is_cut_off_with_bounded_memory(shared: Sandbox) -> None:
    before = shared.memory()
    with wire(shared.endpoint) as connection:
        start = head(shared.endpoint, "GET", CONFIGMAPS)[:-2] + b"X-Long: "
        assert send_until_cut_off(connection, start, b"y" * 65536) < ENDLESS
    assert shared.memory() - before < MAX_GROWTH


def test_endless_path_is_cut_off(shared: Sandbox) -> None:
    with wire(shared.endpoint) as connection:
        assert send_until_cut_off(connection, b"GET /", b"y" * 65536) < ENDLESS


PATHS = {
    "/api/v1/namespaces/../namespaces/default": 404,
    "/api/v1/namespaces/%2e%2e/configmaps": 404,
    f"{CONFIGMAPS}/..": 404,
    f"{CONFIGMAPS}/%2e%2e": 404,
    f"{CONFIGMAPS}/a%2fb": 404,
    f"{CONFIGMAPS}/a%252fb": 404,
    f"{CONFIGMAPS}/a%00b": 404,
    f"{CONFIGMAPS}/%ff%fe": 404,
    f"{CONFIGMAPS}/%zz": 404,
    f"{CONFIGMAPS}/" + "a" * 60_000: 404,
    "/api/v1//namespaces//default": 404,
    "//api/v1/namespaces": 404,
    "/apis//v1/namespaces": 404,
    "/" + "a/" * 20_000: 404,
    "/api/v1/watch": 404,
    "/../../etc/passwd": 404,
    "/%2e%2e/%2e%2e/etc/passwd": 404,
    "/openapi/v3/../../etc/passwd": 404,
    f"{CONFIGMAPS}?limit=x": 400,
    f"{CONFIGMAPS}?limit=" + "9" * 5000: 400,
    f"{CONFIGMAPS}?limit=-5": 200,
    f"{CONFIGMAPS}?continue=zzz": 400,
    f"{CONFIGMAPS}?continue=bnVsbA": 400,
    f"{CONFIGMAPS}?resourceVersion=" + "9" * 5000: 500,  # k8s: a resourceVersion that is not a number is a server error
    f"{CONFIGMAPS}?labelSelector=((": 400,
    f"{CONFIGMAPS}?labelSelector=" + "a," * 20_000: 400,
    f"{CONFIGMAPS}?fieldSelector=%00": 400,
    f"{CONFIGMAPS}?watch=1&timeoutSeconds=" + "9" * 400: 400,
    f"{CONFIGMAPS}?" + "&".join(f"a{n}=1" for n in range(8000)): 200,
    f"{CONFIGMAPS}?%=%&=&;": 200,
}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:50])
def test_malicious_path_or_query_returns_the_expected_status(shared: Sandbox, path: str) -> None:
    answer = talk(shared.endpoint, head(shared.endpoint, "GET", path, "Connection: close"))
    assert code_of(answer) == PATHS[path], answer[:600]
    assert b"root:" not in answer


BROKEN = {
    "garbage": b"\x00\x01\x02\x03\r\n\r\n",
    "a wrong version": b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    "an unknown method": b"FOO /api HTTP/1.1\r\nHost: x\r\n\r\n",
    "a small method": b"get /api HTTP/1.1\r\nHost: x\r\n\r\n",
    "no method": b" / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a header without colon": b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
    "a NUL in a header": b"GET / HTTP/1.1\r\nHost: x\x00y\r\n\r\n",
    "raw bytes in the path": b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    "a space in the path": b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
    "a negative length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    "a huge length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 100 + b"\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "a length and chunks": b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk that is none": b"POST /api HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_invalid_http_is_refused_or_the_connection_is_closed(shared: Sandbox, data: bytes) -> None:
    answer = talk(shared.endpoint, data)
    assert code_of(answer) in (0, 400, 401, 405, 431, 505), answer[:300]


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "MKCOL"])
def test_method_outside_the_api_returns_200_or_405(shared: Sandbox, method: str) -> None:
    answer = talk(shared.endpoint, head(shared.endpoint, method, CONFIGMAPS, "Connection: close"))
    assert code_of(answer) in (200, 405), answer[:300]


def test_http_1_0_request_is_answered(shared: Sandbox) -> None:
    answer = talk(shared.endpoint, head(shared.endpoint, "GET", CONFIGMAPS, version="HTTP/1.0"))
    assert code_of(answer) == 200 and b"ConfigMapList" in answer


def test_non_ascii_header_value_is_never_a_server_error(shared: Sandbox) -> None:
    for line in ("Impersonate-User: \xff\xfe", "Impersonate-Group: \xff", "Accept: \xff", "Content-Type: \xff",
                 "Accept-Encoding: \xff", "Expect: \xff", "User-Agent: \xff", "If-None-Match: \xff"):  # fmt: skip
        answer = talk(shared.endpoint, head(shared.endpoint, "GET", CONFIGMAPS, line, "Connection: close"))
        assert code_of(answer) in (200, 400, 403, 406), (line, answer[:300])


def test_pipelined_requests_are_answered_in_order(shared: Sandbox) -> None:
    first = head(shared.endpoint, "GET", "/version")
    second = head(shared.endpoint, "GET", f"{CONFIGMAPS}/missing")
    third = head(shared.endpoint, "GET", "/readyz", "Connection: close")
    answer = talk(shared.endpoint, first + second + third, quiet=HANG_SECONDS)
    codes = [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert codes == [200, 404, 200]


@pytest.mark.tier("all")
def test_a_thousand_pipelined_requests_are_answered(shared: Sandbox) -> None:
    one = head(shared.endpoint, "GET", "/version")
    last = head(shared.endpoint, "GET", "/readyz", "Connection: close")
    answer = talk(shared.endpoint, one * 1000 + last, quiet=HANG_SECONDS)
    assert answer.count(b"HTTP/1.1 200 OK") == 1001


# -- endless and incomplete bodies -------------------------------------------------------------------------------


def test_endless_chunked_body_is_cut_off_with_bounded_memory(shared: Sandbox) -> None:
    before = shared.memory()
    lines = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    with wire(shared.endpoint) as connection:
        start = head(shared.endpoint, "POST", CONFIGMAPS, *lines)
        assert send_until_cut_off(connection, start, b"10000\r\n" + b"x" * 65536 + b"\r\n") < ENDLESS
    assert shared.memory() - before < MAX_GROWTH


def test_stalled_clients_do_not_block_other_requests(shared: Sandbox) -> None:
    whole = head(shared.endpoint, "POST", CONFIGMAPS, "Content-Type: application/json", "Content-Length: 1000")
    with contextlib.ExitStack() as stack:
        for number in range(60):
            connection = stack.enter_context(wire(shared.endpoint))
            connection.sendall((b"", whole[:20], whole[:-2], whole, whole + b'{"metadata"')[number % 5])
        for number in range(20):
            assert shared.request("POST", CONFIGMAPS, configmap(f"meanwhile-{number}")).code == 201


def test_half_closed_connection_is_answered_or_closed(shared: Sandbox) -> None:
    for body in (b"", b'{"metadata":{"name":"half'):
        lines = ("Content-Type: application/json", "Content-Length: 100") if body else ("Connection: close",)
        with socket.create_connection((shared.endpoint.host, shared.endpoint.port), HANG_SECONDS) as plain:
            secure = shared.endpoint.tls.wrap_socket(plain, server_hostname=shared.endpoint.host)
            secure.sendall(head(shared.endpoint, "POST" if body else "GET", CONFIGMAPS, *lines) + body)
            if body:
                socket.socket.shutdown(secure, socket.SHUT_WR)
            answer = listen(secure)
            assert code_of(answer) in ((0, 400, 408) if body else (200,)), answer[:300]
    assert shared.request("GET", f"{CONFIGMAPS}/half").code == 404


def test_client_that_disconnects_during_its_body_creates_nothing(shared: Sandbox) -> None:
    lines = ("Content-Type: application/json", "Content-Length: 500")
    for _ in range(20):
        with wire(shared.endpoint) as connection:
            connection.sendall(head(shared.endpoint, "POST", CONFIGMAPS, *lines) + b'{"metadata":{"name":"gone"}}')
    wait_until(lambda: len(open_sockets(shared)) <= 10, "the server has noticed")
    assert shared.request("GET", f"{CONFIGMAPS}/gone").code == 404


# -- TLS, many connections, dropped watches ----------------------------------------------------------------------


NO_TLS = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\x00" * 500, b"\x00" * 5000]


@pytest.mark.parametrize("data", NO_TLS, ids=["http", "half a handshake", "zeros"])
def test_data_without_tls_gets_no_successful_response(shared: Sandbox, data: bytes) -> None:
    with socket.create_connection((shared.endpoint.host, shared.endpoint.port), HANG_SECONDS) as plain:
        plain.sendall(data)
        assert b"HTTP/1.1 200" not in listen(plain)


@pytest.mark.tier("all")
def test_500_closed_connections_release_their_sockets_and_memory(shared: Sandbox) -> None:
    """The first round allocates the memory that 500 connections need; later rounds need no more."""
    address = (shared.endpoint.host, shared.endpoint.port)
    memory = []
    for _ in range(3):
        connections = [socket.create_connection(address) for _ in range(500)]
        assert shared.request("GET", CONFIGMAPS).code == 200, "while 500 are open"
        for connection in connections:
            connection.close()
        for _ in range(100):
            with wire(shared.endpoint):
                pass
        wait_until(lambda: len(open_sockets(shared)) <= 10, "the connections are closed")
        memory.append(shared.memory())
    assert memory[-1] - memory[0] < 64 * MEGABYTE


@pytest.mark.tier("all")
def test_more_connections_than_the_soft_file_limit_are_served(tmp_path: Path) -> None:
    limited = ("sh", "-c", 'ulimit -Sn 64; exec "$0" "$@"', str(ARGOSY))
    with sandbox(tmp_path / "data", "--port", "0", program=limited) as server, contextlib.ExitStack() as stack:
        for _ in range(150):
            stack.enter_context(socket.create_connection((server.endpoint.host, server.endpoint.port)))
        assert server.request("GET", CONFIGMAPS).code == 200


def open_sockets(server: Sandbox) -> list[str]:
    files = []
    for file in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            files.append(str(file.readlink()))
    return [file for file in files if file.startswith("socket:")]


def test_50_dropped_watches_release_their_sockets(shared: Sandbox) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            connection = stack.enter_context(wire(shared.endpoint))
            connection.sendall(head(shared.endpoint, "GET", f"{CONFIGMAPS}?watch=1"))
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
    shared.request("POST", CONFIGMAPS, configmap("after-the-watchers"))
    wait_until(lambda: len(open_sockets(shared)) <= 10, "the watches are closed")

"""Malicious request bodies and raw requests that a server must survive, sent without an HTTP client library."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import ssl
from collections.abc import Iterator

from support.clusters import Endpoint, configmap
from support.deadlines import HANG_SECONDS

JSON, YAML = "application/json", "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC_PATCH, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + closing * depth


def alias_bomb() -> bytes:
    """Return YAML with nested aliases; each line expands to ten times the previous one."""
    lines = (b"%c: &%c [%s]" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 10)) for n in range(12))
    return b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"\n".join(lines)


def merge_bomb() -> bytes:
    keys = b",".join(b"k%d: 1" % number for number in range(2000))
    return b"a: &a {" + keys + b"}\n" + b"".join(b"m%d: {<<: *a}\n" % number for number in range(2000))


def many_keys(count: int) -> bytes:
    return b"{" + b",".join(b'"k%d":1' % number for number in range(count)) + b"}"


def copies(times: int) -> bytes:
    """Return a small JSON patch that doubles a value with each operation."""
    first = {"op": "add", "path": "/data", "value": {"a": "x" * 1000}}
    operations = [{"op": "copy", "from": "/data", "path": f"/data/b{number}"} for number in range(times)]
    return json.dumps([first, *operations]).encode()


def length_delimited(inner: bytes) -> bytes:
    size, prefix = len(inner), b""
    while size > 127:
        prefix, size = prefix + bytes([size & 127 | 128]), size >> 7
    return b"\x0a" + prefix + bytes([size]) + inner


def nested_protobuf(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):
        inner = length_delimited(inner)
    return b"k8s\x00" + inner


def broken_protobufs(rng: random.Random) -> Iterator[bytes]:
    from argosy.kube.schema import protobuf_envelope

    whole = protobuf_envelope.encode(configmap("sent-as-protobuf", {"a": "b" * 50}))
    yield from (b"", b"k8s", b"k8s\x00", b"k8s\x00\xff", b"k8s\x00\x0a\xff\xff\xff\xff\x0f")
    yield b"k8s\x00" + b"\xff" * 100_000
    yield nested_protobuf(20_000)
    yield from (whole[:at] for at in range(1, len(whole), 7))
    for _ in range(40):
        changed = bytearray(whole)
        for _ in range(rng.randint(1, 8)):
            changed[rng.randrange(4, len(changed))] = rng.randrange(256)
        yield bytes(changed)
    yield b"k8s\x00" + rng.randbytes(5000)


@contextlib.contextmanager
def wire(endpoint: Endpoint, timeout: float = HANG_SECONDS) -> Iterator[ssl.SSLSocket]:
    with (
        socket.create_connection((endpoint.host, endpoint.port), timeout) as plain,
        endpoint.tls.wrap_socket(plain, server_hostname=endpoint.host) as secure,
    ):
        yield secure


def head(endpoint: Endpoint, method: str, path: str, *lines: str, version: str = "HTTP/1.1") -> bytes:
    first = [f"{method} {path} {version}", f"Host: {endpoint.host}", f"Authorization: Bearer {endpoint.token}"]
    return "\r\n".join([*first, *lines, "", ""]).encode("latin-1")


def talk(endpoint: Endpoint, data: bytes, timeout: float = HANG_SECONDS, quiet: float = 0.5) -> bytes:
    """Send data; return the response up to the close of the connection, or until `quiet` seconds pass without data."""
    with wire(endpoint, timeout) as connection:
        with contextlib.suppress(OSError):  # the server may respond and close before it has read the whole request
            connection.sendall(data)
        return listen(connection, quiet)


def listen(connection: socket.socket, quiet: float = 0.5) -> bytes:
    answer = b""
    with contextlib.suppress(OSError):
        while piece := connection.recv(65536):
            answer += piece
            connection.settimeout(quiet)
    return answer


def code_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else 0

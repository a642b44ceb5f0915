"""A malicious API server: it responds with whatever a `Lie` returns, on a local socket.

In: a `Lie`, and optionally a real API server for all other requests. Out: the address of the malicious server, and
every request that it received. Never: a substitute for a cluster; it is an attacker that argosy must withstand.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import aiohttp

KINDS = (("configmaps", "ConfigMap", True), ("secrets", "Secret", True), ("pods", "Pod", True),
         ("namespaces", "Namespace", False))  # fmt: skip
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def route(self) -> str:
        return self.path.partition("?")[0]

    @property
    def is_watch(self) -> bool:
        return "watch=true" in self.path


Reply = bytes | AsyncIterator[bytes]
Lie = Callable[[Request], Reply | None]  # None: send the correct response; bytes and iterators are sent unchanged


def http_answer(content: Any, code: int = 200, **headers: str) -> bytes:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    more = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join([f"HTTP/1.1 {code} X", f"Content-Length: {len(data)}", *more])
    return head.encode() + b"\r\n\r\n" + data


def chunked(*pieces: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


async def endless(piece: bytes, head: bytes = b"") -> AsyncIterator[bytes]:
    """Yield a chunked response that never ends, as fast as the client reads."""
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + head + b"\r\n"
    chunk = b"%x\r\n%s\r\n" % (len(piece), piece)
    while True:
        yield chunk


def discovery_document(kinds: tuple[tuple[str, str, bool], ...] = KINDS, group: str = "") -> dict[str, Any]:
    resources = [
        {"resource": plural, "responseKind": {"kind": kind}, "verbs": VERBS,
         "scope": "Namespaced" if is_namespaced else "Cluster"}
        for plural, kind, is_namespaced in kinds
    ]  # fmt: skip
    item = {"metadata": {"name": group}, "versions": [{"version": "v1", "resources": resources}]}
    return {"kind": "APIGroupDiscoveryList", "items": [item]}


class LyingCluster:
    def __init__(self, lie: Lie, upstream: str = "", token: str = "") -> None:
        """`token`: credential for the upstream API server."""
        self.lie, self._upstream, self._token = lie, upstream, token
        self._talks: set[asyncio.Task[None]] = set()
        self.requests: list[Request] = []
        self.lies_told = 0
        self.address = ""
        self._session: aiohttp.ClientSession | None = None

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[LyingCluster]:
        is_over = False

        def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if is_over:  # a connection that was accepted just before the shutdown
                writer.close()
                return
            task = asyncio.get_running_loop().create_task(self._talk(reader, writer))
            self._talks.add(task)
            task.add_done_callback(self._talks.discard)

        server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=2**20)
        self.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with aiohttp.ClientSession(auto_decompress=False) as self._session:
            try:
                yield self
            finally:
                is_over = True
                server.close()
                await self.cut()

    async def cut(self) -> None:
        """Close every connection, so that watches restart."""
        talks = tuple(self._talks)
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *header_lines = head.decode().strip().split("\r\n")
                headers = {
                    name.lower(): value.strip() for name, _, value in (line.partition(":") for line in header_lines)
                }
                method, path = first.split(" ")[:2]
                body = await reader.readexactly(int(headers.get("content-length") or 0))
                request = Request(method, path, headers, body)
                self.requests.append(request)
                if not await self._answer(request, writer):
                    break
        except (OSError, asyncio.IncompleteReadError, aiohttp.ClientError):
            pass
        finally:
            writer.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Respond to a request; return True if the connection can be reused."""
        reply = self.lie(request)
        self.lies_told += reply is not None
        if reply is None:
            reply = self._forwarded(request) if self._upstream else _honest(request)
        if isinstance(reply, bytes):
            writer.write(reply)
            await writer.drain()
            return b"Content-Length" in reply[:500]
        async with contextlib.aclosing(reply):  # type: ignore[type-var]
            async for piece in reply:
                writer.write(piece)
                await writer.drain()
        return False

    def rewritten(self, request: Request, change: Callable[[dict[str, Any]], None]) -> AsyncIterator[bytes]:
        """Forward the request and change each object of the response in place; for a watch, each event."""
        return self._rewritten(request, change)

    async def _rewritten(self, request: Request, change: Callable[[dict[str, Any]], None]) -> AsyncIterator[bytes]:
        forwarded = self._forwarded(request)
        async with contextlib.aclosing(forwarded):  # type: ignore[type-var]
            yield await anext(forwarded)
            buffered = b""
            async for piece in forwarded:
                buffered += piece
                *lines, buffered = buffered.split(b"\n") if request.is_watch else (buffered,)
                for line in lines:
                    yield _changed(line, change) + b"\n"
            if buffered.strip():
                yield _changed(buffered, change)

    async def _forwarded(self, request: Request) -> AsyncIterator[bytes]:
        assert self._session is not None
        hop = ("host", "content-length", "connection", "accept-encoding")
        headers = {name: value for name, value in request.headers.items() if name not in hop}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        async with self._session.request(
            request.method,
            self._upstream + request.path,
            headers=headers,
            data=request.body or None,
            ssl=False,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as response:
            kind = response.headers.get("Content-Type", "application/json")
            yield f"HTTP/1.1 {response.status} X\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n".encode()
            async for piece in response.content.iter_any():
                yield piece


def _changed(text: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    value = json.loads(text)
    for item in value["items"] if isinstance(value.get("items"), list) else [value]:
        change(item)
    return json.dumps(value).encode()


def _honest(request: Request) -> bytes:
    """Respond like an empty cluster that serves a few kinds."""
    if request.route == "/api":
        return http_answer(discovery_document())
    if request.route == "/apis":
        return http_answer({"kind": "APIGroupDiscoveryList", "items": []})
    if request.is_watch:
        return chunked()
    if request.method == "GET" and request.route.count("/") <= 5 and request.route.rpartition("/")[2].endswith("s"):
        return http_answer({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []})
    details = {"name": request.route.rpartition("/")[2]}
    status = {"kind": "Status", "code": 404, "reason": "NotFound", "details": details}
    return http_answer(status, 404)

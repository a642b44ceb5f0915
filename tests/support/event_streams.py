"""A client for event streams: keeps one connection open and reads it by event or by line.

In: a port and a path. Out: events. Never: waits without a timeout.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from support.deadlines import HANG_SECONDS


@dataclass(frozen=True)
class Event:
    kind: str
    id: str
    text: str

    @property
    def data(self) -> Any:
        return json.loads(self.text)


class Opened:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._left = b""
        self.code = 0
        self.headers: dict[str, str] = {}

    async def begin(self) -> None:
        head = await self._reader.readuntil(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").strip().split("\r\n")
        self.code = int(status.split()[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    async def _chunk(self) -> bytes:
        """The next chunk; empty at the end."""
        size = await self._reader.readline()
        if not size.strip():
            return b""
        data = await self._reader.readexactly(int(size, 16) + 2)
        return data[:-2]

    async def until(self, end: bytes) -> bytes | None:
        """Read up to `end`; None at the end of the stream."""
        async with asyncio.timeout(HANG_SECONDS):
            while end not in self._left:
                try:
                    chunk = await self._chunk()
                except (asyncio.IncompleteReadError, ConnectionError):
                    chunk = b""
                if not chunk:
                    return None
                self._left += chunk
        data, _, self._left = self._left.partition(end)
        return data

    async def line(self) -> Any:
        data = await self.until(b"\n")
        return None if data is None else json.loads(data)

    async def event(self, kind: str = "") -> Event | None:
        """The next event, or the next of a type; None at the end of the stream."""
        while (text := await self.until(b"\n\n")) is not None:
            fields = dict(line.partition(": ")[::2] for line in text.decode().split("\n"))
            parsed = Event(fields.get("event", ""), fields.get("id", ""), fields.get("data", ""))
            if parsed.text and kind in ("", parsed.kind):
                return parsed
        return None

    async def body(self) -> bytes:
        return await self._reader.readexactly(int(self.headers["content-length"]))

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


@contextlib.asynccontextmanager
async def opened(
    port: int, path: str, who: str = "ann", headers: Mapping[str, str] | None = None, window: int = 0
) -> AsyncIterator[Opened]:
    """`window`: size of the receive buffer in bytes."""
    connection = socket.socket()
    if window:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=connection, limit=window or 1 << 16)
    all_headers = {"Host": f"127.0.0.1:{port}", "Authorization": f"Bearer {who}", **(headers or {})}
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in all_headers.items() if value)]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    stream = Opened(reader, writer)
    try:
        async with asyncio.timeout(HANG_SECONDS):
            await stream.begin()
        yield stream
    finally:
        await stream.close()

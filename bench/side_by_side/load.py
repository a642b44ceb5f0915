"""The load client in Python, for machines without Go: the same flags, the same report, HTTP/1.1 only.

It is itself the limit of fast servers, so its rates are what a server reaches at least.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import ssl
import time
from collections.abc import Callable
from typing import Any

WARM_UP = 3


class Client:
    """One connection that is kept."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self._chosen = chosen
        encoding = "Accept-Encoding: gzip\r\n" if chosen.gzip else ""
        user = f"Authorization: Bearer {chosen.token}\r\n"
        self._head = f"Host: localhost\r\n{user}Accept: application/json\r\n{encoding}"

    async def connect(self) -> None:
        host, _, port = self._chosen.server.removeprefix("https://").rpartition(":")
        secure = ssl.create_default_context(cafile=self._chosen.ca)
        self._reader, self._writer = await asyncio.open_connection(host, int(port), ssl=secure, limit=1 << 20)

    def send(self, method: str, path: str, body: str = "") -> None:
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}{kind}\r\n{body}".encode())

    async def head(self) -> bytes:
        response_head = await self._reader.readuntil(b"\r\n\r\n")
        if response_head[9:12] not in (b"200", b"201"):
            raise RuntimeError(response_head.decode())
        return response_head.lower()

    async def ask(self, method: str, path: str, body: str = "") -> bytes:
        self.send(method, path, body)
        head = await self.head()
        length = re.search(rb"content-length: (\d+)", head)
        if length is None:
            raise RuntimeError("an answer without a length")
        answer = await self._reader.readexactly(int(length[1]))
        return gzip.decompress(answer) if b"content-encoding: gzip" in head else answer

    async def line(self) -> bytes:
        return await self._reader.readuntil(b"\n")


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("server", "ca", "token", "mode", "namespace"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--prefix", default="c")
    for name, number in {"clients": 1, "count": 1000, "rate": 50, "among": 1000}.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--gzip", action="store_true")
    return parser.parse_args()


def config_map(chosen: argparse.Namespace, number: int) -> str:
    metadata = {"name": f"{chosen.prefix}-{number}"}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "x" * 200}})


async def closed_loop(chosen: argparse.Namespace, clients: list[Client], path: str) -> list[float]:
    """Each client asks again as soon as it was answered."""
    requests: dict[str, Callable[[int], tuple[str, ...]]] = {
        "create": lambda number: ("POST", path, config_map(chosen, number)),
        "get": lambda number: ("GET", f"{path}/{chosen.prefix}-{number % chosen.among}"),
        "list": lambda number: ("GET", path),
    }
    took, numbers = [], iter(range(chosen.count))

    async def work(client: Client) -> None:
        for number in numbers:
            began = time.perf_counter()
            await client.ask(*requests[chosen.mode](number))
            took.append(time.perf_counter() - began)

    await asyncio.gather(*map(work, clients))
    return took


async def events(chosen: argparse.Namespace, client: Client, path: str) -> list[float]:
    """From before a request is sent to when its event was read."""
    version = json.loads(await client.ask("GET", f"{path}?limit=1"))["metadata"]["resourceVersion"]
    watcher = Client(chosen)
    await watcher.connect()
    watcher.send("GET", f"{path}?watch=1&resourceVersion={version}")
    await watcher.head()
    began, took = {}, {}
    named = re.compile(rb'"name":"%s-(\d+)"' % chosen.prefix.encode())

    async def watch() -> None:
        while len(took) < chosen.count:
            if match := named.search(await watcher.line()):
                took[int(match[1])] = time.perf_counter() - began[int(match[1])]

    watching = asyncio.create_task(watch())
    for number in range(chosen.count):
        await asyncio.sleep(1 / chosen.rate)
        began[number] = time.perf_counter()
        await client.ask("POST", path, config_map(chosen, number))
    await watching
    return list(took.values())


async def main() -> None:
    chosen = read_flags()
    path = f"/api/v1/namespaces/{chosen.namespace}/configmaps"
    clients = [Client(chosen) for _ in range(chosen.clients)]
    for client in clients:
        await client.connect()
        for _ in range(WARM_UP):
            await client.ask("GET", f"/api/v1/namespaces/{chosen.namespace}")
    began, cpu = time.perf_counter(), time.process_time()
    if chosen.mode == "event":
        took = sorted(await events(chosen, clients[0], path))
    else:
        took = sorted(await closed_loop(chosen, clients, path))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    report: dict[str, Any] = {"mode": chosen.mode, "protocol": "HTTP/1.1", "count": chosen.count, "seconds": seconds}
    report |= {"perSecond": chosen.count / seconds, "clientCpuPerOperation": cpu * 1000 / chosen.count}
    print(json.dumps(report | {f"p{part}": took[part * (len(took) - 1) // 100] * 1000 for part in (50, 99)}))


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())

"""What unread answers cost in memory, and how long a large apply keeps others waiting, as ratios of one run.

Run: python bench/unread_and_large.py [clients]. Exit code 1: a ratio is over its limit.

- unread: growth of the server's memory with clients that open a watch or a list and read nothing, beside the bytes
  that they asked for together.
- large apply: the longest wait for /readyz while a list is applied, beside the time that the apply itself took.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from side_by_side.servers import Server, embedded

OBJECTS, OBJECT_BYTES = 1000, 40_000
ENTRIES = 15_000
CONFIGS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/large?fieldManager=bench"
WATCHED = {"watch": f"{CONFIGS}?watch=true&resourceVersion=0", "list": CONFIGS}
SETTLE_SECONDS = 5.0
UNREAD_LIMIT, WAIT_LIMIT = 0.05, 0.25


def connection(server: Server) -> http.client.HTTPSConnection:
    secure = ssl.create_default_context(cafile=str(server.authority))
    return http.client.HTTPSConnection(urlsplit(server.address).netloc, context=secure)


def ask(server: Server, link: http.client.HTTPSConnection, method: str, path: str, body: object = None) -> int:
    media = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
    headers = {"authorization": f"Bearer {server.token}", "content-type": media}
    link.request(method, path, None if body is None else json.dumps(body), headers)
    answer = link.getresponse()
    answer.read()
    return answer.status


def resident_bytes(server: Server) -> int:
    status = Path(f"/proc/{server.pids[0]}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def unread(server: Server, path: str) -> socket.socket:
    host, _, port = urlsplit(server.address).netloc.partition(":")
    plain = socket.create_connection((host, int(port)))
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    secure = ssl.create_default_context(cafile=str(server.authority)).wrap_socket(plain, server_hostname=host)
    head = f"GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {server.token}\r\n\r\n"
    secure.sendall(head.encode())
    return secure


def growth(server: Server, path: str, clients: int) -> int:
    """The most that the server's memory grew in while nobody read."""
    before = most = resident_bytes(server)
    opened = [unread(server, path) for _ in range(clients)]
    until = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < until:
        most = max(most, resident_bytes(server))
        time.sleep(0.02)
    for link in opened:
        link.close()
    return most - before


def deployment(value: str) -> dict[str, object]:
    variables = [{"name": f"E{number}", "value": value} for number in range(ENTRIES)]
    labels = {"app": "large"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i", "env": variables}]}}
    spec = {"selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "large"}, "spec": spec}


def waits(server: Server, done: threading.Event) -> list[float]:
    link, durations = connection(server), []
    while not done.is_set():
        began = time.perf_counter()
        ask(server, link, "GET", "/readyz")
        durations.append(time.perf_counter() - began)
    return durations


def apply_beside(server: Server, value: str) -> tuple[float, float]:
    """How long the apply took, and the longest wait for /readyz meanwhile."""
    done, durations = threading.Event(), []
    asking = threading.Thread(target=lambda: durations.extend(waits(server, done)))
    asking.start()
    began = time.perf_counter()
    code = ask(server, connection(server), "PATCH", DEPLOYMENT, deployment(value))
    took = time.perf_counter() - began
    done.set()
    asking.join()
    assert code < 300, code
    return took, max(durations)


def main(clients: int) -> int:
    fine = True
    with embedded() as server:
        link = connection(server)
        for number in range(OBJECTS):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}}
            ask(server, link, "POST", CONFIGS, {**body, "data": {"text": "x" * OBJECT_BYTES}})
        total = clients * OBJECTS * OBJECT_BYTES
        for name, path in WATCHED.items():
            grown = growth(server, path, clients)
            fine &= grown <= UNREAD_LIMIT * total
            print(
                f"{clients} unread, {name:6} {grown >> 20:6} MiB of {total >> 20} MiB {grown / total:6.3f}"
                f"  ≤ {UNREAD_LIMIT}"
            )
        for number in range(3):
            took, longest = apply_beside(server, str(number))
            fine &= longest <= WAIT_LIMIT * took
            ratio = f"{longest / took:6.3f}  ≤ {WAIT_LIMIT}"
            print(f"apply of {ENTRIES} entries {took:6.2f} s, /readyz {longest:6.3f} s {ratio}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 30))

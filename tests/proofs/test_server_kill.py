"""kill -9 of the real server under load: no acknowledged write is lost, and no resourceVersion is assigned twice.

Clients write over HTTPS and record every response. The server is killed at a random moment, possibly during startup,
and restarted on the same folder; then every object is compared with the responses, and an interrupted watch resumes.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.clusters import ARGOSY, Endpoint, Sandbox, ask, environment, sandbox
from support.deadlines import HANG_SECONDS, wait_until

pytestmark = pytest.mark.tier("test", "prove")

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
CLIENTS = 4
KEYS = 12
LEAST = 10  # acknowledged writes per life
GONE = (OSError, http.client.HTTPException, ssl.SSLError, ValueError)


class Lost(AssertionError):
    """A guarantee is violated."""


@dataclass
class Ledger:
    """All responses of all lives. Each client has its own objects, so it knows the order of its writes."""

    acked: dict[str, tuple[int, str]] = field(default_factory=dict)  # path → version, content; "" = deleted
    tried: dict[str, set[str]] = field(default_factory=dict)  # path → contents sent and not acknowledged since
    contents: dict[int, tuple[str, str]] = field(default_factory=dict)  # version → path, content
    total: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def trying(self, path: str, content: str) -> None:
        self.tried.setdefault(path, set()).add(content)

    def answered(self, path: str, version: int, content: str) -> None:
        with self.lock:
            recorded = self.contents.setdefault(version, (path, content))
            if recorded != (path, content):
                raise Lost(f"version {version} is {path} {content}, and was {recorded}")
            if content and version <= self.acked.get(path, (0, ""))[0]:
                raise Lost(f"{path}: version {version} after {self.acked[path]}")
            self.acked[path] = max(version, self.acked.get(path, (0, ""))[0]), content
            self.tried[path] = set()
            self.total += 1


class Writer(threading.Thread):
    """One client: creates, replaces and deletes until the server is gone."""

    def __init__(self, endpoint: Endpoint, ledger: Ledger, number: int, seed: int) -> None:
        super().__init__()
        self._endpoint, self._ledger, self._number = endpoint, ledger, number
        self._rng = random.Random(seed)
        self.broken: Lost | None = None

    def run(self) -> None:
        connection = self._endpoint.connection()
        try:
            while self._write(connection):
                pass
        except GONE:
            pass
        except Lost as error:
            self.broken = error
        finally:
            connection.close()

    def _write(self, connection: http.client.HTTPSConnection) -> bool:
        rng, ledger, token = self._rng, self._ledger, self._endpoint.token
        name, bucket = f"c{self._number}-{rng.randrange(KEYS)}", rng.choice((CONFIGMAPS, SECRETS))
        path = f"{bucket}/{name}"
        there = bool(ledger.acked.get(path, (0, ""))[1])
        if there and rng.random() < 0.15:
            ledger.trying(path, "")
            answer = ask(connection, "DELETE", path, token=token)
            if answer.code in (200, 404):
                ledger.answered(path, -rng.randrange(1, 1 << 60), "")
            return answer.code in (200, 404)
        content = f"{rng.randrange(1 << 60):x}" + "x" * rng.randrange(800)
        ledger.trying(path, content)
        kind = "Secret" if bucket is SECRETS else "ConfigMap"
        manifest = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": {"proof": "kill"}}}
        manifest["metadata"]["annotations"] = {"content": content}  # type: ignore[index]
        answer = ask(connection, "PUT" if there else "POST", path if there else bucket, manifest, token=token)
        if answer.code == 409 and not there:  # written in the previous life, but never acknowledged
            answer = ask(connection, "PUT", path, manifest, token=token)
        elif answer.code == 404 and there:
            answer = ask(connection, "POST", bucket, manifest, token=token)
        if answer.code not in (200, 201):
            return False
        ledger.answered(path, int(answer.json()["metadata"]["resourceVersion"]), content)
        return True


def read_state(server: Sandbox) -> tuple[dict[str, tuple[int, str]], int]:
    state, newest = {}, 0
    for bucket in (CONFIGMAPS, SECRETS):
        listed = server.request("GET", f"{bucket}?labelSelector=proof%3Dkill").json()
        newest = max(newest, int(listed["metadata"]["resourceVersion"]))
        for item in listed["items"]:
            metadata = item["metadata"]
            path = f"{bucket}/{metadata['name']}"
            state[path] = int(metadata["resourceVersion"]), metadata["annotations"]["content"]
    return state, newest


def check(server: Sandbox, ledger: Ledger) -> None:
    state, newest = read_state(server)
    for path, (version, content) in ledger.acked.items():
        now_version, now = state.get(path, (0, ""))
        allowed = {content} | ledger.tried.get(path, set())
        if now not in allowed:
            raise Lost(f"{path}: acknowledged {content[:20]!r} at {version}, found {now[:20]!r} at {now_version}")
        if now == content and content and now_version != version:
            raise Lost(f"{path}: the content of {version} has version {now_version}")
        if now_version > newest:
            raise Lost(f"{path} is newer than its list")
        if now:  # an unacknowledged write that survived must persist from now on
            recorded = ledger.contents.setdefault(now_version, (path, now))
            if recorded != (path, now):
                raise Lost(f"version {now_version} was given out twice: {recorded} and {path}")
        ledger.acked[path] = (max(now_version, version), now)
        ledger.tried[path] = set()
    if newest < max(ledger.contents, default=0):
        raise Lost(f"the newest version is {newest}, {max(ledger.contents)} was acknowledged")


def check_watch(server: Sandbox, since: int, ledger: Ledger) -> None:
    """A client that saw `since` before the kill resumes from there and sees every write that it missed."""
    buckets = (CONFIGMAPS, SECRETS)
    with ThreadPoolExecutor() as pool:
        watched = list(pool.map(lambda bucket: watched_events(server, bucket, since), buckets))
    for bucket, events in zip(buckets, watched):
        if any(event["type"] == "ERROR" for event in events):
            raise Lost(f"a watch from {since} cannot go on: {events[0]}")
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
        if versions != sorted(set(versions)) or (versions and versions[0] <= since):
            raise Lost(f"a watch from {since} saw {versions}")
        ours = (version for version, (path, _) in ledger.contents.items() if path.startswith(bucket))
        wrote = {version for version in ours if version > since}
        if missing := wrote - set(versions):
            raise Lost(f"a watch from {since} missed {sorted(missing)[:5]}")


def write_last(server: Sandbox, bucket: str) -> str:
    """Create an object that is not in the ledger; return its resourceVersion, newer than all others."""
    manifest = {"apiVersion": "v1", "kind": "Secret" if bucket is SECRETS else "ConfigMap"}
    answer = server.request("POST", bucket, {**manifest, "metadata": {"generateName": "last-"}})
    assert answer.code == 201, answer.body
    return str(answer.json()["metadata"]["resourceVersion"])


def watched_events(server: Sandbox, bucket: str, since: int) -> list[Any]:
    """Watch until an object written after the watch began arrives; all earlier events have arrived by then."""
    connection = server.endpoint.connection()
    try:
        headers = {"Authorization": f"Bearer {server.endpoint.token}"}
        connection.request("GET", f"{bucket}?watch=1&resourceVersion={since}", headers=headers)
        stream = connection.getresponse()
        last = write_last(server, bucket)
        events: list[Any] = []
        while line := stream.readline():
            event = json.loads(line)
            if event["type"] != "ERROR" and event["object"]["metadata"]["resourceVersion"] == last:
                break
            events.append(event)
        return events
    finally:
        connection.close()


def prove(home: Path, rng: random.Random, kills: int, bug: str = "") -> Ledger:
    ledger, life = Ledger(), 0
    folder = home / "data"
    since = 0
    while life < kills:
        life += 1
        if rng.random() < 0.2:
            kill_a_start(folder, rng)
        with sandbox(folder, "--port", "0", home=home, bug=bug) as server:
            check(server, ledger)
            if since:
                check_watch(server, since, ledger)
            since, before = read_state(server)[1], ledger.total
            writers = [Writer(server.endpoint, ledger, n, rng.randrange(1 << 32)) for n in range(CLIENTS)]
            for writer in writers:
                writer.start()
            wait_until(lambda before=before: ledger.total > before + LEAST or server.process.poll() is not None)
            time.sleep(rng.uniform(0, 0.5))
            server.kill()
            for writer in writers:
                writer.join(HANG_SECONDS)
                if writer.broken:
                    raise writer.broken
    with sandbox(folder, "--port", "0", home=home) as server:
        check(server, ledger)
        check_watch(server, since, ledger)
        server.end()
        assert "Traceback" not in server.log()
    return ledger


def kill_a_start(folder: Path, rng: random.Random) -> None:
    """Kill -9 the server while it is still starting; the next start must work."""
    command = [str(ARGOSY), "sandbox", "start", "--data-dir", str(folder), "--port", "0"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment(folder.parent), **silent) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0.1, 0.9))
        process.kill()


def test_no_acknowledged_write_is_lost_by_kill_9_of_the_server(
    tmp_path: Path, rng: random.Random, size: Callable[[int], int]
) -> None:
    kills = size(100)
    ledger = prove(tmp_path, rng, kills)
    print(f"{kills} kills, {ledger.total} acknowledged writes, none lost")
    assert ledger.total > kills * LEAST, "too little was written for a proof"


FORGETFUL = """
from argosy.sandbox.store import store
put = store.Store.put

class Early:
    def __init__(self, staged): self.entry, self._staged = staged.entry, staged
    def __await__(self):
        yield from ()
        return self.entry

store.Store.put = lambda self, *args: Early(put(self, *args))
settle = store.Store._flush
store.Store._flush = lambda self: self._loop.call_later(0.2, settle, self)
"""


def test_proof_detects_a_response_before_the_commit(tmp_path: Path, rng: random.Random) -> None:
    with pytest.raises(Lost, match="acknowledged"):
        prove(tmp_path, rng, 6, bug=FORGETFUL)

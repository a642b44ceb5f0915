"""Real sharded controllers on a real sandbox, each behind a proxy that records its changes.

In: a folder. Out: controllers to kill, pause and resume, and a record of all changes with their controller and time.
Never: runs a controller in this process; misses a change.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web

from argosy import annotations as names
from argosy.gitops.reconciler.ownership.application_claim_fence import read_fence_number
from argosy.kube.controller.sharding.rendezvous_hash import find_owner
from argosy.kube.schema.bundled_crds import load_definition
from support import forked_commands
from support.clusters import Sandbox, environment, sandbox
from support.deadlines import HANG_SECONDS
from support.engine import Repository, config_map
from support.failure_report import record_log

CONTROL = "argocd"
APPS = f"/apis/argoproj.io/v1alpha1/namespaces/{CONTROL}/applications"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{CONTROL}/leases"
HOP = {"connection", "keep-alive", "transfer-encoding", "host", "content-length", "content-encoding"}
REFUSALS = (500, 503, 429)


class Change(NamedTuple):
    """A write of a controller, with the times when it was sent and when the server responded."""

    member: str
    method: str
    path: str
    sent: float
    done: float
    status: int
    fence: str = ""  # the fence annotation of a claim
    mark: str = ""  # operation annotation of a created hook

    @property
    def app(self) -> str:
        """The Application of the object; objects are named after it, and hooks have the prefix `hook-`."""
        return self.path.rpartition("/")[2].removeprefix("hook-")


@dataclass
class Proxy:
    """A proxy between all controllers and the API server: one port per controller, in its own thread."""

    server: str
    token: str
    trouble: float = 0.0  # share of requests that fail, or are executed without a response
    is_away: bool = False
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    changes: list[Change] = field(default_factory=list)
    claims: dict[str, list[Change]] = field(default_factory=lambda: defaultdict(list))  # by Application, in order
    struck: Counter[str] = field(default_factory=Counter)
    _runners: list[web.ServerRunner] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def __enter__(self) -> Proxy:
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._call(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(HANG_SECONDS)

    def _call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(HANG_SECONDS)

    async def _open(self) -> None:
        self._session = ClientSession(
            connector=TCPConnector(ssl=False, limit=0), timeout=ClientTimeout(total=None), auto_decompress=False
        )

    async def _close(self) -> None:
        for runner in self._runners:
            await runner.cleanup()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._session.close()

    def port_for(self, member: str) -> int:
        return int(self._call(self._serve(member)))

    async def _serve(self, member: str) -> int:
        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            return await self._answer(member, request)

        runner = web.ServerRunner(web.Server(answer, access_log=None), shutdown_timeout=0.1)  # type: ignore[arg-type]
        await runner.setup()
        self._runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return int(runner.addresses[0][1])

    async def _answer(self, member: str, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        is_watch = request.query.get("watch") == "true"
        if self.is_away:
            raise web.HTTPServiceUnavailable
        fault = self.rng.random()
        if not is_watch and fault < self.trouble / 2:
            code = self.rng.choice(REFUSALS)
            self.struck[str(code)] += 1
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "a fault"}
            return web.json_response(status, status=code)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        headers["Authorization"] = f"Bearer {self.token}"
        sent_at = time.monotonic()
        try:
            async with self._session.request(
                request.method, self.server + request.raw_path, data=body or None, headers=headers
            ) as response:
                if is_watch:
                    return await self._stream(request, response)
                content = await response.read()
        except (ClientError, OSError):
            raise web.HTTPBadGateway from None
        if request.method != "GET" and "dryRun" not in request.query:
            self._note(member, request, body, sent_at, response.status, content)
        if fault < self.trouble:
            self.struck["no answer"] += 1
            if request.transport is not None:
                request.transport.close()
        kept_headers = {name: value for name, value in response.headers.items() if name.lower() not in HOP}
        return web.Response(body=content, status=response.status, headers=kept_headers)

    async def _stream(self, request: web.BaseRequest, response: Any) -> web.StreamResponse:
        answer = web.StreamResponse(status=response.status, headers={"Content-Type": "application/json"})
        await answer.prepare(request)
        with contextlib.suppress(OSError, ClientError):
            async for chunk in response.content.iter_any():
                if self.is_away or self.rng.random() < self.trouble / 20:
                    self.struck["watch cut"] += 1
                    break
                await answer.write(chunk)
        if request.transport is not None:
            request.transport.close()
        return answer

    def _note(
        self, member: str, request: web.BaseRequest, body: bytes, sent: float, status: int, content: bytes
    ) -> None:
        path, fence, mark = request.path, "", ""
        with contextlib.suppress(ValueError):
            request_body = json.loads(body) if body else {}
            metadata = request_body.get("metadata") or {} if isinstance(request_body, dict) else {}
            fence = (metadata.get("annotations") or {}).get(names.FENCE) or ""
            if request.method == "POST":
                path = f"{path}/{metadata.get('name') or metadata.get('generateName')}"
            if status == 201:
                created_metadata = json.loads(content)["metadata"]
                mark = (created_metadata.get("annotations") or {}).get(names.OPERATION) or ""
        fence = fence if path.startswith(APPS) else ""
        change = Change(member, request.method, path, sent, time.monotonic(), status, fence, mark)
        self.changes.append(change)
        if fence and status == 200:
            self.claims[change.app].append(change)


class Controller:
    """A controller process."""

    process: forked_commands.Started | subprocess.Popen[bytes]

    def __init__(self, name: str, work: SharedWork, *flags: str, source: str = "") -> None:
        """`source`: folder with the source code of another argosy version."""
        self.name, self._log = name, record_log(work.folder / f"{name}.log")
        home = work.folder / name
        home.mkdir()
        config = home / "kubeconfig"
        server = {"server": f"http://127.0.0.1:{work.proxy.port_for(name)}"}
        config.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "it",
                    "clusters": [{"name": "it", "cluster": server}],
                    "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
                    "users": [{"name": "it", "user": {}}],
                }
            )
        )
        words = ["controller", "--kubeconfig", config, "-n", CONTROL, "--mirrors", home / "mirrors"]
        words += ["--workers", "6", "--renderers", "1", *(flags or ("--shards", "auto"))]
        env = environment(home)
        with self._log.open("a") as errors:
            self.process = self._started(words, env, errors.fileno(), source)
        self.ended_at = 0.0

    def _started(
        self, words: Sequence[object], env: Mapping[str, str], errors: int, source: str
    ) -> forked_commands.Started | subprocess.Popen[bytes]:
        if source:
            program = [sys.executable, "-m", "argosy", *map(str, words)]
            return subprocess.Popen(program, env={**env, "PYTHONPATH": source}, stderr=errors)
        return forked_commands.start(words, env=env, stderr=errors)

    def log(self) -> str:
        return self._log.read_text()

    def end(self, number: int) -> None:
        self.ended_at = time.monotonic()
        self.process.send_signal(number)

    def pause(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)


@dataclass
class SharedWork:
    folder: Path
    running: Sandbox
    proxy: Proxy
    repository: Repository
    controllers: list[Controller] = field(default_factory=list)
    apps: list[str] = field(default_factory=list)
    made_by: type[Controller] = Controller

    def start(self, *flags: str, source: str = "") -> Controller:
        controller = self.made_by(f"c{len(self.controllers)}", self, *flags, source=source)
        self.controllers.append(controller)
        return controller

    def three_agree(self) -> bool:
        """True if three members agree. Replaces members that exited, like Kubernetes does."""
        while len(self.living) < 3:
            self.start()
        return self.are_shared(3)

    @property
    def living(self) -> list[Controller]:
        return [
            controller
            for controller in self.controllers
            if not controller.ended_at and controller.process.poll() is None
        ]

    # -- Applications

    def push(self, value: str) -> str:
        files: dict[str, Any] = {}
        for index, app in enumerate(self.apps):
            files[f"{app}/settings.yaml"] = config_map(app, value=value)
            if index % 5 == 0:
                hook = config_map(f"hook-{app}", value=value)
                hook["metadata"]["annotations"] = {names.HOOK: "PreSync"}
                files[f"{app}/hook.yaml"] = hook
        return self.repository.push(files)

    def deliver(self, count: int) -> str:
        self.apps = [f"app-{number:04}" for number in range(count)]
        head = self.push("first")
        for app in self.apps:
            spec = {
                "project": "default",
                "source": {"repoURL": self.repository.url, "path": app, "targetRevision": "main"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
                "syncPolicy": {
                    "automated": {"prune": True, "selfHeal": True},
                    "retry": {"limit": 50, "backoff": {"duration": "1s", "factor": 1, "maxDuration": "2s"}},
                },
            }
            metadata = {"name": app, "namespace": CONTROL}
            manifest = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}
            assert self.running.request("POST", APPS, manifest).code == 201
        return head

    def sync(self, app: str) -> None:
        operation = {"operation": {"sync": {}, "initiatedBy": {"username": "ann"}}}
        self.running.request("PATCH", f"{APPS}/{app}", operation, "application/merge-patch+json")

    def listed(self) -> list[dict[str, Any]]:
        return list(self.running.request("GET", APPS).json()["items"])

    def members(self) -> list[dict[str, Any]]:
        leases = self.running.request("GET", f"{LEASES}?labelSelector={names.MEMBER}%3Dtrue").json()["items"]
        return list(leases)

    def owners(self) -> dict[str, str]:
        """Return the identity in the fence of each Application."""
        return {
            application["metadata"]["name"]: fence_of(application).partition("/")[2] for application in self.listed()
        }

    def until(self, seconds: float, is_so: Callable[[], Any], description: str) -> float:
        """Wait for a condition; return the seconds it took."""
        began = checked_at = time.monotonic()
        while not is_so():
            took = time.monotonic() - checked_at
            if time.monotonic() - began > seconds:
                logs = "\n".join(
                    f"--- {controller.name}\n{controller.log()[-1500:]}" for controller in self.controllers[-4:]
                )
                raise AssertionError(f"not within {seconds:g} s: {description}\n{logs}")
            time.sleep(max(0.1, 3 * took))  # limits the load that polling causes
            checked_at = time.monotonic()
        return time.monotonic() - began

    def are_synced(self, revision: str) -> bool:
        return not self.behind(revision)

    def behind(self, revision: str) -> list[str]:
        return [
            application["metadata"]["name"] for application in self.listed() if not _is_synced(application, revision)
        ]

    def are_shared(self, count: int) -> bool:
        """True if there are this many members, and their Leases have the same roster of all members."""
        leases = self.members()
        rosters = {(lease["metadata"].get("annotations") or {}).get(names.ROSTER) for lease in leases}
        return len(leases) == count and rosters == {
            ",".join(sorted(lease["spec"]["holderIdentity"] for lease in leases))
        }

    def are_claimed(self) -> bool:
        """True if the fence of each Application has the identity of its owner."""
        those = [lease["spec"]["holderIdentity"] for lease in self.members()]
        return all(fence == find_owner(those, f"{CONTROL}/{app}") for app, fence in self.owners().items())

    # -- recorded changes

    def claims(self, app: str) -> list[Change]:
        return self.proxy.claims[app]

    def faults(self) -> list[str]:
        """Return changes of an Application or its objects by a controller after another controller had claimed it."""
        by_app: dict[str, list[Change]] = defaultdict(list)
        for recorded_change in self.proxy.changes:
            if (
                recorded_change.status < 300
                and "/events" not in recorded_change.path
                and "/leases/" not in recorded_change.path
            ):
                by_app[recorded_change.app].append(recorded_change)
        messages = []
        for app, changes in by_app.items():
            claims = [change_with_fence for change_with_fence in changes if change_with_fence.fence]
            for change in changes:
                earlier_claims = [earlier_claim for earlier_claim in claims if earlier_claim.done <= change.sent]
                if (
                    earlier_claims
                    and not change.fence
                    and max(earlier_claims, key=lambda claim: claim.done).member != change.member
                ):
                    last = max(earlier_claims, key=lambda claim: claim.done)
                    messages.append(f"{app}: {change.method} by {change.member} after {last.member} had {last.fence}")
            numbers = [
                read_fence_number(fenced_change.fence) for fenced_change in sorted(claims, key=lambda claim: claim.done)
            ]
            if numbers != sorted(set(numbers)):
                messages.append(f"{app}: fences {numbers}")
        return messages

    def hooks_made_twice(self) -> list[str]:
        counts = Counter((change.path, change.mark) for change in self.proxy.changes if change.mark)
        return [f"{path} for {mark}: {count}" for (path, mark), count in counts.items() if count > 1]


def fence_of(app: dict[str, Any]) -> str:
    return str((app["metadata"].get("annotations") or {}).get(names.FENCE) or "")


def _is_synced(app: dict[str, Any], revision: str) -> bool:
    status = app.get("status") or {}
    sync, state = status.get("sync") or {}, status.get("operationState") or {}
    is_over = "operation" not in app and state.get("phase", "Succeeded") == "Succeeded"
    return sync.get("status") == "Synced" and sync.get("revision") == revision and is_over


@contextlib.contextmanager
def shared_work(
    folder: Path, applications: int, controllers: int = 3, trouble: float = 0.0,
    *, flags: Sequence[str] = (), source: str = "", made_by: type[Controller] = Controller,
) -> Iterator[SharedWork]:  # fmt: skip
    """Start controllers, and wait until they have synced all Applications once."""
    with sandbox(folder / "data") as running, Proxy(running.address, running.endpoint.token) as proxy:
        for name in (CONTROL, "ml"):
            space = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
            running.request("POST", "/api/v1/namespaces", space)
        for name in ("applications.argoproj.io", "appprojects.argoproj.io"):
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            running.request("POST", path, load_definition(name))
        roots = config_map("argosy-cm") | {"data": {"source.local.roots": str(folder)}}
        running.request("POST", f"/api/v1/namespaces/{CONTROL}/configmaps", roots)
        work = SharedWork(folder, running, proxy, Repository(folder / "repository"), made_by=made_by)
        try:
            head = work.deliver(applications)
            for _ in range(controllers):
                work.start(*flags, source=source)
            if controllers:
                work.until(HANG_SECONDS, lambda: work.are_shared(controllers), "all controllers are members")
            work.until(HANG_SECONDS + applications / 2, lambda: work.are_synced(head), "everything is delivered")
            proxy.trouble = trouble
            yield work
        finally:
            for controller in work.controllers:
                if controller.process.poll() is None:
                    controller.go_on()
                    controller.process.kill()
                    controller.process.wait()

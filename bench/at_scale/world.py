"""One API server, one repository of many applications, and controllers: each a process of its own.

In: a folder, how many applications. Out: a World that delivers, refreshes and counts. Never: a controller in here.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final

import orjson
from side_by_side.processes import PAGE, PROC, TICKS, with_children

from argosy.kube.schema.bundled_crds import load_definition
from support.clusters import ARGOSY, Answer, Endpoint, Sandbox, ask, environment, sandbox

CONTROL: Final = "argocd"
APPS: Final = f"/apis/argoproj.io/v1alpha1/namespaces/{CONTROL}/applications"
LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{CONTROL}/leases"
REFRESH: Final = "argocd.argoproj.io/refresh"
MERGE: Final = "application/merge-patch+json"
CALLERS: Final = 6  # that create and annotate
NEIGHBOURS: Final = 100  # applications in one namespace
MOST_OBJECTS: Final = 5

DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      serviceAccountName: {name}
      containers:
      - {{name: server, image: "registry.example/{name}:1", ports: [{{containerPort: 8080}}]}}
"""
OBJECTS: Final = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{mode: production, replicas: '{number}'}}\n",
    DEPLOYMENT,
    "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n"
    "spec: {{selector: {{app: {name}}}, ports: [{{port: 80}}]}}\n",
    "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}}}\n",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}-more}}\ndata: {{note: second}}\n",
)


def objects_of(number: int) -> int:
    """One to five, three on average."""
    return number % MOST_OBJECTS + 1


def files_of(count: int) -> dict[str, str]:
    return {
        f"apps/app-{number:05}/{index}.yaml": OBJECTS[index].format(name=f"app-{number:05}", number=number)
        for number in range(count)
        for index in range(objects_of(number))
    }


def application(number: int, url: str) -> dict[str, Any]:
    name = f"app-{number:05}"
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": CONTROL},
        "spec": {
            "project": "default",
            "source": {"repoURL": url, "path": f"apps/{name}", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": f"team-{number // NEIGHBOURS}"},
            "syncPolicy": {"automated": {"prune": True, "selfHeal": True}},
        },
    }


def commit(path: Path, files: Mapping[str, str]) -> None:
    """The first one of a bare repository; a work tree of so many files would only take time."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(path)], check=True, env=env)
    lines = ["commit refs/heads/main", "committer bench <bench@example.com> 0 +0000", "data 1", "c"]
    for name, text in files.items():
        lines += [f"M 100644 inline {name}", f"data {len(text.encode())}", text]
    command = ["git", f"--git-dir={path}", "fast-import", "--quiet"]
    subprocess.run(command, input="\n".join([*lines, ""]).encode(), env=env, check=True)


class Onlooker:
    """Follows all Applications by one watch, as anybody may: which are Synced, and which wait for a refresh."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.synced: set[str] = set()
        self.waiting: set[str] = set()
        self._version = str(orjson.loads(endpoint.request("GET", APPS).body)["metadata"]["resourceVersion"])
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            with contextlib.suppress(OSError, HTTPException):
                self._follow(self._endpoint.connection(timeout=None))  # type: ignore[arg-type]
            time.sleep(0.2)

    def _follow(self, connection: HTTPSConnection) -> None:
        headers = {"Authorization": f"Bearer {self._endpoint.token}"}
        connection.request("GET", f"{APPS}?watch=true&resourceVersion={self._version}", headers=headers)
        answer = connection.getresponse()
        while line := answer.readline():
            app = orjson.loads(line)["object"]
            self._version = app["metadata"]["resourceVersion"]
            self._take(app)

    def _take(self, app: dict[str, Any]) -> None:
        name, status = app["metadata"]["name"], app.get("status") or {}
        is_over = "operation" not in app and (status.get("operationState") or {}).get("phase") == "Succeeded"
        if is_over and (status.get("sync") or {}).get("status") == "Synced":
            self.synced.add(name)
        asks = REFRESH in (app["metadata"].get("annotations") or {})
        (self.waiting.add if asks else self.waiting.discard)(name)


class Controller:
    """One process and its children, as /proc tells of them."""

    def __init__(self, kubeconfig: Path, home: Path, *flags: str) -> None:
        home.mkdir()
        words = [str(ARGOSY), "controller", "--kubeconfig", str(kubeconfig), "-n", CONTROL]
        words += ["--mirrors", str(home / "mirrors"), *flags]
        self.log = home / "log"
        with self.log.open("w") as errors:
            self.process = subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=errors, stdin=subprocess.DEVNULL, env=environment(home)
            )
        self.peak = 0.0

    @property
    def cpu(self) -> float:
        """Seconds, those of children that have ended included."""
        return sum(sum(map(int, fields[11:15])) / TICKS for fields in self._stats())

    @property
    def memory(self) -> float:
        """Bytes: what is resident of it and of its children."""
        now = sum(int(fields[21]) * PAGE for fields in self._stats())
        self.peak = max(self.peak, now)
        return now

    def _stats(self) -> Iterator[list[str]]:
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        for pid in with_children([self.process.pid]):
            with contextlib.suppress(OSError):
                yield (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class World:
    def __init__(self, folder: Path, running: Sandbox, count: int) -> None:
        self.folder, self._running, self.count = folder, running, count
        self.names = [f"app-{number:05}" for number in range(count)]
        self._numbers = itertools.count()
        self.controllers: list[Controller] = []
        self._here = threading.local()

    def start(self, *flags: str) -> Controller:
        one = Controller(self._running.kubeconfig, self.folder / f"controller-{next(self._numbers)}", *flags)
        self.controllers.append(one)
        return one

    def end(self) -> None:
        while self.controllers:
            self.controllers.pop().end()

    @property
    def cpu(self) -> float:
        return sum(controller.cpu for controller in self.controllers)

    @property
    def memory(self) -> float:
        return sum(controller.memory for controller in self.controllers)

    def ask(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Answer:
        """On a connection that this thread keeps."""
        if not hasattr(self._here, "connection"):
            self._here.connection = self._running.endpoint.connection(timeout=60.0)
        return ask(self._here.connection, method, path, body, media, token=self._running.endpoint.token)

    def all_of(self, calls: Iterator[tuple[str, str, Any, str]]) -> None:
        """Many requests, some at a time; each must be accepted."""

        def one(call: tuple[str, str, Any, str]) -> None:
            answer = self.ask(*call)
            assert answer.code < 300 or answer.code == 409, answer

        with ThreadPoolExecutor(CALLERS) as callers:
            for _ in callers.map(one, calls):
                pass

    def prepare(self) -> None:
        """All but the applications."""
        for name in (CONTROL, *(f"team-{number}" for number in range(-(-self.count // NEIGHBOURS)))):
            space = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
            self.ask("POST", "/api/v1/namespaces", space)
        for name in ("applications.argoproj.io", "appprojects.argoproj.io"):
            self.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", load_definition(name))
        roots = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "argosy-cm"}}
        roots["data"] = {"source.local.roots": str(self.folder)}
        self.ask("POST", f"/api/v1/namespaces/{CONTROL}/configmaps", roots)
        self.repository = self.folder / "everything.git"
        commit(self.repository, files_of(self.count))
        self.onlooker = Onlooker(self._running.endpoint)

    def declare(self, first: int, end: int) -> None:
        url = f"file://{self.repository}"
        self.all_of(("POST", APPS, application(number, url), "application/json") for number in range(first, end))

    def refresh(self) -> None:
        """Hard, all of them, as `argocd app get --hard-refresh` asks for it."""
        patch = {"metadata": {"annotations": {REFRESH: "hard"}}}
        self.onlooker.waiting.update(self.names)
        self.all_of(("PATCH", f"{APPS}/{name}", patch, MERGE) for name in self.names)

    def members(self) -> int:
        leases = self.ask("GET", f"{LEASES}?labelSelector=argosy.dev/member%3Dtrue").json()["items"]
        return len(leases)

    def until(self, is_so: Callable[[], bool], description: str, seconds: float) -> float:
        """How long it took."""
        began = time.monotonic()
        while not is_so():
            if time.monotonic() - began > seconds:
                logs = "\n".join(controller.log.read_text()[-1500:] for controller in self.controllers)
                raise AssertionError(f"not within {seconds:.0f} s: {description}\n{logs}")
            time.sleep(0.25)
            assert self.memory  # so that the peak is seen
        return time.monotonic() - began

    def rest(self, seconds: float = 120.0) -> None:
        """Until the controllers have next to nothing to do for five seconds."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            before = self.cpu
            time.sleep(5.0)
            if self.cpu - before < 0.25 * len(self.controllers):
                return


@contextlib.contextmanager
def world(folder: Path, count: int) -> Iterator[World]:
    with sandbox(folder / "data", program=[str(ARGOSY)]) as running:
        one = World(folder, running, count)
        try:
            one.prepare()
            yield one
        finally:
            one.end()

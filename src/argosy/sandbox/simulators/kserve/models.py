"""Serves models on this machine: each InferenceService gets a model server or a stub.

In: an InferenceService and its Pods. Out: whether its model responds, and its URL. Never: reports a model as loaded
before querying it; runs a model in this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.simulators.constants import letters, own_key, told
from argosy.sandbox.simulators.kserve.constants import COMPONENT, INFERENCE_SERVICE, OF_SERVICE
from argosy.sandbox.simulators.kserve.model_logs import Pages
from argosy.sandbox.simulators.kserve.model_probe import Answer, ModelState
from argosy.sandbox.simulators.kserve.model_processes import Answerer
from argosy.sandbox.simulators.kserve.model_source import NoModel, Plan, host_of, plan_of
from argosy.sandbox.simulators.pod_counts import is_ready

VOLUMES, LOGS = "volumes", "logs/models"
PROBE: Final = "argosy-probe"  # requests of this user agent are not logged
# names below localhost resolve to this machine without DNS
DOMAIN: Final = "localhost"
PATIENCE: Final = 2.0
MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Served:
    pod: str  # uid of the Pod it serves: a new Pod means a new process
    plan: Plan
    answerer: Answerer

    @property
    def url(self) -> str:
        return f"http://{self.plan.host}.{DOMAIN}:{self.answerer.port}"


class Models:
    """Until `run_in` is entered there is nothing to query, and a model counts as ready when its Pods are."""

    def __init__(self) -> None:
        self._volumes: Path | None = None
        self._pages: Pages | None = None
        self._served: dict[ResourceKey, Served] = {}
        self._hosts: dict[str, ResourceKey] = {}
        self._ports: dict[ResourceKey, int] = {}  # the port of each model that had one
        self._stubs: Answerer | None = None

    @contextlib.asynccontextmanager
    async def beside(self, folder: Path) -> AsyncIterator[None]:
        """Serve models while the context is open; `folder` contains the volumes."""
        self._volumes, self._pages = folder / VOLUMES, Pages(folder / LOGS)
        try:
            yield
        finally:
            self._volumes = None
            answerers = {each.answerer for each in self._served.values()} | ({self._stubs} if self._stubs else set())
            self._served.clear()
            self._hosts.clear()
            self._stubs = None
            await asyncio.gather(*(each.end() for each in answerers))
            self._pages.close()
            self._pages = None

    async def ask(self, service: Manifest, pods: Sequence[Manifest]) -> Answer:
        if self._volumes is None:
            return Answer(ModelState.LOADED)
        pod = next((str(each["metadata"]["uid"]) for each in pods if is_ready(each)), "")
        if not pod:
            await self.let_go(key_of(service))
            return Answer(ModelState.PENDING)
        try:
            served = await self._serving(service, pod, self._volumes)
        except NoModel as error:
            await self.let_go(key_of(service))
            return Answer(ModelState.FAILED, told(str(error)))
        return await _answer_of(served)

    def where(self, key: ResourceKey) -> str:
        """Return the URL that is currently known, or an empty string."""
        served = self._served.get(key)
        return served.url if served is not None else ""

    def where_of(self, manifest: Manifest) -> str:
        """Return the URL of the model that a Pod or Service belongs to, or an empty string."""
        key = _key_above(manifest)
        return self.where(key) if key is not None else ""

    async def let_go(self, key: ResourceKey) -> None:
        served = self._served.pop(key, None)
        if served is None:
            return
        self._hosts.pop(served.plan.host, None)
        if served.answerer is self._stubs:
            await served.answerer.forget(served.plan.host)
        else:
            await served.answerer.end()
        if self._pages is not None:
            self._pages.end(served.plan.host)

    def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str] | None:
        """Return the output of the process that serves this Pod, or None if there is none."""
        key = _key_above(pod)
        served = self._served.get(key) if key is not None else None
        if key is None or served is None or self._pages is None or not is_ready(pod):
            return None
        if container != pod["spec"]["containers"][0]["name"]:
            return None
        if served.pod != pod["metadata"]["uid"]:
            return _one_line(told("one process serves all Pods of this model; another Pod shows its log"))

        def is_over() -> bool:
            known = self._served.get(key)
            return known is None or known.pod != served.pod

        return self._pages.lines(served.plan.host, tail=tail, follow=follow, is_over=is_over)

    async def _serving(self, service: Manifest, pod: str, volumes: Path) -> Served:
        """Return the model as its Pod has it; a Pod reads its model once, when it starts."""
        key = key_of(service)
        known = self._served.get(key)
        if known is not None and known.pod == pod:
            return known
        plan = plan_of(service, self._host(key), volumes)
        if known is not None and known.plan.folder and plan.folder:
            await known.answerer.renew(plan)
            self._begin_page(plan)
            self._served[key] = replace(known, pod=pod, plan=plan)
            return self._served[key]
        await self.let_go(key)
        self._hosts[plan.host] = key
        self._begin_page(plan)
        if plan.folder:
            port = self._ports.get(key) or _told_port(service)
            answerer = Answerer(plan.folder, port=port, hear=self._hearing(plan.host))
            self._ports[key] = answerer.port
        else:
            answerer = self._stubs = self._stubs or Answerer(port=_told_port(service), hear=self._hearing())
        self._served[key] = Served(pod, plan, answerer)
        await answerer.serve(plan)
        return self._served[key]

    def _begin_page(self, plan: Plan) -> None:
        if self._pages is not None:
            self._pages.begin(plan.host)

    def _hearing(self, host: str = "") -> Callable[[bytes], None] | None:
        return self._pages.hearing(host) if self._pages is not None else None

    def _host(self, key: ResourceKey) -> str:
        usual = host_of(key.namespace, key.name)
        if self._hosts.get(usual, key) == key:
            return usual
        # model `a-b` in namespace `c` and `a` in `b-c` would share a host
        return f"{usual[:52]}-{letters(str(key), 10)}"


def _told_port(service: Manifest) -> int:
    """Return the port from the stored URL, so that the URL survives a restart; 0 if there is none."""
    try:
        told = urlsplit(str((service.get("status") or {}).get("url") or ""))
        port = told.port or 0
    except ValueError:
        return 0
    return port if (told.hostname or "").endswith(f".{DOMAIN}") and port >= 1024 else 0


def _key_above(manifest: Manifest) -> ResourceKey | None:
    """Return the key of the InferenceService whose predictor a Pod or Service belongs to, or None."""
    labels = manifest["metadata"].get("labels") or {}
    if labels.get(COMPONENT) != "predictor" or not labels.get(OF_SERVICE):
        return None
    return own_key(INFERENCE_SERVICE, manifest["metadata"]["namespace"], str(labels[OF_SERVICE]))


async def _one_line(text: str) -> AsyncIterator[str]:
    yield text


async def _answer_of(served: Served) -> Answer:
    """Query the model until it is ready or failed, for at most 2 seconds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while True:
        try:
            async with asyncio.timeout_at(end):
                code, found = await _get(served, f"/v2/models/{served.plan.name}/ready")
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            code, found = 0, {}
        if code == 200:
            served.answerer.problem = ""
            return Answer(ModelState.LOADED, url=served.url)
        if found.get("state") == "failed":
            return Answer(ModelState.FAILED, told(str(found.get("error"))), served.url)
        if served.answerer.problem and (not served.answerer.is_answering() or loop.time() > end):
            return Answer(ModelState.FAILED, told(f"model server process: {served.answerer.problem}"), served.url)
        if loop.time() > end:
            return Answer(ModelState.LOADING, url=served.url)
        await asyncio.sleep(0.05)


async def _get(served: Served, path: str) -> tuple[int, dict[str, Any]]:
    """Send one HTTP request; return status code and JSON body. Raises OSError or ValueError."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.answerer.port, limit=MOST_BYTES)
    try:
        head = (f"GET {path} HTTP/1.0", f"Host: {served.plan.host}.{DOMAIN}", f"User-Agent: {PROBE}", "", "")
        writer.write("\r\n".join(head).encode())
        begun, _, body = (await reader.read(MOST_BYTES)).partition(b"\r\n\r\n")
        while more := await reader.read(MOST_BYTES):
            body += more
        if not begun:
            raise ValueError("no answer")
        return int(begun.split(b" ", 2)[1]), json.loads(body or b"{}")
    finally:
        writer.close()

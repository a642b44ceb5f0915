"""Models that really answer: each InferenceService has somebody who answers for it, on this machine.

In: an InferenceService and its Pods. Out: whether its model answers, and where. Never: says that it does before it was
asked; runs a model in this process.
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
PROBE: Final = "argosy-probe"  # who asks so is not written down
# its names are of this machine: curl and browsers know that without asking anybody
DOMAIN: Final = "localhost"
PATIENCE: Final = 2.0
MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Served:
    pod: str  # which Pod it answers for: a new one means a new process
    plan: Plan
    answerer: Answerer

    @property
    def url(self) -> str:
        return f"http://{self.plan.host}.{DOMAIN}:{self.answerer.port}"


class Models:
    """Until `beside` has begun there is nobody to ask, and a model is ready when its Pods are."""

    def __init__(self) -> None:
        self._volumes: Path | None = None
        self._pages: Pages | None = None
        self._served: dict[ResourceKey, Served] = {}
        self._hosts: dict[str, ResourceKey] = {}
        self._ports: dict[ResourceKey, int] = {}  # of those that had one
        self._stubs: Answerer | None = None

    @contextlib.asynccontextmanager
    async def beside(self, folder: Path) -> AsyncIterator[None]:
        """While it lasts, models answer; `folder` is where volumes are."""
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
        """Where it answers, as far as is known; empty: nowhere."""
        served = self._served.get(key)
        return served.url if served is not None else ""

    def where_of(self, manifest: Manifest) -> str:
        """Of one of its Pods or Services."""
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
        """What the process prints that answers for this Pod; None: none does."""
        key = _key_above(pod)
        served = self._served.get(key) if key is not None else None
        if key is None or served is None or self._pages is None or not is_ready(pod):
            return None
        if container != pod["spec"]["containers"][0]["name"]:
            return None
        if served.pod != pod["metadata"]["uid"]:
            return _one_line(told("one process answers for all Pods of this model; its lines are those of another Pod"))

        def is_over() -> bool:
            known = self._served.get(key)
            return known is None or known.pod != served.pod

        return self._pages.lines(served.plan.host, tail=tail, follow=follow, is_over=is_over)

    async def _serving(self, service: Manifest, pod: str, volumes: Path) -> Served:
        """As its Pod has it: a Pod reads its model once, when it starts."""
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
        return f"{usual[:52]}-{letters(str(key), 10)}"  # `a-b` in `c`, where `a` in `b-c` is called so


def _told_port(service: Manifest) -> int:
    """Where it answered before this process began, so that people need not look again; 0: nowhere."""
    try:
        told = urlsplit(str((service.get("status") or {}).get("url") or ""))
        port = told.port or 0
    except ValueError:
        return 0
    return port if (told.hostname or "").endswith(f".{DOMAIN}") and port >= 1024 else 0


def _key_above(manifest: Manifest) -> ResourceKey | None:
    """Of the InferenceService whose predictor a Pod or a Service is of."""
    labels = manifest["metadata"].get("labels") or {}
    if labels.get(COMPONENT) != "predictor" or not labels.get(OF_SERVICE):
        return None
    return own_key(INFERENCE_SERVICE, manifest["metadata"]["namespace"], str(labels[OF_SERVICE]))


async def _one_line(text: str) -> AsyncIterator[str]:
    yield text


async def _answer_of(served: Served) -> Answer:
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
            return Answer(ModelState.FAILED, told(f"the model's process: {served.answerer.problem}"), served.url)
        if loop.time() > end:
            return Answer(ModelState.LOADING, url=served.url)
        await asyncio.sleep(0.05)


async def _get(served: Served, path: str) -> tuple[int, dict[str, Any]]:
    """Raises OSError or ValueError."""
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

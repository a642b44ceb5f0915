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

from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import INFERENCE_SERVICE
from argosy.sandbox.simulators.kserve.kinds_and_labels import COMPONENT_LABEL, INFERENCE_SERVICE_LABEL
from argosy.sandbox.simulators.kserve.model_file_or_stub import (
    ModelNotFoundError,
    ModelSource,
    build_host_label,
    resolve_model_source,
)
from argosy.sandbox.simulators.kserve.model_probe_interface import ModelState, ProbeResult
from argosy.sandbox.simulators.kserve.model_server_process import ModelServerProcess
from argosy.sandbox.simulators.kserve.per_model_logs import ModelLogs
from argosy.sandbox.simulators.owner_references_and_marks import append_simulated_note, build_key, hash_to_name_suffix
from argosy.sandbox.simulators.pod_counts import is_ready

VOLUMES_FOLDER, LOGS_FOLDER = "volumes", "logs/models"
PROBE_USER_AGENT: Final = "argosy-probe"  # requests of this user agent are not logged
# names below localhost resolve to this machine without DNS
MODEL_DOMAIN: Final = "localhost"
PROBE_TIMEOUT_SECONDS: Final = 2.0
MAX_RESPONSE_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class RunningModel:
    pod_uid: str  # uid of the Pod it serves: a new Pod means a new process
    source: ModelSource
    process: ModelServerProcess

    @property
    def url(self) -> str:
        return f"http://{self.source.host}.{MODEL_DOMAIN}:{self.process.port}"


class ModelServers:
    """Until `run_in` is entered there is nothing to query, and a model counts as ready when its Pods are."""

    def __init__(self) -> None:
        self._volumes: Path | None = None
        self._logs: ModelLogs | None = None
        self._served: dict[ResourceKey, RunningModel] = {}
        self._keys_by_host: dict[str, ResourceKey] = {}
        self._ports: dict[ResourceKey, int] = {}  # the port of each model that had one
        self._stub_process: ModelServerProcess | None = None

    @contextlib.asynccontextmanager
    async def run_in(self, folder: Path) -> AsyncIterator[None]:
        """Serve models while the context is open; `folder` contains the volumes."""
        self._volumes, self._logs = folder / VOLUMES_FOLDER, ModelLogs(folder / LOGS_FOLDER)
        try:
            yield
        finally:
            self._volumes = None
            processes = {item.process for item in self._served.values()} | (
                {self._stub_process} if self._stub_process else set()
            )
            self._served.clear()
            self._keys_by_host.clear()
            self._stub_process = None
            await asyncio.gather(*(item.end() for item in processes))
            self._logs.close()
            self._logs = None

    async def probe(self, service: Manifest, pods: Sequence[Manifest]) -> ProbeResult:
        if self._volumes is None:
            return ProbeResult(ModelState.LOADED)
        pod_uid = next((str(candidate["metadata"]["uid"]) for candidate in pods if is_ready(candidate)), "")
        if not pod_uid:
            await self.release(key_of(service))
            return ProbeResult(ModelState.PENDING)
        try:
            served = await self._start_or_reuse(service, pod_uid, self._volumes)
        except ModelNotFoundError as error:
            await self.release(key_of(service))
            return ProbeResult(ModelState.FAILED, append_simulated_note(str(error)))
        return await _probe_served_model(served)

    def find_url(self, key: ResourceKey) -> str:
        """Return the URL that is currently known, or an empty string."""
        served = self._served.get(key)
        return served.url if served is not None else ""

    def model_url(self, manifest: Manifest) -> str:
        """Return the URL of the model that a Pod or Service belongs to, or an empty string."""
        key = _find_inference_service_key(manifest)
        return self.find_url(key) if key is not None else ""

    async def release(self, key: ResourceKey) -> None:
        served = self._served.pop(key, None)
        if served is None:
            return
        self._keys_by_host.pop(served.source.host, None)
        if served.process is self._stub_process:
            await served.process.forget(served.source.host)
        else:
            await served.process.end()
        if self._logs is not None:
            self._logs.delete_log(served.source.host)

    def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str] | None:
        """Return the output of the process that serves this Pod, or None if there is none."""
        key = _find_inference_service_key(pod)
        served = self._served.get(key) if key is not None else None
        if key is None or served is None or self._logs is None or not is_ready(pod):
            return None
        if container != pod["spec"]["containers"][0]["name"]:
            return None
        if served.pod_uid != pod["metadata"]["uid"]:
            return _yield_line(
                append_simulated_note("one process serves all Pods of this model; another Pod shows its log")
            )

        def is_over() -> bool:
            current = self._served.get(key)
            return current is None or current.pod_uid != served.pod_uid

        return self._logs.lines(served.source.host, tail=tail, follow=follow, is_over=is_over)

    async def _start_or_reuse(self, service: Manifest, pod_uid: str, volumes: Path) -> RunningModel:
        """Return the model as its Pod has it; a Pod reads its model once, when it starts."""
        key = key_of(service)
        current = self._served.get(key)
        if current is not None and current.pod_uid == pod_uid:
            return current
        source = resolve_model_source(service, self._choose_host(key), volumes)
        if current is not None and current.source.folder and source.folder:
            await current.process.restart_for(source)
            self._start_log(source)
            self._served[key] = replace(current, pod_uid=pod_uid, source=source)
            return self._served[key]
        await self.release(key)
        self._keys_by_host[source.host] = key
        self._start_log(source)
        if source.folder:
            port = self._ports.get(key) or _read_previous_port(service)
            process = ModelServerProcess(source.folder, port=port, on_output=self._build_output_handler(source.host))
            self._ports[key] = process.port
        else:
            process = self._stub_process = self._stub_process or ModelServerProcess(
                port=_read_previous_port(service), on_output=self._build_output_handler()
            )
        self._served[key] = RunningModel(pod_uid, source, process)
        await process.serve(source)
        return self._served[key]

    def _start_log(self, source: ModelSource) -> None:
        if self._logs is not None:
            self._logs.start_log(source.host)

    def _build_output_handler(self, host: str = "") -> Callable[[bytes], None] | None:
        return self._logs.build_output_handler(host) if self._logs is not None else None

    def _choose_host(self, key: ResourceKey) -> str:
        default_host = build_host_label(key.namespace, key.name)
        if self._keys_by_host.get(default_host, key) == key:
            return default_host
        # model `a-b` in namespace `c` and `a` in `b-c` would share a host
        return f"{default_host[:52]}-{hash_to_name_suffix(str(key), 10)}"


def _read_previous_port(service: Manifest) -> int:
    """Return the port from the stored URL, so that the URL survives a restart; 0 if there is none."""
    try:
        url = urlsplit(str((service.get("status") or {}).get("url") or ""))
        port = url.port or 0
    except ValueError:
        return 0
    return port if (url.hostname or "").endswith(f".{MODEL_DOMAIN}") and port >= 1024 else 0


def _find_inference_service_key(manifest: Manifest) -> ResourceKey | None:
    """Return the key of the InferenceService whose predictor a Pod or Service belongs to, or None."""
    labels = manifest["metadata"].get("labels") or {}
    if labels.get(COMPONENT_LABEL) != "predictor" or not labels.get(INFERENCE_SERVICE_LABEL):
        return None
    return build_key(INFERENCE_SERVICE, manifest["metadata"]["namespace"], str(labels[INFERENCE_SERVICE_LABEL]))


async def _yield_line(text: str) -> AsyncIterator[str]:
    yield text


async def _probe_served_model(served: RunningModel) -> ProbeResult:
    """Query the model until it is ready or failed, for at most 2 seconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PROBE_TIMEOUT_SECONDS
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                code, document = await _send_get(served, f"/v2/models/{served.source.name}/ready")
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            code, document = 0, {}
        if code == 200:
            served.process.problem = ""
            return ProbeResult(ModelState.LOADED, url=served.url)
        if document.get("state") == "failed":
            return ProbeResult(ModelState.FAILED, append_simulated_note(str(document.get("error"))), served.url)
        if served.process.problem and (not served.process.is_running() or loop.time() > deadline):
            return ProbeResult(
                ModelState.FAILED, append_simulated_note(f"model server process: {served.process.problem}"), served.url
            )
        if loop.time() > deadline:
            return ProbeResult(ModelState.LOADING, url=served.url)
        await asyncio.sleep(0.05)


async def _send_get(served: RunningModel, path: str) -> tuple[int, dict[str, Any]]:
    """Send one HTTP request; return status code and JSON body. Raises OSError or ValueError."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.process.port, limit=MAX_RESPONSE_BYTES)
    try:
        request_lines = (
            f"GET {path} HTTP/1.0",
            f"Host: {served.source.host}.{MODEL_DOMAIN}",
            f"User-Agent: {PROBE_USER_AGENT}",
            "",
            "",
        )
        writer.write("\r\n".join(request_lines).encode())
        response_head, _, body = (await reader.read(MAX_RESPONSE_BYTES)).partition(b"\r\n\r\n")
        while chunk := await reader.read(MAX_RESPONSE_BYTES):
            body += chunk
        if not response_head:
            raise ValueError("no answer")
        return int(response_head.split(b" ", 2)[1]), json.loads(body or b"{}")
    finally:
        writer.close()

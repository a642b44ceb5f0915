"""Serves the logs of simulated containers.

In: a Pod and a container name. Out: the output of its process or model server, or a few lines that describe its state.
Never: invents program output.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.owner_references_and_marks import SIMULATED_NOTE
from argosy.sandbox.simulators.pod_processes import PodProcesses


class ModelLogSource(Protocol):
    def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str] | None:
        """Return the log lines of the Pod, or None if no model server serves it."""

    def model_url(self, manifest: Manifest) -> str:
        """Return the URL of the model server for a Pod or Service, or an empty string."""


class SimulatedLogs:
    """Streams the output of a Pod's process or model server.

    A Pod without either prints nothing more, so following its log ends at once.
    """

    def __init__(self, processes: PodProcesses | None = None, model_logs: ModelLogSource | None = None) -> None:
        self._processes, self._model_logs = processes, model_logs
        self._log_sources = [source for source in (processes, model_logs) if source is not None]

    async def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        for source in self._log_sources:
            process_lines = source.lines(pod, container=container, follow=follow, tail=tail)
            if process_lines is not None:
                async for line in process_lines:
                    yield line
                return
        simulated_lines = _describe_container_states(pod, container)
        for line in simulated_lines if tail is None else simulated_lines[max(len(simulated_lines) - tail, 0) :]:
            yield line

    def describe_access(self, manifest: Manifest) -> str:
        url = self._model_logs.model_url(manifest) if self._model_logs is not None else ""
        explanation = f"Pods have no ports and no shell here ({SIMULATED_NOTE})"
        return f"{explanation}; the model answers at {url}" if url else explanation

    def previous_lines(self, pod: Manifest, *, container: str, tail: int | None) -> AsyncIterator[str] | None:
        if self._processes is None or not _find_container_status(pod, container).get("restartCount"):
            return None
        return self._processes.lines(pod, container=container, follow=False, tail=tail, previous=True)


def _describe_container_states(pod: Manifest, container_name: str) -> list[str]:
    status = _find_container_status(pod, container_name)
    state: dict[str, Any] = status.get("state") or {}
    image = status.get("image") or "its image"
    lines = []
    for container_state in (status.get("lastState") or {}, state):
        started = container_state.get("running") or container_state.get("terminated")
        if started:
            lines.append(
                f"{started.get('startedAt', '')} container started from {image}; no program runs ({SIMULATED_NOTE})"
            )
        if ended := container_state.get("terminated"):
            result = f"container exited with code {ended.get('exitCode', 0)}: {ended.get('reason', '')}"
            lines.append(f"{ended.get('finishedAt', '')} {result} ({SIMULATED_NOTE})")
    return lines


def _find_container_status(pod: Manifest, container_name: str) -> dict[str, Any]:
    status = pod.get("status") or {}
    container_statuses = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return next(
        (container_status for container_status in container_statuses if container_status["name"] == container_name), {}
    )

"""Serves the logs of simulated containers.

In: a Pod and a container name. Out: the output of its process or model server, or a few lines that describe its state.
Never: invents program output.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import BY
from argosy.sandbox.simulators.pod_processes import Processes


class Answering(Protocol):
    def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str] | None:
        """Return the log lines of the Pod, or None if no model server serves it."""

    def where_of(self, manifest: Manifest) -> str:
        """Return the URL of the model server for a Pod or Service, or an empty string."""


class SimulatedLogs:
    """Streams the output of a Pod's process or model server.

    A Pod without either prints nothing more, so following its log ends at once.
    """

    def __init__(self, processes: Processes | None = None, models: Answering | None = None) -> None:
        self._processes, self._models = processes, models
        self._printing = [each for each in (processes, models) if each is not None]

    async def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        for each in self._printing:
            real = each.lines(pod, container=container, follow=follow, tail=tail)
            if real is not None:
                async for line in real:
                    yield line
                return
        found = _told(pod, container)
        for line in found if tail is None else found[max(len(found) - tail, 0) :]:
            yield line

    def way_in(self, manifest: Manifest) -> str:
        url = self._models.where_of(manifest) if self._models is not None else ""
        nothing = f"Pods have no ports and no shell here ({BY})"
        return f"{nothing}; the model answers at {url}" if url else nothing

    def earlier(self, pod: Manifest, *, container: str, tail: int | None) -> AsyncIterator[str] | None:
        if self._processes is None or not _status(pod, container).get("restartCount"):
            return None
        return self._processes.lines(pod, container=container, follow=False, tail=tail, previous=True)


def _told(pod: Manifest, name: str) -> list[str]:
    status = _status(pod, name)
    state: dict[str, Any] = status.get("state") or {}
    image = status.get("image") or "its image"
    lines = []
    for each in (status.get("lastState") or {}, state):
        began = each.get("running") or each.get("terminated")
        if began:
            lines.append(f"{began.get('startedAt', '')} container started from {image}; no program runs ({BY})")
        if ended := each.get("terminated"):
            what = f"container exited with code {ended.get('exitCode', 0)}: {ended.get('reason', '')}"
            lines.append(f"{ended.get('finishedAt', '')} {what} ({BY})")
    return lines


def _status(pod: Manifest, name: str) -> dict[str, Any]:
    status = pod.get("status") or {}
    found = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return next((each for each in found if each["name"] == name), {})

"""What a simulated container would have printed.

In: a Pod, a container's name. Out: a few lines that say what they are. Never: pretends to be a program's output.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import BY
from argosy.sandbox.simulators.pod_processes import Processes


class Answering(Protocol):
    def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str] | None:
        """None: nothing answers for it."""

    def where_of(self, manifest: Manifest) -> str:
        """Where the model answers that a Pod or a Service is of; empty: nowhere."""


class SimulatedLogs:
    """Of a Pod that is a process, or that one answers for, what that prints; of another nothing more is ever printed,
    so following it ends."""

    def __init__(self, processes: Processes | None = None, models: Answering | None = None) -> None:
        self._processes, self._models = processes, models
        self._printing = [each for each in (processes, models) if each is not None]

    async def lines(
        self, pod: Manifest, *, container: str, follow: bool, tail: int | None
    ) -> AsyncIterator[str]:
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
            lines.append(f"{began.get('startedAt', '')} {image} would start here, if anything ran ({BY})")
        if ended := each.get("terminated"):
            what = f"ended with exit code {ended.get('exitCode', 0)}: {ended.get('reason', '')}"
            lines.append(f"{ended.get('finishedAt', '')} {what} ({BY})")
    return lines


def _status(pod: Manifest, name: str) -> dict[str, Any]:
    status = pod.get("status") or {}
    found = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return next((each for each in found if each["name"] == name), {})

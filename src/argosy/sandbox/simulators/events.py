"""Records Kubernetes Events; a repeated event raises the count of the existing one.

In: an object and event drafts. Out: Events, written if possible. Never: fails a reconcile: an Event that cannot be
written is lost, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from argosy.errors import ArgosyError
from argosy.kube.controller import Context
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import told
from argosy.sandbox.simulators.timestamps import stamp

# Limit for Normal events, as in a kubelet: a thousand Pods must not cause ten thousand writes
EACH_SECOND, AT_ONCE = 5.0, 100.0
LONGEST: Final = 1024  # k8s: maximum length of a message in characters
LONGEST_NAME: Final = 253
REMEMBERED: Final = 4096


class Happening(NamedTuple):
    reason: str
    message: str
    is_warning: bool = False
    part: str = ""  # the fieldPath of the involved object


class Recorder:
    """Records events for one component.

    The memory only saves writes: after a restart, repeated events start a new Event.
    """

    def __init__(self, component: str) -> None:
        self._component = component
        self._told: dict[tuple[str, Happening], tuple[str, int]] = {}
        self._left, self._since, self._number = AT_ONCE, 0.0, 0

    async def tell(self, about: Manifest, happenings: Iterable[Happening], context: Context) -> None:
        for each in happenings:
            if each.is_warning or self._may(context.clock.monotonic()):
                try:
                    await self._write(about, each, context)
                except ArgosyError:
                    continue

    def _may(self, now: float) -> bool:
        """True if the rate limit (a token bucket) allows one more Normal event."""
        self._left = min(self._left + max(now - self._since, 0.0) * EACH_SECOND, AT_ONCE)
        self._since = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    async def _write(self, about: Manifest, happening: Happening, context: Context) -> None:
        which = (str(about["metadata"].get("uid") or ""), happening)
        name, count = self._told.pop(which, ("", 0))
        now = context.clock.now()
        namespace = about["metadata"].get("namespace") or "default"
        if name and await self._again(ResourceKey("", "Event", namespace, name), count + 1, now, context):
            self._told[which] = (name, count + 1)
            return
        made = self._event(about, happening, now, namespace)
        self._remember(which, made["metadata"]["name"])
        await context.cluster.create(made)

    async def _again(self, key: ResourceKey, count: int, now: datetime, context: Context) -> bool:
        """Raise the count; return False if the Event has expired."""
        try:
            await context.cluster.patch(key, {"count": count, "lastTimestamp": stamp(now)})
        except ArgosyError:
            return False
        return True

    def _remember(self, which: tuple[str, Happening], name: str) -> None:
        if len(self._told) >= REMEMBERED:
            del self._told[next(iter(self._told))]
        self._told[which] = (name, 1)

    def _source(self, about: Manifest) -> dict[str, str]:
        """k8s: only the kubelet sets the host, because there is one on every Node."""
        node = (about.get("spec") or {}).get("nodeName") if self._component == "kubelet" else ""
        return {"component": self._component, **({"host": node} if node else {})}

    def _event(self, about: Manifest, happening: Happening, now: datetime, namespace: str) -> dict[str, Any]:
        metadata, message = about["metadata"], told(happening.message)
        self._number += 1
        # k8s: a timestamp suffix, so that names sort by time
        mark = f"{int(now.timestamp() * 1_000_000) * 1000 + self._number % 1000:x}"
        fields = ("name", "namespace", "uid", "resourceVersion")
        involved = {name: metadata[name] for name in fields if metadata.get(name)}
        involved |= {"apiVersion": about["apiVersion"], "kind": about["kind"]}
        if happening.part:
            involved["fieldPath"] = happening.part
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name'][: LONGEST_NAME - 17]}.{mark}", "namespace": namespace},
            "involvedObject": involved,
            "reason": happening.reason,
            "message": message if len(message) <= LONGEST else message[: LONGEST - 2] + " …",
            "type": "Warning" if happening.is_warning else "Normal",
            "source": self._source(about),
            "reportingComponent": self._component,
            "firstTimestamp": stamp(now),
            "lastTimestamp": stamp(now),
            "count": 1,
        }

"""Records Kubernetes Events; a repeated event raises the count of the existing one.

In: an object and event drafts. Out: Events, written if possible. Never: fails a reconcile: an Event that cannot be
written is lost, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from argosy.errors import ArgosyError
from argosy.kube.controller import ControllerContext
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import EVENT
from argosy.sandbox.simulators.owner_references_and_marks import append_simulated_note

# Limit for Normal events, as in a kubelet: a thousand Pods must not cause ten thousand writes
EVENTS_PER_SECOND, MAX_EVENT_BURST = 5.0, 100.0
MAX_MESSAGE_CHARACTERS: Final = 1024  # k8s: maximum length of a message in characters
MAX_NAME_CHARACTERS: Final = 253
MAX_REMEMBERED_EVENTS: Final = 4096


class EventDraft(NamedTuple):
    reason: str
    message: str
    is_warning: bool = False
    field_path: str = ""  # the fieldPath of the involved object


class EventRecorder:
    """Records events for one component.

    The memory only saves writes: after a restart, repeated events start a new Event.
    """

    def __init__(self, component: str) -> None:
        self._component = component
        self._recorded: dict[tuple[str, EventDraft], tuple[str, int]] = {}
        self._tokens, self._refilled_at, self._sequence = MAX_EVENT_BURST, 0.0, 0

    async def record(self, involved: Manifest, events: Iterable[EventDraft], context: ControllerContext) -> None:
        for event in events:
            if event.is_warning or self._take_token(context.clock.monotonic()):
                try:
                    await self._create_or_count(involved, event, context)
                except ArgosyError:
                    continue

    def _take_token(self, now: float) -> bool:
        """True if the rate limit (a token bucket) allows one more Normal event."""
        self._tokens = min(self._tokens + max(now - self._refilled_at, 0.0) * EVENTS_PER_SECOND, MAX_EVENT_BURST)
        self._refilled_at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    async def _create_or_count(self, involved: Manifest, event: EventDraft, context: ControllerContext) -> None:
        event_id = (str(involved["metadata"].get("uid") or ""), event)
        name, count = self._recorded.pop(event_id, ("", 0))
        now = context.clock.now()
        namespace = involved["metadata"].get("namespace") or "default"
        if name and await self._update_count(ResourceKey(*EVENT, namespace, name), count + 1, now, context):
            self._recorded[event_id] = (name, count + 1)
            return
        manifest = self._build_event(involved, event, now, namespace)
        self._remember(event_id, manifest["metadata"]["name"])
        await context.cluster.create(manifest)

    async def _update_count(self, key: ResourceKey, count: int, now: datetime, context: ControllerContext) -> bool:
        """Raise the count; return False if the Event has expired."""
        try:
            await context.cluster.patch(key, {"count": count, "lastTimestamp": format_timestamp(now)})
        except ArgosyError:
            return False
        return True

    def _remember(self, event_id: tuple[str, EventDraft], name: str) -> None:
        if len(self._recorded) >= MAX_REMEMBERED_EVENTS:
            del self._recorded[next(iter(self._recorded))]
        self._recorded[event_id] = (name, 1)

    def _build_source(self, involved: Manifest) -> dict[str, str]:
        """k8s: only the kubelet sets the host, because there is one on every Node."""
        node = (involved.get("spec") or {}).get("nodeName") if self._component == "kubelet" else ""
        return {"component": self._component, **({"host": node} if node else {})}

    def _build_event(
        self, involved_object: Manifest, event: EventDraft, now: datetime, namespace: str
    ) -> dict[str, Any]:
        metadata, message = involved_object["metadata"], append_simulated_note(event.message)
        self._sequence += 1
        # k8s: a timestamp suffix, so that names sort by time
        suffix = f"{int(now.timestamp() * 1_000_000) * 1000 + self._sequence % 1000:x}"
        fields = ("name", "namespace", "uid", "resourceVersion")
        reference = {name: metadata[name] for name in fields if metadata.get(name)}
        reference |= {"apiVersion": involved_object["apiVersion"], "kind": involved_object["kind"]}
        if event.field_path:
            reference["fieldPath"] = event.field_path
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name'][: MAX_NAME_CHARACTERS - 17]}.{suffix}", "namespace": namespace},
            "involvedObject": reference,
            "reason": event.reason,
            "message": message
            if len(message) <= MAX_MESSAGE_CHARACTERS
            else message[: MAX_MESSAGE_CHARACTERS - 2] + " …",
            "type": "Warning" if event.is_warning else "Normal",
            "source": self._build_source(involved_object),
            "reportingComponent": self._component,
            "firstTimestamp": format_timestamp(now),
            "lastTimestamp": format_timestamp(now),
            "count": 1,
        }

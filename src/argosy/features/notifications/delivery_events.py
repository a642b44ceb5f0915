"""Kubernetes Events that record the result of each notification, and the history built from them.

In: a manifest, trigger, destination and result. Out: Events; history rows. Never: contains a secret (callers mask).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from argosy.errors import ArgosyError
from argosy.features.notifications import constants
from argosy.features.notifications.sent_messages import list_sent_messages
from argosy.kube.client import ClusterWriter
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp

log = logging.getLogger(__name__)
MAX_EVENT_MESSAGE_CHARACTERS: Final = 1000
MAX_NAME_CHARACTERS: Final = 253
TRIGGER_ANNOTATION: Final = "argosy.dev/notification-trigger"
DESTINATION_ANNOTATION: Final = "argosy.dev/notification-destination"


class NotificationHistoryRow(NamedTuple):
    """A row of the notification history."""

    at: str
    reason: str
    kind: str
    namespace: str
    name: str
    trigger: str
    destination: str
    message: str


async def record_event(
    cluster: ClusterWriter, manifest: Manifest, reason: str, trigger: str, destination: str, message: str, now: datetime
) -> None:
    """Log the result and create an Event; a failure to create the Event is only logged."""
    metadata = manifest["metadata"]
    timestamp = format_timestamp(now)
    level = logging.INFO if reason == constants.SENT_REASON else logging.WARNING
    object_name = f"{manifest.get('kind')} {metadata.get('namespace')}/{metadata['name']}"
    log_format = "notification: object=%s reason=%s trigger=%s destination=%s message=%s"
    log.log(level, log_format, object_name, reason, trigger, destination, message)
    digest_input = "\n".join(
        (str(metadata.get("uid")), reason, trigger, destination, format_timestamp(now, "microseconds"))
    )
    name_suffix = hashlib.sha256(digest_input.encode()).hexdigest()[:16]
    fields = ("name", "namespace", "uid", "resourceVersion")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{metadata['name'][: MAX_NAME_CHARACTERS - 17]}.{name_suffix}",
            "namespace": metadata.get("namespace") or "default",
            "annotations": {TRIGGER_ANNOTATION: trigger, DESTINATION_ANNOTATION: destination},
        },
        "involvedObject": {
            "apiVersion": manifest["apiVersion"],
            "kind": manifest["kind"],
            **{name: metadata[name] for name in fields if metadata.get(name)},
        },
        "reason": reason,
        "message": f"{trigger} to {destination}: {message}"[:MAX_EVENT_MESSAGE_CHARACTERS],
        "type": "Normal" if reason == constants.SENT_REASON else "Warning",
        "source": {"component": constants.COMPONENT},
        "reportingComponent": constants.COMPONENT,
        "firstTimestamp": timestamp,
        "lastTimestamp": timestamp,
        "count": 1,
    }
    try:
        await cluster.create(event)
    except ArgosyError as error:
        log.info("cannot create Event: error=%s", error)


def read_history(events: Iterable[Manifest]) -> list[NotificationHistoryRow]:
    """List notification Events as rows, newest first."""
    rows = []
    for event in events:
        if (event.get("source") or {}).get("component") != constants.COMPONENT:
            continue
        annotations, involved_object = event["metadata"].get("annotations") or {}, event.get("involvedObject") or {}
        trigger, destination = (
            str(annotations.get(TRIGGER_ANNOTATION) or ""),
            str(annotations.get(DESTINATION_ANNOTATION) or ""),
        )
        message = str(event.get("message") or "").removeprefix(f"{trigger} to {destination}: ")
        timestamp = str(event.get("lastTimestamp") or "")
        kind, namespace, name = (str(involved_object.get(part) or "") for part in ("kind", "namespace", "name"))
        rows.append(
            NotificationHistoryRow(
                timestamp, str(event.get("reason") or ""), kind, namespace, name, trigger, destination, message
            )
        )
    return sorted(rows, reverse=True)


def list_messages_without_event(
    manifests: Iterable[Manifest], event_rows: Sequence[NotificationHistoryRow]
) -> list[NotificationHistoryRow]:
    """List messages recorded in annotations whose Event has expired."""
    seen = {(row.kind, row.namespace, row.name, row.trigger, row.destination, row.at) for row in event_rows}
    rows = []
    for manifest in manifests:
        object_fields = (
            str(manifest["kind"]),
            str(manifest["metadata"].get("namespace")),
            str(manifest["metadata"]["name"]),
        )
        for sent_at, trigger, destination in list_sent_messages(manifest):
            timestamp = format_timestamp(datetime.fromtimestamp(sent_at, UTC))
            if (*object_fields, trigger, destination, timestamp) not in seen:
                rows.append(
                    NotificationHistoryRow(timestamp, constants.SENT_REASON, *object_fields, trigger, destination, "")
                )
    return rows

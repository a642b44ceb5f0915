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
from argosy.features.notifications import names
from argosy.features.notifications.sent_messages import notes
from argosy.kube.client import ClusterWriter
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps import written

log = logging.getLogger(__name__)
LONGEST: Final = 1000
LONGEST_NAME: Final = 253
TRIGGER: Final = "argosy.dev/notification-trigger"
DESTINATION: Final = "argosy.dev/notification-destination"


class Told(NamedTuple):
    """A row of the notification history."""

    at: str
    reason: str
    kind: str
    namespace: str
    name: str
    trigger: str
    destination: str
    message: str


async def tell(
    cluster: ClusterWriter, about: Manifest, reason: str, trigger: str, destination: str, message: str, now: datetime
) -> None:
    """Log the result and create an Event; a failure to create the Event is only logged."""
    metadata = about["metadata"]
    at = written(now)
    level = logging.INFO if reason == names.SENT else logging.WARNING
    which = f"{about.get('kind')} {metadata.get('namespace')}/{metadata['name']}"
    text = "notification: object=%s reason=%s trigger=%s destination=%s message=%s"
    log.log(level, text, which, reason, trigger, destination, message)
    told = "\n".join((str(metadata.get("uid")), reason, trigger, destination, written(now, "microseconds")))
    mark = hashlib.sha256(told.encode()).hexdigest()[:16]
    fields = ("name", "namespace", "uid", "resourceVersion")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{metadata['name'][: LONGEST_NAME - 17]}.{mark}",
            "namespace": metadata.get("namespace") or "default",
            "annotations": {TRIGGER: trigger, DESTINATION: destination},
        },
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            **{name: metadata[name] for name in fields if metadata.get(name)},
        },
        "reason": reason,
        "message": f"{trigger} to {destination}: {message}"[:LONGEST],
        "type": "Normal" if reason == names.SENT else "Warning",
        "source": {"component": names.COMPONENT},
        "reportingComponent": names.COMPONENT,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    try:
        await cluster.create(event)
    except ArgosyError as error:
        log.info("cannot create Event: error=%s", error)


def history(events: Iterable[Manifest]) -> list[Told]:
    """List notification Events as rows, newest first."""
    rows = []
    for each in events:
        if (each.get("source") or {}).get("component") != names.COMPONENT:
            continue
        marks, about = each["metadata"].get("annotations") or {}, each.get("involvedObject") or {}
        trigger, destination = str(marks.get(TRIGGER) or ""), str(marks.get(DESTINATION) or "")
        message = str(each.get("message") or "").removeprefix(f"{trigger} to {destination}: ")
        at = str(each.get("lastTimestamp") or "")
        kind, namespace, name = (str(about.get(part) or "") for part in ("kind", "namespace", "name"))
        rows.append(Told(at, str(each.get("reason") or ""), kind, namespace, name, trigger, destination, message))
    return sorted(rows, reverse=True)


def noted(manifests: Iterable[Manifest], known: Sequence[Told]) -> list[Told]:
    """List messages recorded in annotations whose Event has expired."""
    told = {(each.kind, each.namespace, each.name, each.trigger, each.destination, each.at) for each in known}
    rows = []
    for manifest in manifests:
        about = (str(manifest["kind"]), str(manifest["metadata"].get("namespace")), str(manifest["metadata"]["name"]))
        for at, trigger, destination in notes(manifest):
            when = written(datetime.fromtimestamp(at, UTC))
            if (*about, trigger, destination, when) not in told:
                rows.append(Told(when, names.SENT, *about, trigger, destination, ""))
    return rows

"""Detects edits of argocd-cm and argocd-rbac-cm that the operator reverts, and records an event for each key.

In: the data that the operator wrote last, the live data. Out: keys; Events.
Never: fails the operator: an Event that cannot be written is lost.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from typing import Final

from argosy.errors import ArgosyError, Conflict
from argosy.gitops.application.argocd_settings_revert_event_constants import EDITED_KEY, SETTINGS_RESTORED
from argosy.kube.client import Cluster
from argosy.kube.controller import ControllerContext
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.sandbox.simulators.openshift_gitops.kinds_and_labels import SIMULATED_NOTE

log = logging.getLogger(__name__)
EVENT_COMPONENT: Final = "argocd-operator"
MAX_EVENTS: Final = 20  # per edit

ConfigMapContents = Mapping[str, str]


def find_edited_keys(
    written_data: ConfigMapContents | None, live_data: ConfigMapContents, desired_data: ConfigMapContents
) -> list[str]:
    """List keys that differ from what the operator wrote last, and from what it writes now.

    Empty after a restart, when it is unknown what the operator wrote last.
    """
    if written_data is None:
        return []
    return sorted(
        key
        for key in {*written_data, *live_data}
        if live_data.get(key) not in (written_data.get(key), desired_data.get(key))
    )


async def report_edits(config_map: Manifest, keys: list[str], argocd_name: str, context: ControllerContext) -> None:
    for key in keys[:MAX_EVENTS]:
        message = f"reverted edit of {key}: set it in the ArgoCD resource {argocd_name}, which generates this ConfigMap"
        log.info("ConfigMap %s: %s", config_map["metadata"]["name"], message)
        try:
            await _write_event(config_map, key, message, context)
        except ArgosyError as error:
            log.warning("cannot write an Event: %s", error)


async def _write_event(config_map: Manifest, key: str, message: str, context: ControllerContext) -> None:
    """Write one Event per key of a ConfigMap; a later edit of the same key raises its count."""
    metadata = config_map["metadata"]
    now = format_timestamp(context.clock.now())
    suffix = hashlib.sha256(f"{metadata['uid']}/{key}".encode()).hexdigest()[:16]
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.{suffix}", "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "fieldPath": EDITED_KEY.format(key=key),
        },
        "reason": SETTINGS_RESTORED,
        "message": f"{message} ({SIMULATED_NOTE})",
        "type": "Warning",
        "source": {"component": EVENT_COMPONENT},
        "reportingComponent": EVENT_COMPONENT,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    try:
        await context.cluster.create(event)
    except Conflict:
        await _increase_count(event, now, context.cluster)


async def _increase_count(event: Manifest, now: str, cluster: Cluster) -> None:
    existing = await cluster.get(key_of(event)) or {}
    await cluster.patch(key_of(event), {"count": int(existing.get("count") or 0) + 1, "lastTimestamp": now})

"""State of one reconciliation of an object: its settings, its sent messages and its claims.

In: the object and its settings. Out: annotations that record messages, Events about them. Never: writes annotations
over a concurrent change to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from argosy.errors import Conflict
from argosy.features.notifications import constants
from argosy.features.notifications.condition_and_template_evaluation import ConditionResult, DriftData
from argosy.features.notifications.delivery_events import record_event
from argosy.features.notifications.sent_messages import build_annotations, read_pending, read_state
from argosy.features.notifications.settings import NotificationSettings
from argosy.features.notifications.settings_cache import SettingsVersions
from argosy.features.notifications.subscriptions import NotificationDestination
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey


@dataclass(frozen=True)
class DueMessage:
    condition_result: ConditionResult
    destination: NotificationDestination
    state_key: str  # key in the state annotation


@dataclass
class NotificationPass:
    """State of one reconciliation of one object, including changes that are not written yet."""

    manifest: Manifest
    settings: NotificationSettings
    versions: SettingsVersions
    now: datetime
    drift: DriftData = None
    commits: dict[str, Any] = field(default_factory=dict)
    state: dict[str, int] = field(default_factory=dict)
    pending: dict[str, dict[str, Any]] = field(default_factory=dict)
    requeue_delays: list[float] = field(default_factory=list)  # seconds until the object must be reconciled again

    @property
    def key(self) -> ResourceKey:
        return key_of(self.manifest)

    def is_written(self) -> bool:
        return read_state(self.manifest) == self.state and read_pending(self.manifest) == self.pending

    async def record_event(self, cluster: Cluster, reason: str, trigger: str, destination: str, message: str) -> None:
        await record_event(cluster, self.manifest, reason, trigger, destination, message, self.now)

    async def write_annotations(self, cluster: Cluster) -> None:
        """Write the annotations with resourceVersion, because a concurrent writer may have sent the same message."""
        version = self.manifest["metadata"].get("resourceVersion")
        annotations = build_annotations(self.state, self.pending)
        patch = {"metadata": {"annotations": annotations, "resourceVersion": version}}
        self.manifest = await cluster.patch(self.key, patch, manager=constants.COMPONENT)

    async def write_result(self, cluster: Cluster, process_id: str) -> None:
        """Write the result, and rebase it on unrelated concurrent changes. A new claim is never rebased."""
        for _ in range(4):
            try:
                return await self.write_annotations(cluster)
            except Conflict:
                if not await self._reload_if_unrelated(cluster, process_id):
                    raise
        return await self.write_annotations(cluster)

    async def _reload_if_unrelated(self, cluster: Cluster, process_id: str) -> bool:
        """Reload the object; return True if others did not change its notification annotations.

        A claim of this process keeps others from sending. Without a claim, another process may have sent the same
        message and removed its record after the object recovered, so the object must be evaluated again.
        """
        if all(claim.get("by") != process_id for claim in read_pending(self.manifest).values()):
            return False
        latest = await cluster.get(self.key)
        if latest is None:
            return False
        if (read_state(latest), read_pending(latest)) != (read_state(self.manifest), read_pending(self.manifest)):
            return False
        self.manifest = latest
        return True

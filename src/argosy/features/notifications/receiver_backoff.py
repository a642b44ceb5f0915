"""Backoff for receivers that are unreachable or rate-limit us.

In: an object, a destination, the version of the settings. Out: seconds. Never: sleeps; delays after the settings
changed, because the user wants to see the effect.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from argosy.features.notifications.settings_cache import SettingsVersions
from argosy.features.notifications.subscriptions import NotificationDestination
from argosy.kube.controller import Backoff
from argosy.kube.resource_key import ResourceKey

RECEIVER_BACKOFF: Final = Backoff(first_seconds=10.0, max_seconds=300.0)
MAX_REMEMBERED_RECEIVERS: Final = 10_000  # entries kept


class _ReceiverFailure(NamedTuple):
    failures: int
    retry_at: float  # monotonic seconds
    versions: SettingsVersions


class ReceiverBackoff:
    """Backoff per object and destination. The work queue's backoff is useless here: each claim requeues the object."""

    def __init__(self) -> None:
        self._failures: dict[tuple[ResourceKey, NotificationDestination], _ReceiverFailure] = {}

    def record_failure(
        self, key: ResourceKey, destination: NotificationDestination, versions: SettingsVersions, now: float
    ) -> tuple[int, float]:
        """Record a failure; return the number of consecutive failures and the delay in seconds."""
        previous = self._failures.get((key, destination))
        failures = previous.failures + 1 if previous and previous.versions == versions else 1
        delay_seconds = RECEIVER_BACKOFF.delay(failures)
        if len(self._failures) > MAX_REMEMBERED_RECEIVERS:
            self._failures.clear()
        self._failures[key, destination] = _ReceiverFailure(failures, now + delay_seconds, versions)
        return failures, delay_seconds

    def get_remaining_seconds(
        self, key: ResourceKey, destination: NotificationDestination, versions: SettingsVersions, now: float
    ) -> float:
        """Return the seconds until the next attempt is allowed; 0 if it is allowed now."""
        previous = self._failures.get((key, destination))
        return max(previous.retry_at - now, 0.0) if previous and previous.versions == versions else 0.0

    def reset(self, key: ResourceKey, destination: NotificationDestination) -> None:
        self._failures.pop((key, destination), None)

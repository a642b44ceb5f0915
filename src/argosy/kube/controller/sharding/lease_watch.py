"""Watches the Leases of all members between two lists.

In: a cluster, the resourceVersion of the last list. Out: wakes the member when another one joins, leaves or changes its
roster; the time at which each Lease changed last. Never: decides who is dead.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from argosy.errors import ArgosyError
from argosy.kube.client import Cluster, WatchEvent
from argosy.kube.controller.clock import Backoff, Clock, sleep
from argosy.kube.controller.sharding.member_lease_format import MEMBER_SELECTOR, Roster, read_roster
from argosy.kube.well_known_kinds import LEASE

log = logging.getLogger(__name__)
MIN_ROUND_SECONDS: Final = 0.05  # minimum seconds between two rounds of a member, which lists the Leases once a round
RETRY_BACKOFF: Final = Backoff(first_seconds=0.2, max_seconds=1.0, jitter=0.5)


class LeaseWatch:
    def __init__(self, cluster: Cluster, namespace: str, identity: str, clock: Clock, wakeup: asyncio.Event) -> None:
        self._cluster, self._namespace, self._identity, self._clock = cluster, namespace, identity, clock
        self._wakeup = wakeup
        self.since = ""  # resourceVersion of the last list, to watch from
        self.versions: dict[str, tuple[str, float]] = {}  # last watched resourceVersion by Lease, and its time
        self._rosters: dict[str, Roster] = {}

    async def run(self) -> None:
        """Watch until cancelled, as soon as the first list has set `since`."""
        while True:
            if not self.since:
                await sleep(self._clock, MIN_ROUND_SECONDS)
                continue
            try:
                events = self._cluster.watch(LEASE, since=self.since, namespace=self._namespace, labels=MEMBER_SELECTOR)
                async for event in events:
                    self._record_event(event)
            except ArgosyError as error:
                log.debug("cannot watch member Leases: member=%s error=%s", self._identity, error)
            await sleep(self._clock, RETRY_BACKOFF.max_seconds)

    def _record_event(self, event: WatchEvent) -> None:
        """Wake the member if a roster changed; record when the Lease changed."""
        if event.type == "BOOKMARK":
            return
        metadata, roster = event.manifest["metadata"], read_roster(event.manifest)
        name = metadata.get("name") or ""
        if event.type == "DELETED" or self._rosters.get(name) != roster:
            self._wakeup.set()
        if event.type == "DELETED":
            self.versions.pop(name, None), self._rosters.pop(name, None)
            return
        self.versions[name] = str(metadata.get("resourceVersion") or ""), self._clock.monotonic()
        self._rosters[name] = roster

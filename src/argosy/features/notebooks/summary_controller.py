"""Controller of the notebook summary annotations on Applications.

In: the key of an Application that jobs refer to. Out: two annotations, merge-patched if they changed. Never: writes
more often than needed; loses the last change.
"""

from __future__ import annotations

import logging
from typing import Any, Final, NamedTuple

from argosy.annotations import NOTEBOOK_STATUS, NOTEBOOK_SUMMARY
from argosy.errors import ClusterError
from argosy.features.notebooks import summaries
from argosy.features.notebooks.job import KIND
from argosy.kube.controller import Context, Requeue, Watch
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, annotation

log = logging.getLogger(__name__)
MANAGER: Final = "notebooks"
QUIET: Final = 60.0  # seconds after a write in which progress is not written
SOON: Final = 5.0  # seconds after a write in which results are not written
RESYNC, ABSENT = 300.0, 15.0
MOST: Final = 10_000


class Settled(NamedTuple):
    """Last computed counts, and until when they need no recheck."""

    counts: dict[str, Any]
    uids: frozenset[str]
    until: float


class Summaries:
    """Writes the first change at once and batches the following ones."""

    name = "notebook summaries"
    watches = (Watch(KIND, summaries.places),)

    def __init__(self) -> None:
        self._wrote: dict[ResourceKey, float] = {}
        self._settled: dict[ResourceKey, Settled] = {}

    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        """Called for every finished cell; unchanged counts cause no API request."""
        named = [job for job in context.cache.list(KIND) if key in summaries.places(job)]
        counts, uids = summaries.counted(named), frozenset(str(job["metadata"].get("uid")) for job in named)
        settled, now = self._settled.get(key), context.clock.monotonic()
        if settled is not None and settled[:2] == (counts, uids) and now < settled.until:
            return Requeue(settled.until - now)
        app = await _application(key, context)
        if app is None:
            self._wrote.pop(key, None)
            return self._rest(key, Settled(counts, uids, now + ABSENT)) if named else None
        wait = await self._say(key, app, [job for job in named if await _is_first(job, key, context)], context)
        if wait:
            return Requeue(wait)
        return self._rest(key, Settled(counts, uids, now + RESYNC)) if named else None

    def _rest(self, key: ResourceKey, settled: Settled) -> Requeue:
        if len(self._settled) >= MOST:
            self._settled.clear()
        self._settled[key] = settled
        return Requeue(RESYNC)

    async def _say(self, key: ResourceKey, app: Manifest, jobs: list[Manifest], context: Context) -> float:
        """Write the annotations if they changed; returns seconds to wait, 0 if done."""
        counts, known = summaries.counted(jobs), summaries.read(annotation(app, NOTEBOOK_STATUS))
        said = summaries.sentence(counts)
        if (not jobs and known is None) or (counts == known and annotation(app, NOTEBOOK_SUMMARY) == said):
            return 0.0
        now = context.clock.monotonic()
        pause = QUIET if summaries.results(counts) == summaries.results(known) else SOON
        if (wait := self._wrote.get(key, now - pause) + pause - now) > 0:
            return wait
        # Patch only two annotations: the controller of the Application writes the rest all the time.
        told = {NOTEBOOK_STATUS: summaries.text_of(counts, context.clock.now()), NOTEBOOK_SUMMARY: said}
        await context.cluster.patch(key, {"metadata": {"annotations": told}}, manager=MANAGER)
        self._wrote[key] = now
        log.info("%s: %s", key, said)
        return 0.0


async def _application(key: ResourceKey, context: Context) -> Manifest | None:
    try:
        return await context.cluster.get(key)
    except ClusterError as error:
        if error.code != 404:  # k8s: a cluster without Argo CD does not serve the kind
            raise
        return None


async def _is_first(job: Manifest, key: ResourceKey, context: Context) -> bool:
    """True if no Application with higher precedence exists for this job."""
    candidates = summaries.places(job)
    for each in candidates[: candidates.index(key)]:
        if await _application(each, context) is not None:
            return False
    return True

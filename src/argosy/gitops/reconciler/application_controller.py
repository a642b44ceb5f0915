"""The controller of Applications: maps watch events to keys, reconciles them, and patches their status.

In: the key of an Application. Out: its status, Events, and when to reconcile again. Never: holds logic that belongs to
a step of the reconciler.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from argosy import annotations as names
from argosy.errors import ClusterError, Conflict, ManifestError
from argosy.fair_share import on_behalf_of
from argosy.gitops.application import Application, read_application
from argosy.gitops.live import CacheReader, concerned
from argosy.gitops.reconciler import Passed, Pipeline
from argosy.gitops.reconciler.ownership.claim import Claims
from argosy.gitops.reconciler.ownership.delivery_turn import Turns
from argosy.gitops.reconciler.ownership.takeover import Takeover
from argosy.gitops.reconciler.setting_errors import SettingFaultLog
from argosy.gitops.reconciler.settings import Rules
from argosy.gitops.reconciler.settings_watch import Settings
from argosy.gitops.reconciler.unknown_state import known_revisions
from argosy.gitops.status.status import unreadable
from argosy.gitops.status.wire_format import mapping
from argosy.kube.client import Cluster, PatchKind
from argosy.kube.controller import Cache, Context, Requeue, Watch
from argosy.kube.controller.log_context import note
from argosy.kube.controller.sharding.members import Standing
from argosy.kube.controller.write_fence import NotOurs
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps import written

log = logging.getLogger(__name__)
MOST_STEPS: Final = 20  # passes in a row; then other Applications get their turn
UNSURE: Final = 1.0  # seconds until ownership is checked again
APPLICATION: Final = GroupKind("argoproj.io", "Application")


class ApplicationController:
    """Implements `name`, `watches` and `reconcile` for the controller runtime, which passes on all other events."""

    name = "application"
    watches: Sequence[Watch] = ()

    def __init__(self, pipeline: Pipeline, settings: Settings, cache: Cache, turns: Turns) -> None:
        self.pipeline, self.settings, self.cache, self.turns = pipeline, settings, cache, turns
        self.wake: Callable[[ResourceKey], None] = lambda key: None
        self.passed: Callable[[Application, Passed, float], None] = lambda app, passed, seconds: None
        self.claims: Claims | None = None  # set if several replicas share the Applications
        self.takeover: Takeover | None = None  # set together with `claims`
        self._fault_log = SettingFaultLog()
        self._asked: dict[ResourceKey, float] = {}  # monotonic time of the last request for a refresh or an operation
        self._afresh: dict[ResourceKey, float] = {}  # monotonic time of the last hard refresh
        self._read: dict[ResourceKey, tuple[Manifest, Application]] = {}
        self._busy: dict[ResourceKey, Manifest | None] = {}  # being reconciled, with the newest event since it was read

    def noticed(self, before: Manifest | None, after: Manifest | None) -> set[ResourceKey]:
        """Return the Applications that a change in the control cluster affects."""
        woken = {key for each in (before, after) if each is not None for key in self._concerned(each)}
        key = key_of(after or before or {})
        if key.group_kind == APPLICATION and (after is None or not self._is_echo(key, after)):
            woken.add(key)
        return woken

    def noticed_in(self, there: CacheReader, before: Manifest | None, after: Manifest | None) -> set[ResourceKey]:
        """Return the Applications that a change in another cluster affects; it holds no settings or Applications."""
        return {key for each in (before, after) if each is not None for key in self._tracked(there, each)}

    def _is_echo(self, key: ResourceKey, manifest: Manifest) -> bool:
        """True if the event only reports our own write, and nothing is left to do."""
        if self.pipeline.cluster.newest(key, manifest) is not manifest:
            return True  # our newer write came from a pass that read this version
        if "operation" in manifest or names.REFRESH in _annotations(manifest):
            # The time of the newest request: revisions resolved after an older request may predate the push behind this
            # one.
            self._asked[key] = time.monotonic()
        if key in self._busy:
            self._busy[key] = manifest  # it may arrive before the response to our write; checked at the end of the pass
            return True
        return self.pipeline.is_at_rest(manifest)

    def _concerned(self, manifest: Manifest) -> Iterable[ResourceKey]:
        if self.settings.concerns(manifest):
            self.settings.outdate()
            yield from self.cache.keys(APPLICATION)
            return
        yield from self._tracked(self.cache, manifest)

    def _tracked(self, there: CacheReader, manifest: Manifest) -> Iterable[ResourceKey]:
        rules = self.settings.rules()
        for concern in concerned(there, manifest, rules.tracking):
            namespace, _, name = concern.instance.rpartition("_")
            app = ResourceKey(*APPLICATION, namespace or rules.control_namespace, name)
            if not concern.is_managed:
                self.pipeline.stir(app)
            yield app

    def idle(self, keys: Iterable[ResourceKey], changed: Manifest | None) -> set[ResourceKey]:
        """Return the keys without an operation that are not the changed object itself; they may need no new pass."""
        if changed is None or self.settings.concerns(changed):
            return set()
        own = key_of(changed)
        newest = self.pipeline.cluster.newest
        return {key for key in keys if key != own and not (newest(key, self.cache.get(key)) or {}).get("operation")}

    async def is_touched(self, key: ResourceKey) -> bool:
        """True if the sources may render differently than last time."""
        manifest = self.pipeline.cluster.newest(key, self.cache.get(key))
        known = self._read.get(key)
        if manifest is None or known is None or not _are_same(known[0], manifest):
            return True
        rules = self.settings.rules()
        project = rules.projects.get(known[1].project)
        return project is None or await self.pipeline.assembler.is_touched(known[1], project, rules)

    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        """Run passes as long as the next one can start at once; each result is written before the next pass."""
        self._busy[key] = None
        try:
            return await self._steps(key, context)
        finally:
            self.pipeline.fleet.passed(key)
            told = self._busy.pop(key)
            if told is not None and not self.pipeline.is_at_rest(told):
                self.wake(key)

    async def _steps(self, key: ResourceKey, context: Context) -> Requeue | None:
        for _ in range(MOST_STEPS):
            passed = await self._shared(key, context)
            if passed is None or passed.wait != 0.0:
                break
        if passed is None:
            return None
        if passed.wait is not None:
            return Requeue(passed.wait)
        rules = self.settings.rules()
        periods = [each for each in (rules.reconciliation, rules.hard_reconciliation) if each > 0]  # argo: 0 is never
        return Requeue(min(periods) + random.random() * rules.jitter) if periods else None  # noqa: S311 - spreads load

    async def _shared(self, key: ResourceKey, context: Context) -> Passed | None:
        """Run one pass if this replica owns the Application. Others are watched too, because ownership may change."""
        if self.claims is None or self.takeover is None:
            return await self._step(key, context)
        if not await self.takeover.turn(key):
            return None
        try:
            with self.claims.step(key) as standing:
                if standing is Standing.OURS:
                    return await self._step(key, context)
        except NotOurs as error:
            log.info("ownership lost during a pass: app=%s error=%s", key, error)
            return Passed(wait=UNSURE)
        self._asked.pop(key, None)
        return Passed(wait=UNSURE) if standing is Standing.LATER else None

    async def claim(self, key: ResourceKey) -> None:
        """Write our claim to the Application if it is to be reconciled; the passes follow later."""
        try:
            await self._claim(key, self.pipeline.cluster.newest(key, self.cache.get(key)))
        except Conflict:  # the cached version is outdated
            await self._claim(key, await self.pipeline.cluster.get(key))

    async def _claim(self, key: ResourceKey, manifest: Manifest | None) -> None:
        if self.claims is None or manifest is None or self.turns.wait(manifest) != 0.0:
            return
        try:
            destination = self.application(manifest).destination
        except ManifestError:
            return  # reported by its pass
        if self.settings.rules().clusters.is_paused(destination):
            return
        with self.claims.step(key) as standing:
            if standing is Standing.OURS:
                await self._claimed(manifest)

    def let_go(self, key: ResourceKey) -> None:
        """Forget an Application that another replica owns now, because our state of it becomes outdated."""
        self._forget(key)
        self.turns.forget(key)

    async def _step(self, key: ResourceKey, context: Context) -> Passed | None:
        # Our own last write may be newer than the cached version.
        manifest = self.pipeline.cluster.newest(key, self.cache.get(key))
        self._busy[key] = None
        if manifest is None:
            self._forget(key)
            self.turns.forget(key)
            return None
        turn = self.turns.wait(manifest)
        if turn is None:
            self._forget(key)
        if turn != 0.0:
            self.pipeline.take(key)
            return None if turn is None else Passed(wait=turn)
        rules = self.settings.rules()
        self._fault_log.log_new(rules.faults)
        try:
            app = self.application(manifest)
        except ManifestError as error:
            await self._refuse(await self._claimed(manifest), error)
            return None
        note(project=app.project, revision=",".join(known_revisions(app)))
        if rules.clusters.is_paused(app.destination):
            return None
        app = self.application(await self._claimed(manifest))
        asked = self._asked.pop(key, None)
        began = context.clock.monotonic()
        with on_behalf_of(rules.tenant(app.project)):
            passed = await self.pipeline.reconcile(app, rules, asked, is_hard=self._is_hard(key, rules, context))
        seconds = context.clock.monotonic() - began
        after = await self._written(app, passed, self.pipeline.cluster)
        self.passed(app, passed, seconds)
        if after is not None and passed.rest is not None:
            self.pipeline.settle(self.application(after), passed.rest)
        return passed

    def _forget(self, key: ResourceKey) -> None:
        """Drop all state of an Application that is deleted or owned by another replica."""
        self.pipeline.forget(key)
        self._read.pop(key, None)
        self._asked.pop(key, None)
        self._afresh.pop(key, None)

    async def _claimed(self, manifest: Manifest) -> Manifest:
        if self.claims is None:
            return manifest
        claimed = await self.claims.claim(manifest, self.pipeline.cluster)
        if claimed is not manifest and names.FENCE in _annotations(manifest):  # otherwise it had no owner before
            self.pipeline.take(key_of(manifest))
        return claimed

    def _is_hard(self, key: ResourceKey, rules: Rules, context: Context) -> bool:
        """argo: after timeout.hard.reconciliation all sources are rendered again, as with a hard refresh."""
        now = context.clock.monotonic()
        since = self._afresh.setdefault(key, now)
        if rules.hard_reconciliation <= 0 or now - since < rules.hard_reconciliation:
            return False
        self._afresh[key] = now
        return True

    async def _refuse(self, manifest: Manifest, error: ManifestError) -> None:
        """Write the parse error of an unreadable Application to its status, and keep the rest of the status."""
        changed = unreadable(mapping(manifest.get("status")), str(error), written(self.pipeline.now()))
        if changed is not None:
            version = manifest["metadata"].get("resourceVersion")
            patch = {"metadata": {"resourceVersion": version}, "status": changed}
            await self.pipeline.cluster.patch(key_of(manifest), patch, kind_of_patch=PatchKind.MERGE)

    def tenant(self, key: ResourceKey) -> str:
        """Return the project that a pass is accounted to; "" for all projects that do not exist."""
        manifest = self.cache.get(key)
        project = str(mapping((manifest or {}).get("spec")).get("project") or "default")
        return project if project in self.settings.rules().projects else ""

    def application(self, manifest: Manifest) -> Application:
        """Parse an Application once per resourceVersion."""
        key = key_of(manifest)
        known = self._read.get(key)
        if known is not None and _are_same(known[0], manifest):
            return known[1]
        app = read_application(manifest, f"Application {key.namespace}/{key.name}", known[1] if known else None)
        self._read[key] = manifest, app
        return app

    async def _written(self, app: Application, passed: Passed, cluster: Cluster) -> Manifest | None:
        """Write Events, then the patch: a repeated Event is deduplicated, but a lost one cannot be recovered."""
        for event in passed.events:
            log.info("%s/%s: %s: %s", app.key.namespace, app.key.name, event["reason"], event["message"])
            await _tell(event, cluster)
        for each in (passed.patch or {}).get("status", {}).get("conditions") or ():
            log.info("%s/%s: %s: %s", app.key.namespace, app.key.name, each["type"], each["message"])
        if passed.patch is None:
            return None
        patch: dict[str, Any] = dict(passed.patch)
        version = app.wire["metadata"].get("resourceVersion")
        # Only if it is still the version that was read; otherwise the user changed the request meanwhile.
        patch["metadata"] = {**patch.get("metadata", {}), "resourceVersion": version}
        try:
            return await cluster.patch(app.key, patch, kind_of_patch=PatchKind.MERGE)
        except ClusterError as error:
            if error.code != 404:  # it may have been deleted meanwhile
                raise
            return None


async def _tell(event: Manifest, cluster: Cluster) -> None:
    try:
        await cluster.create(event)
    except ClusterError as error:
        if error.code != 409:
            log.warning("cannot create an Event: error=%s", error)


def _annotations(manifest: Manifest) -> Mapping[str, str]:
    return manifest["metadata"].get("annotations") or {}


def _are_same(one: Manifest, other: Manifest) -> bool:
    version = one["metadata"].get("resourceVersion")
    return one is other or bool(version and version == other["metadata"].get("resourceVersion"))

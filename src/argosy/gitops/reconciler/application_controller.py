"""The kind Application: woken by a key, one pass of the corridor, one patch.

In: an Application. Out: its status. Never: holds logic that a room could hold.
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
MOST_STEPS: Final = 20  # then the others have their turn
UNSURE: Final = 1.0  # seconds until it is seen again whether it is ours
APPLICATION: Final = GroupKind("argoproj.io", "Application")


class ApplicationController:
    """`name`, `watches` and `reconcile`, as the runtime wants them; the engine tells it of every other change."""

    name = "application"
    watches: Sequence[Watch] = ()

    def __init__(self, pipeline: Pipeline, settings: Settings, cache: Cache, turns: Turns) -> None:
        self.pipeline, self.settings, self.cache, self.turns = pipeline, settings, cache, turns
        self.wake: Callable[[ResourceKey], None] = lambda key: None
        self.passed: Callable[[Application, Passed, float], None] = lambda app, passed, seconds: None
        self.claims: Claims | None = None  # of one among several controllers
        self.takeover: Takeover | None = None  # the same's: claims go first
        self._fault_log = SettingFaultLog()
        self._asked: dict[ResourceKey, float] = {}  # when a refresh or an operation was, last
        self._afresh: dict[ResourceKey, float] = {}  # since when what was rendered is trusted
        self._read: dict[ResourceKey, tuple[Manifest, Application]] = {}
        self._busy: dict[ResourceKey, Manifest | None] = {}  # worked on, and what was told of it since it was read

    def noticed(self, before: Manifest | None, after: Manifest | None) -> set[ResourceKey]:
        """Whom a change concerns."""
        woken = {key for each in (before, after) if each is not None for key in self._concerned(each)}
        key = key_of(after or before or {})
        if key.group_kind == APPLICATION and (after is None or not self._is_echo(key, after)):
            woken.add(key)
        return woken

    def noticed_in(self, there: CacheReader, before: Manifest | None, after: Manifest | None) -> set[ResourceKey]:
        """Whom a change in another cluster concerns: nothing there is a setting or an Application of ours."""
        return {key for each in (before, after) if each is not None for key in self._tracked(there, each)}

    def _is_echo(self, key: ResourceKey, manifest: Manifest) -> bool:
        """Whether it only tells of what was written here, with which nothing is left to do."""
        if self.pipeline.cluster.newest(key, manifest) is not manifest:
            return True  # and written over since, by a pass that has read it
        if "operation" in manifest or names.REFRESH in _annotations(manifest):
            # Of the newest request: what a host said since an older one may be from before the push that this is for.
            self._asked[key] = time.monotonic()
        if key in self._busy:
            self._busy[key] = manifest  # it may come before the answer to the write: judged when that is there
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
        """Those that wait for nothing, and of which none is what changed itself: they may be spared a look."""
        if changed is None or self.settings.concerns(changed):
            return set()
        own = key_of(changed)
        newest = self.pipeline.cluster.newest
        return {key for key in keys if key != own and not (newest(key, self.cache.get(key)) or {}).get("operation")}

    async def is_touched(self, key: ResourceKey) -> bool:
        """Whether its sources may ask for something else by now."""
        manifest = self.pipeline.cluster.newest(key, self.cache.get(key))
        known = self._read.get(key)
        if manifest is None or known is None or not _are_same(known[0], manifest):
            return True
        rules = self.settings.rules()
        project = rules.projects.get(known[1].project)
        return project is None or await self.pipeline.assembler.is_touched(known[1], project, rules)

    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        """What can go on at once does so, each step written before the next."""
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
        """A step, if it is ours to take. What another has is watched all the same: it may be ours at any moment."""
        if self.claims is None or self.takeover is None:
            return await self._step(key, context)
        if not await self.takeover.turn(key):
            return None
        try:
            with self.claims.step(key) as standing:
                if standing is Standing.OURS:
                    return await self._step(key, context)
        except NotOurs as error:
            log.info("%s: %s", key, error)
            return Passed(wait=UNSURE)
        self._asked.pop(key, None)
        return Passed(wait=UNSURE) if standing is Standing.LATER else None

    async def claim(self, key: ResourceKey) -> None:
        """Only say that it is ours, if it is one to be worked on: what that is follows."""
        try:
            await self._claim(key, self.pipeline.cluster.newest(key, self.cache.get(key)))
        except Conflict:  # it has changed, and no watch has told of it yet
            await self._claim(key, await self.pipeline.cluster.get(key))

    async def _claim(self, key: ResourceKey, manifest: Manifest | None) -> None:
        if self.claims is None or manifest is None or self.turns.wait(manifest) != 0.0:
            return
        try:
            destination = self.application(manifest).destination
        except ManifestError:
            return  # to be said when its turn comes
        if self.settings.rules().clusters.is_paused(destination):
            return
        with self.claims.step(key) as standing:
            if standing is Standing.OURS:
                await self._claimed(manifest)

    def let_go(self, key: ResourceKey) -> None:
        """Another has it: what was found out about it will be old when it comes back."""
        self._forget(key)
        self.turns.forget(key)

    async def _step(self, key: ResourceKey, context: Context) -> Passed | None:
        # What we wrote last may be newer than what the cache has heard of.
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
        """It is gone, or another's: whatever is known of it would grow old."""
        self.pipeline.forget(key)
        self._read.pop(key, None)
        self._asked.pop(key, None)
        self._afresh.pop(key, None)

    async def _claimed(self, manifest: Manifest) -> Manifest:
        if self.claims is None:
            return manifest
        claimed = await self.claims.claim(manifest, self.pipeline.cluster)
        if claimed is not manifest and names.FENCE in _annotations(manifest):  # else nobody had it
            self.pipeline.take(key_of(manifest))
        return claimed

    def _is_hard(self, key: ResourceKey, rules: Rules, context: Context) -> bool:
        """argo: after timeout.hard.reconciliation everything is rendered anew, as if somebody had asked for it."""
        now = context.clock.monotonic()
        since = self._afresh.setdefault(key, now)
        if rules.hard_reconciliation <= 0 or now - since < rules.hard_reconciliation:
            return False
        self._afresh[key] = now
        return True

    async def _refuse(self, manifest: Manifest, error: ManifestError) -> None:
        """One that cannot even be read says so itself; all else of its status stays as it is."""
        changed = unreadable(mapping(manifest.get("status")), str(error), written(self.pipeline.now()))
        if changed is not None:
            version = manifest["metadata"].get("resourceVersion")
            patch = {"metadata": {"resourceVersion": version}, "status": changed}
            await self.pipeline.cluster.patch(key_of(manifest), patch, kind_of_patch=PatchKind.MERGE)

    def tenant(self, key: ResourceKey) -> str:
        """The project whose turn a pass of this Application is; one for all that name a project that does not exist."""
        manifest = self.cache.get(key)
        project = str(mapping((manifest or {}).get("spec")).get("project") or "default")
        return project if project in self.settings.rules().projects else ""

    def application(self, manifest: Manifest) -> Application:
        """Read once for each version."""
        key = key_of(manifest)
        known = self._read.get(key)
        if known is not None and _are_same(known[0], manifest):
            return known[1]
        app = read_application(manifest, f"Application {key.namespace}/{key.name}", known[1] if known else None)
        self._read[key] = manifest, app
        return app

    async def _written(self, app: Application, passed: Passed, cluster: Cluster) -> Manifest | None:
        """Events first: one that is told twice is the same Event, one that is lost is lost."""
        for event in passed.events:
            log.info("%s/%s: %s: %s", app.key.namespace, app.key.name, event["reason"], event["message"])
            await _tell(event, cluster)
        for each in (passed.patch or {}).get("status", {}).get("conditions") or ():
            log.info("%s/%s: %s: %s", app.key.namespace, app.key.name, each["type"], each["message"])
        if passed.patch is None:
            return None
        patch: dict[str, Any] = dict(passed.patch)
        version = app.wire["metadata"].get("resourceVersion")
        # Only on what was read: whoever changed it meanwhile asked for something else.
        patch["metadata"] = {**patch.get("metadata", {}), "resourceVersion": version}
        try:
            return await cluster.patch(app.key, patch, kind_of_patch=PatchKind.MERGE)
        except ClusterError as error:
            if error.code != 404:  # it may have gone meanwhile
                raise
            return None


async def _tell(event: Manifest, cluster: Cluster) -> None:
    try:
        await cluster.create(event)
    except ClusterError as error:
        if error.code != 409:
            log.warning("an Event cannot be told: %s", error)


def _annotations(manifest: Manifest) -> Mapping[str, str]:
    return manifest["metadata"].get("annotations") or {}


def _are_same(one: Manifest, other: Manifest) -> bool:
    version = one["metadata"].get("resourceVersion")
    return one is other or bool(version and version == other["metadata"].get("resourceVersion"))

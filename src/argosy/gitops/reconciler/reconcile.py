"""Reconciles one Application: source, render, policy, diff, sync, health and status.

In: an Application and the settings in force. Out: the patch for the Application, and when to reconcile again. Never:
knows how a step works; writes the Application itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final

from argosy import annotations as names
from argosy.errors import Forbidden, PolicyError, SourceError, Unreachable, UserError
from argosy.gitops.application import Application
from argosy.gitops.application.finalizers import is_served
from argosy.gitops.application.project import Project
from argosy.gitops.application.refresh import HARD
from argosy.gitops.application.step_results import Assessment, Health, SyncStatus
from argosy.gitops.live import CacheReader
from argosy.gitops.reconciler.app_state import Look
from argosy.gitops.reconciler.deletion_result import build_deletion_result
from argosy.gitops.reconciler.desired_state import Assembler, Wanted, load_error_text
from argosy.gitops.reconciler.destination import Fleet, Ground, OnlyHere, Shut, everything
from argosy.gitops.reconciler.impersonation import impersonate
from argosy.gitops.reconciler.operation import spelled
from argosy.gitops.reconciler.operation_dispatch import OperationDispatcher
from argosy.gitops.reconciler.permissions import why_not_delete
from argosy.gitops.reconciler.read_your_writes import Doorway
from argosy.gitops.reconciler.render_cache import Crew, Renders
from argosy.gitops.reconciler.settings import Rules
from argosy.gitops.reconciler.status_update import Passed, Reporter, Rest
from argosy.gitops.reconciler.unknown_state import invalid, known_revisions, unknown, unread_restrictions
from argosy.gitops.status.conditions import Condition, ConditionType, conditions_wire
from argosy.gitops.status.status import RECONCILED, is_fresh, is_outdated
from argosy.gitops.status.wire_format import mapping
from argosy.gitops.sync.app_deletion import Deleted, awaits_hooks, delete_further
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps import written

UNKNOWN_HOOKS: Final = "cannot determine the deletion hooks"
UNSEEN: Final = "Failed to load live state"
PATIENCE: Final = 180.0  # argo: an unreachable Git host is not reported for so many seconds
AWAY: Final = 15.0  # seconds until an unreachable host is tried again
RETRY_SECONDS: Final = 1.0  # lower bound for the retry of a render
# the kinds that define projects and destination clusters
PLACES: Final = (GroupKind("argoproj.io", "AppProject"), GroupKind("", "Secret"))
UNSURE: Final = 2.0  # seconds until the cache is checked for these kinds again


class Pipeline:
    """Runs the steps for one Application at a time, and keeps per-Application state between passes."""

    def __init__(
        self,
        cluster: Doorway,
        cache: CacheReader,
        crew: Crew,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        knows: Callable[[GroupKind], bool] = everything,
    ) -> None:
        """`cluster` holds the Applications; `destinations` gives access to the clusters that they deliver to."""
        self.cluster, self.now, self.monotonic, self._knows = cluster, now, monotonic, knows
        self.assembler = Assembler(Renders(crew, now=now))
        self.operations = OperationDispatcher(self.assembler, now)
        self.here = Ground(cluster, cache, self.assembler, now, knows=knows)
        self.fleet: Fleet = OnlyHere(self.here)
        self.reporter = Reporter(now)
        self._rests: dict[ResourceKey, Rest] = {}
        self._settling: dict[ResourceKey, Rest] = {}  # of which the patch is not written yet
        self._away: dict[ResourceKey, float] = {}  # monotonic time since which the Git host has been unreachable
        self._taken: dict[ResourceKey, float] = {}  # monotonic time at which this replica became the owner

    def stir(self, app: ResourceKey) -> None:
        """Forget the last result, because a child of a managed object changed and health may differ."""
        self._rests.pop(app, None)
        self._settling.pop(app, None)
        self.reporter.stir(app)

    def settle(self, app: Application, rest: Rest) -> None:
        """Record that the result of a pass was written, unless the Application was invalidated meanwhile."""
        if self._settling.pop(app.key, None) is rest:
            self._rests[app.key] = replace(rest, app=app)

    def is_at_rest(self, app: Manifest) -> bool:
        """True if the last pass left nothing to do for this resourceVersion, so that its event needs no new pass."""
        rest = self._rests.get(key_of(app))
        version = app["metadata"].get("resourceVersion")
        return rest is not None and bool(version) and rest.app.wire["metadata"].get("resourceVersion") == version

    def forget(self, app: ResourceKey) -> None:
        self.assembler.forget(app)
        for ground in self.fleet.grounds():
            ground.looker.forget(app)
            ground.operator.forget(app)
        self.stir(app)
        self._away.pop(app, None)
        self._taken.pop(app, None)

    def take(self, app: ResourceKey) -> None:
        """Ignore revisions resolved before now: the previous owner may have synced a newer commit."""
        self._taken[app] = time.monotonic()

    def _age(self, app: Application, most: float) -> float:
        """Limit how old a resolved revision may be, in seconds, to the time since this replica owns the Application."""
        taken = self._taken.get(app.key)
        return most if taken is None else min(most, time.monotonic() - taken)

    async def reconcile(
        self, app: Application, rules: Rules, asked: float | None = None, *, is_hard: bool = False
    ) -> Passed:
        """Run one idempotent pass.

        Requests since `requested_at`, a monotonic time, share one answer of the Git host.
        """
        waited = 0.0 if asked is None else self._age(app, max(0.0, time.monotonic() - asked))
        project = rules.projects.get(app.project)
        unread = unread_restrictions(rules)
        broken = unread or invalid(app, project, rules)
        app = rules.clusters.placed(app)
        refresh = app.annotations.get(names.REFRESH)
        is_lost = project is None or rules.clusters.find(app.destination) is None
        if is_lost and not all(map(self._knows, PLACES)):
            return Passed(wait=UNSURE)  # the project or cluster may exist, but its kind is not cached yet
        if app.deleted and is_lost:
            # argo: without a known project or cluster nothing can be deleted, so the finalizers are removed
            return Passed({"metadata": {"finalizers": [each for each in app.finalizers if not is_served(each)]}})
        if app.deleted and unread:
            return self._deleted(app, Deleted(app.finalizers, wait=AWAY, error=spelled(unread)))
        if project is None or (broken and not app.deleted):
            return self.reporter.reported(
                app, rules, unknown(app, broken, is_invalid=True), self.operations.reject(app, broken), refresh
            )
        with self.fleet.entered(app) as ground:
            if isinstance(ground, Shut):
                return self._shut(app, rules, ground, refresh)
            if app.deleted:
                return await self._delete(ground, app, project, ground.rules(rules))
            refresh = HARD if is_hard else refresh
            passed = await self._passed(ground, app, project, ground.rules(rules), refresh, waited)
            return self._with_retry(app, rules, passed)

    def _with_retry(self, app: Application, rules: Rules, passed: Passed) -> Passed:
        """Requeue when a render that exhausted its worker may be retried, at the latest at the next reconciliation."""
        retry = self.assembler.renders.retry_seconds(app)
        if retry is None or passed.wait is not None:
            return passed
        return replace(passed, wait=max(RETRY_SECONDS, min(retry, rules.reconciliation or retry)))

    async def _passed(
        self, ground: Ground, app: Application, project: Project, rules: Rules, refresh: str | None, waited: float
    ) -> Passed:
        try:
            look = await self._look(ground, app, project, rules, refresh, waited)
        except Unreachable:
            return Passed(wait=AWAY)
        rest = self._rests.get(app.key)
        is_told = is_fresh(app.status.get(RECONCILED), written(self.now()))
        unlisted = ground.unlisted_conditions(look)
        if is_told and rest is not None and rest.is_of(app, look, rules, unlisted):
            return Passed(wait=AWAY if unlisted else None)
        self._rests.pop(app.key, None)
        operation = await self.operations.run(ground, app, project, rules, look, waited)
        reported = replace(look, conditions=(*look.conditions, *unlisted)) if unlisted else look
        passed = self.reporter.reported(app, rules, reported, operation, app.annotations.get(names.REFRESH), ground)
        if unlisted and passed.wait is None:
            passed = replace(passed, wait=AWAY)  # no event announces that the kind can be listed again
        if operation.changes_nothing(app) and "finalizers" not in (passed.patch or {}).get("metadata", {}):
            found = Rest(app, look, rules, unlisted)
            (self._rests if passed.patch is None else self._settling)[app.key] = found
            return replace(passed, rest=found)
        return passed

    def _shut(self, app: Application, rules: Rules, shut: Shut, refresh: str | None) -> Passed:
        """Report Unknown for a destination that is unavailable. A running operation continues when it is back."""
        if not shut.said:
            return Passed(wait=shut.wait)
        if app.deleted:
            error = [Condition(ConditionType.DELETION_ERROR, shut.said)]
            after = conditions_wire(app.status.get("conditions"), error, {error[0].type}, written(self.now()))
            is_told = after == (app.status.get("conditions") or [])
            return Passed(None if is_told else {"status": {"conditions": after}}, wait=shut.wait)
        said = [Condition(ConditionType.COMPARISON_ERROR, f"{UNSEEN}: {shut.said}")]
        look = unknown(app, said, known_revisions(app))
        look = replace(look, health=Assessment(Health.UNKNOWN))
        return self.reporter.reported(app, rules, look, self.operations.postpone(app, shut), refresh)

    async def _look(
        self,
        ground: Ground,
        app: Application,
        project: Project,
        rules: Rules,
        refresh: str | None,
        waited: float = 0.0,
    ) -> Look:
        max_age = waited if refresh is not None else self._age(app, rules.reconciliation)
        wanted = Wanted(app.sources, tuple(source.ref for source in app.sources), max_age, refresh == HARD)
        kinds = await ground.cluster.kinds()
        try:
            assembled = await self.assembler.assemble(app, project, wanted, rules, kinds)
        except UserError as error:
            if isinstance(error, Unreachable) and refresh is None and self._may_pass(app):
                raise
            said = load_error_text(error)
            revisions = (error.last_good,) if isinstance(error, SourceError) and error.last_good else ()
            look = unknown(app, [Condition(ConditionType.COMPARISON_ERROR, said)], revisions)
            # argo: health of the live objects is reported even if the desired state cannot be loaded
            return replace(look, health=await ground.looker.health_of_tracked(app, rules) or look.health)
        self._away.pop(app.key, None)
        try:
            return await ground.looker.look(app, project, assembled, rules, kinds, afresh=refresh is not None)
        except UserError as error:
            said = f"{UNSEEN}: {error}"
            return unknown(app, [Condition(ConditionType.COMPARISON_ERROR, said)], assembled.revisions)

    def _may_pass(self, app: Application) -> bool:
        """argo: a known sync status is kept while the Git host is unreachable for a moment."""
        known = mapping(app.status.get("sync")).get("status") in (SyncStatus.SYNCED, SyncStatus.OUT_OF_SYNC)
        if not known or app.operation is not None or app.deleted or is_outdated(app):
            return False
        since = self._away.setdefault(app.key, self.monotonic())
        return self.monotonic() - since < PATIENCE

    # -- deletion --------------------------------------------------------------------------------------------------

    async def _delete(self, ground: Ground, app: Application, project: Project, rules: Rules) -> Passed:
        """argo: delete the resources of the Application before its finalizers are removed."""
        look = await self._look(ground, app, project, rules, None)
        kinds = await ground.cluster.kinds()

        def may_delete(manifest: Manifest) -> str:
            return why_not_delete(manifest, app, project, rules, kinds, None)

        # argo: no deletion hook is skipped because its source cannot be loaded
        if look.resources is None and awaits_hooks(app):
            said = "; ".join(each.message for each in look.conditions)
            return self._deleted(app, Deleted(app.finalizers, wait=AWAY, error=f"{UNKNOWN_HOOKS}: {said}"))
        known = look.live or ground.looker.tracked(app, rules)
        try:
            live = await ground.looker.belongings(app, known, rules, kinds)
        except UserError as error:  # keep the finalizers: objects that cannot be read may still exist
            return self._deleted(app, Deleted(app.finalizers, wait=AWAY, error=str(error)))
        try:
            found = await delete_further(
                app,
                live,
                look.comparison.hooks,
                # Unlike Argo CD, which deletes with its own rights if no account matches.
                cluster=impersonate(ground.cluster, app, project, rules),
                assess_all=rules.assess_all,
                may_delete=may_delete,
            )
        except (PolicyError, Forbidden) as error:
            return self._deleted(app, Deleted(app.finalizers, wait=AWAY, error=str(error)))
        return self._deleted(app, found)

    def _deleted(self, app: Application, found: Deleted) -> Passed:
        return build_deletion_result(app, found, written(self.now()))

"""Turns the result of a pass into the patch of the Application.

In: the compared state, the operation, the settings. Out: ReconcileResult: a merge patch, Events, when to reconcile
again. Never: reads a cluster; decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from argosy import annotations as names
from argosy.gitops.application import Application, OperationRequest, OperationState
from argosy.gitops.reconciler.app_state import Look
from argosy.gitops.reconciler.destination import Ground
from argosy.gitops.reconciler.settings import Rules
from argosy.gitops.reconciler.unknown_state import looked_for, standing
from argosy.gitops.status.conditions import Condition
from argosy.gitops.status.history import with_deployment
from argosy.gitops.status.operations import request_wire
from argosy.gitops.status.status import Report, changes, status
from argosy.gitops.status.summary import summary
from argosy.gitops.sync.app_deletion import finalizers_for
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps import written


@dataclass(frozen=True, slots=True)
class Passed:
    """The result of a pass: a merge patch for the Application, Events, and seconds until the next pass."""

    patch: dict[str, Any] | None = None
    events: Sequence[Manifest] = ()
    wait: float | None = None
    rest: Rest | None = None  # set if nothing is left to do once the patch is written


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation after this pass."""

    state: OperationState | None
    wait: float | None = None
    asked: OperationRequest | None = None  # of an automated sync that starts now
    is_over: bool = False
    events: tuple[Manifest, ...] = ()
    conditions: tuple[Condition, ...] = field(default_factory=tuple)
    is_decided: bool = True  # True if automated sync was evaluated

    def changes_nothing(self, app: Application) -> bool:
        """True if the operation is as it was read and waits for nothing, so that another pass would change nothing."""
        return self.state is app.state and not self.is_over and (self.wait, self.asked, self.events) == (None, None, ())


@dataclass(frozen=True, slots=True)
class Rest:
    """The inputs of a pass that left nothing to do. While they are the same, no pass is needed."""

    app: Application
    look: Look
    rules: Rules
    unlisted: tuple[Condition, ...] = ()

    def is_of(self, app: Application, look: Look, rules: Rules, unlisted: tuple[Condition, ...] = ()) -> bool:
        is_same = self.app.wire is app.wire and self.look is look and self.rules is rules
        return is_same and self.unlisted == unlisted


class Reporter:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._summaries: dict[ResourceKey, tuple[Any, Mapping[str, str], dict[str, Any]]] = {}

    def stir(self, app: ResourceKey) -> None:
        """Forget the summary, because a child of a managed object changed."""
        self._summaries.pop(app, None)

    def reported(
        self,
        app: Application,
        rules: Rules,
        look: Look,
        operation: Operation,
        refresh: str | None,
        ground: Ground | None = None,
    ) -> Passed:
        """Build the patch. `destination` is None if nothing was compared."""
        patch: dict[str, Any] = {}
        report = self._report(app, rules, look, operation)
        if ground is not None and look.resources is not None:
            report = replace(report, summary=self._summary(ground, app, look))
        if (changed := changes(app.status, status(report))) is not None:
            patch["status"] = changed
        if operation.asked is not None:
            patch["operation"] = request_wire(operation.asked)
        elif operation.is_over:
            patch["operation"] = None
        if refresh is not None:
            # argo: removed only if it was not set again meanwhile; here the resourceVersion of the patch ensures that
            answered = [each for each in (names.REFRESH, names.REFRESH_TIMESTAMP) if each in app.annotations]
            patch["metadata"] = {"annotations": dict.fromkeys(answered)}
        if look.is_whole and (kept := finalizers_for(app, look.comparison.hooks)) != app.finalizers:
            patch.setdefault("metadata", {})["finalizers"] = list(kept)
        return Passed(patch or None, operation.events, operation.wait)

    def _report(self, app: Application, rules: Rules, look: Look, operation: Operation) -> Report:
        history = app.status.get("history") or []
        if operation.is_over and operation.state is not None:
            history = with_deployment(history, operation.state, app.history_limit)
        return Report(
            app=app,
            now=written(self._now()),
            state=operation.state,
            status=standing(app, look).status,
            revisions=look.assembled.revisions,
            sources=look.assembled.sources,
            tools=look.assembled.tools,
            resources=look.resources,
            shows_health=rules.shows_health,
            health=look.health,
            conditions=(*look.conditions, *operation.conditions),
            looked_for=looked_for(look, is_decided=operation.is_decided),
            is_compared=not look.is_invalid,
            is_lost=look.resources is None and not look.is_invalid,
            history=history,
            controller_namespace=rules.control_namespace,
        )

    def _summary(self, ground: Ground, app: Application, look: Look) -> dict[str, Any]:
        """Return the cached summary for the same live objects; `invalidate` drops it if a child changes."""
        known = self._summaries.get(app.key)
        if known is not None and known[0] is look.live and known[1] == app.annotations:
            return known[2]
        found = summary(ground.looker.whole(look), app.annotations)
        self._summaries[app.key] = look.live, app.annotations, found
        return found

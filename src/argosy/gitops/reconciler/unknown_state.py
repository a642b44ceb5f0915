"""Builds the state of an Application that could not be compared, and names the conditions that a pass owns.

In: an Application, its project, the settings, errors. Out: conditions; an AppState with status Unknown. Never: drops a
condition that the pass did not evaluate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from argosy.gitops.application import Application
from argosy.gitops.application.project import Project
from argosy.gitops.application.step_results import Assessment, Comparison, Health, SyncStatus
from argosy.gitops.application.unknown_fields import missing_field
from argosy.gitops.policy.projects import violations
from argosy.gitops.reconciler.app_state import Look
from argosy.gitops.reconciler.desired_state import Assembled
from argosy.gitops.reconciler.settings import Rules
from argosy.gitops.status.conditions import Condition, ConditionType
from argosy.gitops.status.wire_format import mapping

# argo: each evaluation replaces the conditions that it owns, and no others
OF_SPEC: Final = frozenset({ConditionType.INVALID_SPEC_ERROR, ConditionType.UNKNOWN_ERROR})
OF_SOURCE: Final = OF_SPEC | {
    ConditionType.COMPARISON_ERROR,
    ConditionType.SHARED_RESOURCE_WARNING,
    ConditionType.REPEATED_RESOURCE_WARNING,
    ConditionType.EXCLUDED_RESOURCE_WARNING,
    ConditionType.SOURCE_WARNING,
}
OF_LOOK: Final = OF_SOURCE | {ConditionType.ORPHANED_RESOURCE_WARNING}


def looked_for(look: Look, *, is_decided: bool) -> frozenset[ConditionType]:
    """Return the condition types that this pass evaluated; also those of automated sync, if evaluated."""
    if look.is_invalid:
        return OF_SPEC
    own = OF_LOOK if look.resources is not None else OF_SOURCE
    return own | {ConditionType.SYNC_ERROR} if is_decided else own


def invalid(app: Application, project: Project | None, rules: Rules) -> list[Condition]:
    """Return the errors of the Application itself."""
    placed = rules.clusters.placed(app)
    clusters = rules.clusters if project is not None and project.only_scoped_clusters else None
    said = violations(
        project,
        placed,
        control_namespace=rules.control_namespace,
        clusters=clusters,
        place_refused=rules.clusters.refusal(app.destination),
    )
    if not app.sources:
        said.append("spec.source.repoURL and either spec.source.path or spec.source.chart are required")
    place = "spec.sources" if app.has_many_sources else "spec.source"
    said += [f"{place}: {text}" for source in app.sources if (text := missing_field(source))]
    return [Condition(ConditionType.INVALID_SPEC_ERROR, text) for text in said]


def unread_restrictions(rules: Rules) -> list[Condition]:
    """Return a condition for each restricting setting that was never read, because its limits are unknown."""
    return [
        Condition(ConditionType.UNKNOWN_ERROR, f"{fault}; until then no Application is synced")
        for fault in rules.unread_restrictions
    ]


def standing(app: Application, look: Look) -> Comparison:
    """argo: an Application is OutOfSync if managedNamespaceMetadata changed, which is in no manifest."""
    asked = mapping(mapping(app.wire.get("spec")).get("syncPolicy")).get("managedNamespaceMetadata")
    state = app.state
    if asked is None or state is None or not state.has_result or not look.is_whole:
        return look.comparison
    if asked == (dict(state.namespace_metadata) if state.namespace_metadata is not None else None):
        return look.comparison
    return replace(look.comparison, status=SyncStatus.OUT_OF_SYNC)


def unknown(
    app: Application, conditions: Sequence[Condition], revisions: tuple[str, ...] = (), *, is_invalid: bool = False
) -> Look:
    """argo: if something cannot be determined, the whole status is Unknown; a valid Application keeps its health."""
    word = "" if is_invalid else mapping(app.status.get("health")).get("status")
    health = Health(word) if word in set(Health) else Health.UNKNOWN
    nothing = Assembled(app.sources, revisions, ())
    comparison = replace(Comparison(), status=SyncStatus.UNKNOWN)
    return Look(nothing, comparison, {}, health=Assessment(health), conditions=tuple(conditions), is_invalid=is_invalid)


def known_revisions(app: Application) -> tuple[str, ...]:
    """Return the revisions of the last comparison."""
    sync = mapping(app.status.get("sync"))
    found = sync.get("revisions") if app.has_many_sources else [sync.get("revision")]
    return tuple(str(each or "") for each in found) if isinstance(found, list) and any(found) else ()

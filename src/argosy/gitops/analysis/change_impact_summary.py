"""Summarizes the impact of a change on running workloads: restarts, rejections, deletions, traffic, resources.

In: changed Applications, as values. Out: effects per Application and a one-sentence summary. Never: I/O; an effect
that is only likely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from argosy.gitops.analysis.change_effects import build_target_key, find_effects, is_decided_by_other_controller
from argosy.gitops.analysis.cluster_effect_types import Effect, EffectKind
from argosy.gitops.analysis.environment_names import PRODUCTION
from argosy.gitops.analysis.object_changes import ApplicationChange, ChangeType
from argosy.gitops.analysis.resource_requests import ResourceAmount, sum_requests
from argosy.gitops.analysis.schema_validation import SchemaValidator


class ChangeVerdict(StrEnum):
    """Whether the change can be delivered."""

    FINE = "fine"
    REFUSED = "refused"  # a cluster rejects it
    BROKEN = "broken"  # it does not render


@dataclass(frozen=True)
class ChangeImpact:
    """Effects of a whole change. `app_changes` holds only the Applications that change."""

    app_changes: tuple[ApplicationChange, ...]
    effects: tuple[tuple[Effect, ...], ...]  # per entry of `app_changes`
    has_production: bool = False  # True if an Application here is known to be production
    lost_applications: tuple[str, ...] = ()  # Applications that ApplicationSets no longer generate

    @cached_property
    def all_effects(self) -> list[Effect]:
        return [effect for effects in self.effects for effect in effects]

    @property
    def verdict(self) -> ChangeVerdict:
        if any(app_change.render_failure for app_change in self.app_changes):
            return ChangeVerdict.BROKEN
        return (
            ChangeVerdict.REFUSED if self.list_effects(EffectKind.REFUSED, EffectKind.INVALID) else ChangeVerdict.FINE
        )

    def list_effects(self, *kinds: EffectKind) -> list[Effect]:
        return [effect for effect in self.all_effects if effect.kind in kinds]

    @cached_property
    def resource_delta(self) -> tuple[ResourceAmount, ResourceAmount]:
        """Difference in requested resources: with minimum and with maximum replicas."""
        minimum = maximum = ResourceAmount()
        for app_change in self.app_changes:
            if app_change.render_failure or app_change.render_failure_before:
                continue  # one side is unknown
            before = sum_requests(
                [*app_change.unchanged, *(change.before for change in app_change.changes if change.before)]
            )
            after = sum_requests(
                [*app_change.unchanged, *(change.after for change in app_change.changes if change.after)]
            )
            minimum = minimum.add(after.minimum).add(before.minimum, -1)
            maximum = maximum.add(after.maximum).add(before.maximum, -1)
        return minimum, maximum

    @cached_property
    def summary(self) -> str:
        if not self.app_changes and not self.lost_applications:
            return "nothing changes"
        parts = [_render_app_count(self.app_changes), *self._render_failures()]
        broken = [app_change.name for app_change in self.app_changes if app_change.render_failure]
        if len(broken) == len(self.app_changes) and not self.lost_applications:
            return " · ".join([*parts, "restarts, resources and deletions unknown", *self._render_production_impact()])
        parts += [*self._render_restarts(), *self._render_traffic()]
        return " · ".join(
            [*parts, *self._render_resources(), self._render_deletions(), *self._render_production_impact()]
        )

    def _render_failures(self) -> Iterable[str]:
        broken = [entry.name for entry in self.app_changes if entry.render_failure]
        if broken:
            suffix = ", so its effects are unknown" if len(broken) < len(self.app_changes) else ""
            yield f"{', '.join(broken)} cannot be rendered{suffix}"
        invalid = {entry.name for entry in self.list_effects(EffectKind.INVALID)}
        if invalid:
            yield f"{_pluralize(len(invalid), 'object')} rejected by the API server, so a sync fails"
        refused = {entry.name for entry in self.list_effects(EffectKind.REFUSED)}
        if refused:
            yield f"{_pluralize(len(refused), 'object')} cannot be updated in place, so a sync fails"
        recreated = {entry.name for entry in self.list_effects(EffectKind.RECREATE)}
        if recreated:
            yield f"recreates {_pluralize(len(recreated), 'object')}"

    def _render_restarts(self) -> Iterable[str]:
        restarts = self.list_effects(EffectKind.RESTART)
        if restarts:
            nouns = Counter(entry.noun for entry in restarts)
            style = "with downtime" if any(entry.has_downtime for entry in restarts) else "rolling"
            yield f"restarts {' and '.join(_pluralize(count, noun) for noun, count in nouns.items())} ({style})"
        elif unknown_names := sorted(
            {
                entry.name
                for app_change in self.app_changes
                for entry in app_change.changes
                if is_decided_by_other_controller(entry)
            }
        ):
            yield (
                f"no restarts known ({unknown_names[0]}{', …' if len(unknown_names) > 1 else ''}: its "
                "controller decides)"
            )
        elif undecided := self.list_effects(EffectKind.OPEN):
            yield f"no restarts known ({undecided[0].name}: KServe decides)"
        else:
            yield (
                "no restarts at once"
                if any(entry.noun for entry in self.list_effects(EffectKind.STALE))
                else "no restarts"
            )

    def _render_traffic(self) -> Iterable[str]:
        names = {effect.name for effect in self.list_effects(EffectKind.TRAFFIC)}
        if names:
            yield f"changes where traffic goes ({', '.join(sorted(names)[:2])}{', …' if len(names) > 2 else ''})"

    def _render_resources(self) -> list[str]:
        minimum, maximum = self.resource_delta
        words = minimum.render_parts()
        if maximum.gpu != minimum.gpu:
            words[-1] += f" (up to {maximum.render_parts()[-1].removeprefix('GPU ')})"
        return words

    def _render_deletions(self) -> str:
        prunes = self.list_effects(EffectKind.PRUNE)
        data_count = sum(effect.has_data for effect in prunes)
        words = (
            [f"{_pluralize(len(self.lost_applications), 'Application')} of ApplicationSets"]
            if self.lost_applications
            else []
        )
        words += (
            [f"{_pluralize(len(prunes), 'object')}{f' ({data_count} with data)' if data_count else ''}"]
            if prunes
            else []
        )
        moved = self.list_effects(EffectKind.MOVES)
        moves_text = f"moves {_pluralize(len(moved), 'object')} to another app" if moved else ""
        return " · ".join(filter(None, [f"deletes {' and '.join(words)}" if words else "no deletions", moves_text]))

    def _render_production_impact(self) -> Iterable[str]:
        if not self.has_production:
            return
        names = [app_change.name for app_change in self.app_changes if app_change.environment == PRODUCTION]
        yield f"production touched ({', '.join(names)})" if names else "production untouched"


def assess_impact(
    app_changes: Iterable[ApplicationChange],
    schemas: SchemaValidator | None = None,
    *,
    has_production: bool = False,
    lost_applications: Iterable[str] = (),
) -> ChangeImpact:
    schemas = schemas or SchemaValidator()
    changed_apps = tuple(app_change for app_change in app_changes if not app_change.is_unchanged)
    new_owners = {
        build_target_key(app_change.after, change.key): app_change.name
        for app_change in changed_apps
        for change in app_change.changes
        if change.change_type is ChangeType.ADDED and not app_change.is_folder
    }
    effects = tuple(tuple(find_effects(app_change, schemas, new_owners)) for app_change in changed_apps)
    production = has_production or any(app_change.environment == PRODUCTION for app_change in changed_apps)
    return ChangeImpact(changed_apps, effects, production, tuple(lost_applications))


def _render_app_count(app_changes: Sequence[ApplicationChange]) -> str:
    apps, folders = (
        sum(app_change.is_folder is is_folder for app_change in app_changes) for is_folder in (False, True)
    )
    words = [_pluralize(apps, "app")] if apps else []
    words += [_pluralize(folders, "folder")] if folders else []
    return f"{' and '.join(words)} {'changes' if len(app_changes) == 1 else 'change'}"


def _pluralize(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

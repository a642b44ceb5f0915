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

from argosy.gitops.analysis.change_effects import Effect, EffectKind, effects_of, is_foreign, landing
from argosy.gitops.analysis.environment_names import PRODUCTION
from argosy.gitops.analysis.object_changes import Becomes, Touched
from argosy.gitops.analysis.resource_requests import Amount, asked
from argosy.gitops.analysis.schema_validation import Schemas


class Verdict(StrEnum):
    """Whether the change can be delivered."""

    FINE = "fine"
    REFUSED = "refused"  # a cluster rejects it
    BROKEN = "broken"  # it does not render


@dataclass(frozen=True)
class Impact:
    """Effects of a whole change. `app_changes` holds only the Applications that change."""

    touched: tuple[Touched, ...]
    effects: tuple[tuple[Effect, ...], ...]  # per entry of `app_changes`
    has_production: bool = False  # True if an Application here is known to be production
    lost: tuple[str, ...] = ()  # Applications that ApplicationSets no longer generate

    @cached_property
    def all_effects(self) -> list[Effect]:
        return [each for effects in self.effects for each in effects]

    @property
    def verdict(self) -> Verdict:
        if any(each.fault for each in self.touched):
            return Verdict.BROKEN
        return Verdict.REFUSED if self.of(EffectKind.REFUSED, EffectKind.INVALID) else Verdict.FINE

    def of(self, *kinds: EffectKind) -> list[Effect]:
        return [each for each in self.all_effects if each.kind in kinds]

    @cached_property
    def delta(self) -> tuple[Amount, Amount]:
        """Difference in requested resources: with minimum and with maximum replicas."""
        least = most = Amount()
        for each in self.touched:
            if each.fault or each.fault_before:
                continue  # one side is unknown
            before = asked([*each.kept, *(change.before for change in each.changes if change.before)])
            after = asked([*each.kept, *(change.after for change in each.changes if change.after)])
            least = least.plus(after.least).plus(before.least, -1)
            most = most.plus(after.most).plus(before.most, -1)
        return least, most

    @cached_property
    def sentence(self) -> str:
        if not self.touched and not self.lost:
            return "nothing changes"
        parts = [_apps(self.touched), *self._faults()]
        broken = [each.name for each in self.touched if each.fault]
        if len(broken) == len(self.touched) and not self.lost:
            return " · ".join([*parts, "restarts, resources and deletions unknown", *self._environments()])
        parts += [*self._restarts(), *self._traffic()]
        return " · ".join([*parts, *self._amounts(), self._deletions(), *self._environments()])

    def _faults(self) -> Iterable[str]:
        broken = [each.name for each in self.touched if each.fault]
        if broken:
            more = ", so its effects are unknown" if len(broken) < len(self.touched) else ""
            yield f"{', '.join(broken)} cannot be rendered{more}"
        invalid = {each.name for each in self.of(EffectKind.INVALID)}
        if invalid:
            yield f"{_counted(len(invalid), 'object')} rejected by the API server, so a sync fails"
        refused = {each.name for each in self.of(EffectKind.REFUSED)}
        if refused:
            yield f"{_counted(len(refused), 'object')} cannot be updated in place, so a sync fails"
        recreated = {each.name for each in self.of(EffectKind.RECREATE)}
        if recreated:
            yield f"recreates {_counted(len(recreated), 'object')}"

    def _restarts(self) -> Iterable[str]:
        found = self.of(EffectKind.RESTART)
        if found:
            nouns = Counter(each.noun for each in found)
            how = "with downtime" if any(each.has_gap for each in found) else "rolling"
            yield f"restarts {' and '.join(_counted(count, noun) for noun, count in nouns.items())} ({how})"
        elif foreign := sorted({each.name for one in self.touched for each in one.changes if is_foreign(each)}):
            yield f"no restarts known ({foreign[0]}{', …' if len(foreign) > 1 else ''}: its controller decides)"
        elif unsure := self.of(EffectKind.OPEN):
            yield f"no restarts known ({unsure[0].name}: KServe decides)"
        else:
            yield "no restarts at once" if any(each.noun for each in self.of(EffectKind.STALE)) else "no restarts"

    def _traffic(self) -> Iterable[str]:
        names = {each.name for each in self.of(EffectKind.TRAFFIC)}
        if names:
            yield f"changes where traffic goes ({', '.join(sorted(names)[:2])}{', …' if len(names) > 2 else ''})"

    def _amounts(self) -> list[str]:
        least, most = self.delta
        words = least.words()
        if most.gpu != least.gpu:
            words[-1] += f" (up to {most.words()[-1].removeprefix('GPU ')})"
        return words

    def _deletions(self) -> str:
        found = self.of(EffectKind.PRUNE)
        data = sum(each.has_data for each in found)
        words = [f"{_counted(len(self.lost), 'Application')} of ApplicationSets"] if self.lost else []
        words += [f"{_counted(len(found), 'object')}{f' ({data} with data)' if data else ''}"] if found else []
        moved = self.of(EffectKind.MOVES)
        more = f"moves {_counted(len(moved), 'object')} to another app" if moved else ""
        return " · ".join(filter(None, [f"deletes {' and '.join(words)}" if words else "no deletions", more]))

    def _environments(self) -> Iterable[str]:
        if not self.has_production:
            return
        names = [each.name for each in self.touched if each.environment == PRODUCTION]
        yield f"production touched ({', '.join(names)})" if names else "production untouched"


def impact(
    touched: Iterable[Touched],
    schemas: Schemas | None = None,
    *,
    has_production: bool = False,
    lost: Iterable[str] = (),
) -> Impact:
    schemas = schemas or Schemas()
    found = tuple(each for each in touched if not each.is_quiet)
    takers = {
        landing(each.after, change.key): each.name
        for each in found
        for change in each.changes
        if change.becomes is Becomes.NEW and not each.is_folder
    }
    effects = tuple(tuple(effects_of(each, schemas, takers)) for each in found)
    production = has_production or any(each.environment == PRODUCTION for each in found)
    return Impact(found, effects, production, tuple(lost))


def _apps(touched: Sequence[Touched]) -> str:
    apps, folders = (sum(each.is_folder is which for each in touched) for which in (False, True))
    words = [_counted(apps, "app")] if apps else []
    words += [_counted(folders, "folder")] if folders else []
    return f"{' and '.join(words)} {'changes' if len(touched) == 1 else 'change'}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

"""Rules about a change: what is looked at stands beside what was there before.

In: what others found who rendered both sides. Out: the same as sights of a rule. Never: looks itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from argosy.gitops.analysis.change_effects import EffectKind, effects_of
from argosy.gitops.analysis.generated_applications import Lost
from argosy.gitops.analysis.object_changes import Touched
from argosy.gitops.analysis.repository import Repository, pointer
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.schema_validation import Schemas
from argosy.gitops.analysis.violation import Severity, Sight

IMMUTABLE, LOST = "AGY111", "AGY143"


def immutable(touched: Iterable[Touched], schemas: Schemas) -> list[Sight]:
    found = []
    for each in touched:
        changes = {change.name: change for change in each.changes}
        for effect in effects_of(each, schemas):
            if effect.kind is EffectKind.REFUSED:
                field = ".".join(str(step) for step in effect.path)
                message = f"{effect.name}: {field} is other than before, and cannot change once the object is there"
                fix = "undo it, give the object another name, or let it be made anew: Force=true,Replace=true"
                place = changes[effect.name].place(pointer(effect.path))
                found.append(Sight(place, message, fix, effect.name, field))
    return found


def lost_applications(sets: Iterable[Lost]) -> list[Sight]:
    found = []
    for item, names, with_objects in sets:
        many = f"{len(names)} Application{'' if len(names) == 1 else 's'} ({', '.join(names)})"
        more = ", and with them all that they deployed" if with_objects else ", and leave what they deployed"
        message = f"{item.name} would delete {many}{more}"
        fix = "keep them in the list, or say so: applicationsSync: create-update, preserveResourcesOnDeletion: true"
        found.append(Sight(item.at("spec", "generators"), message, fix, item.name))
    return found


def _told(rule: str, repository: Repository) -> Iterable[Sight]:
    return repository.told.get(rule, ())


RULES: Final = (
    Rule(
        IMMUTABLE,
        Severity.ERROR,
        "A field changes that cannot change",
        "The cluster refuses the update, and every sync fails with `field is immutable` until the object is deleted.",
        "Both sides are rendered, what Git had before and what it has now, and judged by the API server's own rules "
        "for updates. Hooks, and objects that are replaced by force, are left out. With ServerSideApply=true also a "
        "strategy Recreate after none was written: the default of a rolling update stays, and is refused beside it.",
        "Undo the change, give the object a new name, or let it be made anew with the sync options "
        "Force=true,Replace=true. Labels that Kustomize adds to selectors: set includeSelectors: false.",
        partial(_told, IMMUTABLE),
    ),
    Rule(
        LOST,
        Severity.WARNING,
        "An ApplicationSet makes fewer Applications than before",
        "Its controller deletes those that it makes no more, and they delete all that they deployed.",
        "Only sets whose names Git alone gives are judged: lists of elements, and folders of this repository; what "
        "they made before and what they make now are compared.",
        "Keep the elements or folders, or set applicationsSync: create-update and preserveResourcesOnDeletion: true.",
        partial(_told, LOST),
    ),
)

"""Rules about changes, which compare the repository with an earlier state.

In: changes that callers found by rendering both sides. Out: violations. Never: renders.
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
                message = f"{effect.name}: {field} has changed, but is immutable on an existing object"
                fix = "revert it, rename the object, or recreate it with sync options Force=true,Replace=true"
                place = changes[effect.name].place(pointer(effect.path))
                found.append(Sight(place, message, fix, effect.name, field))
    return found


def lost_applications(sets: Iterable[Lost]) -> list[Sight]:
    found = []
    for item, names, with_objects in sets:
        many = f"{len(names)} Application{'' if len(names) == 1 else 's'} ({', '.join(names)})"
        more = " and everything they deployed" if with_objects else ", and keep what they deployed"
        message = f"{item.name} would delete {many}{more}"
        fix = "keep them in the list, or set applicationsSync: create-update, preserveResourcesOnDeletion: true"
        found.append(Sight(item.at("spec", "generators"), message, fix, item.name))
    return found


def _told(rule: str, repository: Repository) -> Iterable[Sight]:
    return repository.told.get(rule, ())


RULES: Final = (
    Rule(
        IMMUTABLE,
        Severity.ERROR,
        "An immutable field changes",
        "The API server rejects the update. Every sync fails with `field is immutable` until the object is deleted.",
        "Both sides are rendered, before and after the change, and compared with the API server's own validation of "
        "updates. Hooks, and objects replaced by force, are excluded. With ServerSideApply=true this includes a "
        "strategy Recreate where none was set: the default rollingUpdate stays, and is rejected together with it.",
        "Revert the change, rename the object, or recreate it with the sync options Force=true,Replace=true. If "
        "Kustomize adds labels to selectors: set includeSelectors: false.",
        partial(_told, IMMUTABLE),
    ),
    Rule(
        LOST,
        Severity.WARNING,
        "An ApplicationSet generates fewer Applications than before",
        "Its controller deletes the others, and they delete everything they deployed.",
        "Only ApplicationSets whose names follow from Git alone are checked: list generators, and folders of this "
        "repository. The names before and after the change are compared.",
        "Keep the elements or folders, or set applicationsSync: create-update and preserveResourcesOnDeletion: true.",
        partial(_told, LOST),
    ),
)

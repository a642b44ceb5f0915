"""Rules about changes, which compare the repository with an earlier state.

In: changes that callers found by rendering both sides. Out: violations. Never: renders.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from argosy.gitops.analysis.change_effects import find_effects
from argosy.gitops.analysis.cluster_effect_types import EffectKind
from argosy.gitops.analysis.lost_generated_applications import LostApplications
from argosy.gitops.analysis.object_changes import ApplicationChange
from argosy.gitops.analysis.repository_view import RepositoryView, format_pointer
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import Severity, Violation
from argosy.gitops.analysis.schema_validation import SchemaValidator

IMMUTABLE_RULE, LOST_APPLICATIONS_RULE = "AGY111", "AGY143"


def find_immutable_violations(app_changes: Iterable[ApplicationChange], schemas: SchemaValidator) -> list[Violation]:
    violations = []
    for app_change in app_changes:
        changes = {change.name: change for change in app_change.changes}
        for effect in find_effects(app_change, schemas):
            if effect.kind is EffectKind.REFUSED:
                field = ".".join(str(step) for step in effect.path)
                message = f"{effect.name}: {field} has changed, but is immutable on an existing object"
                fix = "revert it, rename the object, or recreate it with sync options Force=true,Replace=true"
                location = changes[effect.name].find_location(format_pointer(effect.path))
                violations.append(Violation(location, message, fix, effect.name, field))
    return violations


def find_lost_application_violations(sets: Iterable[LostApplications]) -> list[Violation]:
    violations = []
    for item, names, with_objects in sets:
        count_text = f"{len(names)} Application{'' if len(names) == 1 else 's'} ({', '.join(names)})"
        objects_text = " and everything they deployed" if with_objects else ", and keep what they deployed"
        message = f"{item.name} would delete {count_text}{objects_text}"
        fix = "keep them in the list, or set applicationsSync: create-update, preserveResourcesOnDeletion: true"
        violations.append(Violation(item.find_location("spec", "generators"), message, fix, item.name))
    return violations


def _get_external_violations(rule: str, repository: RepositoryView) -> Iterable[Violation]:
    return repository.external_violations.get(rule, ())


RULES: Final = (
    AnalysisRule(
        IMMUTABLE_RULE,
        Severity.ERROR,
        "An immutable field changes",
        "The API server rejects the update. Every sync fails with `field is immutable` until the object is deleted.",
        "Both sides are rendered, before and after the change, and compared with the API server's own validation of "
        "updates. Hooks, and objects replaced by force, are excluded. With ServerSideApply=true this includes a "
        "strategy Recreate where none was set: the default rollingUpdate stays, and is rejected together with it.",
        "Revert the change, rename the object, or recreate it with the sync options Force=true,Replace=true. If "
        "Kustomize adds labels to selectors: set includeSelectors: false.",
        partial(_get_external_violations, IMMUTABLE_RULE),
    ),
    AnalysisRule(
        LOST_APPLICATIONS_RULE,
        Severity.WARNING,
        "An ApplicationSet generates fewer Applications than before",
        "Its controller deletes the others, and they delete everything they deployed.",
        "Only ApplicationSets whose names follow from Git alone are checked: list generators, and folders of this "
        "repository. The names before and after the change are compared.",
        "Keep the elements or folders, or set applicationsSync: create-update and preserveResourcesOnDeletion: true.",
        partial(_get_external_violations, LOST_APPLICATIONS_RULE),
    ),
)

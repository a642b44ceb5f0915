"""Applies `globalProjects` of argocd-cm: projects that inherit from others.

In: projects by name, the setting. Out: the projects with inherited rules. Never: removes a rule of a project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from argosy.errors import UserError
from argosy.gitops.application.project import KindPattern, Project
from argosy.kube.objects import load
from argosy.kube.objects.field_reader import Fields
from argosy.kube.schema.selectors.labels import LabelSelector, from_label_selector

GLOBAL: Final = "globalProjects"
_ENTRY_FIELDS: Final = ("labelSelector", "projectName")
_SELECTOR_FIELDS: Final = ("matchLabels", "matchExpressions")


def inherited(projects: Mapping[str, Project], argocd_cm: Mapping[str, str]) -> dict[str, Project]:
    """Apply the setting. Raises UserError if it is invalid. A missing project gives nothing."""
    made = dict(projects)
    for selector, name in _rules(argocd_cm.get(GLOBAL, "")):
        if (giver := projects.get(name)) is None:
            continue
        for each in projects.values():
            if each.name != name and selector.matches(each.labels):
                made[each.name] = _with(made[each.name], giver)
    return made


def deny_everything(project: Project) -> Project:
    """Return the project without permissions, because its inherited restrictions are unknown."""
    return replace(
        project,
        source_repos=(),
        source_namespaces=(),
        destinations=(),
        service_accounts=(),
        cluster_allowed=(),
        namespaced_allowed=(),
    )


def givers(project: Project, argocd_cm: Mapping[str, str]) -> list[str]:
    """Return the names of the projects that a project inherits from. Raises UserError if the setting is invalid."""
    found = [name for selector, name in _rules(argocd_cm.get(GLOBAL, "")) if selector.matches(project.labels)]
    return [name for name in dict.fromkeys(found) if name != project.name]


def _rules(text: str) -> list[tuple[LabelSelector, str]]:
    where = f"argocd-cm: {GLOBAL}"
    given = load(text, where=where)
    if given is not None and not isinstance(given, list):
        raise UserError("must be a list of labelSelector and projectName entries; write each after a dash", where=where)
    found = []
    for place, each in enumerate(given or ()):
        fields = Fields(each, where, f"[{place}]")
        selector = fields.fields("labelSelector")
        _require_known(fields, _ENTRY_FIELDS, where, f"[{place}]")
        _require_known(selector, _SELECTOR_FIELDS, where, f"[{place}].labelSelector")
        if selector.values:  # argo: an empty selector matches no project, not all
            found.append((_selector(selector), fields.text("projectName")))
    return found


def _require_known(given: Fields, known: tuple[str, ...], where: str, path: str) -> None:
    """Raise UserError for an unknown field: a misspelt selector would silently restrict nothing."""
    for name in given.values:
        if name not in known:
            raise UserError(f"{path} has no field {str(name)[:40]!r}; write {' or '.join(known)}", where=where)


def _selector(given: Fields) -> LabelSelector:
    expressions = [
        {"key": each.text("key"), "operator": each.text("operator"), "values": each.all_texts("values")}
        for each in given.all_fields("matchExpressions")
    ]
    return from_label_selector({"matchLabels": given.texts("matchLabels"), "matchExpressions": expressions})


def _with(project: Project, giver: Project) -> Project:
    """argo: add these parts of the global project."""
    return replace(
        project,
        source_repos=project.source_repos + giver.source_repos,
        destinations=project.destinations + giver.destinations,
        service_accounts=project.service_accounts + giver.service_accounts,
        cluster_allowed=project.cluster_allowed + giver.cluster_allowed,
        cluster_denied=project.cluster_denied + giver.cluster_denied,
        namespaced_allowed=_either(project.namespaced_allowed, giver.namespaced_allowed),
        namespaced_denied=project.namespaced_denied + giver.namespaced_denied,
        windows=project.windows + giver.windows,
    )


def _either(
    one: tuple[KindPattern, ...] | None, other: tuple[KindPattern, ...] | None
) -> tuple[KindPattern, ...] | None:
    return one if not other else (one or ()) + other

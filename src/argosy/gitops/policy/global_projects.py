"""Applies `globalProjects` of argocd-cm: projects that inherit from others.

In: projects by name, the setting. Out: the projects with inherited rules. Never: removes a rule of a project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from argosy.errors import UserError
from argosy.gitops.application.project_spec import KindPattern, Project
from argosy.kube.objects import read_yaml
from argosy.kube.objects.strict_typed_field_reader import FieldReader
from argosy.kube.schema.selectors.labels import LabelSelector, label_selector_from_wire

GLOBAL_PROJECTS_KEY: Final = "globalProjects"
_ENTRY_FIELDS: Final = ("labelSelector", "projectName")
_SELECTOR_FIELDS: Final = ("matchLabels", "matchExpressions")


def apply_global_projects(projects: Mapping[str, Project], argocd_cm: Mapping[str, str]) -> dict[str, Project]:
    """Apply the setting. Raises UserError if it is invalid. A missing project gives nothing."""
    effective_projects = dict(projects)
    for selector, name in _read_rules(argocd_cm.get(GLOBAL_PROJECTS_KEY, "")):
        if (global_project := projects.get(name)) is None:
            continue
        for project in projects.values():
            if project.name != name and selector.matches(project.labels):
                effective_projects[project.name] = _merge_projects(effective_projects[project.name], global_project)
    return effective_projects


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


def list_global_projects(project: Project, argocd_cm: Mapping[str, str]) -> list[str]:
    """Return the names of the projects that a project inherits from. Raises UserError if the setting is invalid."""
    matching_names = [
        name
        for selector, name in _read_rules(argocd_cm.get(GLOBAL_PROJECTS_KEY, ""))
        if selector.matches(project.labels)
    ]
    return [name for name in dict.fromkeys(matching_names) if name != project.name]


def _read_rules(text: str) -> list[tuple[LabelSelector, str]]:
    where = f"argocd-cm: {GLOBAL_PROJECTS_KEY}"
    entries = read_yaml(text, where=where)
    if entries is not None and not isinstance(entries, list):
        raise UserError("must be a list of labelSelector and projectName entries; write each after a dash", where=where)
    rules = []
    for index, entry in enumerate(entries or ()):
        fields = FieldReader(entry, where, f"[{index}]")
        selector = fields.read_map("labelSelector")
        _require_known(fields, _ENTRY_FIELDS, where, f"[{index}]")
        _require_known(selector, _SELECTOR_FIELDS, where, f"[{index}].labelSelector")
        if selector.values:  # argo: an empty selector matches no project, not all
            rules.append((_read_selector(selector), fields.read_text("projectName")))
    return rules


def _require_known(fields: FieldReader, known_names: tuple[str, ...], where: str, path: str) -> None:
    """Raise UserError for an unknown field: a misspelt selector would silently restrict nothing."""
    for name in fields.values:
        if name not in known_names:
            raise UserError(f"{path} has no field {str(name)[:40]!r}; write {' or '.join(known_names)}", where=where)


def _read_selector(fields: FieldReader) -> LabelSelector:
    expressions = [
        {
            "key": expression.read_text("key"),
            "operator": expression.read_text("operator"),
            "values": expression.read_text_list("values"),
        }
        for expression in fields.read_map_list("matchExpressions")
    ]
    return label_selector_from_wire(
        {"matchLabels": fields.read_text_map("matchLabels"), "matchExpressions": expressions}
    )


def _merge_projects(project: Project, global_project: Project) -> Project:
    """argo: add these parts of the global project."""
    return replace(
        project,
        source_repos=project.source_repos + global_project.source_repos,
        destinations=project.destinations + global_project.destinations,
        service_accounts=project.service_accounts + global_project.service_accounts,
        cluster_allowed=project.cluster_allowed + global_project.cluster_allowed,
        cluster_denied=project.cluster_denied + global_project.cluster_denied,
        namespaced_allowed=_merge_patterns(project.namespaced_allowed, global_project.namespaced_allowed),
        namespaced_denied=project.namespaced_denied + global_project.namespaced_denied,
        windows=project.windows + global_project.windows,
    )


def _merge_patterns(
    left: tuple[KindPattern, ...] | None, right: tuple[KindPattern, ...] | None
) -> tuple[KindPattern, ...] | None:
    return left if not right else (left or ()) + right

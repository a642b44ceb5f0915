"""Inheritance of project rules from global projects."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.gitops.application.project_spec import Project, read_project
from argosy.gitops.policy.global_projects import apply_global_projects
from argosy.gitops.policy.projects import permits_kind, permits_source
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import SECRET

SETTING = """
- labelSelector:
    matchExpressions:
    - {key: stage, operator: In, values: [prod]}
  projectName: house
"""


def project(name: str, stage: str = "", **spec: Any) -> Project:
    labels = {"stage": stage} if stage else {}
    return read_project({"metadata": {"name": name, "labels": labels}, "spec": spec})


HOUSE = project(
    "house",
    sourceRepos=["https://git.example/house"],
    namespaceResourceBlacklist=[{"group": "", "kind": "Secret"}],
    clusterResourceWhitelist=[{"group": "*", "kind": "Namespace"}],
    syncWindows=[{"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}],
)


def test_project_with_matching_labels_inherits_lists_and_windows() -> None:
    shop = project("shop", "prod", sourceRepos=["https://git.example/shop"])
    projects = apply_global_projects(
        {"house": HOUSE, "shop": shop, "lab": project("lab", "dev")}, {"globalProjects": SETTING}
    )
    assert permits_source(projects["shop"], "https://git.example/shop")
    assert permits_source(projects["shop"], "https://git.example/house")
    assert not permits_kind(projects["shop"], SECRET, is_namespaced=True)
    assert permits_kind(projects["shop"], GroupKind("", "Namespace"), is_namespaced=False)
    assert len(projects["shop"].windows) == 1
    assert permits_kind(projects["lab"], SECRET, is_namespaced=True) and not projects["lab"].windows
    assert projects["house"] == HOUSE


@pytest.mark.parametrize(
    "text",
    ["", "[]", "- {projectName: house}", "- {labelSelector: {matchLabels: {stage: prod}}, projectName: gone}"],
)
def test_projects_are_unchanged_without_a_usable_global_project(text: str) -> None:
    projects = {"house": HOUSE, "shop": project("shop", "prod")}
    assert apply_global_projects(projects, {"globalProjects": text}) == projects


@pytest.mark.parametrize(
    "text",
    [
        "a: b",
        "[1",
        "- 1",
        "- {labelSelector: 1}",
        "- {labelSelector: {matchLabels: [a]}}",
        "- {labelSelector: {matchExpressions: [{key: a, operator: Near}]}}",
    ],
)
def test_invalid_global_projects_setting_raises_user_error(text: str) -> None:
    with pytest.raises(UserError):
        apply_global_projects({"house": HOUSE}, {"globalProjects": text})

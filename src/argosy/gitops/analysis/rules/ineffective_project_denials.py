"""Rules about AppProjects.

In: a repository. Out: violations. Never: reports a denial as ineffective if a repository exists that it denies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from argosy.gitops.analysis.live_view import LiveApplication
from argosy.gitops.analysis.repository_view import ManifestWithLocations, RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import FileLocation, Severity, Violation
from argosy.gitops.application.project_spec import Project, read_project
from argosy.gitops.policy.ineffective_repository_denials import ShallowDenial, find_shallow_denials
from argosy.kube.well_known_kinds import APP_PROJECT

SHALLOW_DENIAL_RULE: Final = "AGY118"


def find_ineffective_live_denials(
    projects: Mapping[str, Project], apps: Iterable[LiveApplication]
) -> tuple[Violation, ...]:
    """Find ineffective denials in projects of a cluster, with the repositories that their Applications use."""
    used: dict[str, list[str]] = {}
    for app in apps:
        used.setdefault(app.app.project, []).extend(source.repo_url for source in app.app.sources)
    return tuple(
        _build_violation(FileLocation(f"AppProject/{project.name}"), f"AppProject/{project.name}", denial)
        for project in projects.values()
        if project.wire
        for denial in find_shallow_denials(read_project(project.wire).source_repos, used.get(project.name, ()))
    )


def _find_ineffective_denials(repository: RepositoryView) -> Iterator[Violation]:
    for item in (*repository.unrendered_manifests, *(item for _, item in repository.list_objects())):
        if item.group_kind == APP_PROJECT:
            yield from _find_project_denials(repository, item)


def _find_project_denials(repository: RepositoryView, item: ManifestWithLocations) -> Iterator[Violation]:
    apps = (declaration.app for declaration in repository.applications)
    used = [source.repo_url for app in apps if app.project == item.key.name for source in app.sources]
    patterns = [pattern for pattern in item.get_list("spec", "sourceRepos") if isinstance(pattern, str)]
    for denial in find_shallow_denials(patterns, used):
        index = item.get_list("spec", "sourceRepos").index(denial.pattern)
        yield _build_violation(item.find_location("spec", "sourceRepos", index), item.name, denial)


def _build_violation(location: FileLocation, name: str, denial: ShallowDenial) -> Violation:
    effect = f"does not deny {denial.repository}, which is in use" if denial.repository else "denies no repository"
    message = f"{name}: {denial.pattern!r} in sourceRepos {effect}: a star does not cross slashes"
    return Violation(location, message, f"use {denial.wider!r} to deny everything below it", name, "spec.sourceRepos")


RULES: Final = (
    AnalysisRule(
        SHALLOW_DENIAL_RULE,
        Severity.WARNING,
        "A denied repository is not denied",
        "Applications may use the repositories that the pattern was written for, and no warning is shown.",
        "A star in sourceRepos does not cross slashes, as in Argo CD. On the host of the pattern every repository has"
        " an owner before its name, so that none is matched; or a repository below the pattern is used by an"
        " Application of the project, and no pattern denies it.",
        "Use ** at the end of the pattern: !https://github.com/** denies all repositories of that host.",
        _find_ineffective_denials,
    ),
)

"""Rules about AppProjects.

In: a repository. Out: violations. Never: reports a denial as ineffective if a repository exists that it denies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from argosy.gitops.analysis.live_view import LiveApp
from argosy.gitops.analysis.repository import Item, Repository
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.violation import Place, Severity, Sight
from argosy.gitops.application.project import Project, read_project
from argosy.gitops.policy.shallow_denials import ShallowDenial, find_shallow_denials

SHALLOW: Final = "AGY118"
_PROJECT: Final = ("argoproj.io", "AppProject")


def find_live_denials(projects: Mapping[str, Project], apps: Iterable[LiveApp]) -> tuple[Sight, ...]:
    """Find ineffective denials in projects of a cluster, with the repositories that their Applications use."""
    used: dict[str, list[str]] = {}
    for app in apps:
        used.setdefault(app.app.project, []).extend(source.repo_url for source in app.app.sources)
    return tuple(
        _sight(Place(f"AppProject/{project.name}"), f"AppProject/{project.name}", denial)
        for project in projects.values()
        if project.wire
        for denial in find_shallow_denials(read_project(project.wire).source_repos, used.get(project.name, ()))
    )


def _find_denials(repository: Repository) -> Iterator[Sight]:
    for item in (*repository.loose, *(item for _, item in repository.objects())):
        if item.kind == _PROJECT:
            yield from _denials_of(repository, item)


def _denials_of(repository: Repository, item: Item) -> Iterator[Sight]:
    apps = (written.app for written in repository.applications)
    used = [source.repo_url for app in apps if app.project == item.key.name for source in app.sources]
    patterns = [pattern for pattern in item.all("spec", "sourceRepos") if isinstance(pattern, str)]
    for denial in find_shallow_denials(patterns, used):
        place = item.all("spec", "sourceRepos").index(denial.pattern)
        yield _sight(item.at("spec", "sourceRepos", place), item.name, denial)


def _sight(place: Place, name: str, denial: ShallowDenial) -> Sight:
    what = f"does not deny {denial.repository}, which is in use" if denial.repository else "denies no repository"
    message = f"{name}: {denial.pattern!r} in sourceRepos {what}: a star does not cross slashes"
    return Sight(place, message, f"use {denial.wider!r} to deny everything below it", name, "spec.sourceRepos")


RULES: Final = (
    Rule(
        SHALLOW,
        Severity.WARNING,
        "A denied repository is not denied",
        "Applications may use the repositories that the pattern was written for, and no warning is shown.",
        "A star in sourceRepos does not cross slashes, as in Argo CD. On the host of the pattern every repository has"
        " an owner before its name, so that none is matched; or a repository below the pattern is used by an"
        " Application of the project, and no pattern denies it.",
        "Use ** at the end of the pattern: !https://github.com/** denies all repositories of that host.",
        _find_denials,
    ),
)

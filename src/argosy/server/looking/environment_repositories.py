"""Repositories with environments, found by the Applications that somebody may see.

In: a request. Out: a repository at the commit that its Applications follow. Never: a repository that the project of its
Application does not permit; one that only Applications of others name; a write.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from argosy.desk.applications.app_row import AppRow
from argosy.desk.promoting.mirror_repository import MirrorRepository
from argosy.desk.promoting.surveying import NoEnvironments, Survey
from argosy.model.errors import ArgosyError, UserError
from argosy.policy.projects import permits_source
from argosy.report.wire import mapping
from argosy.server.asked import Asked
from argosy.server.looking.owned import visible_applications

MAX_REPOSITORIES: Final = 5  # that are looked into for one page
MAX_REFS_AGE_SECONDS: Final = 30.0  # that a host's list of branches counts
FETCH_SECONDS: Final = 20.0
MAX_REMEMBERED: Final = 1000


@dataclass(frozen=True)
class Candidate:
    """A repository that Applications deliver from, and the revision that most of them follow."""

    url: str
    project: str
    ref: str
    environments: int  # that its Applications seem to be of


@dataclass(frozen=True)
class FoundRepository:
    repository: MirrorRepository
    url: str
    commit: str
    others: tuple[str, ...] = ()  # repositories that seem to have environments, too


class WithoutEnvironments(set[tuple[str, str]]):
    """Repositories and commits that are known to have none."""


def find_candidates(asked: Asked) -> list[Candidate]:
    """Those with the most environments first: Applications of dev, staging and production."""
    rules, lookout = asked.site.lookout.rules, asked.site.lookout
    rows: dict[str, list[AppRow]] = {}
    for app in visible_applications(asked):
        row = lookout.row(str(app["metadata"]["namespace"]), str(app["metadata"]["name"]))
        project = rules.projects.get(row.project) if row else None
        if row is None or project is None or row.namespace != asked.site.desk.control or not _has_git_path(app):
            continue
        if permits_source(project, row.repo):
            rows.setdefault(row.repo, []).append(row)

    candidates = (_candidate(url, found) for url, found in rows.items())
    return sorted(candidates, key=lambda candidate: (-candidate.environments, candidate.url))


def _candidate(url: str, rows: list[AppRow]) -> Candidate:
    ref = Counter(row.ref for row in rows).most_common(1)[0][0]
    return Candidate(url, rows[0].project, ref, len({row.environment for row in rows if row.environment}))


def _has_git_path(app: dict[str, object]) -> bool:
    """argo: promotions know Applications with one source, a folder of a Git repository."""
    source = mapping(mapping(app.get("spec")).get("source"))
    return bool(source.get("repoURL") and source.get("path") and not source.get("chart"))


async def find_repository(asked: Asked) -> FoundRepository | None:
    """The first candidate with environments; None where none has. Raises UserError where one cannot be read."""
    problem: UserError | None = None
    candidates = find_candidates(asked)
    for place, candidate in enumerate(candidates[:MAX_REPOSITORIES], 1):
        try:
            found = await _open(asked, candidate)
            if await _has_environments(asked, found):
                others = tuple(each.url for each in candidates[place:] if each.environments > 1)
                return replace(found, others=others)
        except TimeoutError:
            problem = problem or UserError(f"was not read within {FETCH_SECONDS:.0f} s", where=candidate.url)
        except ArgosyError as error:
            problem = problem or UserError(str(error), where=candidate.url)
    if problem is not None:
        raise problem
    return None


async def _open(asked: Asked, candidate: Candidate) -> FoundRepository:
    mirror = asked.site.lookout.rules.repositories.mirror(candidate.url, project=candidate.project)
    async with asyncio.timeout(FETCH_SECONDS):
        checkout = await mirror.checkout(candidate.ref or "HEAD", max_age=MAX_REFS_AGE_SECONDS)
    commit = checkout.revision
    repository = MirrorRepository(mirror.folder, mirror.objects, commit, candidate.url)
    return FoundRepository(repository, candidate.url, commit)


async def _has_environments(asked: Asked, found: FoundRepository) -> bool:
    known, key = asked.site.part(WithoutEnvironments), (found.url, found.commit)
    if key in known:
        return False
    try:
        await asyncio.to_thread(_read_way, found.repository)
    except NoEnvironments:
        if len(known) >= MAX_REMEMBERED:
            known.clear()
        known.add(key)
        return False
    return True


def _read_way(repository: MirrorRepository) -> None:
    survey = Survey(repository, lambda _: None)
    try:
        _ = survey.way
    finally:
        survey.close()

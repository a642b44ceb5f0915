"""Finds repositories with environments through the Applications that the caller may see.

In: a request. Out: a repository at the commit that its Applications track. Never: reads a repository that the
Application's project does not permit or that only hidden Applications use; writes; makes a page wait for a slow host.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from argosy.errors import ArgosyError, UserError
from argosy.features.promote.environments_at_commit import NoEnvironments, RepositorySnapshot
from argosy.gitops.application_client.app_row import AppRow
from argosy.gitops.policy.projects import permits_source
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.gitops.workspace.read_only_mirror_repository import MirrorRepository
from argosy.web.objects_of_visible_applications import list_visible_applications
from argosy.web.request import RequestContext

MAX_REPOSITORIES: Final = 5  # searched for one page
MAX_REFS_AGE_SECONDS: Final = 30.0  # of a host's cached list of branches
PAGE_WAIT_SECONDS: Final = 2.5  # for all repositories together
FETCH_SECONDS: Final = 20.0
RETRY_SECONDS: Final = 60.0  # after a failed fetch
MAX_REMEMBERED: Final = 1000


class RepositoryAddress(NamedTuple):
    url: str
    project: str
    ref: str


@dataclass(frozen=True)
class RepositoryCandidate:
    """A source repository of Applications, and the targetRevision that most of them use."""

    url: str
    project: str
    ref: str
    environments: int  # number of different environments among its Applications

    @property
    def address(self) -> RepositoryAddress:
        return RepositoryAddress(self.url, self.project, self.ref)


@dataclass(frozen=True)
class EnvironmentRepository:
    repository: MirrorRepository
    url: str
    commit: str
    project: str = ""  # of the Applications that use it
    others: tuple[str, ...] = ()  # other repositories that may have environments


@dataclass(frozen=True)
class FetchResult:
    """The fetched commit, or the problem."""

    commit: str = ""
    problem: str = ""
    retry_at: float = 0.0  # monotonic seconds


class StillFetching(UserError):
    """The first fetch of the repository is not finished."""


class RepositoryFetches:
    """Fetches repositories in the background and keeps the last results. Failures are retried later."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._results: dict[RepositoryAddress, FetchResult] = {}
        self._tasks: dict[RepositoryAddress, asyncio.Task[FetchResult]] = {}

    async def fetch_commit(self, repositories: Repositories, address: RepositoryAddress, wait_seconds: float) -> str:
        """Return the commit of the last result if a fetch takes longer. Raises UserError if it cannot be read."""
        result = self._results.get(address)
        if result is None or result.retry_at <= self._clock():
            task = self._tasks.get(address)
            if task is None:
                task = self._tasks[address] = asyncio.create_task(self._fetch(repositories, address))
            done, _ = await asyncio.wait([task], timeout=wait_seconds)
            result = task.result() if done else result
        if result is None:
            raise StillFetching("fetch in progress; try again in a moment", where=address.url)
        if result.problem:
            raise UserError(result.problem, where=address.url)
        return result.commit

    async def _fetch(self, repositories: Repositories, address: RepositoryAddress) -> FetchResult:
        try:
            result = FetchResult(await _fetch_commit(repositories, address))
        except TimeoutError:
            result = self._failure(f"fetch timed out after {FETCH_SECONDS:.0f} s")
        except ArgosyError as error:
            result = self._failure(str(error))
        finally:
            self._tasks.pop(address, None)
        while len(self._results) >= MAX_REMEMBERED:
            del self._results[next(iter(self._results))]
        self._results[address] = result
        return result

    def _failure(self, problem: str) -> FetchResult:
        return FetchResult(problem=problem, retry_at=self._clock() + RETRY_SECONDS)


async def _fetch_commit(repositories: Repositories, address: RepositoryAddress) -> str:
    mirror = repositories.mirror(address.url, project=address.project)
    async with asyncio.timeout(FETCH_SECONDS):
        checkout = await mirror.checkout(address.ref or "HEAD", max_age=MAX_REFS_AGE_SECONDS)
    return checkout.revision


def list_candidates(request: RequestContext) -> list[RepositoryCandidate]:
    """List candidates, those with the most environments (dev, staging, production) first."""
    rules, lookout = request.cluster_view.rules, request.cluster_view
    rows: dict[str, list[AppRow]] = {}
    for app in list_visible_applications(request):
        row = lookout.find_row(str(app["metadata"]["namespace"]), str(app["metadata"]["name"]))
        project = rules.projects.get(row.project) if row else None
        if (
            row is None
            or project is None
            or row.namespace != request.service.control_namespace
            or not _has_git_path(app)
        ):
            continue
        if permits_source(project, row.repo):
            rows.setdefault(row.repo, []).append(row)

    candidates = (_build_candidate(url, repository_rows) for url, repository_rows in rows.items())
    return sorted(candidates, key=lambda candidate: (-candidate.environments, candidate.url))


def _build_candidate(url: str, rows: list[AppRow]) -> RepositoryCandidate:
    ref = Counter(row.ref for row in rows).most_common(1)[0][0]
    return RepositoryCandidate(url, rows[0].project, ref, len({row.environment for row in rows if row.environment}))


def _has_git_path(app: dict[str, object]) -> bool:
    """argo: promotions support Applications with one source, a folder of a Git repository."""
    source = as_mapping(as_mapping(app.get("spec")).get("source"))
    return bool(source.get("repoURL") and source.get("path") and not source.get("chart"))


class RepositoryFinder:
    """Finds repositories with environments, and keeps what it fetched and read."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetches = RepositoryFetches(clock)
        self._commits_without_environments: set[tuple[str, str]] = set()  # URL of a repository, and commit

    async def find(self, request: RequestContext) -> EnvironmentRepository | None:
        """Return the first candidate with environments, or None. Raises UserError if a candidate cannot be read."""
        problem: UserError | None = None
        candidates = list_candidates(request)
        repositories = request.cluster_view.rules.repositories
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PAGE_WAIT_SECONDS
        for position, candidate in enumerate(candidates[:MAX_REPOSITORIES], 1):
            try:
                repository = await self._open(repositories, candidate, max(deadline - loop.time(), 0.0))
                if await self._has_environments(repository):
                    others = tuple(other.url for other in candidates[position:] if other.environments > 1)
                    return replace(repository, others=others)
            except StillFetching:
                raise  # it has priority over the others and may have environments
            except UserError as error:
                problem = problem or error
            except ArgosyError as error:
                problem = problem or UserError(str(error), where=candidate.url)
        if problem is not None:
            raise problem
        return None

    async def _open(
        self, repositories: Repositories, candidate: RepositoryCandidate, wait_seconds: float
    ) -> EnvironmentRepository:
        commit = await self._fetches.fetch_commit(repositories, candidate.address, wait_seconds)
        mirror = repositories.mirror(candidate.url, project=candidate.project)
        repository = MirrorRepository(mirror.folder, mirror.objects, commit, candidate.url)
        return EnvironmentRepository(repository, candidate.url, commit, candidate.project)

    async def _has_environments(self, repository: EnvironmentRepository) -> bool:
        known_commits, key = self._commits_without_environments, (repository.url, repository.commit)
        if key in known_commits:
            return False
        try:
            await asyncio.to_thread(_require_environments, repository.repository)
        except NoEnvironments:
            if len(known_commits) >= MAX_REMEMBERED:
                known_commits.clear()
            known_commits.add(key)
            return False
        return True


def _require_environments(repository: MirrorRepository) -> None:
    snapshot = RepositorySnapshot(repository, lambda _: None)
    try:
        _ = snapshot.pipeline
    finally:
        snapshot.close()

"""Subject, author and time of commits, by revision.

In: a reader, repository URLs and revisions. Out: texts. Never: delays a page: slow commits are left out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final

from argosy.errors import ArgosyError
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.status.history import read_deployments
from argosy.kube.objects.timestamps_and_delays import format_timestamp

CommitSummary = tuple[str, str, str]  # subject, author, time
PAGE_WAIT_SECONDS: Final = 0.25
LIVE_UPDATE_WAIT_SECONDS: Final = 3.0  # for live updates of an open page
RETRY_AFTER_SECONDS: Final = 60.0  # seconds before a failed commit is fetched again
MAX_CACHED_COMMITS: Final = 4096  # in the cache
MAX_SUBJECT_LENGTH: Final = 120  # characters of a subject
_failed_at: dict[tuple[str, str, str], float] = {}  # monotonic time of the failure
_running_fetches: dict[tuple[str, str, str], asyncio.Task[CommitSummary | None]] = {}
_commit_cache: dict[tuple[str, str, str], CommitSummary] = {}  # never expires: commits do not change


async def fetch_commits(
    reader: ApplicationReader,
    app: Application,
    revisions_by_url: Iterable[tuple[str, str]],
    timeout_seconds: float = PAGE_WAIT_SECONDS,
) -> dict[str, CommitSummary]:
    """Return commit summaries by revision, for pairs of repository URL and revision."""
    pairs = [(url, revision) for url, revision in dict.fromkeys(revisions_by_url) if _is_commit(revision)]
    summaries: dict[str, CommitSummary] = {}
    missing = []
    for url, revision in pairs:
        cached = _commit_cache.get((url, app.project, revision))
        if cached is not None:
            summaries[revision] = cached
        elif (
            time.monotonic() - _failed_at.get((url, app.project, revision), -RETRY_AFTER_SECONDS) >= RETRY_AFTER_SECONDS
        ):
            missing.append((url, revision))
    if missing:
        tasks = {revision: _fetch_commit_once(reader, app, url, revision) for url, revision in missing}
        # Slower ones are cached for the next request.
        done, _ = await asyncio.wait(tasks.values(), timeout=timeout_seconds)
        for revision, task in tasks.items():
            if task in done and (summary := task.result()):
                summaries[revision] = summary
    return summaries


def _fetch_commit_once(
    reader: ApplicationReader, app: Application, url: str, revision: str
) -> asyncio.Task[CommitSummary | None]:
    """Fetch a commit once, even if several pages request it at the same time."""
    key = (url, app.project, revision)
    task = _running_fetches.get(key)
    if task is None or task.get_loop() is not asyncio.get_running_loop():
        task = _running_fetches[key] = asyncio.create_task(_fetch_commit(reader, app, url, revision))
        task.add_done_callback(lambda _: _running_fetches.pop(key, None))
    return task


async def fetch_current_commits(
    reader: ApplicationReader, app: Application, revisions: Iterable[str], timeout_seconds: float = PAGE_WAIT_SECONDS
) -> dict[str, CommitSummary]:
    pairs = [(source.repo_url, revision) for source, revision in zip(app.sources, revisions) if not source.chart]
    return await fetch_commits(reader, app, pairs, timeout_seconds)


def is_fetching(app: Application, revisions: Iterable[str]) -> bool:
    """True if a commit is being fetched; failed fetches do not count, as they are retried later."""
    pairs = zip(app.sources, revisions)
    return any((source.repo_url, app.project, revision) in _running_fetches for source, revision in pairs)


async def fetch_deployed_commits(reader: ApplicationReader, app: Application) -> dict[str, CommitSummary]:
    pairs = [
        (str(source.get("repoURL") or ""), revision)
        for entry in read_deployments(app.status)
        for source, revision in zip(entry.sources, entry.revisions)
        if not source.get("chart")
    ]
    return await fetch_commits(reader, app, pairs)


async def _fetch_commit(reader: ApplicationReader, app: Application, url: str, revision: str) -> CommitSummary | None:
    try:
        commit = await reader.reconciler_settings.repositories.mirror(url, project=app.project).load_commit(revision)
    except (ArgosyError, OSError, LookupError, ValueError):
        if len(_failed_at) >= MAX_CACHED_COMMITS:
            _failed_at.clear()
        _failed_at[(url, app.project, revision)] = time.monotonic()
        return None
    subject = commit.message.partition("\n")[0][:MAX_SUBJECT_LENGTH]
    summary = (subject, commit.author.partition(" <")[0], format_timestamp(commit.authored_at))
    if len(_commit_cache) >= MAX_CACHED_COMMITS:
        _commit_cache.clear()
    _commit_cache[(url, app.project, revision)] = summary
    return summary


def _is_commit(revision: str) -> bool:
    return len(revision) >= 40 and all(character in "0123456789abcdef" for character in revision)

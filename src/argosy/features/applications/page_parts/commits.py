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
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.status.history import deployments
from argosy.kube.objects.timestamps import written

Told = tuple[str, str, str]  # subject, author, time
SECONDS: Final = 0.25
PATIENCE: Final = 3.0  # for live updates of an open page
AGAIN: Final = 60.0  # seconds before a failed commit is fetched again
MOST: Final = 4096  # in the cache
LONGEST: Final = 120  # characters of a subject
_failed: dict[tuple[str, str, str], float] = {}  # monotonic time of the failure
_asking: dict[tuple[str, str, str], asyncio.Task[Told | None]] = {}
_known: dict[tuple[str, str, str], Told] = {}  # never expires: commits do not change


async def commits_of(
    reader: Reader, app: Application, wanted: Iterable[tuple[str, str]], seconds: float = SECONDS
) -> dict[str, Told]:
    """Return commit summaries by revision, for pairs of repository URL and revision."""
    asked = [(url, revision) for url, revision in dict.fromkeys(wanted) if _is_commit(revision)]
    found: dict[str, Told] = {}
    unknown = []
    for url, revision in asked:
        known = _known.get((url, app.project, revision))
        if known is not None:
            found[revision] = known
        elif time.monotonic() - _failed.get((url, app.project, revision), -AGAIN) >= AGAIN:
            unknown.append((url, revision))
    if unknown:
        tasks = {revision: _asked(reader, app, url, revision) for url, revision in unknown}
        done, _ = await asyncio.wait(tasks.values(), timeout=seconds)  # slower ones are cached for the next request
        for revision, task in tasks.items():
            if task in done and (told := task.result()):
                found[revision] = told
    return found


def _asked(reader: Reader, app: Application, url: str, revision: str) -> asyncio.Task[Told | None]:
    """Fetch a commit once, even if several pages request it at the same time."""
    key = (url, app.project, revision)
    task = _asking.get(key)
    if task is None or task.get_loop() is not asyncio.get_running_loop():
        task = _asking[key] = asyncio.create_task(_told(reader, app, url, revision))
        task.add_done_callback(lambda _: _asking.pop(key, None))
    return task


async def current(
    reader: Reader, app: Application, revisions: Iterable[str], seconds: float = SECONDS
) -> dict[str, Told]:
    pairs = [(source.repo_url, revision) for source, revision in zip(app.sources, revisions) if not source.chart]
    return await commits_of(reader, app, pairs, seconds)


def is_awaited(app: Application, revisions: Iterable[str]) -> bool:
    """True if a commit is being fetched; failed fetches do not count, as they are retried later."""
    pairs = zip(app.sources, revisions)
    return any((source.repo_url, app.project, revision) in _asking for source, revision in pairs)


async def past(reader: Reader, app: Application) -> dict[str, Told]:
    pairs = [
        (str(source.get("repoURL") or ""), revision)
        for entry in deployments(app.status)
        for source, revision in zip(entry.sources, entry.revisions)
        if not source.get("chart")
    ]
    return await commits_of(reader, app, pairs)


async def _told(reader: Reader, app: Application, url: str, revision: str) -> Told | None:
    try:
        commit = await reader.rules.repositories.mirror(url, project=app.project).commit(revision)
    except (ArgosyError, OSError, LookupError, ValueError):
        if len(_failed) >= MOST:
            _failed.clear()
        _failed[(url, app.project, revision)] = time.monotonic()
        return None
    subject = commit.message.partition("\n")[0][:LONGEST]
    told = (subject, commit.author.partition(" <")[0], written(commit.at))
    if len(_known) >= MOST:
        _known.clear()
    _known[(url, app.project, revision)] = told
    return told


def _is_commit(revision: str) -> bool:
    return len(revision) >= 40 and all(sign in "0123456789abcdef" for sign in revision)

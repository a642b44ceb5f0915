"""What a rollback is about to change.

In: an Application, an entry of its history. Out: a look at what that entry deployed, beside what lives. Never: writes.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.errors import PolicyError
from argosy.gitops.application import Application, Source, read_source
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.policy.projects import forbidden_sources
from argosy.gitops.reconciler.app_state import Look
from argosy.gitops.status.history import Deployment


def check_sources(reader: Reader, app: Application, entry: Deployment) -> None:
    """What the project has forbidden since does not come back. Raises PolicyError."""
    if forbidden := forbidden_sources(reader.project(app), _sources(entry)):
        raise PolicyError("; ".join(forbidden), where=app.name)


async def look_back(reader: Reader, app: Application, entry: Deployment) -> Look:
    """With the sources of then, at the revisions of then."""
    return await reader.look(replace(app, sources=_sources(entry) or app.sources), entry.revisions)


def _sources(entry: Deployment) -> tuple[Source, ...]:
    return tuple(read_source(each, f"history entry {entry.id}") for each in entry.sources)

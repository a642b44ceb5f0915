"""Previews a rollback.

In: an Application, an entry of its history. Out: AppState of the entry against live objects. Never: writes.
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
    """Raise PolicyError if the project no longer permits a source of the entry."""
    if forbidden := forbidden_sources(reader.project(app), _sources(entry)):
        raise PolicyError("; ".join(forbidden), where=app.name)


async def look_back(reader: Reader, app: Application, entry: Deployment) -> Look:
    """Compare live objects with the entry's sources at its revisions."""
    return await reader.look(replace(app, sources=_sources(entry) or app.sources), entry.revisions)


def _sources(entry: Deployment) -> tuple[Source, ...]:
    return tuple(read_source(each, f"history entry {entry.id}") for each in entry.sources)

"""Previews a rollback.

In: an Application, an entry of its history. Out: AppState of the entry against live objects. Never: writes.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.errors import PolicyError
from argosy.gitops.application import Application, Source, read_source
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.policy.projects import list_forbidden_sources
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.status.history import DeploymentRecord


def check_entry_sources_permitted(reader: ApplicationReader, app: Application, entry: DeploymentRecord) -> None:
    """Raise PolicyError if the project no longer permits a source of the entry."""
    if forbidden := list_forbidden_sources(reader.get_project(app), _read_entry_sources(entry)):
        raise PolicyError("; ".join(forbidden), where=app.name)


async def preview_rollback(reader: ApplicationReader, app: Application, entry: DeploymentRecord) -> AppState:
    """Compare live objects with the entry's sources at its revisions."""
    entry_app = replace(app, sources=_read_entry_sources(entry) or app.sources)
    return await reader.compare(entry_app, entry.revisions, from_git=True)


def _read_entry_sources(entry: DeploymentRecord) -> tuple[Source, ...]:
    return tuple(read_source(source, f"history entry {entry.id}") for source in entry.sources)

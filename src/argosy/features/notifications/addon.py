"""Add-on with the notification controllers for Applications and NotebookValidationJobs.

In: a variant: the namespace of the settings, or empty for the default namespaces. Out: an AddOn.
Never: sends a message twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from argosy.features.notifications.commit_metadata import CommitMetadataReader
from argosy.features.notifications.controller import NotificationController
from argosy.features.notifications.settings_cache import NotificationSettingsCache
from argosy.isolation import WorkerPool
from argosy.kube.controller import AddOn
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.well_known_kinds import APPLICATION, NOTEBOOK_JOB


def make(variant: str) -> AddOn:
    pools: list[WorkerPool] = []

    def pool() -> WorkerPool:
        """Create the pool on first use, because an installation without subscriptions needs no worker."""
        if not pools:
            pools.append(WorkerPool(workers=2))
        return pools[0]

    @contextlib.asynccontextmanager
    async def run_beside(folder: Path) -> AsyncIterator[None]:
        commits.folder = folder
        try:
            yield
        finally:
            commits.close()
            for opened_pool in pools:
                await opened_pool.close()

    loader, commits = NotificationSettingsCache(variant), CommitMetadataReader()
    return AddOn(
        "notifications",
        description="sends notifications about Applications and notebooks, as configured in argocd-notifications-cm",
        controllers=[
            NotificationController(opened_pool, pool, loader, commits) for opened_pool in (APPLICATION, NOTEBOOK_JOB)
        ],
        definitions=[load_definition("applications.argoproj.io")],
        background=run_beside,
    )

"""Add-on with the notification controllers for Applications and NotebookValidationJobs.

In: a variant: the namespace of the settings, or empty for the default namespaces. Out: an AddOn.
Never: sends a message twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from argosy.features.notifications import names
from argosy.features.notifications.commit_metadata import Commits
from argosy.features.notifications.controller import Notifier
from argosy.features.notifications.settings_cache import Loader
from argosy.isolation import Pool
from argosy.kube.controller import AddOn
from argosy.kube.schema.bundled_crds import definition


def make(variant: str) -> AddOn:
    pools: list[Pool] = []

    def pool() -> Pool:
        """Create the pool on first use, because an installation without subscriptions needs no worker."""
        if not pools:
            pools.append(Pool(workers=2))
        return pools[0]

    @contextlib.asynccontextmanager
    async def beside(folder: Path) -> AsyncIterator[None]:
        commits.folder = folder
        try:
            yield
        finally:
            commits.close()
            for each in pools:
                await each.close()

    loader, commits = Loader(variant), Commits()
    return AddOn(
        "notifications",
        about="sends notifications about Applications and notebooks, as configured in argocd-notifications-cm",
        controllers=[Notifier(each, pool, loader, commits) for each in (names.APPLICATION, names.JOB)],
        definitions=[definition("applications.argoproj.io")],
        beside=beside,
    )

"""Checks before a sync: sync windows, existence of the revision, need of the override permission.

In: a reader, an Application, refs. Out: nothing, or an error with the reason. Never: waits longer than
CHECK_REFS_TIMEOUT_SECONDS for repositories: a repository that is unreachable from here is left to the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from argosy.errors import ArgosyError, PolicyError, UnknownRef
from argosy.gitops.application import Application, Source
from argosy.gitops.application_client.client import Desk, clock
from argosy.gitops.application_client.reader import Reader, open_reader
from argosy.gitops.policy.sync_windows import verdict
from argosy.kube.names import ResourceKey
from argosy.kube.objects.boolean_text import parse_switch

SECONDS: Final = 5.0  # for all sources together
OVERRIDE: Final = "application.sync.requireOverridePrivilegeForRevisionSync"  # argo: key of argocd-cm


def check_window(reader: Reader, app: Application) -> None:
    """Raise PolicyError if a sync window of the project blocks manual syncs now."""
    project = reader.project(app)
    found = verdict(project.windows, reader.rules.clusters.placed(app), clock(), is_manual=True)
    if not found.is_allowed:
        windows = f"argosy proj windows list {project.name}"
        if found.window is None:  # malformed window
            fault = f"a sync window of project {project.name!r} is malformed: {found.reason.partition('; ')[0]}"
            raise PolicyError(f"cannot sync: {fault}; correct it: {windows}", where=app.name)
        told = f"cannot sync: blocked by sync window ({found.reason})"  # argo: same message
        wait = "wait until it ends, or " if found.ends is not None else ""
        raise PolicyError(f"{told}; {wait}allow manual syncs in it: {windows}", where=app.name)


async def check_windows(desk: Desk, apps: Sequence[Application]) -> None:
    """Raise PolicyError if a sync window blocks a manual sync of any of the Applications, before any is synced.

    A project that cannot be read from here is left to the engine, where the operation waits for the window.
    """
    async with open_reader(desk) as reader:
        for app in apps:
            if reader.rules.projects.get(app.project) is not None:
                check_window(reader, app)


def needs_override(reader: Reader, app: Application, refs: Sequence[str]) -> bool:
    """argo: True if the installation requires the override permission for another revision than the tracked one."""
    found = reader.control_cache.get(ResourceKey("", "ConfigMap", reader.desk.control, "argocd-cm")) or {}
    text = str((found.get("data") or {}).get(OVERRIDE, ""))
    if not text.strip() or parse_switch(text) is False:  # an unreadable value restricts
        return False
    return any(refs) and tuple(refs) != tuple(source.ref for source in app.sources)


async def check_refs(reader: Reader, app: Application, refs: Sequence[str]) -> None:
    """argo: refuse a revision that the repository does not have."""
    wanted = [(source, ref) for source, ref in zip(app.sources, refs) if ref and not source.chart]
    try:
        async with asyncio.timeout(SECONDS):
            await asyncio.gather(*(_check_ref(reader, app, *each) for each in wanted))
    except TimeoutError:
        return


async def _check_ref(reader: Reader, app: Application, source: Source, ref: str) -> None:
    try:
        found = reader.rules.repositories
        await found.checkout(source.repo_url, ref, project=app.project, tag_prefix=source.tag_prefix)
    except UnknownRef:
        raise
    except ArgosyError:
        return

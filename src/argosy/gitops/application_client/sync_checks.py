"""Checks before a sync: sync windows, existence of the revision, need of the override permission.

In: a reader, an Application, refs. Out: nothing, or an error with the reason. Never: waits longer than
CHECK_REFS_TIMEOUT_SECONDS for repositories: a repository that is unreachable from here is left to the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from argosy.errors import ArgosyError, PolicyError, UnknownRef
from argosy.gitops.application import Application, Source
from argosy.gitops.application_client.app_state_reader import ApplicationReader, open_reader
from argosy.gitops.application_client.application_service import ApplicationService, utc_now
from argosy.gitops.policy.projects import find_signature_keys, list_forbidden_sources
from argosy.gitops.policy.sync_windows import evaluate_sync_windows
from argosy.gitops.reconciler.local_manifests import (
    LocalManifestsError,
    check_integrity_not_enforced,
    render_local_manifests,
)
from argosy.kube.objects.config_map_booleans import parse_boolean
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP

CHECK_REFS_TIMEOUT_SECONDS: Final = 5.0  # for all sources together
REQUIRE_OVERRIDE_KEY: Final = "application.sync.requireOverridePrivilegeForRevisionSync"  # argo: key of argocd-cm


def check_sync_window(reader: ApplicationReader, app: Application) -> None:
    """Raise PolicyError if a sync window of the project blocks manual syncs now."""
    project = reader.get_project(app)
    decision = evaluate_sync_windows(
        project.windows, reader.reconciler_settings.clusters.resolve_destination(app), utc_now(), is_manual=True
    )
    if not decision.is_allowed:
        advice_command = f"argosy proj windows list {project.name}"
        if decision.window is None:  # malformed window
            problem = f"a sync window of project {project.name!r} is malformed: {decision.reason.partition('; ')[0]}"
            raise PolicyError(f"cannot sync: {problem}; correct it: {advice_command}", where=app.name)
        message = f"cannot sync: blocked by sync window ({decision.reason})"  # argo: same message
        wait_hint = "wait until it ends, or " if decision.allowed_again_at is not None else ""
        raise PolicyError(f"{message}; {wait_hint}allow manual syncs in it: {advice_command}", where=app.name)


async def check_sync_windows(service: ApplicationService, apps: Sequence[Application]) -> None:
    """Raise PolicyError if a sync window blocks a manual sync of any of the Applications, before any is synced.

    A project that cannot be read from here is left to the engine, where the operation waits for the window.
    """
    async with open_reader(service) as reader:
        for app in apps:
            if reader.reconciler_settings.projects.get(app.project) is not None:
                check_sync_window(reader, app)


def check_local_manifests(reader: ApplicationReader, app: Application, texts: Sequence[str]) -> None:
    """Refuse manifests that cannot be synced: malformed or too large ones, or a project that requires signatures."""
    project = reader.reconciler_settings.projects.get(app.project)
    try:
        if project is not None:
            check_integrity_not_enforced(project, app.sources)
    except LocalManifestsError as error:
        raise PolicyError(str(error), where=app.name) from error
    render_local_manifests(texts)


def needs_override_permission(reader: ApplicationReader, app: Application, refs: Sequence[str]) -> bool:
    """argo: True if the installation requires the override permission for another revision than the tracked one."""
    config_map = reader.control_cache.get(ResourceKey(*CONFIG_MAP, reader.service.control_namespace, "argocd-cm")) or {}
    text = str((config_map.get("data") or {}).get(REQUIRE_OVERRIDE_KEY, ""))
    if not text.strip() or parse_boolean(text) is False:  # an unreadable value restricts
        return False
    return any(refs) and tuple(refs) != tuple(source.ref for source in app.sources)


async def check_refs_exist(reader: ApplicationReader, app: Application, refs: Sequence[str]) -> None:
    """argo: refuse a revision that the repository does not have."""
    if any(refs):
        await resolve_refs(reader, app, refs)


async def resolve_refs(reader: ApplicationReader, app: Application, refs: Sequence[str]) -> tuple[str, ...]:
    """Return the commits of these refs, or of the Application's own; none if a commit is not known here.

    Also none if a project requires signatures: then the engine resolves the refs. Raises UnknownRef if a repository
    does not have one of the given refs.
    """
    if list_forbidden_sources(reader.get_project(app), app.sources):
        return ()  # the engine refuses the operation without reading the repository
    wanted_refs = [refs[index] if index < len(refs) else "" for index in range(len(app.sources))]
    try:
        async with asyncio.timeout(CHECK_REFS_TIMEOUT_SECONDS):
            commits = await asyncio.gather(*map(partial(_resolve_ref, reader, app), app.sources, wanted_refs))
    except TimeoutError:
        return ()
    return tuple(commits) if all(commits) else ()


async def _resolve_ref(reader: ApplicationReader, app: Application, source: Source, ref: str) -> str:
    if source.chart:
        return ""
    try:
        repositories = reader.reconciler_settings.repositories
        checkout = await repositories.checkout(
            source.repo_url, ref or source.ref, project=app.project, tag_prefix=source.tag_prefix
        )
    except UnknownRef:
        if ref:
            raise
        return ""
    except ArgosyError:
        return ""
    if find_signature_keys(reader.get_project(app), source.repo_url) is not None:
        return ""  # the engine must know the ref: if it is an annotated tag, the tag is verified, not its commit
    return checkout.revision

"""Finds the commit that removed an object or a field from Git.

In: causes, the revision of the last sync. Out: the same causes with file and commit. Never: fails because the older
revision no longer renders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from argosy.errors import ArgosyError
from argosy.gitops.analysis.difference_cause_detection import REMOVED_FROM_GIT
from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.local_source_override import LOCAL_REVISION
from argosy.gitops.reconciler.desired_state_values import DesiredState
from argosy.gitops.source.git.blame import Blame
from argosy.gitops.status.status_json_conversions import as_mappings
from argosy.kube.resource_key import ResourceKey

Causes = Mapping[str, Cause]


async def add_removal_commits(
    reader: ApplicationReader, app: Application, desired: DesiredState, causes_by_key: Mapping[ResourceKey, Causes]
) -> dict[ResourceKey, Causes]:
    """Add removal commits, for an Application with one source that was last synced at another revision."""
    removals = [
        (key, pointer)
        for key, removal_commits in causes_by_key.items()
        for pointer, cause in removal_commits.items()
        if _is_removal(cause)
    ]
    synced_revision = _read_last_deployed_revision(app)
    if (
        not removals
        or not synced_revision
        or desired.revisions in ((synced_revision,), (LOCAL_REVISION,))
        or len(app.sources) != 1
    ):
        return dict(causes_by_key)
    try:
        older = await reader.render_desired_state(app, (synced_revision,))
        removal_commits = {
            removal: await _find_removal_commit(reader, app, older, desired, *removal) for removal in removals
        }
    except ArgosyError:
        return dict(causes_by_key)
    return {
        key: {
            pointer: _with_removal_commit(cause, removal_commits.get((key, pointer)))
            for pointer, cause in causes.items()
        }
        for key, causes in causes_by_key.items()
    }


def _is_removal(cause: Cause) -> bool:
    return cause.kind is CauseKind.PRUNE or (cause.kind is CauseKind.GIT_CHANGE and cause.text == REMOVED_FROM_GIT)


def _read_last_deployed_revision(app: Application) -> str:
    """Return the revision of the last deployment; empty if there is none."""
    history = as_mappings(app.status.get("history"))
    return str(history[-1].get("revision") or "") if history else ""


async def _find_removal_commit(
    reader: ApplicationReader,
    app: Application,
    older: DesiredState,
    desired: DesiredState,
    key: ResourceKey,
    pointer: str,
) -> tuple[str, Blame] | None:
    """Return the file that had the value, and the latest commit that changed the file since."""
    origin = next(
        (
            field_origin
            for render_result in older.rendered
            if (field_origin := render_result.origins.find(key, pointer))
        ),
        None,
    )
    if origin is None or origin.repository or app.sources[0].chart:  # the versions of a chart have no commits
        return None
    mirror = reader.reconciler_settings.repositories.mirror(app.sources[0].repo_url, project=app.project)
    commit = await mirror.find_last_change(older.revisions[0], desired.revisions[0], origin.file)
    return (origin.file, commit) if commit else None


def _with_removal_commit(cause: Cause, removal_commit: tuple[str, Blame] | None) -> Cause:
    if removal_commit is None:
        return cause
    file, commit = removal_commit
    return replace(cause, file=file, revision=commit.revision, author=commit.author, subject=commit.subject)

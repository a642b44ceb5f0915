"""Finds the commit that removed an object or a field from Git.

In: causes, the revision of the last sync. Out: the same causes with file and commit. Never: fails because the older
revision no longer renders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from argosy.errors import ArgosyError
from argosy.gitops.analysis.cause import Cause, CauseKind
from argosy.gitops.analysis.causes import GONE
from argosy.gitops.application import Application
from argosy.gitops.application_client.reader import LOCAL, Reader
from argosy.gitops.reconciler.desired_state import Assembled
from argosy.gitops.source.git.blame import Blame
from argosy.gitops.status.wire_format import mappings
from argosy.kube.names import ResourceKey

Causes = Mapping[str, Cause]


async def removed(
    reader: Reader, app: Application, assembled: Assembled, told: Mapping[ResourceKey, Causes]
) -> dict[ResourceKey, Causes]:
    """Add removal commits, for an Application with one source that was last synced at another revision."""
    gone = [(key, at) for key, found in told.items() for at, each in found.items() if _is_gone(each)]
    before = _synced(app)
    if not gone or not before or assembled.revisions in ((before,), (LOCAL,)) or len(app.sources) != 1:
        return dict(told)
    try:
        older = await reader.assemble(app, (before,))
        found = {place: await _found(reader, app, older, assembled, *place) for place in gone}
    except ArgosyError:
        return dict(told)
    return {
        key: {at: _signed(each, found.get((key, at))) for at, each in causes.items()} for key, causes in told.items()
    }


def _is_gone(cause: Cause) -> bool:
    return cause.kind is CauseKind.PRUNE or (cause.kind is CauseKind.YOUR_CHANGE and cause.text == GONE)


def _synced(app: Application) -> str:
    """Return the revision of the last deployment; empty if there is none."""
    history = mappings(app.status.get("history"))
    return str(history[-1].get("revision") or "") if history else ""


async def _found(
    reader: Reader, app: Application, older: Assembled, assembled: Assembled, key: ResourceKey, pointer: str
) -> tuple[str, Blame] | None:
    """Return the file that had the value, and the latest commit that changed the file since."""
    origin = next((found for part in older.rendered if (found := part.origins.find(key, pointer))), None)
    if origin is None or origin.repository:
        return None
    mirror = reader.rules.repositories.mirror(app.sources[0].repo_url, project=app.project)
    commit = await mirror.last_change(older.revisions[0], assembled.revisions[0], origin.file)
    return (origin.file, commit) if commit else None


def _signed(cause: Cause, found: tuple[str, Blame] | None) -> Cause:
    if found is None:
        return cause
    file, commit = found
    return replace(cause, file=file, revision=commit.revision, author=commit.author, subject=commit.subject)

"""Examines one Application: causes of differing fields, unhealthy objects, and the branch it should track.

In: a reader, an Application. Out: a LiveApp, and the cluster objects read for it. Never: writes; reports an object as
missing that is only not readable.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.errors import ArgosyError, RenderError, UnknownRef
from argosy.features.doctor.optional_reads import Asking
from argosy.gitops.analysis.cause import Cause, CauseKind
from argosy.gitops.analysis.live_view import Differs, LiveApp, LiveRow
from argosy.gitops.application import Application
from argosy.gitops.application_client.difference_causes import default_branch, explained
from argosy.gitops.application_client.differences import Differing, differing
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.application_client.summary import rows
from argosy.gitops.application_client.unmet_conditions import unwell
from argosy.gitops.diff import readable
from argosy.gitops.reconciler.app_state import Look
from argosy.gitops.reconciler.unknown_state import invalid
from argosy.gitops.source.git.refs import SHORT_COMMIT
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

SECRET: Final = GroupKind("", "Secret")
WELL: Final = ("Healthy", "Suspended")


@dataclass(frozen=True)
class Seen:
    """`app_state` is None if the Application could not be compared."""

    live: LiveApp
    look: Look | None = None
    objects: dict[ResourceKey, Manifest] = field(default_factory=dict)


def first_sight(app: Application, title: str = "") -> LiveApp:
    """Build a LiveApp from the status only."""
    found = tuple(LiveRow(row.key, row.status, row.health, row.wave, row.hook, row.message) for row in rows(app))
    return LiveApp(app, found, title=title)


def is_at_rest(app: LiveApp) -> bool:
    """True if Synced, healthy, without conditions and without a running operation."""
    return app.sync == "Synced" and app.health in WELL and not app.conditions and not app.is_busy


def urgency(app: Application) -> tuple[bool, bool]:
    """Sort key: errors first, never synced last, because not all may be examined in time."""
    has_error = any(str(each.get("type")).endswith("Error") for each in mappings(app.status.get("conditions")))
    is_new = app.state is None and not app.status.get("history")
    return not has_error, is_new


async def look_at(reader: Reader, app: Application, asking: Asking, title: str = "") -> Seen:
    live = first_sight(app, title)
    live = replace(live, default_branch=await _other_branch(reader, app))
    if not app.destination.is_here:
        asking.note(f"{app.name} goes to another cluster: only its status was read")
        return Seen(live)
    if invalid(app, reader.rules.projects.get(app.project), reader.rules):
        return Seen(live)  # argo: an invalid spec is not compared
    try:
        look = await reader.look(app)
    except (RenderError, UnknownRef) as error:
        return Seen(replace(live, unrendered=await _unrendered(reader, app, error)))
    except ArgosyError as error:
        asking.note(f"{app.name} cannot be compared from here: {error}")
        return Seen(live)
    if hidden := reader.hidden(app, look):
        asking.note(f"{app.name} cannot be compared from here: you may not read its {', '.join(hidden)}")
        return Seen(live)
    live = replace(live, fields=await _fields(reader, app, look), open_secrets=tuple(_open_secrets(look)))
    if live.health not in WELL or live.is_busy:
        live = replace(live, blockers=tuple(await _blockers(reader, app, asking)))
    return Seen(live, look, dict(look.live))


async def _fields(reader: Reader, app: Application, look: Look) -> tuple[Differs, ...]:
    found = differing(look.comparison, reader.rules.compare.masked_annotations)
    causes = await explained(reader, app, look, found, is_brief=True)
    live = {pair.key: pair.compared or pair.live or {} for pair in look.comparison.pairs}
    return tuple(
        Differs(each.key, pointer, cause, readable(pointer, live[each.key]))
        for each in found
        for pointer, cause in _causes(each, causes.get(each.key, {}))
    )


def _causes(found: Differing, told: object) -> list[tuple[str, Cause]]:
    known = mapping(told)
    unknown = Cause(CauseKind.UNKNOWN, "unknown cause")
    return [(each.pointer, known.get(each.pointer, unknown)) for each in found.fields]


def _open_secrets(look: Look) -> list[str]:
    """List Secrets that are in Git with their values."""
    found = []
    for each in look.assembled.desired:
        is_secret = (each.get("apiVersion"), each.get("kind")) == ("v1", SECRET.kind)
        if is_secret and any(value for part in ("data", "stringData") for value in mapping(each.get(part)).values()):
            found.append(f"Secret/{each['metadata'].get('name', '')}")
    return found


async def _blockers(reader: Reader, app: Application, asking: Asking) -> list[str]:
    try:
        return await unwell(reader, app)
    except (ArgosyError, TimeoutError) as error:
        asking.note(f"the objects of {app.name} cannot be read: {error}")
        return []


async def _unrendered(reader: Reader, app: Application, error: ArgosyError) -> Cause:
    elsewhere = await default_branch(reader, app)
    text = str(error).partition("; ")[0]
    if elsewhere.branch and elsewhere.desired:
        told = f"{elsewhere.ref} cannot be rendered, and {elsewhere.branch} can: {text}"
        return Cause(CauseKind.STALE_BRANCH, told, f"argosy app set {app.name} --revision {elsewhere.branch}")
    return Cause(CauseKind.UNKNOWN, text)


async def _other_branch(reader: Reader, app: Application) -> str:
    """Return the repository's default branch if the Application tracks another one; tags and commits are intended."""
    source = app.sources[0] if len(app.sources) == 1 else None
    if source is None or source.chart:
        return ""
    try:
        async with asyncio.timeout(5.0):
            there = await reader.rules.repositories.mirror(source.repo_url, project=app.project).refs(max_age=60.0)
    except (ArgosyError, TimeoutError):
        return ""
    branch, mine = there.default_branch, source.ref.removeprefix("refs/heads/")
    is_chosen = mine not in there.branches and (there.find(mine) is not None or SHORT_COMMIT.fullmatch(mine))
    return "" if is_chosen or mine in (branch, "HEAD", "") else branch


__all__ = ["Seen", "first_sight", "is_at_rest", "look_at"]

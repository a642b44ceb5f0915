"""Examines one Application: causes of differing fields, unhealthy objects, and the branch it should track.

In: a reader, an Application. Out: a LiveApp, and the cluster objects read for it. Never: writes; reports an object as
missing that is only not readable.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.errors import ArgosyError, RenderError, UnknownRef
from argosy.features.doctor.forbidden_tolerant_reads import OptionalReads
from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind
from argosy.gitops.analysis.live_view import DifferingField, LiveApplication, LiveResource
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.diff_presentation import DifferingObject, list_differing_objects
from argosy.gitops.application_client.difference_cause_evidence import explain_differences, render_default_branch
from argosy.gitops.application_client.status_summary import list_rows
from argosy.gitops.application_client.unsynced_unhealthy_reasons import list_unhealthy_objects
from argosy.gitops.diff import format_pointer
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.unknown_state import validate_application
from argosy.gitops.source.git.refs import SHORT_COMMIT_ID
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import SECRET

HEALTHY_STATES: Final = ("Healthy", "Suspended")


@dataclass(frozen=True)
class ExaminedApplication:
    """`app_state` is None if the Application could not be compared."""

    live: LiveApplication
    app_state: AppState | None = None
    objects: dict[ResourceKey, Manifest] = field(default_factory=dict)


def read_status(app: Application, title: str = "") -> LiveApplication:
    """Build a LiveApp from the status only."""
    live_rows = tuple(
        LiveResource(row.key, row.status, row.health, row.wave, row.hook, row.message) for row in list_rows(app)
    )
    return LiveApplication(app, live_rows, display_name=title)


def is_settled(app: LiveApplication) -> bool:
    """True if Synced, healthy, without conditions and without a running operation."""
    return (
        app.sync == "Synced" and app.health in HEALTHY_STATES and not app.conditions and not app.has_running_operation
    )


def get_priority(app: Application) -> tuple[bool, bool]:
    """Sort key: errors first, never synced last, because not all may be examined in time."""
    has_error = any(
        str(condition.get("type")).endswith("Error") for condition in as_mappings(app.status.get("conditions"))
    )
    is_new = app.state is None and not app.status.get("history")
    return not has_error, is_new


async def examine_application(
    reader: ApplicationReader, app: Application, reads: OptionalReads, title: str = ""
) -> ExaminedApplication:
    live = read_status(app, title)
    live = replace(live, default_branch=await _find_other_default_branch(reader, app))
    if not app.destination.is_in_cluster:
        reads.add_note(f"{app.name} goes to another cluster: only its status was read")
        return ExaminedApplication(live)
    if validate_application(app, reader.reconciler_settings.projects.get(app.project), reader.reconciler_settings):
        return ExaminedApplication(live)  # argo: an invalid spec is not compared
    try:
        app_state = await reader.compare(app)
    except (RenderError, UnknownRef) as error:
        return ExaminedApplication(replace(live, render_failure=await _explain_render_error(reader, app, error)))
    except ArgosyError as error:
        reads.add_note(f"{app.name} cannot be compared from here: {error}")
        return ExaminedApplication(live)
    if hidden := reader.list_unreadable_kinds(app, app_state):
        reads.add_note(f"{app.name} cannot be compared from here: you may not read its {', '.join(hidden)}")
        return ExaminedApplication(live)
    live = replace(
        live,
        differing_fields=await _explain_fields(reader, app, app_state),
        plain_secrets=tuple(_list_plain_secrets(app_state)),
    )
    if live.health not in HEALTHY_STATES or live.has_running_operation:
        live = replace(live, blockers=tuple(await _list_unhealthy_objects(reader, app, reads)))
    return ExaminedApplication(live, app_state, dict(app_state.live))


async def _explain_fields(
    reader: ApplicationReader, app: Application, app_state: AppState
) -> tuple[DifferingField, ...]:
    differing_objects = list_differing_objects(app_state.comparison, reader.reconciler_settings.diff.masked_annotations)
    causes = await explain_differences(reader, app, app_state, differing_objects, is_brief=True)
    live = {pair.key: pair.compared or pair.live or {} for pair in app_state.comparison.pairs}
    return tuple(
        DifferingField(item.key, pointer, cause, format_pointer(pointer, live[item.key]))
        for item in differing_objects
        for pointer, cause in _pair_fields_with_causes(item, causes.get(item.key, {}))
    )


def _pair_fields_with_causes(differing_object: DifferingObject, causes: object) -> list[tuple[str, Cause]]:
    cause_by_pointer = as_mapping(causes)
    unknown = Cause(CauseKind.UNKNOWN, "unknown cause")
    return [(field.pointer, cause_by_pointer.get(field.pointer, unknown)) for field in differing_object.fields]


def _list_plain_secrets(app_state: AppState) -> list[str]:
    """List Secrets that are in Git with their values."""
    names = []
    for manifest in app_state.desired.manifests:
        is_secret = (manifest.get("apiVersion"), manifest.get("kind")) == ("v1", SECRET.kind)
        if is_secret and any(
            value for part in ("data", "stringData") for value in as_mapping(manifest.get(part)).values()
        ):
            names.append(f"Secret/{manifest['metadata'].get('name', '')}")
    return names


async def _list_unhealthy_objects(reader: ApplicationReader, app: Application, reads: OptionalReads) -> list[str]:
    try:
        return await list_unhealthy_objects(reader, app)
    except (ArgosyError, TimeoutError) as error:
        reads.add_note(f"the objects of {app.name} cannot be read: {error}")
        return []


async def _explain_render_error(reader: ApplicationReader, app: Application, error: ArgosyError) -> Cause:
    default = await render_default_branch(reader, app)
    text = str(error).partition("; ")[0]
    if default.branch and default.desired:
        problem = f"{default.ref} cannot be rendered, and {default.branch} can: {text}"
        return Cause(CauseKind.STALE_BRANCH, problem, f"argosy app set {app.name} --revision {default.branch}")
    return Cause(CauseKind.UNKNOWN, text)


async def _find_other_default_branch(reader: ApplicationReader, app: Application) -> str:
    """Return the repository's default branch if the Application tracks another one; tags and commits are intended."""
    source = app.sources[0] if len(app.sources) == 1 else None
    if source is None or source.chart:
        return ""
    try:
        async with asyncio.timeout(5.0):
            refs = await reader.reconciler_settings.repositories.mirror(source.repo_url, project=app.project).list_refs(
                max_age=60.0
            )
    except (ArgosyError, TimeoutError):
        return ""
    branch, ref = refs.default_branch, source.ref.removeprefix("refs/heads/")
    is_pinned = ref not in refs.branches and (refs.find_commit(ref) is not None or SHORT_COMMIT_ID.fullmatch(ref))
    return "" if is_pinned or ref in (branch, "HEAD", "") else branch


__all__ = ["ExaminedApplication", "examine_application", "is_settled", "read_status"]

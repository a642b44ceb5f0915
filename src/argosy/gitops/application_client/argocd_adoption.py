"""Adoption: moves Applications from Argo CD to argosy and back, after a plan.

In: an ApplicationService, Applications, the delivery engines of the cluster. Out: planned moves, each with the reason
that forbids it. Never: changes objects that an Application manages; moves an Application during an operation.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from argosy import annotations as names
from argosy.errors import ArgosyError, ClusterError, PolicyError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.application_service import ApplicationService, current_timestamp
from argosy.gitops.application_client.control_namespace import has_engine
from argosy.gitops.application_client.status_summary import is_busy, read_synced_revisions
from argosy.gitops.application_client.sync_operation_builder import check_no_operation
from argosy.gitops.policy.application_delivery_engine_detection import ARGOSY, DeliveryEngines
from argosy.gitops.status.application_event_manifests import UNKNOWN_USER, EventReason, build_event
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.gitops.status.sync_hold_annotation import SyncHold, hold_to_annotation, read_hold
from argosy.kube.controller.object_condition_wait import WaitTimeout, wait_for_object
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION_SET

if TYPE_CHECKING:
    from argosy.gitops.application_client.app_state_reader import ApplicationReader
    from argosy.gitops.reconciler.app_state_values import AppState

MAX_LISTED_FIELDS: Final = 3  # fields listed per object
ADOPTION_ANNOTATIONS: Final[Mapping[str, str]] = {names.ENGINE: ARGOSY, names.SKIP_RECONCILE: "true"}


class AdoptionDirection(enum.StrEnum):
    ADOPT = "adopt"
    HAND_BACK = "hand-back"


@dataclass(frozen=True)
class AdoptionMove:
    app: Application
    direction: AdoptionDirection
    delivered_by: str  # current delivery engine
    delivered_by_after: str  # delivery engine after the move
    objects: int = 0  # number of compared objects
    status_changes: tuple[str, ...] = ()  # objects whose sync status would change
    notes: tuple[str, ...] = ()
    refusal: str = ""
    is_needed: bool = True
    holds_automated_sync: bool = False  # holds automated syncs in the same write

    def to_wire(self) -> dict[str, Any]:
        return {
            "namespace": self.app.namespace,
            "name": self.app.name,
            "deliveredBy": self.delivered_by,
            "then": self.delivered_by_after,
            "objects": self.objects,
            "comparedDifferently": list(self.status_changes),
            "notes": list(self.notes),
            "refusal": self.refusal,
            "changes": self.is_needed and not self.refusal,
        }


@dataclass(frozen=True)
class _AdoptionComparison:
    """Result of argosy's own comparison; nothing is written."""

    objects: int = 0
    differing: int = 0
    status_changes: tuple[str, ...] = ()
    error: str = ""  # why the comparison failed


def _build_annotations(app: Application, direction: AdoptionDirection) -> dict[str, str]:
    if direction is AdoptionDirection.ADOPT:
        return {**app.annotations, **ADOPTION_ANNOTATIONS}
    if app.annotations.get(names.ENGINE) != ARGOSY:
        return dict(app.annotations)  # never adopted: the user paused it on purpose
    return {name: value for name, value in app.annotations.items() if name not in ADOPTION_ANNOTATIONS}


async def plan_moves(
    service: ApplicationService,
    apps: Sequence[Application],
    direction: AdoptionDirection,
    engines: DeliveryEngines,
    *,
    hold_automated_sync: bool = False,
) -> list[AdoptionMove]:
    from argosy.gitops.application_client.app_state_reader import (
        open_reader,  # late: the plan may be refused before anything is read
    )

    is_controller_running = await _is_controller_running(service)
    async with open_reader(service) as reader:
        return [
            await _plan_move(
                reader,
                app,
                direction,
                engines,
                hold_automated_sync=hold_automated_sync,
                is_controller_running=is_controller_running,
            )
            for app in apps
        ]


async def _plan_move(
    reader: ApplicationReader,
    app: Application,
    direction: AdoptionDirection,
    engines: DeliveryEngines,
    *,
    hold_automated_sync: bool,
    is_controller_running: bool,
) -> AdoptionMove:
    new_annotations = _build_annotations(app, direction)
    delivered_by, delivered_by_after = (
        engines.describe_deliverer(annotations, app.namespace) for annotations in (app.annotations, new_annotations)
    )
    if new_annotations == app.annotations:
        return AdoptionMove(app, direction, delivered_by, delivered_by_after, is_needed=False)
    comparison = (
        await _compare_with_status(reader, app) if direction is AdoptionDirection.ADOPT else _AdoptionComparison()
    )
    objection = (
        _describe_adoption_objection(app, comparison, hold_automated_sync=hold_automated_sync)
        if direction is AdoptionDirection.ADOPT
        else _describe_hand_back_objection(app)
    )
    refusal = (
        _describe_running_operation(app)
        or await _describe_appset_objection(reader.service, app, direction)
        or objection
    )
    return AdoptionMove(
        app,
        direction,
        delivered_by,
        delivered_by_after,
        objects=comparison.objects,
        status_changes=comparison.status_changes,
        notes=tuple(_list_notes(app, direction, engines, comparison, is_controller_running=is_controller_running)),
        refusal=refusal,
        holds_automated_sync=hold_automated_sync and _has_automated_sync(app),
    )


def _describe_running_operation(app: Application) -> str:
    try:
        check_no_operation(app)
    except PolicyError as error:
        return str(error)
    return ""


def _has_automated_sync(app: Application) -> bool:
    automated = app.policy.automated
    return automated is not None and automated.is_on and read_hold(app.annotations) is None


def _describe_adoption_objection(
    app: Application, comparison: _AdoptionComparison, *, hold_automated_sync: bool
) -> str:
    """Refuse if argosy would sync the Application immediately."""
    if hold_automated_sync or not _has_automated_sync(app) or not (comparison.differing or comparison.error):
        return ""
    problem = "the comparison failed"
    if comparison.differing:
        problem = f"argosy finds {comparison.differing} of {format_object_count(comparison.objects)} differing"
    release_command = f"argosy app release {app.name}"
    return (
        f"{app.name} syncs by itself, and {problem}: adopt it with --hold, check the differences, then run: "
        f"{release_command}"
    )


def _describe_hand_back_objection(app: Application) -> str:
    if read_hold(app.annotations) is None:
        return ""
    return f"{app.name} is held, which Argo CD does not support; release it first: argosy app release {app.name}"


async def _describe_appset_objection(
    service: ApplicationService, app: Application, direction: AdoptionDirection
) -> str:
    """argo: the ApplicationSet controller removes annotations that it does not template or preserve."""
    owners = as_mappings(as_mapping(app.wire.get("metadata")).get("ownerReferences"))
    name = next((str(entry.get("name")) for entry in owners if entry.get("kind") == APPLICATION_SET.kind), "")
    if not name or direction is not AdoptionDirection.ADOPT:
        return ""
    try:
        appset = await service.cluster.get(ResourceKey(*APPLICATION_SET, app.namespace, name))
    except ClusterError:
        appset = None
    preserved = (
        as_mapping(as_mapping(as_mapping((appset or {}).get("spec")).get("preservedFields"))).get("annotations") or []
    )
    missing = [entry for entry in ADOPTION_ANNOTATIONS if entry not in preserved]
    if appset is None or not missing:
        return ""
    return f"ApplicationSet {name} would revert this; add to its spec.preservedFields.annotations: {', '.join(missing)}"


def _list_notes(
    app: Application,
    direction: AdoptionDirection,
    engines: DeliveryEngines,
    comparison: _AdoptionComparison,
    *,
    is_controller_running: bool,
) -> list[str]:
    notes = []
    if direction is AdoptionDirection.ADOPT:
        if not is_controller_running:
            notes.append("no argosy controller is running: start one to deliver the Application (argosy controller)")
        if app.annotations.get(names.SKIP_RECONCILE) == "true":
            notes.append("reconciliation was paused; argosy will deliver the Application, and hand-back ends the pause")
        if comparison.error:
            notes.append(f"the comparison failed: {comparison.error}")
    elif not engines.list_watching_controllers(app.namespace):
        notes.append(f"no Argo CD watches namespace {app.namespace}: argosy keeps delivering the Application")
    elif _has_automated_sync(app):
        notes.append("automated sync is on: Argo CD syncs every difference that it finds")
    return notes


async def _is_controller_running(service: ApplicationService) -> bool:
    try:
        return await has_engine(service.cluster, service.control_namespace)
    except ClusterError:  # without permission to read Leases, assume a running controller
        return True


def format_object_count(count: int) -> str:
    return f"{count} object{'' if count == 1 else 's'}"


# -- comparison with the current status --------------------------------------------------------------------------------


async def _compare_with_status(reader: ApplicationReader, app: Application) -> _AdoptionComparison:
    try:
        app_state = await reader.for_destination(app).compare(app, assess_health=False)
    except ArgosyError as error:
        return _AdoptionComparison(error=str(error).removeprefix(f"{app.name}: "))
    if not app_state.is_complete:
        return _AdoptionComparison(
            error="; ".join(condition.message for condition in app_state.conditions) or "unknown reason"
        )
    return _find_status_changes(app, app_state)


def _find_status_changes(app: Application, app_state: AppState) -> _AdoptionComparison:
    from argosy.gitops.application_client.diff_presentation import list_differing_objects

    fields = {
        item.key: [field.pointer for field in item.fields] for item in list_differing_objects(app_state.comparison)
    }
    argosy_statuses = {pair.key: "OutOfSync" if pair.differs else "Synced" for pair in app_state.comparison.pairs}
    resources = [item for item in as_mappings(app.status.get("resources")) if not item.get("hook")]
    current_statuses = {
        ResourceKey(*(str(item.get(part) or "") for part in ResourceKey._fields)): str(item.get("status") or "Synced")
        for item in resources
    }
    status_changes = []
    for key in sorted({*argosy_statuses, *current_statuses}):
        current_status, argosy_status = current_statuses.get(key, "nothing"), argosy_statuses.get(key, "nothing")
        if current_status != argosy_status:
            pointers = fields.get(key, [])
            more = f" and {len(pointers) - MAX_LISTED_FIELDS} more" if len(pointers) > MAX_LISTED_FIELDS else ""
            detail = f": {', '.join(pointers[:MAX_LISTED_FIELDS])}{more}" if pointers else ""
            status_changes.append(
                f"{key.kind}/{key.name}: status says {current_status}, argosy says {argosy_status}{detail}"
            )
    return _AdoptionComparison(len(argosy_statuses), len(fields), tuple(status_changes))


# -- writes ------------------------------------------------------------------------------------------------------------


async def wait_until_idle(
    service: ApplicationService, apps: Sequence[Application], timeout_seconds: float
) -> list[Application]:
    """Wait until no operation is running and return the current Applications; raises TooLate."""
    idle_apps = []
    for app in apps:
        latest: list[Manifest] = [dict(app.wire)]

        def is_idle(manifest: Manifest | None, latest: list[Manifest] = latest) -> bool:
            latest[0] = manifest or latest[0]
            return manifest is None or not is_busy(read_application(manifest))

        if not await wait_for_object(service.cluster, app.key, is_idle, timeout_seconds):
            raise WaitTimeout(f"{app.name}: operation still running after {timeout_seconds:g} s; nothing was changed")
        idle_apps.append(read_application(latest[0]))
    return idle_apps


async def apply_move(service: ApplicationService, planned: AdoptionMove) -> Application:
    """Write both annotations in one patch; refused if an operation started in the meantime."""
    user = await service.find_user()
    hold = (
        SyncHold("adopted", user, current_timestamp(), ", ".join(read_synced_revisions(planned.app)))
        if planned.holds_automated_sync
        else None
    )

    def build_patch(current: Application) -> dict[str, Any]:
        check_no_operation(current)
        if planned.direction is AdoptionDirection.ADOPT:
            hold_annotation = {names.HOLD: hold_to_annotation(hold)} if hold is not None else {}
            return {"metadata": {"annotations": {**ADOPTION_ANNOTATIONS, **hold_annotation}}}
        return {"metadata": {"annotations": dict.fromkeys(ADOPTION_ANNOTATIONS)}}

    updated = await service.patch_application(planned.app, build_patch)
    action = (
        "adopted the application for argosy"
        if planned.direction is AdoptionDirection.ADOPT
        else "handed it back to Argo CD"
    )
    await service.record_event(
        build_event(
            updated,
            EventReason.RESOURCE_UPDATED,
            f"{user or UNKNOWN_USER} {action}",
            timestamp=current_timestamp(),
            username=user,
        )
    )
    return updated


__all__ = [
    "ADOPTION_ANNOTATIONS",
    "AdoptionDirection",
    "AdoptionMove",
    "apply_move",
    "format_object_count",
    "plan_moves",
    "wait_until_idle",
]

"""API beyond Argo CD's: reasons of a status, differences with causes, explanations, waves and holds.

In: a request. Out: JSON. Never: a value of a Secret.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import RenderError, UnknownRef, UserError
from argosy.features.doctor.application_check import read_status
from argosy.gitops.analysis.current_wave_gate import find_wave_wait
from argosy.gitops.analysis.live_view import LiveView
from argosy.gitops.application import Application
from argosy.gitops.application_client import status_summary
from argosy.gitops.application_client.application_actions import hold_automated_sync, release_hold
from argosy.gitops.application_client.application_service import utc_now
from argosy.gitops.application_client.delay_reasons import describe_delay
from argosy.gitops.application_client.diff_presentation import (
    add_locations,
    differences_to_wire,
    list_differing_objects,
    with_causes,
)
from argosy.gitops.application_client.difference_cause_evidence import explain_differences, explain_render_error
from argosy.gitops.application_client.object_explanation import explain_object, find_object
from argosy.gitops.application_client.status_summary import ManagedObjectRow, list_rows
from argosy.gitops.application_client.unsynced_unhealthy_reasons import list_unhealthy_objects
from argosy.gitops.status.status_json_conversions import key_to_wire, omit_empty
from argosy.gitops.status.sync_hold_annotation import SyncHold, read_hold
from argosy.web.api.body_fields import BodyReader
from argosy.web.api.request_response_schemas import (
    BOOLEAN_SCHEMA,
    INTEGER_SCHEMA,
    STRING_SCHEMA,
    build_array_schema,
    build_object_schema,
)
from argosy.web.caller_application_service import build_reader, build_service, wait_until_visible
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import JsonResponse
from argosy.web.route import QueryParameter, RequiresPermission, Route

MAX_REASON_LENGTH: Final = 1_000  # characters of a reason


async def why(request: RequestContext) -> JsonResponse:
    app: Application = request.subject
    cluster_view = request.cluster_view
    delay = describe_delay(app, cluster_view.rules, cluster_view.cache.get, cluster_view.engines, utc_now())
    statuses = {"sync": status_summary.read_sync_status(app), "health": status_summary.read_health_status(app)}
    response = {"application": app.name, "namespace": app.namespace, **statuses}
    response |= {
        "why": status_summary.describe_problem(app, delay=delay),
        "next": find_next_command(app, is_delayed=bool(delay)),
    }
    is_unhealthy = statuses["health"] not in ("Healthy", "Unknown") and app.destination.is_in_cluster
    return JsonResponse(
        {**response, "causes": await list_unhealthy_objects(build_reader(request), app) if is_unhealthy else []}
    )


def find_next_command(app: Application, *, is_delayed: bool = False) -> str:
    """Return the command to run next; empty if the Application needs nothing."""
    name = app.name
    if is_delayed:
        return f"argosy doctor {name}"
    if status_summary.is_busy(app):
        return f"argosy app wait {name} --operation"
    if not app.status:
        return "argosy controller"
    if read_hold(app.annotations) is not None:
        return f"argosy app release {name}"
    if any(str(condition.get("type")).endswith("Error") for condition in app.status.get("conditions") or ()):
        return f"argosy doctor {name}"
    if status_summary.read_sync_status(app) == "OutOfSync":
        return f"argosy app diff {name}"
    return (
        f"argosy app tree {name}"
        if status_summary.read_health_status(app) not in ("Healthy", "Unknown", "Suspended")
        else ""
    )


async def differences(request: RequestContext) -> JsonResponse:
    app, reader = request.subject, build_reader(request)
    refs = (request.query.get_text("revision"),) if request.query.get_text("revision") else ()
    try:
        app_state = await reader.compare(app, refs, assess_health=False)
    except (RenderError, UnknownRef) as error:
        cause = await explain_render_error(reader, app, error, refs)
        raise UserError(f"{cause.text}; {cause.next}") if cause.kind == "StaleBranch" else error from error
    if not app_state.is_complete:
        message = next(
            (condition.message for condition in app_state.conditions if condition.type.is_error),
            "the comparison failed",
        )
        raise UserError(f"{message}; see more: argosy app get {app.name}", where=app.name)
    differing_objects = list_differing_objects(app_state.comparison, reader.reconciler_settings.diff.masked_annotations)
    differing_objects = add_locations(differing_objects, app_state.desired.rendered)
    return JsonResponse(
        differences_to_wire(
            with_causes(differing_objects, await explain_differences(reader, app, app_state, differing_objects, refs))
        )
    )


async def explanation(request: RequestContext) -> JsonResponse:
    app, query = request.subject, request.query
    object_name = query.get_text("object")
    if "/" not in object_name:
        raise UserError("missing object; send ?object=KIND/NAME, such as deploy/web", where="object")
    name = f"{app.namespace}/{app.name}"
    app_found, key = await find_object(build_service(request), object_name, query.get_text("namespace"), name)
    return JsonResponse(
        (await explain_object(build_reader(request), app_found, key, query.get_text("field"))).to_wire()
    )


async def waves(request: RequestContext) -> JsonResponse:
    """List objects by wave, and the wave that a running sync waits for."""
    app: Application = request.subject
    by_wave: dict[int, list[ManagedObjectRow]] = {}
    for row in list_rows(app):
        by_wave.setdefault(row.wave, []).append(row)
    blocking_wait = find_wave_wait(read_status(app), LiveView(now=utc_now()))
    waves_wire = [
        {"wave": wave, "objects": [_row_to_wire(wave_row) for wave_row in by_wave[wave]]} for wave in sorted(by_wave)
    ]
    return JsonResponse(
        {
            "waves": waves_wire,
            **omit_empty(
                waits=blocking_wait.to_wire() if blocking_wait else None,
                text=blocking_wait.text if blocking_wait else "",
            ),
        }
    )


def _row_to_wire(row: ManagedObjectRow) -> dict[str, Any]:
    optional_fields = omit_empty(status=row.status, health=row.health, hook=row.hook, message=row.message)
    return {**key_to_wire(row.key), **optional_fields}


async def hold_sync(request: RequestContext) -> JsonResponse:
    reason = BodyReader(await request.read_json_object()).get_text("reason")
    if len(reason) > MAX_REASON_LENGTH:
        raise UserError(f"longer than {MAX_REASON_LENGTH} characters; shorten it", where="reason")
    app, has_changed = await hold_automated_sync(build_service(request), request.subject, reason)
    await wait_until_visible(request, app.wire)
    return JsonResponse(_hold_to_wire(read_hold(app.annotations), has_changed=has_changed))


async def resume_sync(request: RequestContext) -> JsonResponse:
    app, has_changed = await release_hold(build_service(request), request.subject)
    await wait_until_visible(request, app.wire)
    return JsonResponse(_hold_to_wire(read_hold(app.annotations), has_changed=has_changed))


def _hold_to_wire(current_hold: SyncHold | None, *, has_changed: bool) -> dict[str, Any]:
    optional_fields = (
        omit_empty(
            by=current_hold.by, reason=current_hold.reason, since=current_hold.at, revision=current_hold.revision
        )
        if current_hold
        else {}
    )
    return {"held": current_hold is not None, "changed": has_changed, **optional_fields}


APPLICATION_PATH: Final = "/api/argosy/v1/applications/{ns}/{name}"
READ_PERMISSION, UPDATE_PERMISSION = (
    RequiresPermission("applications", "get", resolve_application),
    RequiresPermission("applications", "update", resolve_application),
)
HOLD_SCHEMA: Final = build_object_schema(
    "held",
    "changed",
    held=BOOLEAN_SCHEMA,
    changed=BOOLEAN_SCHEMA,
    by=STRING_SCHEMA,
    reason=STRING_SCHEMA,
    since=STRING_SCHEMA,
    revision=STRING_SCHEMA,
)
ROUTES = (
    Route(
        "GET",
        f"{APPLICATION_PATH}/why",
        READ_PERMISSION,
        why,
        "Explain the status of an Application, with the next command.",
        response_schema=build_object_schema(
            "why",
            "next",
            application=STRING_SCHEMA,
            namespace=STRING_SCHEMA,
            sync=STRING_SCHEMA,
            health=STRING_SCHEMA,
            why=STRING_SCHEMA,
            next=STRING_SCHEMA,
            causes=build_array_schema(STRING_SCHEMA),
        ),
        tag="argosy",
    ),
    Route(
        "GET",
        f"{APPLICATION_PATH}/diff",
        READ_PERMISSION,
        differences,
        "List differing fields with their causes.",
        query=(QueryParameter("revision", "A branch, tag or commit instead of the target revision."),),
        response_schema=build_object_schema("items", items=build_array_schema(build_object_schema())),
        tag="argosy",
    ),
    Route(
        "GET",
        f"{APPLICATION_PATH}/explain",
        READ_PERMISSION,
        explanation,
        "Explain an object of an Application, or one of its fields.",
        query=(
            QueryParameter("object", "KIND/NAME, such as deploy/web.", is_required=True),
            QueryParameter("namespace", "Its namespace, if the name is ambiguous."),
            QueryParameter("field", "Only this field, such as .spec.replicas."),
        ),
        response_schema=build_object_schema(
            "object", "fields", object=build_object_schema(), fields=build_array_schema(build_object_schema())
        ),
        tag="argosy",
    ),
    Route(
        "GET",
        f"{APPLICATION_PATH}/waves",
        READ_PERMISSION,
        waves,
        "List objects by wave, and what a running sync waits for.",
        response_schema=build_object_schema(
            "waves",
            waves=build_array_schema(
                build_object_schema(
                    "wave", "objects", wave=INTEGER_SCHEMA, objects=build_array_schema(build_object_schema())
                )
            ),
        ),
        tag="argosy",
    ),
    Route(
        "POST",
        f"{APPLICATION_PATH}/hold",
        UPDATE_PERMISSION,
        hold_sync,
        "Pause automated sync until it is released.",
        request_schema=build_object_schema(reason=STRING_SCHEMA),
        response_schema=HOLD_SCHEMA,
        tag="argosy",
        operation_id="argosy_held",
    ),
    Route(
        "DELETE",
        f"{APPLICATION_PATH}/hold",
        UPDATE_PERMISSION,
        resume_sync,
        "End a hold.",
        response_schema=HOLD_SCHEMA,
        tag="argosy",
        operation_id="argosy_released",
    ),
)

"""API beyond Argo CD's: reasons of a status, differences with causes, explanations, waves and holds.

In: a request. Out: JSON. Never: a value of a Secret.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import RenderError, UnknownRef, UserError
from argosy.features.doctor.application_check import first_sight
from argosy.gitops.analysis.live_view import LiveView
from argosy.gitops.analysis.wave_gates import wait_of
from argosy.gitops.application import Application
from argosy.gitops.application_client import summary
from argosy.gitops.application_client.client import clock
from argosy.gitops.application_client.delays import describe_delay
from argosy.gitops.application_client.difference_causes import explained, unrendered
from argosy.gitops.application_client.differences import as_data, differing, with_causes, with_places
from argosy.gitops.application_client.object_explanation import explain, find
from argosy.gitops.application_client.small_changes import hold, release
from argosy.gitops.application_client.summary import Row, rows
from argosy.gitops.application_client.unmet_conditions import unwell
from argosy.gitops.status.hold import Hold, read_hold
from argosy.gitops.status.wire_format import given, key_wire
from argosy.web.api.body_fields import Body
from argosy.web.api.json_schemas import COUNT, FLAG, TEXT, fields, many
from argosy.web.caller_clients import desk_of, reader_of, until_seen
from argosy.web.object_lookup import application
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import May, Parameter, Route

LONGEST: Final = 1_000  # characters of a reason


async def why(asked: Asked) -> Json:
    app: Application = asked.subject
    lookout = asked.site.lookout
    delay = describe_delay(app, lookout.rules, lookout.cache.get, lookout.engines, clock())
    words = {"sync": summary.sync_word(app), "health": summary.health_word(app)}
    told = {"application": app.name, "namespace": app.namespace, **words}
    told |= {"why": summary.why(app, delay=delay), "next": next_step(app, is_delayed=bool(delay))}
    ill = words["health"] not in ("Healthy", "Unknown") and app.destination.is_here
    return Json({**told, "causes": await unwell(reader_of(asked), app) if ill else []})


def next_step(app: Application, *, is_delayed: bool = False) -> str:
    """Return the command to run next; empty if the Application needs nothing."""
    name = app.name
    if is_delayed:
        return f"argosy doctor {name}"
    if summary.is_busy(app):
        return f"argosy app wait {name} --operation"
    if not app.status:
        return "argosy controller"
    if read_hold(app.annotations) is not None:
        return f"argosy app release {name}"
    if any(str(each.get("type")).endswith("Error") for each in app.status.get("conditions") or ()):
        return f"argosy doctor {name}"
    if summary.sync_word(app) == "OutOfSync":
        return f"argosy app diff {name}"
    return f"argosy app tree {name}" if summary.health_word(app) not in ("Healthy", "Unknown", "Suspended") else ""


async def differences(asked: Asked) -> Json:
    app, reader = asked.subject, reader_of(asked)
    refs = (asked.query.text("revision"),) if asked.query.text("revision") else ()
    try:
        look = await reader.look(app, refs, is_judged=False)
    except (RenderError, UnknownRef) as error:
        cause = await unrendered(reader, app, error, refs)
        raise UserError(f"{cause.text}; {cause.next}") if cause.kind == "StaleBranch" else error from error
    if not look.is_whole:
        said = next((each.message for each in look.conditions if each.type.is_error), "the comparison failed")
        raise UserError(f"{said}; see more: argosy app get {app.name}", where=app.name)
    found = differing(look.comparison, reader.rules.compare.masked_annotations)
    found = with_places(found, look.assembled.rendered)
    return Json(as_data(with_causes(found, await explained(reader, app, look, found, refs))))


async def explanation(asked: Asked) -> Json:
    app, query = asked.subject, asked.query
    what = query.text("object")
    if "/" not in what:
        raise UserError("missing object; send ?object=KIND/NAME, such as deploy/web", where="object")
    name = f"{app.namespace}/{app.name}"
    found, key = await find(desk_of(asked), what, query.text("namespace"), name)
    return Json((await explain(reader_of(asked), found, key, query.text("field"))).document())


async def waves(asked: Asked) -> Json:
    """List objects by wave, and the wave that a running sync waits for."""
    app: Application = asked.subject
    by_wave: dict[int, list[Row]] = {}
    for row in rows(app):
        by_wave.setdefault(row.wave, []).append(row)
    wait = wait_of(first_sight(app), LiveView(now=clock()))
    listed = [{"wave": wave, "objects": [_row(each) for each in by_wave[wave]]} for wave in sorted(by_wave)]
    return Json({"waves": listed, **given(waits=wait.document() if wait else None, text=wait.text if wait else "")})


def _row(row: Row) -> dict[str, Any]:
    told = given(status=row.status, health=row.health, hook=row.hook, message=row.message)
    return {**key_wire(row.key), **told}


async def held(asked: Asked) -> Json:
    reason = Body(await asked.mapping()).text("reason")
    if len(reason) > LONGEST:
        raise UserError(f"longer than {LONGEST} characters; shorten it", where="reason")
    app, has_changed = await hold(desk_of(asked), asked.subject, reason)
    await until_seen(asked, app.wire)
    return Json(_hold(read_hold(app.annotations), has_changed=has_changed))


async def released(asked: Asked) -> Json:
    app, has_changed = await release(desk_of(asked), asked.subject)
    await until_seen(asked, app.wire)
    return Json(_hold(read_hold(app.annotations), has_changed=has_changed))


def _hold(found: Hold | None, *, has_changed: bool) -> dict[str, Any]:
    told = given(by=found.by, reason=found.reason, since=found.at, revision=found.revision) if found else {}
    return {"held": found is not None, "changed": has_changed, **told}


AT: Final = "/api/argosy/v1/applications/{ns}/{name}"
SEE, CHANGE = May("applications", "get", application), May("applications", "update", application)
HELD: Final = fields("held", "changed", held=FLAG, changed=FLAG, by=TEXT, reason=TEXT, since=TEXT, revision=TEXT)
ROUTES = (
    Route(
        "GET", f"{AT}/why", SEE, why, "Explain the status of an Application, with the next command.",
        gives=fields("why", "next", application=TEXT, namespace=TEXT, sync=TEXT, health=TEXT, why=TEXT, next=TEXT,
                     causes=many(TEXT)), tag="argosy",
    ),
    Route(
        "GET", f"{AT}/diff", SEE, differences, "List differing fields with their causes.",
        query=(Parameter("revision", "A branch, tag or commit instead of the target revision."),),
        gives=fields("items", items=many(fields())), tag="argosy",
    ),
    Route(
        "GET", f"{AT}/explain", SEE, explanation, "Explain an object of an Application, or one of its fields.",
        query=(
            Parameter("object", "KIND/NAME, such as deploy/web.", is_required=True),
            Parameter("namespace", "Its namespace, if the name is ambiguous."),
            Parameter("field", "Only this field, such as .spec.replicas."),
        ),
        gives=fields("object", "fields", object=fields(), fields=many(fields())), tag="argosy",
    ),
    Route(
        "GET", f"{AT}/waves", SEE, waves, "List objects by wave, and what a running sync waits for.",
        gives=fields("waves", waves=many(fields("wave", "objects", wave=COUNT, objects=many(fields())))), tag="argosy",
    ),
    Route(
        "POST", f"{AT}/hold", CHANGE, held, "Pause automated sync until it is released.",
        takes=fields(reason=TEXT), gives=HELD, tag="argosy",
    ),
    Route("DELETE", f"{AT}/hold", CHANGE, released, "End a hold.", gives=HELD, tag="argosy"),
)  # fmt: skip

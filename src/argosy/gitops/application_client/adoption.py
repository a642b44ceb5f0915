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
from argosy.gitops.application_client.client import Desk, now
from argosy.gitops.application_client.control_namespace import has_engine
from argosy.gitops.application_client.summary import is_busy, revisions
from argosy.gitops.application_client.sync_requests import check_free
from argosy.gitops.policy.delivery_engine import ARGOSY, Engines
from argosy.gitops.status.events import NOBODY, Reason, event
from argosy.gitops.status.hold import Hold, hold_text, read_hold
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.controller.wait import TooLate, until
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

if TYPE_CHECKING:
    from argosy.gitops.application_client.reader import Reader
    from argosy.gitops.reconciler.app_state import Look

MOST_FIELDS: Final = 3  # fields listed per object
APPLICATION_SET: Final = GroupKind("argoproj.io", "ApplicationSet")
ADOPTED: Final[Mapping[str, str]] = {names.ENGINE: ARGOSY, names.SKIP_RECONCILE: "true"}


class Way(enum.StrEnum):
    ADOPT = "adopt"
    HAND_BACK = "hand-back"


@dataclass(frozen=True)
class Move:
    app: Application
    way: Way
    now: str  # current delivery engine
    then: str  # delivery engine after the move
    objects: int = 0  # number of compared objects
    compared: tuple[str, ...] = ()  # objects whose sync status would change
    notes: tuple[str, ...] = ()
    refusal: str = ""
    is_needed: bool = True
    holds: bool = False  # holds automated syncs in the same write

    def document(self) -> dict[str, Any]:
        return {
            "namespace": self.app.namespace,
            "name": self.app.name,
            "deliveredBy": self.now,
            "then": self.then,
            "objects": self.objects,
            "comparedDifferently": list(self.compared),
            "notes": list(self.notes),
            "refusal": self.refusal,
            "changes": self.is_needed and not self.refusal,
        }


@dataclass(frozen=True)
class _Sight:
    """Result of argosy's own comparison; nothing is written."""

    objects: int = 0
    differing: int = 0
    compared: tuple[str, ...] = ()
    trouble: str = ""  # why the comparison failed


def _annotations(app: Application, way: Way) -> dict[str, str]:
    if way is Way.ADOPT:
        return {**app.annotations, **ADOPTED}
    if app.annotations.get(names.ENGINE) != ARGOSY:
        return dict(app.annotations)  # never adopted: the user paused it on purpose
    return {name: text for name, text in app.annotations.items() if name not in ADOPTED}


async def plan_moves(
    desk: Desk, apps: Sequence[Application], way: Way, engines: Engines, *, holds: bool = False
) -> list[Move]:
    from argosy.gitops.application_client.reader import (
        open_reader,  # late: the plan may be refused before anything is read
    )

    runs = await _has_argosy(desk)
    async with open_reader(desk) as reader:
        return [await _plan(reader, app, way, engines, holds=holds, runs=runs) for app in apps]


async def _plan(reader: Reader, app: Application, way: Way, engines: Engines, *, holds: bool, runs: bool) -> Move:
    after = _annotations(app, way)
    who, then = (engines.told(each, app.namespace) for each in (app.annotations, after))
    if after == app.annotations:
        return Move(app, way, who, then, is_needed=False)
    sight = await _seen(reader, app) if way is Way.ADOPT else _Sight()
    against = _adoption(app, sight, holds=holds) if way is Way.ADOPT else _hand_back(app)
    refusal = _under_way(app) or await _undone_by_its_set(reader.desk, app, way) or against
    return Move(
        app,
        way,
        who,
        then,
        objects=sight.objects,
        compared=sight.compared,
        notes=tuple(_notes(app, way, engines, sight, runs=runs)),
        refusal=refusal,
        holds=holds and _syncs_itself(app),
    )


def _under_way(app: Application) -> str:
    try:
        check_free(app)
    except PolicyError as error:
        return str(error)
    return ""


def _syncs_itself(app: Application) -> bool:
    automated = app.policy.automated
    return automated is not None and automated.is_on and read_hold(app.annotations) is None


def _adoption(app: Application, sight: _Sight, *, holds: bool) -> str:
    """Refuse if argosy would sync the Application immediately."""
    if holds or not _syncs_itself(app) or not (sight.differing or sight.trouble):
        return ""
    found = "the comparison failed"
    if sight.differing:
        found = f"argosy finds {sight.differing} of {objects(sight.objects)} differing"
    release = f"argosy app release {app.name}"
    return f"{app.name} syncs by itself, and {found}: adopt it with --hold, check the differences, then run: {release}"


def _hand_back(app: Application) -> str:
    if read_hold(app.annotations) is None:
        return ""
    return f"{app.name} is held, which Argo CD does not support; release it first: argosy app release {app.name}"


async def _undone_by_its_set(desk: Desk, app: Application, way: Way) -> str:
    """argo: the ApplicationSet controller removes annotations that it does not template or preserve."""
    owners = mappings(mapping(app.wire.get("metadata")).get("ownerReferences"))
    name = next((str(each.get("name")) for each in owners if each.get("kind") == APPLICATION_SET.kind), "")
    if not name or way is not Way.ADOPT:
        return ""
    try:
        found = await desk.cluster.get(ResourceKey(*APPLICATION_SET, app.namespace, name))
    except ClusterError:
        found = None
    kept = mapping(mapping(mapping((found or {}).get("spec")).get("preservedFields"))).get("annotations") or []
    missing = [each for each in ADOPTED if each not in kept]
    if found is None or not missing:
        return ""
    return f"ApplicationSet {name} would revert this; add to its spec.preservedFields.annotations: {', '.join(missing)}"


def _notes(app: Application, way: Way, engines: Engines, sight: _Sight, *, runs: bool) -> list[str]:
    found = []
    if way is Way.ADOPT:
        if not runs:
            found.append("no argosy controller is running: start one to deliver the Application (argosy controller)")
        if app.annotations.get(names.SKIP_RECONCILE) == "true":
            found.append("reconciliation was paused; argosy will deliver the Application, and hand-back ends the pause")
        if sight.trouble:
            found.append(f"the comparison failed: {sight.trouble}")
    elif not engines.over(app.namespace):
        found.append(f"no Argo CD watches namespace {app.namespace}: argosy keeps delivering the Application")
    elif _syncs_itself(app):
        found.append("automated sync is on: Argo CD syncs every difference that it finds")
    return found


async def _has_argosy(desk: Desk) -> bool:
    try:
        return await has_engine(desk.cluster, desk.control)
    except ClusterError:  # without permission to read Leases, assume a running controller
        return True


def objects(count: int) -> str:
    return f"{count} object{'' if count == 1 else 's'}"


# -- comparison with the current status --------------------------------------------------------------------------------


async def _seen(reader: Reader, app: Application) -> _Sight:
    try:
        look = await reader.at(app).look(app, is_judged=False)
    except ArgosyError as error:
        return _Sight(trouble=str(error).removeprefix(f"{app.name}: "))
    if not look.is_whole:
        return _Sight(trouble="; ".join(each.message for each in look.conditions) or "unknown reason")
    return _compared(app, look)


def _compared(app: Application, look: Look) -> _Sight:
    from argosy.gitops.application_client.differences import differing

    fields = {each.key: [field.pointer for field in each.fields] for each in differing(look.comparison)}
    ours = {pair.key: "OutOfSync" if pair.differs else "Synced" for pair in look.comparison.pairs}
    resources = [each for each in mappings(app.status.get("resources")) if not each.get("hook")]
    theirs = {
        ResourceKey(*(str(each.get(part) or "") for part in ResourceKey._fields)): str(each.get("status") or "Synced")
        for each in resources
    }
    told = []
    for key in sorted({*ours, *theirs}):
        one, other = theirs.get(key, "nothing"), ours.get(key, "nothing")
        if one != other:
            named = fields.get(key, [])
            more = f" and {len(named) - MOST_FIELDS} more" if len(named) > MOST_FIELDS else ""
            why = f": {', '.join(named[:MOST_FIELDS])}{more}" if named else ""
            told.append(f"{key.kind}/{key.name}: status says {one}, argosy says {other}{why}")
    return _Sight(len(ours), len(fields), tuple(told))


# -- writes ------------------------------------------------------------------------------------------------------------


async def until_free(desk: Desk, apps: Sequence[Application], seconds: float) -> list[Application]:
    """Wait until no operation is running and return the current Applications; raises TooLate."""
    found = []
    for app in apps:
        last: list[Manifest] = [dict(app.wire)]

        def is_free(manifest: Manifest | None, last: list[Manifest] = last) -> bool:
            last[0] = manifest or last[0]
            return manifest is None or not is_busy(read_application(manifest))

        if not await until(desk.cluster, app.key, is_free, seconds):
            raise TooLate(f"{app.name}: operation still running after {seconds:g} s; nothing was changed")
        found.append(read_application(last[0]))
    return found


async def move(desk: Desk, planned: Move) -> Application:
    """Write both annotations in one patch; refused if an operation started in the meantime."""
    by = await desk.who()
    made = Hold("adopted", by, now(), ", ".join(revisions(planned.app))) if planned.holds else None

    def make(current: Application) -> dict[str, Any]:
        check_free(current)
        if planned.way is Way.ADOPT:
            held = {names.HOLD: hold_text(made)} if made is not None else {}
            return {"metadata": {"annotations": {**ADOPTED, **held}}}
        return {"metadata": {"annotations": dict.fromkeys(ADOPTED)}}

    after = await desk.revise(planned.app, make)
    what = "adopted the application for argosy" if planned.way is Way.ADOPT else "handed it back to Argo CD"
    await desk.record(event(after, Reason.RESOURCE_UPDATED, f"{by or NOBODY} {what}", at=now(), by=by))
    return after


__all__ = ["ADOPTED", "Move", "Way", "move", "objects", "plan_moves", "until_free"]

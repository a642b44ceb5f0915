"""Moves Applications from an Argo CD to argosy and back: a plan first, then one write each.

In: a desk, Applications, who delivers here. Out: moves, each with what speaks against it. Never: touches what an
Application manages; moves one while an operation of it is under way.
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

MOST_FIELDS: Final = 3  # that are named of an object
APPLICATION_SET: Final = GroupKind("argoproj.io", "ApplicationSet")
ADOPTED: Final[Mapping[str, str]] = {names.ENGINE: ARGOSY, names.SKIP_RECONCILE: "true"}


class Way(enum.StrEnum):
    ADOPT = "adopt"
    HAND_BACK = "hand-back"


@dataclass(frozen=True)
class Move:
    app: Application
    way: Way
    now: str  # who delivers it
    then: str
    objects: int = 0  # that were compared
    compared: tuple[str, ...] = ()  # what argosy would tell otherwise than its status does
    notes: tuple[str, ...] = ()
    refusal: str = ""
    is_needed: bool = True
    holds: bool = False  # automated syncs, in the same write

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
    """What argosy finds, without writing anything."""

    objects: int = 0
    differing: int = 0
    compared: tuple[str, ...] = ()
    trouble: str = ""  # why it could not be compared


def _annotations(app: Application, way: Way) -> dict[str, str]:
    if way is Way.ADOPT:
        return {**app.annotations, **ADOPTED}
    if app.annotations.get(names.ENGINE) != ARGOSY:
        return dict(app.annotations)  # it was never adopted: a pause is somebody's own
    return {name: text for name, text in app.annotations.items() if name not in ADOPTED}


async def plan_moves(
    desk: Desk, apps: Sequence[Application], way: Way, engines: Engines, *, holds: bool = False
) -> list[Move]:
    from argosy.gitops.application_client.reader import (
        open_reader,  # late: what follows may be refused before anything is read
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
    """What would be synced at once would not be left alone."""
    if holds or not _syncs_itself(app) or not (sight.differing or sight.trouble):
        return ""
    found = "it could not be compared"
    if sight.differing:
        found = f"argosy finds {sight.differing} of {objects(sight.objects)} differing"
    release = f"argosy app release {app.name}"
    return f"{app.name} syncs by itself, and {found}: adopt it with --hold, look at it, and then: {release}"


def _hand_back(app: Application) -> str:
    if read_hold(app.annotations) is None:
        return ""
    return f"{app.name} is held, and Argo CD knows of no hold; end it first: argosy app release {app.name}"


async def _undone_by_its_set(desk: Desk, app: Application, way: Way) -> str:
    """argo: the controller of an ApplicationSet takes annotations away that are neither its own nor preserved."""
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
    return f"ApplicationSet {name} would undo it; add to its spec.preservedFields.annotations: {', '.join(missing)}"


def _notes(app: Application, way: Way, engines: Engines, sight: _Sight, *, runs: bool) -> list[str]:
    found = []
    if way is Way.ADOPT:
        if not runs:
            found.append("no argosy controller runs here: nobody delivers it until one does (argosy controller)")
        if app.annotations.get(names.SKIP_RECONCILE) == "true":
            found.append("it was paused; argosy delivers it now, and hand-back ends the pause")
        if sight.trouble:
            found.append(f"it could not be compared: {sight.trouble}")
    elif not engines.over(app.namespace):
        found.append(f"no Argo CD looks at namespace {app.namespace}: argosy goes on delivering it")
    elif _syncs_itself(app):
        found.append("it syncs by itself: Argo CD syncs what differs by its own comparison")
    return found


async def _has_argosy(desk: Desk) -> bool:
    try:
        return await has_engine(desk.cluster, desk.control)
    except ClusterError:  # who may not see leases is not told
        return True


def objects(count: int) -> str:
    return f"{count} object{'' if count == 1 else 's'}"


# -- what would be compared differently --------------------------------------------------------------------------------


async def _seen(reader: Reader, app: Application) -> _Sight:
    try:
        look = await reader.at(app).look(app, is_judged=False)
    except ArgosyError as error:
        return _Sight(trouble=str(error).removeprefix(f"{app.name}: "))
    if not look.is_whole:
        return _Sight(trouble="; ".join(each.message for each in look.conditions) or "it is not known why")
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
            told.append(f"{key.kind}/{key.name}: its status says {one}, argosy {other}{why}")
    return _Sight(len(ours), len(fields), tuple(told))


# -- doing it ----------------------------------------------------------------------------------------------------------


async def until_free(desk: Desk, apps: Sequence[Application], seconds: float) -> list[Application]:
    """As they are when no operation is under way; raises TooLate."""
    found = []
    for app in apps:
        last: list[Manifest] = [dict(app.wire)]

        def is_free(manifest: Manifest | None, last: list[Manifest] = last) -> bool:
            last[0] = manifest or last[0]
            return manifest is None or not is_busy(read_application(manifest))

        if not await until(desk.cluster, app.key, is_free, seconds):
            raise TooLate(f"{app.name}: its operation is still under way after {seconds:g} s; nothing was moved")
        found.append(read_application(last[0]))
    return found


async def move(desk: Desk, planned: Move) -> Application:
    """Both annotations in one write, on what it is now: one that has begun an operation meanwhile is refused."""
    by = await desk.who()
    made = Hold("adopted", by, now(), ", ".join(revisions(planned.app))) if planned.holds else None

    def make(current: Application) -> dict[str, Any]:
        check_free(current)
        if planned.way is Way.ADOPT:
            held = {names.HOLD: hold_text(made)} if made is not None else {}
            return {"metadata": {"annotations": {**ADOPTED, **held}}}
        return {"metadata": {"annotations": dict.fromkeys(ADOPTED)}}

    after = await desk.revise(planned.app, make)
    what = "adopted it, for argosy to deliver" if planned.way is Way.ADOPT else "handed it back to Argo CD"
    await desk.record(event(after, Reason.RESOURCE_UPDATED, f"{by or NOBODY} {what}", at=now(), by=by))
    return after


__all__ = ["ADOPTED", "Move", "Way", "move", "objects", "plan_moves", "until_free"]

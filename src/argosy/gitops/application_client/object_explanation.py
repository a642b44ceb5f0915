"""Explains one object or one field: owner, differences, causes and the next command.

In: a reader, names such as `deploy/web` and `.spec.replicas`. Out: Explanation. Never: changes anything; shows a value
of a Secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argosy.errors import ClusterError, Forbidden, RenderError, UnknownRef, UserError
from argosy.gitops.analysis.cause import Cause, CauseKind
from argosy.gitops.analysis.evidence import ABSENT, Evidence, value_at
from argosy.gitops.analysis.field_paths import find_field
from argosy.gitops.analysis.field_report import FieldStory, tell
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import Pair
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.difference_causes import evidence, signed, unrendered
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.application_client.summary import rows
from argosy.gitops.diff import additions, differences, masked_pair, readable
from argosy.gitops.reconciler.app_state import Look
from argosy.gitops.status.wire_format import given, mappings
from argosy.kube.client.resource_names import read_names
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.patch.json_pointer import parse


@dataclass(frozen=True)
class Told:
    """A field with both values; ABSENT if a side has none. `path` is the display form of the pointer."""

    story: FieldStory
    path: str
    live: Any
    desired: Any

    @property
    def has_live(self) -> bool:
        return self.live is not ABSENT

    @property
    def has_desired(self) -> bool:
        return self.desired is not ABSENT

    def document(self) -> dict[str, Any]:
        sides = {name: value for name, value in (("desired", self.desired), ("live", self.live)) if value is not ABSENT}
        story = self.story
        return {
            "path": story.pointer,
            "differs": story.differs,
            **sides,
            "cause": story.cause.document(),
            **given(manager=story.manager, since=story.since),
        }


@dataclass(frozen=True)
class Explanation:
    """`fields`: the differing fields, or the requested one. `foreign_fields`: fields that Git does not set."""

    key: ResourceKey
    app: str
    status: str
    health: str
    message: str = ""
    cause: Cause | None = None  # cause for the whole object: it is missing, extra, or the Application does not render
    fields: tuple[Told, ...] = ()
    others: tuple[Told, ...] = ()

    def document(self) -> dict[str, Any]:
        return {
            "object": self.key._asdict(),
            "application": self.app,
            "status": self.status,
            **given(health=self.health, message=self.message, cause=self.cause.document() if self.cause else None),
            "fields": [each.document() for each in self.fields],
            **given(setByOthers=[each.document() for each in self.others]),
        }


async def find(desk: Desk, what: str, namespace: str = "", app: str = "") -> tuple[Application, ResourceKey]:
    """Find the object among those of Applications. Raises UserError if there is none or more than one."""
    word, _, name = what.partition("/")
    apps = [await desk.find(app)] if app else await _applications(desk)
    kind = await _kind(desk, what, word, apps)
    found = {
        (each.name, row.key): (each, row.key)
        for each in apps
        for row in rows(each)
        if row.key.name == name and row.key.group_kind == kind and namespace in ("", row.key.namespace)
    }
    if not found:
        raise UserError(await _nobodys(desk, kind, name, namespace, app))
    if len(found) > 1:
        places = ", ".join(f"{key.namespace or 'no namespace'} (of {owner})" for owner, key in found)
        raise UserError(f"{what} is ambiguous: {places}; choose one with -n NAMESPACE or --app APP")
    return next(iter(found.values()))


async def _applications(desk: Desk) -> list[Application]:
    try:
        return await desk.all(everywhere=True)
    except Forbidden:
        return await desk.all()  # without permission for all namespaces, use the default one


async def _kind(desk: Desk, what: str, word: str, apps: Sequence[Application]) -> GroupKind:
    """Resolve the kind, also one that the cluster no longer serves but an Application has."""
    try:
        return read_names([what], await desk.cluster.kinds())[0].kind
    except UserError:
        for key in (row.key for each in apps for row in rows(each)):
            if word.lower() in (key.kind.lower(), f"{key.kind}.{key.group}".lower()):
                return key.group_kind
        raise


async def _nobodys(desk: Desk, kind: GroupKind, name: str, namespace: str, app: str) -> str:
    called = f"{kind.kind}/{name}"
    if app:
        return f"{app} has no {called}; list its objects: argosy app resources {app}"
    advice = "give its namespace with -n, or list the objects: argosy app resources NAME"
    try:
        live = await desk.cluster.get(ResourceKey(*kind, namespace, name)) if namespace else None
    except ClusterError:
        live = None
    owner = next(iter(mappings(((live or {}).get("metadata") or {}).get("ownerReferences"))), None)
    if owner:
        above = f"{owner.get('kind')}/{owner.get('name')}"
        return f"{called} was created by {above}, not by an Application; explain its owner: argosy explain {above}"
    return f"no Application has {called}; {advice}"


async def explain(reader: Reader, app: Application, key: ResourceKey, field: str = "") -> Explanation:
    row = next((each for each in rows(app) if each.key == key), None)
    status, health, message = (row.status, row.health, row.message) if row else ("", "", "")
    try:
        look = await reader.look(app)
    except (RenderError, UnknownRef) as error:
        cause = await unrendered(reader, app, error)
        return Explanation(key, app.name, "Unknown", health, message, cause)
    pair = next((each for each in look.comparison.pairs if each.key == key), None)
    if pair is None:
        cause = Cause(CauseKind.UNKNOWN, "the object is a hook or is excluded from comparison, so it cannot differ")
        return Explanation(key, app.name, status, health, message, cause)
    status = "OutOfSync" if pair.differs else "Synced"
    fares = (await reader.health(app)).get(key)
    if fares is not None and fares.health is not None:
        health, message = fares.health.value, fares.message
    return await _explained(reader, app, look, pair, field, Explanation(key, app.name, status, health, message))


async def _explained(
    reader: Reader, app: Application, look: Look, pair: Pair, field: str, made: Explanation
) -> Explanation:
    masks = reader.rules.compare.masked_annotations
    shown, differing = (
        masked_pair(pair, masks),
        {each.pointer: each for each in differences(pair, masked_annotations=masks)},
    )
    chosen = [find_field(field, pair.live or pair.desired or {})] if field else list(differing)
    others = [] if field else [each.pointer for each in additions(pair)]
    known = (await evidence(reader, app, look, [(pair, [*chosen, *others])]))[pair.key]
    stories = {each: tell(known, each, _difference(each, differing)) for each in [*chosen, *others]}
    causes = await signed(reader, app, look.assembled, {pair.key: {at: each.cause for at, each in stories.items()}})
    told = {at: _told(known, shown, each, causes[pair.key][at]) for at, each in stories.items()}
    whole = causes[pair.key].get("") if not field else None
    fields = tuple(told[each] for each in chosen if each)
    return Explanation(
        made.key, made.app, made.status, made.health, made.message, whole, fields, tuple(told[each] for each in others)
    )


def _difference(pointer: str, differing: dict[str, Any]) -> Any:
    """Return the difference of this field, of a parent of it, or the first one within it."""
    if pointer in differing or not differing:
        return differing.get(pointer)
    tokens = parse(pointer)
    for at, each in differing.items():
        there = parse(at)
        if there[: len(tokens)] == tokens[: len(there)]:
            return each
    return None


def _told(known: Evidence, shown: Pair, story: FieldStory, cause: Cause) -> Told:
    tokens, like = parse(story.pointer), known.live_form
    live = value_at(shown.compared or shown.live, tokens, like)
    desired = value_at(shown.desired, tokens, like)
    told = FieldStory(story.pointer, story.differs, cause, story.manager, story.since)
    return Told(told, readable(story.pointer, like or shown.desired or {}), live, desired)

"""Differences as template values: fields with causes, side-by-side lines, objects to create or prune.

In: differing objects. Out: ObjectDifference values. Never: a value of a Secret: the input is masked.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from argosy.features.applications.page_parts.resource_key_template_attributes import KeyProperties
from argosy.features.applications.page_parts.url_paths import resource_path
from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import FieldDifference
from argosy.gitops.application_client.diff_presentation import DifferingObject
from argosy.kube.patch.json_pointer import parse
from argosy.kube.resource_key import ResourceKey

MAX_VALUE_LENGTH = 2000  # characters of a value
CONTEXT_LINES = 4  # equal lines shown around each difference
CAUSES_IN_GIT = frozenset(
    {
        CauseKind.GIT_CHANGE,
        CauseKind.OTHER_REVISION,
        CauseKind.STALE_BRANCH,
        CauseKind.PRUNE,
        CauseKind.UNKNOWN_FIELD,
    }
)
FILTERS = ("all", "mine", "cluster")


@dataclass(frozen=True, slots=True)
class CauseBadge:
    """Cause of a difference, with author and location."""

    kind: str
    words: str
    text: str
    next: str
    place: str
    commit: str
    revision: str
    author: str
    subject: str
    manager: str
    at: str
    is_mine: bool
    wants_more: bool


@dataclass(frozen=True, slots=True)
class FieldChange:
    path: str
    pointer: str
    live: str
    desired: str
    has_live: bool
    has_desired: bool
    badge: CauseBadge | None
    place: str


@dataclass(frozen=True, slots=True)
class SideBySideLine:
    """A line of the side-by-side view. Kinds: same, changed, old, new, gap."""

    kind: str
    left: int
    left_text: str
    right: int
    right_text: str


@dataclass(frozen=True, slots=True)
class ObjectDifference(KeyProperties):
    key: ResourceKey
    url: str
    deed: str  # create, update, prune
    badge: CauseBadge | None
    fields: tuple[FieldChange, ...]
    hidden: int  # fields excluded by the filter
    added: tuple[FieldChange, ...]
    lines: tuple[SideBySideLine, ...]


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    create: int
    update: int
    prune: int
    fields: int

    @property
    def total(self) -> int:
        return self.create + self.update + self.prune


def build_changes(
    app: Application, differing_objects: Sequence[DifferingObject], show: str = "all", *, has_lines: bool = False
) -> tuple[ObjectDifference, ...]:
    object_changes = [_build_change(app, item, show, has_lines=has_lines) for item in differing_objects]
    kept = [item for item in object_changes if show == "all" or item.fields or _matches_filter(item.badge, show)]
    order = {"prune": 0, "update": 1, "create": 2}
    return tuple(sorted(kept, key=lambda item: (order[item.deed], item.key)))


def count_changes(differing_objects: Sequence[DifferingObject]) -> ChangeCounts:
    kinds = [_classify_change(differing_object) for differing_object in differing_objects]
    fields = sum(
        len(differing_object.fields)
        for differing_object in differing_objects
        if _classify_change(differing_object) == "update"
    )
    return ChangeCounts(kinds.count("create"), kinds.count("update"), kinds.count("prune"), fields)


def _classify_change(differing_object: DifferingObject) -> str:
    return "prune" if not differing_object.desired else "create" if not differing_object.live else "update"


def _build_change(
    app: Application, differing_object: DifferingObject, show: str, *, has_lines: bool
) -> ObjectDifference:
    kind = _classify_change(differing_object)
    fields = (
        tuple(_build_field(differing_object, field) for field in differing_object.fields) if kind == "update" else ()
    )
    shown_fields = tuple(field for field in fields if _matches_filter(field.badge, show))
    return ObjectDifference(
        differing_object.key,
        resource_path(app.namespace, app.name, differing_object.key),
        kind,
        build_badge(differing_object.causes.get("")),
        shown_fields,
        len(fields) - len(shown_fields),
        tuple(_build_field(differing_object, field) for field in differing_object.foreign_fields)
        if show != "mine"
        else (),
        build_side_by_side(differing_object.live, differing_object.desired) if has_lines else (),
    )


def _matches_filter(cause_badge: CauseBadge | None, show: str) -> bool:
    if show == "all":
        return True
    is_mine = cause_badge is not None and cause_badge.is_mine
    return is_mine if show == "mine" else not is_mine


def _build_field(differing_object: DifferingObject, field: FieldDifference) -> FieldChange:
    cause_badge = build_badge(differing_object.causes.get(field.pointer))
    return FieldChange(
        ".".join(parse(field.pointer)) or ".",
        field.pointer,
        render_value(field.live) if field.has_live else "",
        render_value(field.desired) if field.has_desired else "",
        field.has_live,
        field.has_desired,
        cause_badge,
        differing_object.locations.get(field.pointer, "") or (cause_badge.place if cause_badge else ""),
    )


def build_badge(cause: Cause | None) -> CauseBadge | None:
    if cause is None:
        return None
    return CauseBadge(
        cause.kind.value,
        cause.kind.label,
        cause.text,
        cause.next,
        cause.location,
        cause.commit_summary,
        cause.revision,
        cause.author,
        cause.subject,
        cause.manager,
        cause.at,
        cause.kind in CAUSES_IN_GIT,
        cause.kind.needs_more_than_sync,
    )


def render_value(value: Any) -> str:
    """Render a value on one line as in YAML, truncated to MAX_VALUE_LENGTH."""
    if isinstance(value, str):
        text = value if value and value.isprintable() and value.strip() == value else orjson.dumps(value).decode()
    else:
        text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 1]}…"


def build_side_by_side(live: str, desired: str) -> tuple[SideBySideLine, ...]:
    """Pair differing lines with some context, and put gaps between the groups."""
    old, new = live.splitlines(), desired.splitlines()
    rows: list[SideBySideLine] = []
    for number, group in enumerate(
        difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT_LINES)
    ):
        if number:
            rows.append(SideBySideLine("gap", 0, "", 0, ""))
        for tag, i, j, k, m in group:
            rows += _build_lines(tag, old, new, (i, j, k, m))
    return tuple(rows)


def _build_lines(
    tag: str, old: Sequence[str], new: Sequence[str], span: tuple[int, int, int, int]
) -> list[SideBySideLine]:
    i, j, k, m = span
    if tag == "equal":
        return [
            SideBySideLine("same", i + offset + 1, old[i + offset], k + offset + 1, new[k + offset])
            for offset in range(j - i)
        ]
    rows = []
    for offset in range(max(j - i, m - k)):
        has_old, has_new = i + offset < j, k + offset < m
        kind = "changed" if has_old and has_new else "old" if has_old else "new"
        left, left_text = (i + offset + 1, old[i + offset]) if has_old else (0, "")
        right, right_text = (k + offset + 1, new[k + offset]) if has_new else (0, "")
        rows.append(SideBySideLine(kind, left, left_text, right, right_text))
    return rows

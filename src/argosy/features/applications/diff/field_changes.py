"""Differences as template values: fields with causes, side-by-side lines, objects to create or prune.

In: differing objects. Out: ObjectDifference values. Never: a value of a Secret: the input is masked.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from argosy.features.applications.page_parts.addresses import of_resource
from argosy.features.applications.page_parts.keyed_values import Keyed
from argosy.gitops.analysis.cause import Cause, CauseKind
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import Difference
from argosy.gitops.application_client.differences import Differing
from argosy.kube.names import ResourceKey
from argosy.kube.patch.json_pointer import parse

LONGEST = 2000  # characters of a value
AROUND = 4  # equal lines shown around each difference
MINE = frozenset(
    {
        CauseKind.YOUR_CHANGE,
        CauseKind.OTHER_REVISION,
        CauseKind.STALE_BRANCH,
        CauseKind.PRUNE,
        CauseKind.UNKNOWN_FIELD,
    }
)
SHOWN = ("all", "mine", "cluster")


@dataclass(frozen=True, slots=True)
class Badge:
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
class Field:
    path: str
    pointer: str
    live: str
    desired: str
    has_live: bool
    has_desired: bool
    badge: Badge | None
    place: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the side-by-side view. Kinds: same, changed, old, new, gap."""

    kind: str
    left: int
    left_text: str
    right: int
    right_text: str


@dataclass(frozen=True, slots=True)
class Change(Keyed):
    key: ResourceKey
    url: str
    deed: str  # create, update, prune
    badge: Badge | None
    fields: tuple[Field, ...]
    hidden: int  # fields excluded by the filter
    added: tuple[Field, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    create: int
    update: int
    prune: int
    fields: int

    @property
    def total(self) -> int:
        return self.create + self.update + self.prune


def changes(
    app: Application, found: Sequence[Differing], show: str = "all", *, has_lines: bool = False
) -> tuple[Change, ...]:
    made = [_change(app, each, show, has_lines=has_lines) for each in found]
    kept = [each for each in made if show == "all" or each.fields or _fits(each.badge, show)]
    order = {"prune": 0, "update": 1, "create": 2}
    return tuple(sorted(kept, key=lambda each: (order[each.deed], each.key)))


def counts(found: Sequence[Differing]) -> Counts:
    kinds = [_kind(each) for each in found]
    fields = sum(len(each.fields) for each in found if _kind(each) == "update")
    return Counts(kinds.count("create"), kinds.count("update"), kinds.count("prune"), fields)


def _kind(found: Differing) -> str:
    return "prune" if not found.desired else "create" if not found.live else "update"


def _change(app: Application, found: Differing, show: str, *, has_lines: bool) -> Change:
    kind = _kind(found)
    fields = tuple(_field(found, each) for each in found.fields) if kind == "update" else ()
    shown = tuple(each for each in fields if _fits(each.badge, show))
    return Change(
        found.key,
        of_resource(app.namespace, app.name, found.key),
        kind,
        badge(found.causes.get("")),
        shown,
        len(fields) - len(shown),
        tuple(_field(found, each) for each in found.added) if show != "mine" else (),
        side_by_side(found.live, found.desired) if has_lines else (),
    )


def _fits(found: Badge | None, show: str) -> bool:
    if show == "all":
        return True
    is_mine = found is not None and found.is_mine
    return is_mine if show == "mine" else not is_mine


def _field(found: Differing, field: Difference) -> Field:
    made = badge(found.causes.get(field.pointer))
    return Field(
        ".".join(parse(field.pointer)) or ".",
        field.pointer,
        value_text(field.live) if field.has_live else "",
        value_text(field.desired) if field.has_desired else "",
        field.has_live,
        field.has_desired,
        made,
        found.written.get(field.pointer, "") or (made.place if made else ""),
    )


def badge(cause: Cause | None) -> Badge | None:
    if cause is None:
        return None
    return Badge(
        cause.kind.value,
        cause.kind.words,
        cause.text,
        cause.next,
        cause.place,
        cause.commit,
        cause.revision,
        cause.author,
        cause.subject,
        cause.manager,
        cause.at,
        cause.kind in MINE,
        cause.kind.wants_more,
    )


def value_text(value: Any) -> str:
    """Render a value on one line as in YAML, truncated to MAX_VALUE_LENGTH."""
    if isinstance(value, str):
        text = value if value and value.isprintable() and value.strip() == value else orjson.dumps(value).decode()
    else:
        text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def side_by_side(live: str, desired: str) -> tuple[Line, ...]:
    """Pair differing lines with some context, and put gaps between the groups."""
    old, new = live.splitlines(), desired.splitlines()
    found: list[Line] = []
    for number, group in enumerate(difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(AROUND)):
        if number:
            found.append(Line("gap", 0, "", 0, ""))
        for tag, i, j, k, m in group:
            found += _lines(tag, old, new, (i, j, k, m))
    return tuple(found)


def _lines(tag: str, old: Sequence[str], new: Sequence[str], span: tuple[int, int, int, int]) -> list[Line]:
    i, j, k, m = span
    if tag == "equal":
        return [Line("same", i + at + 1, old[i + at], k + at + 1, new[k + at]) for at in range(j - i)]
    made = []
    for at in range(max(j - i, m - k)):
        has_old, has_new = i + at < j, k + at < m
        kind = "changed" if has_old and has_new else "old" if has_old else "new"
        left, left_text = (i + at + 1, old[i + at]) if has_old else (0, "")
        right, right_text = (k + at + 1, new[k + at]) if has_new else (0, "")
        made.append(Line(kind, left, left_text, right, right_text))
    return made

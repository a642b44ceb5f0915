"""Summarizes a preview for all output formats.

In: a preview. Out: rows, field lines, line diffs, JSON documents. Never: a value of a Secret.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, NamedTuple

import orjson

from argosy.features.preview.service import Preview
from argosy.gitops.analysis.change_effects import Effect, field_line
from argosy.gitops.analysis.object_changes import Becomes, Change, Touched
from argosy.gitops.application.step_results import Difference

LONGEST_VALUE: Final = 120
MOST_EFFECTS: Final = 3


class Row(NamedTuple):
    """Summary of one Application."""

    name: str
    environment: str
    sync: str
    new: int
    other: int
    gone: int
    impact: str


def rows(preview: Preview) -> list[Row]:
    pairs = zip(preview.impact.touched, preview.impact.effects, strict=True)
    return [_row(touched, effects) for touched, effects in pairs]


def _row(touched: Touched, effects: tuple[Effect, ...]) -> Row:
    counts = touched.counts()
    numbers = (counts[Becomes.NEW], counts[Becomes.OTHER], counts[Becomes.GONE])
    return Row(touched.name, touched.environment, how_synced(touched), *numbers, impact_of(touched, effects))


def how_synced(touched: Touched) -> str:
    """Return `auto` if a merge is synced automatically, else `manual`."""
    if touched.is_folder:
        return "-"
    automated = touched.after.policy.automated if touched.after else None
    return "auto" if automated is not None and automated.is_on else "manual"


def impact_of(touched: Touched, effects: tuple[Effect, ...]) -> str:
    said = []
    if touched.fault:
        said.append(f"cannot be rendered: {touched.fault.message}")
    elif touched.fault_before:
        said.append("could not be rendered before, can be now")
    if not touched.is_folder and touched.before is None and touched.after is not None:
        said.append("is new")
    if not touched.is_folder and touched.after is None:
        said.append("removed from Git")
    said += [f"{each.name} {each.text}" for each in effects[:MOST_EFFECTS]]
    if len(effects) > MOST_EFFECTS:
        said.append(f"and {len(effects) - MOST_EFFECTS} more")
    return "; ".join([*said, *touched.notes]) or "nothing restarts"


class FieldLine(NamedTuple):
    path: str
    before: str
    after: str
    place: str  # file:line


def field_lines(change: Change) -> Iterator[FieldLine]:
    for each in change.fields:
        place = str(change.place(each.pointer)) if each.has_desired else ""
        yield FieldLine(field_line(change, each.pointer), *_sides(each), place)


def _sides(each: Difference) -> tuple[str, str]:
    return value(each.live) if each.has_live else "(none)", value(each.desired) if each.has_desired else "(none)"


def value(given: Any) -> str:
    text = given if isinstance(given, str) and given.isprintable() and given.strip() else orjson.dumps(given).decode()
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def unified(change: Change, context: int = 3) -> list[str]:
    before, after = (text.splitlines() for text in change.texts)
    return list(difflib.unified_diff(before, after, "before", "after", lineterm="", n=context))[2:]


def head_line(preview: Preview) -> str:
    where = f"since {preview.base}" if preview.is_working else f"{preview.base}…{preview.head}"
    return f"{preview.title} ({where}): {_looked(preview)}, {'against live' if preview.is_live else 'no cluster'}"


def _looked(preview: Preview) -> str:
    files = {0: "no file differs", 1: "1 file differs"}.get(preview.files, f"{preview.files} files differ")
    if not preview.applications and not preview.rendered:
        return files
    return f"{files}, {preview.rendered} of {preview.applications} rendered in {preview.seconds:.1f} s"


def as_data(preview: Preview) -> dict[str, Any]:
    made: dict[str, Any] = _texts(_data(preview))
    return made


def _texts(given: Any) -> Any:
    """Escape file names that are not valid UTF-8, which JSON and YAML cannot hold."""
    if isinstance(given, str):
        return given if given.isascii() else given.encode("utf-8", "backslashreplace").decode()
    if isinstance(given, dict):
        return {name: _texts(value) for name, value in given.items()}
    return [_texts(each) for each in given] if isinstance(given, list) else given


def _data(preview: Preview) -> dict[str, Any]:
    least, most = preview.impact.delta
    return {
        "apiVersion": "cli.argosy.dev/v1",
        "kind": "Preview",
        "base": {"name": preview.names[0], "revision": preview.base},
        "head": {"name": preview.names[1], "revision": preview.head},
        "isLive": preview.is_live,
        "impact": {
            "sentence": preview.impact.sentence,
            "verdict": str(preview.impact.verdict),
            "cpu": _plain(least.cpu),
            "memory": _plain(least.memory),
            "gpu": _plain(least.gpu),
            "mostGpu": _plain(most.gpu),
            "effects": [each.as_data() for each in preview.impact.all_effects],
        },
        "applications": preview.applications,
        "rendered": preview.rendered,
        "items": [
            _touched_data(touched, effects)
            for touched, effects in zip(preview.impact.touched, preview.impact.effects, strict=True)
        ],
        "notes": list(preview.notes),
    }


def _plain(amount: Decimal) -> str:
    return f"{amount.normalize():f}" if amount else "0"


def _touched_data(touched: Touched, effects: tuple[Effect, ...]) -> dict[str, Any]:
    return {
        "name": touched.name,
        "kind": "folder" if touched.is_folder else "Application",
        "environment": touched.environment or None,
        "sync": how_synced(touched),
        "isNew": not touched.is_folder and touched.before is None,
        "isGone": not touched.is_folder and touched.after is None,
        "fault": f"{touched.fault.place}: {touched.fault.message}" if touched.fault else None,
        "faultBefore": touched.fault_before.message if touched.fault_before else None,
        "effects": [each.as_data() for each in effects],
        "objects": [_change_data(change) for change in touched.changes],
    }


def _change_data(change: Change) -> dict[str, Any]:
    return {
        **change.key._asdict(),
        "becomes": {"+": "new", "~": "changed", "-": "gone"}[change.becomes],
        "fields": [
            {
                "path": each.pointer,
                **({"before": each.live} if each.has_live else {}),
                **({"after": each.desired} if each.has_desired else {}),
                **({"writtenIn": str(change.place(each.pointer))} if each.has_desired else {}),
            }
            for each in change.fields
        ],
    }

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
from argosy.gitops.analysis.change_effects import render_field_path
from argosy.gitops.analysis.cluster_effect_types import Effect
from argosy.gitops.analysis.object_changes import ApplicationChange, ChangeType, ObjectChange
from argosy.gitops.application.step_results import FieldDifference
from argosy.kube.well_known_kinds import CLI_API_VERSION

MAX_VALUE_CHARACTERS: Final = 120
MAX_SHOWN_EFFECTS: Final = 3


class PreviewRow(NamedTuple):
    """Summary of one Application."""

    name: str
    environment: str
    sync: str
    new: int
    other: int
    gone: int
    impact: str


def build_rows(preview: Preview) -> list[PreviewRow]:
    pairs = zip(preview.impact.app_changes, preview.impact.effects, strict=True)
    return [_build_row(touched, effects) for touched, effects in pairs]


def _build_row(touched: ApplicationChange, effects: tuple[Effect, ...]) -> PreviewRow:
    counts = touched.count_by_type()
    numbers = (counts[ChangeType.ADDED], counts[ChangeType.MODIFIED], counts[ChangeType.REMOVED])
    return PreviewRow(
        touched.name, touched.environment, describe_sync_policy(touched), *numbers, describe_impact(touched, effects)
    )


def describe_sync_policy(touched: ApplicationChange) -> str:
    """Return `auto` if a merge is synced automatically, else `manual`."""
    if touched.is_folder:
        return "-"
    automated = touched.after.policy.automated if touched.after else None
    return "auto" if automated is not None and automated.is_on else "manual"


def describe_impact(touched: ApplicationChange, effects: tuple[Effect, ...]) -> str:
    sentences = []
    if touched.render_failure:
        sentences.append(f"cannot be rendered: {touched.render_failure.message}")
    elif touched.render_failure_before:
        sentences.append("could not be rendered before, can be now")
    if not touched.is_folder and touched.before is None and touched.after is not None:
        sentences.append("is new")
    if not touched.is_folder and touched.after is None:
        sentences.append("removed from Git")
    sentences += [f"{effect.name} {effect.text}" for effect in effects[:MAX_SHOWN_EFFECTS]]
    if len(effects) > MAX_SHOWN_EFFECTS:
        sentences.append(f"and {len(effects) - MAX_SHOWN_EFFECTS} more")
    return "; ".join([*sentences, *touched.notes]) or "nothing restarts"


class FieldLine(NamedTuple):
    path: str
    before: str
    after: str
    place: str  # file:line


def iterate_field_lines(change: ObjectChange) -> Iterator[FieldLine]:
    for difference in change.fields:
        location = str(change.find_location(difference.pointer)) if difference.has_desired else ""
        yield FieldLine(render_field_path(change, difference.pointer), *_format_sides(difference), location)


def _format_sides(difference: FieldDifference) -> tuple[str, str]:
    return format_field_value(difference.live) if difference.has_live else "(none)", format_field_value(
        difference.desired
    ) if difference.has_desired else "(none)"


def format_field_value(raw_value: Any) -> str:
    text = (
        raw_value
        if isinstance(raw_value, str) and raw_value.isprintable() and raw_value.strip()
        else orjson.dumps(raw_value).decode()
    )
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[: MAX_VALUE_CHARACTERS - 1]}…"


def build_unified_diff(change: ObjectChange, context: int = 3) -> list[str]:
    before, after = (text.splitlines() for text in change.yaml_texts)
    return list(difflib.unified_diff(before, after, "before", "after", lineterm="", n=context))[2:]


def render_preview_summary(preview: Preview) -> str:
    range_text = f"since {preview.base}" if preview.has_working_tree else f"{preview.base}…{preview.head}"
    return (
        f"{preview.title} ({range_text}): {_render_counts(preview)}, "
        f"{'against live' if preview.is_live else 'no cluster'}"
    )


def _render_counts(preview: Preview) -> str:
    files = {0: "no file differs", 1: "1 file differs"}.get(preview.files, f"{preview.files} files differ")
    if not preview.applications and not preview.rendered:
        return files
    return f"{files}, {preview.rendered} of {preview.applications} rendered in {preview.seconds:.1f} s"


def preview_to_wire(preview: Preview) -> dict[str, Any]:
    document: dict[str, Any] = _escape_texts(_build_document(preview))
    return document


def _escape_texts(data: Any) -> Any:
    """Escape file names that are not valid UTF-8, which JSON and YAML cannot hold."""
    if isinstance(data, str):
        return data if data.isascii() else data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, dict):
        return {name: _escape_texts(value) for name, value in data.items()}
    return [_escape_texts(item) for item in data] if isinstance(data, list) else data


def _build_document(preview: Preview) -> dict[str, Any]:
    min_delta, max_delta = preview.impact.resource_delta
    return {
        "apiVersion": CLI_API_VERSION,
        "kind": "Preview",
        "base": {"name": preview.names[0], "revision": preview.base},
        "head": {"name": preview.names[1], "revision": preview.head},
        "isLive": preview.is_live,
        "impact": {
            "sentence": preview.impact.summary,
            "verdict": str(preview.impact.verdict),
            "cpu": _format_amount(min_delta.cpu),
            "memory": _format_amount(min_delta.memory),
            "gpu": _format_amount(min_delta.gpu),
            "mostGpu": _format_amount(max_delta.gpu),
            "effects": [effect.to_wire() for effect in preview.impact.all_effects],
        },
        "applications": preview.applications,
        "rendered": preview.rendered,
        "items": [
            _application_to_wire(touched, effects)
            for touched, effects in zip(preview.impact.app_changes, preview.impact.effects, strict=True)
        ],
        "notes": list(preview.notes),
    }


def _format_amount(amount: Decimal) -> str:
    return f"{amount.normalize():f}" if amount else "0"


def _application_to_wire(touched: ApplicationChange, effects: tuple[Effect, ...]) -> dict[str, Any]:
    return {
        "name": touched.name,
        "kind": "folder" if touched.is_folder else "Application",
        "environment": touched.environment or None,
        "sync": describe_sync_policy(touched),
        "isNew": not touched.is_folder and touched.before is None,
        "isGone": not touched.is_folder and touched.after is None,
        "fault": f"{touched.render_failure.location}: {touched.render_failure.message}"
        if touched.render_failure
        else None,
        "faultBefore": touched.render_failure_before.message if touched.render_failure_before else None,
        "effects": [effect.to_wire() for effect in effects],
        "objects": [_object_to_wire(change) for change in touched.changes],
    }


def _object_to_wire(change: ObjectChange) -> dict[str, Any]:
    return {
        **change.key._asdict(),
        "becomes": {"+": "new", "~": "changed", "-": "gone"}[change.change_type],
        "fields": [
            {
                "path": difference.pointer,
                **({"before": difference.live} if difference.has_live else {}),
                **({"after": difference.desired} if difference.has_desired else {}),
                **({"writtenIn": str(change.find_location(difference.pointer))} if difference.has_desired else {}),
            }
            for difference in change.fields
        ],
    }

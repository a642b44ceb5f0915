"""Renders differences between Git and the cluster as text: per field, as a diff, and as totals."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from argosy.cli.subcommand_flags_and_runner import print_message
from argosy.cli.tables import TerminalOutput, format_count, wrap_text

if TYPE_CHECKING:
    from argosy.gitops.analysis.difference_cause_kinds import Cause
    from argosy.gitops.application import Application
    from argosy.gitops.application.step_results import FieldDifference
    from argosy.gitops.application_client.diff_presentation import DifferingObject

MAX_VALUE_LENGTH = 60
TO_PRUNE, TO_CREATE = "in the cluster, not in Git (to be pruned)", "in Git, not in the cluster (to be created)"


def render_diff(differing_object: DifferingObject, output: str) -> list[str]:
    from argosy.gitops.application_client.diff_presentation import format_normal_diff, format_unified_diff

    key = differing_object.key
    if output == "normal":  # argo: its heading and the output of the diff program
        return [
            "",
            f"===== {key.group}/{key.kind} {key.namespace}/{key.name} ======",
            *format_normal_diff(differing_object),
        ]
    screen = TerminalOutput(sys.stdout)
    if output == "diff":
        return [screen.format_diff_line(line) for line in format_unified_diff(differing_object)]
    namespace_flag = f" -n {key.namespace}" if key.namespace else ""
    return [
        f"{key.kind}/{key.name}{namespace_flag}",
        *(f"  {line}" for line in _render_fields(differing_object, screen)),
    ]


def _render_fields(differing_object: DifferingObject, screen: TerminalOutput) -> list[str]:
    object_cause = differing_object.causes.get("")
    if not differing_object.desired:
        description = object_cause.text if object_cause and object_cause.kind != "Prune" else TO_PRUNE
        return [f"{screen.format_status('OutOfSync')}  {description}{_render_location(object_cause)}"]
    if not differing_object.live:
        description = object_cause.text if object_cause and object_cause.kind != "YourChange" else TO_CREATE
        return [f"{screen.format_status('Missing')}  {description}{_render_location(object_cause)}"]
    rows = []
    for field in differing_object.fields:
        cause = differing_object.causes.get(field.pointer)
        description = f"{cause.labeled_text}{_render_location(cause)}" if cause else _render_author(field)
        rows.append((_render_path(field.pointer), _render_change(field), description))
    rows += [
        (
            _render_path(foreign_field.pointer),
            _render_value(foreign_field.live),
            f"no drift: set by {foreign_field.manager}",
        )
        for foreign_field in differing_object.foreign_fields
    ]
    width = max((len(row[0]) for row in rows), default=0)
    change_width = max((len(row[1]) for row in rows), default=0)
    lines = [f"{path:<{width}}  {change:<{change_width}}  {author}".rstrip() for path, change, author in rows]
    max_width = screen.width - 2 if screen.width is not None else None
    if max_width is None or max(map(len, lines), default=0) <= max_width:
        return lines
    pairs = [
        (wrap_text(f"{path}  {change}", max_width), wrap_text(f"    {author}", max_width, 6))
        for path, change, author in rows
    ]
    return [line for field, author in pairs for line in (*field, *author)]


def render_plan(differing_objects: Sequence[DifferingObject], *, prunes: bool) -> list[str]:
    """Render the changes of a sync object by object, without causes."""
    lines = []
    for differing_object in differing_objects:
        key, rows = (
            differing_object.key,
            [(_render_path(field.pointer), _render_change(field)) for field in differing_object.fields],
        )
        width = max((len(row[0]) for row in rows), default=0)
        object_lines = [f"{path:<{width}}  {change}" for path, change in rows]
        if not differing_object.desired:
            object_lines = [
                "will be deleted" if prunes else "stays, although that deployment did not have it (--prune deletes it)"
            ]
        elif not differing_object.live:
            object_lines = ["will be created"]
        lines += [
            f"{key.kind}/{key.name}{f' -n {key.namespace}' if key.namespace else ''}",
            *(f"  {object_line}" for object_line in object_lines),
        ]
    return lines


def _render_change(field: FieldDifference) -> str:
    live = _render_value(field.live) if field.has_live else "-"
    return f"{live} → {_render_value(field.desired) if field.has_desired else '-'}"


def _render_path(pointer: str) -> str:
    from argosy.kube.patch.json_pointer import parse

    return ".".join(parse(pointer)) or "."


def _render_location(cause: Cause | None) -> str:
    """Return file and commit of the desired value."""
    if cause is None or not cause.location:
        return ""
    return f" ({cause.location}{f', {cause.commit_summary}' if cause.commit_summary else ''})"


def _render_author(field: FieldDifference) -> str:
    if not field.manager:
        return ""
    return f"live value by {field.manager}{f' since {field.since}' if field.since else ''}"


def _render_value(value: Any) -> str:
    import orjson

    text = orjson.dumps(value).decode()
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 1]}…"


def print_totals(app: Application, differing_objects: Sequence[DifferingObject]) -> None:
    if not differing_objects:
        print_message(f"{app.name}: no differences")
        return
    create_count, prune_count = (
        sum(not differing_object.live for differing_object in differing_objects),
        sum(not differing_object.desired for differing_object in differing_objects),
    )
    changed = [
        differing_object for differing_object in differing_objects if differing_object.live and differing_object.desired
    ]
    fields = sum(len(differing_object.fields) for differing_object in changed)
    counts = [f"{format_count(fields, 'field')} of {format_count(len(changed), 'object')} to change"] if changed else []
    counts += [f"{format_count(create_count, 'object')} to create"] if create_count else []
    counts += [f"{format_count(prune_count, 'object')} to prune"] if prune_count else []
    unresolved = [
        differing_object.key
        for differing_object in differing_objects
        for cause in differing_object.causes.values()
        if cause.kind.needs_more_than_sync
    ]
    if unresolved:
        namespace_flag = f" -n {unresolved[0].namespace}" if unresolved[0].namespace else ""
        counts.append(f"{len(unresolved)} of which need{'s' if len(unresolved) == 1 else ''} more than a sync")
        next_command = f"argosy explain {unresolved[0].kind}/{unresolved[0].name}{namespace_flag}"
    else:
        next_command = f"argosy app sync {app.name}{' --prune' if prune_count else ''}"
    print_message(f"{app.name}: {', '.join(counts)}; next: {next_command}")

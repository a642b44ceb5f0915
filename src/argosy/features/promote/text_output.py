"""Renders promotion status, plans and history. In: values. Out: text lines and JSON documents. Never: decides."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from argosy.cli.tables import TerminalOutput, drop_control_characters, measure_width, wrap_text
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.well_known_kinds import CLI_API_VERSION

if TYPE_CHECKING:
    from argosy.features.promote.classified_manifest_fields import EnvironmentContents, FieldAddress, Release
    from argosy.features.promote.environment_sync_next_step import DeployedRelease
    from argosy.features.promote.gates import GateResult
    from argosy.features.promote.plan import PromotionPlan
    from argosy.features.promote.promotion_changes import FieldMove
    from argosy.features.promote.promotion_log_trailers import PromotionLogEntry
    from argosy.features.promote.service import PromotionSession
    from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment

GAP: Final = "  "


# -- status --


def render_status(session: PromotionSession, screen: TerminalOutput) -> Iterator[str]:
    from argosy.features.promote.classified_manifest_fields import EnvironmentContents, FieldKind

    pipeline = session.snapshot.pipeline
    columns = []
    is_chain = all(item.after == before.name for before, item in pairwise(pipeline.environments))
    for item in pipeline.environments:
        is_whole = item.name not in session.build_errors
        contents = session.snapshot.get_environment(item).contents if is_whole else EnvironmentContents({})
        release = (
            _render_release(session.snapshot.get_release(item))
            if is_whole
            else screen.format_failure("cannot be built")
        )
        rows = {
            "release": [release],
            "model": _list_versions(contents, FieldKind.MODEL),
            "image": _list_versions(contents, FieldKind.IMAGE),
            "runs": [_render_deployed(session, item)],
            "health": [_render_health(session, item, screen)],
            "gates": _render_gates(session, item, screen),
            "next": [_render_next_step(session, item)] if is_whole else ["–"],
        }
        columns.append(rows)
    widths = [
        max(
            len(_render_heading(item, is_chain)) + 4,
            *(measure_width(cell) for cells in rows.values() for cell in cells),
        )
        for item, rows in zip(pipeline.environments, columns, strict=True)
    ]
    if screen.width is not None:
        max_width = max(16, (screen.width - 9) // len(widths) - len(GAP))
        widths = [min(item, max_width) for item in widths]
        columns = [_fold_cells(rows, width) for rows, width in zip(columns, widths, strict=True)]
    yield f"{'':9}{_render_headings(pipeline.environments, widths, screen, is_chain)}".rstrip()
    for name in columns[0]:
        if name in ("model", "image") and all(rows[name] == ["–"] for rows in columns):
            continue
        if name == "runs" and all(rows[name] in (["–"], rows["release"]) for rows in columns):
            continue
        for line in range(max(len(rows[name]) for rows in columns)):
            cells = (rows[name][line] if line < len(rows[name]) else "" for rows in columns)
            padded = (cell + " " * (width - measure_width(cell)) for cell, width in zip(cells, widths, strict=True))
            yield f"{name if not line else '':9}{GAP.join(padded)}".rstrip()


def _fold_cells(rows: Mapping[str, list[str]], width: int) -> dict[str, list[str]]:
    """Wrap cells on a narrow terminal instead of truncating them."""
    folded = functools.partial(wrap_text, width=width, indent=2, is_strict=True)
    return {name: [line for cell in cells for line in folded(cell)] for name, cells in rows.items()}


def _render_heading(environment: DeliveryEnvironment, is_chain: bool) -> str:
    return environment.name if is_chain or not environment.after else f"{environment.name} (after {environment.after})"


def _render_headings(
    environments: Sequence[DeliveryEnvironment], widths: Sequence[int], screen: TerminalOutput, is_chain: bool
) -> str:
    """Render arrows between the environments of a chain; in a fork, write `(after ENV)` instead."""
    dash, tip = ("─", "▶") if screen.has_unicode else ("-", ">")
    headings = []
    for index, (environment, width) in enumerate(zip(environments, widths, strict=True)):
        is_last = index == len(environments) - 1
        if is_chain and not is_last:
            line = dash * (width + len(GAP) - len(environment.name) - 3)
            headings.append(f"{environment.name} {line}{tip} ")
        else:
            headings.append(_truncate_name(_render_heading(environment, is_chain), width).ljust(width) + GAP)
    return "".join(headings)


def _truncate_name(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def _render_release(release: Release) -> str:
    return f"{release}{', by commit' if release.is_by_hand else ''}"


def _list_versions(contents: EnvironmentContents, kind: Any) -> list[str]:
    versions = dict.fromkeys(shorten_address(str(value)) for value in contents.select_values(kind).values() if value)
    return list(versions)[:4] or ["–"]


def shorten_address(value: str) -> str:
    """Return the last path segment of an address, with the digest shortened to 7 characters."""
    from argosy.features.promote.promotion_changes import split_image

    name, version = split_image(value.partition("://")[2] or value)
    if "@sha256:" in version:
        tag, _, digest = version.partition("@sha256:")
        version = f"{tag}@{digest[:7]}"
    return name.rpartition("/")[2] + version


def _render_health(session: PromotionSession, environment: DeliveryEnvironment, screen: TerminalOutput) -> str:
    from argosy.features.promote.gates import format_duration

    state = session.planner.get_state(environment)
    if state is None:
        return "no cluster" if session.cluster_state.unavailable_reason else "no Application"
    age = f" {format_duration((datetime.now(UTC) - state.health_since).total_seconds())}" if state.health_since else ""
    sync_text = f", {state.sync}" if state.sync != "Synced" else ""
    return f"{screen.format_status(state.health)}{age}{sync_text}"


def _render_deployed(session: PromotionSession, environment: DeliveryEnvironment) -> str:
    deployed = (
        session.planner.get_deployed_release(environment) if environment.name not in session.build_errors else None
    )
    return "–" if deployed is None else _render_release(deployed.release) if deployed.release else str(deployed)


def _render_gates(session: PromotionSession, environment: DeliveryEnvironment, screen: TerminalOutput) -> list[str]:
    """Render the gates of the pending promotion, or without one the holds."""
    plan = session.pending_plans.get(environment.name)
    cells = [
        render_gate_result(result, screen)
        for result in (plan.gate_results if plan else session.planner.list_holds(environment))
    ]
    return cells or ["–"]


def render_gate_result(result: GateResult, screen: TerminalOutput) -> str:
    mark = screen.format_mark("Healthy" if result.is_open else "failed")
    return f"{mark} {result.gate}"


def _render_next_step(session: PromotionSession, environment: DeliveryEnvironment) -> str:
    plan = session.pending_plans.get(environment.name)
    if plan is None:
        default_text = f"has all of {environment.after}" if environment.name in session.pending_plans else "–"
        step = session.planner.get_next_step(environment)
        return step.brief if step else "held" if session.planner.list_holds(environment) else default_text
    state = "ready" if plan.is_open else f"waits: {plan.closed_gates[0].gate}"
    return f"promote {plan.release.name} → {environment.name} ({state})"


# -- plan --


def render_plan(plan: PromotionPlan, screen: TerminalOutput) -> Iterator[str]:
    verb = "roll back" if plan.is_rollback else "promote"
    skipped = f", skipping {', '.join(plan.request.skipped)}" if plan.request.skipped else ""
    origin = f"from {plan.source.name}{skipped}" if not plan.is_rollback else f"instead of {plan.replaced}"
    yield f"{verb} {plan.release} to {plan.target.name}, {origin}"
    yield "moves:" if plan.changes.moves else f"moves: nothing; {plan.target.name} has all of {plan.release.name}"
    for line in _render_moves(plan.changes.moves):
        yield f"  {line}"
    for path in plan.files:
        yield f"  in {path}"
    if kept_text := _render_kept(plan):
        yield f"stays as it is in {plan.target.name}: {kept_text}"
    if plan.commit_count:
        yield f"new since {plan.replaced.name}: {plan.commit_count} commit{'s' if plan.commit_count > 1 else ''}"
    if plan.gate_results:
        yield "gates:"
        width = max(len(result.gate) for result in plan.gate_results)
        for result in plan.gate_results:
            opened_by = f" (can open it: {result.opened_by})" if result.opened_by and not result.is_open else ""
            mark = screen.format_mark("Healthy" if result.is_open else "failed")
            yield f"  {mark} {result.gate.ljust(width)}  {drop_control_characters(result.reason)}{opened_by}"
    for line in plan.following_gates:
        yield f"afterwards: {drop_control_characters(line)}"


def _render_moves(moves: Sequence[FieldMove]) -> list[str]:
    from argosy.features.promote.promotion_changes import mask_field_value

    rows = [
        (
            str(move.kind),
            _render_move_name(move),
            *(_format_value(mask_field_value(move.address, value)) for value in (move.before, move.after)),
        )
        for move in moves
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(2)]
    return [f"{row[0].ljust(widths[0])}  {row[1].ljust(widths[1])}  {row[2]} → {row[3]}" for row in rows]


def _render_move_name(move: FieldMove) -> str:
    """Add the field's name for parameters, because an object has many."""
    from argosy.features.promote.promotion_changes import get_field_name

    return drop_control_characters(
        f"{move.owner} {get_field_name(move.address)}" if move.kind == "parameter" else move.owner
    )


def _format_value(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        return drop_control_characters(" ".join(map(str, value)))
    return (
        drop_control_characters(shorten_address(value))
        if isinstance(value, str) and "/" in value
        else drop_control_characters(str(value))
    )


def _render_kept(plan: PromotionPlan) -> str:
    from argosy.features.promote.promotion_changes import describe_kept

    kept_values: dict[str, str] = {}
    for name, value in describe_kept(plan.changes.stays):
        kept_values.setdefault(name, value)
    if plan.is_rollback:  # compared with itself, so its own settings do not differ
        return drop_control_characters(
            ", ".join([*(f"{name} {value}" for name, value in kept_values.items()), "all else"])
        )
    if plan.name_prefix:
        kept_values["prefix"] = plan.name_prefix
    return drop_control_characters(", ".join(f"{name} {value}" for name, value in kept_values.items()))


# -- history --


def build_history_row(entry: PromotionLogEntry) -> tuple[str, ...]:
    when = datetime.fromtimestamp(entry.unix_seconds, UTC).strftime("%Y-%m-%d %H:%M")
    action = str(entry.action)
    release = entry.release.name if entry.release else "–"
    details = []
    if entry.source and entry.action == "promote":
        details.append(f"from {entry.source}")
    if entry.replaced:
        details.append(f"instead of {entry.replaced.name}")
    if entry.skipped:
        details.append(f"skipped {', '.join(entry.skipped)}")
    if entry.role:
        details.append(f"as {entry.role}")
    if entry.reason:
        details.append(entry.reason)
    by = f"{entry.actor.name} ({entry.actor.known_by})"
    return when, entry.environment, action, release, by, entry.commit[:7], "; ".join(details)


# -- documents --


def status_to_wire(session: PromotionSession) -> dict[str, Any]:
    from argosy.features.promote.classified_manifest_fields import FieldKind

    plans, documents = session.pending_plans, list[dict[str, Any]]()
    for environment in session.snapshot.pipeline.environments:
        if environment.name in session.build_errors:
            documents.append(
                {
                    "name": environment.name,
                    "after": environment.after or None,
                    "problem": str(session.build_errors[environment.name]),
                }
            )
            continue
        view, state = session.snapshot.get_environment(environment), session.planner.get_state(environment)
        plan = plans.get(environment.name)
        documents.append(
            {
                "name": environment.name,
                "after": environment.after or None,
                "application": environment.application,
                "release": _release_to_wire(session.snapshot.get_release(environment)),
                "models": sorted(set(map(str, view.contents.select_values(FieldKind.MODEL).values()))),
                "images": sorted(set(map(str, view.contents.select_values(FieldKind.IMAGE).values()))),
                "health": state.health if state else None,
                "sync": state.sync if state else None,
                "runs": _deployed_to_wire(session.planner.get_deployed_release(environment)),
                "holds": [
                    {"why": hold.reason, "next": hold.next_command} for hold in session.planner.list_holds(environment)
                ],
                "step": step.command if (step := session.planner.get_next_step(environment)) else None,
                "next": plan_to_wire(plan) if plan else None,
            }
        )
    return {"apiVersion": CLI_API_VERSION, "kind": "PromotionStatus", "environments": documents, "notes": session.notes}


def _deployed_to_wire(deployed: DeployedRelease | None) -> dict[str, Any] | None:
    return {"revision": deployed.revision, "release": _release_to_wire(deployed.release)} if deployed else None


def plan_to_wire(plan: PromotionPlan) -> dict[str, Any]:
    from argosy.features.promote.promotion_changes import mask_field_value

    return {
        "apiVersion": CLI_API_VERSION,
        "kind": "PromotionPlan",
        "from": plan.source.name,
        "to": plan.target.name,
        "release": _release_to_wire(plan.release),
        "over": _release_to_wire(plan.replaced),
        "isRollback": plan.is_rollback,
        "skipped": list(plan.request.skipped),
        "moves": [
            {
                "kind": item.kind.value,
                **_address_to_wire(item.address),
                "from": mask_field_value(item.address, item.before),
                "to": mask_field_value(item.address, item.after),
            }
            for item in plan.changes.moves
        ],
        "stays": [
            {
                **_address_to_wire(item.address),
                "value": mask_field_value(item.address, item.target),
                "there": mask_field_value(item.address, item.source),
            }
            for item in plan.changes.stays
        ],
        "files": sorted(plan.files),
        "gates": [
            {"gate": item.gate, "open": item.is_open, "why": item.reason, "who": item.opened_by}
            for item in plan.gate_results
        ],
        "ready": plan.is_open,
        "afterwards": list(plan.following_gates),
        "notes": list(plan.notes),
    }


def _address_to_wire(address: FieldAddress) -> dict[str, str]:
    return {"object": str(address.owner), "field": address.path}


def history_to_wire(log: Sequence[PromotionLogEntry]) -> dict[str, Any]:
    return {
        "apiVersion": CLI_API_VERSION,
        "kind": "PromotionHistory",
        "items": [_entry_to_wire(entry) for entry in log],
    }


def _entry_to_wire(entry: PromotionLogEntry) -> Mapping[str, Any]:
    return {
        "action": entry.action.value, "environment": entry.environment, "from": entry.source or None,
        "release": _release_to_wire(entry.release), "over": _release_to_wire(entry.replaced),
        "by": entry.actor.name, "knownBy": entry.actor.known_by, "reason": entry.reason or None,
        "skipped": list(entry.skipped), "gates": list(entry.gates), "commit": entry.commit,
        "time": format_timestamp(datetime.fromtimestamp(entry.unix_seconds, UTC)),
    }  # fmt: skip


def _release_to_wire(release: Release | None) -> dict[str, Any] | None:
    return {"name": release.name, "commit": release.commit, "byHand": release.is_by_hand} if release else None


def render_graph(environments: Sequence[DeliveryEnvironment]) -> Iterator[str]:
    """Render the pipeline in Graphviz dot format."""
    yield "digraph promotion {"
    yield "  rankdir=LR;"
    for environment in environments:
        yield f'  "{environment.name}";'
        if environment.after:
            gates = ", ".join(f"{gate.kind} {gate.value}".strip() for gate in environment.gates)
            yield f'  "{environment.after}" -> "{environment.name}" [label="{gates}"];'
    yield "}"

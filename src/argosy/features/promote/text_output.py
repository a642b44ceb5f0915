"""Renders promotion status, plans and history. In: values. Out: text lines and JSON documents. Never: decides."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from argosy.cli.tables import Screen, fold, plain, shown_width

if TYPE_CHECKING:
    from argosy.features.promote.gates import Verdict
    from argosy.features.promote.moves import Move
    from argosy.features.promote.next_steps import Running
    from argosy.features.promote.plan import Plan
    from argosy.features.promote.promotion_log import Entry
    from argosy.features.promote.releases import At, Contents, Release
    from argosy.features.promote.service import Session
    from argosy.gitops.delivery_file.values import Environment

API: Final = "cli.argosy.dev/v1"
GAP: Final = "  "


# -- status --


def picture(session: Session, screen: Screen) -> Iterator[str]:
    from argosy.features.promote.releases import Contents, Kind

    way = session.survey.way
    columns = []
    is_chain = all(each.after == before.name for before, each in pairwise(way.environments))
    for each in way.environments:
        is_whole = each.name not in session.broken
        contents = session.survey.view(each).contents if is_whole else Contents({})
        release = _release(session.survey.release(each)) if is_whole else screen.bad("cannot be built")
        rows = {
            "release": [release],
            "model": _versions(contents, Kind.MODEL),
            "image": _versions(contents, Kind.IMAGE),
            "runs": [_runs(session, each)],
            "health": [_health(session, each, screen)],
            "gates": _gates(session, each, screen),
            "next": [_next(session, each)] if is_whole else ["–"],
        }
        columns.append(rows)
    widths = [
        max(len(_head(each, is_chain)) + 4, *(shown_width(cell) for cells in rows.values() for cell in cells))
        for each, rows in zip(way.environments, columns, strict=True)
    ]
    if screen.width is not None:
        most = max(16, (screen.width - 9) // len(widths) - len(GAP))
        widths = [min(each, most) for each in widths]
        columns = [_folded(rows, width) for rows, width in zip(columns, widths, strict=True)]
    yield f"{'':9}{_heads(way.environments, widths, screen, is_chain)}".rstrip()
    for name in columns[0]:
        if name in ("model", "image") and all(rows[name] == ["–"] for rows in columns):
            continue
        if name == "runs" and all(rows[name] in (["–"], rows["release"]) for rows in columns):
            continue
        for line in range(max(len(rows[name]) for rows in columns)):
            cells = (rows[name][line] if line < len(rows[name]) else "" for rows in columns)
            padded = (cell + " " * (width - shown_width(cell)) for cell, width in zip(cells, widths, strict=True))
            yield f"{name if not line else '':9}{GAP.join(padded)}".rstrip()


def _folded(rows: Mapping[str, list[str]], width: int) -> dict[str, list[str]]:
    """Wrap cells on a narrow terminal instead of truncating them."""
    folded = functools.partial(fold, width=width, hang=2, is_strict=True)
    return {name: [line for cell in cells for line in folded(cell)] for name, cells in rows.items()}


def _head(environment: Environment, is_chain: bool) -> str:
    return environment.name if is_chain or not environment.after else f"{environment.name} (after {environment.after})"


def _heads(environments: Sequence[Environment], widths: Sequence[int], screen: Screen, is_chain: bool) -> str:
    """Render arrows between the environments of a chain; in a fork, write `(after ENV)` instead."""
    dash, tip = ("─", "▶") if screen.has_signs else ("-", ">")
    found = []
    for place, (each, width) in enumerate(zip(environments, widths, strict=True)):
        is_last = place == len(environments) - 1
        if is_chain and not is_last:
            line = dash * (width + len(GAP) - len(each.name) - 3)
            found.append(f"{each.name} {line}{tip} ")
        else:
            found.append(_fitted(_head(each, is_chain), width).ljust(width) + GAP)
    return "".join(found)


def _fitted(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def _release(release: Release) -> str:
    return f"{release}{', by commit' if release.is_by_hand else ''}"


def _versions(contents: Contents, kind: Any) -> list[str]:
    found = dict.fromkeys(short(str(value)) for value in contents.of(kind).values() if value)
    return list(found)[:4] or ["–"]


def short(value: str) -> str:
    """Return the last path segment of an address, with the digest shortened to 7 characters."""
    from argosy.features.promote.moves import parted

    name, version = parted(value.partition("://")[2] or value)
    if "@sha256:" in version:
        tag, _, digest = version.partition("@sha256:")
        version = f"{tag}@{digest[:7]}"
    return name.rpartition("/")[2] + version


def _health(session: Session, environment: Environment, screen: Screen) -> str:
    from argosy.features.promote.gates import spoken

    standing = session.planner.standing(environment)
    if standing is None:
        return "no cluster" if session.answers.why else "no Application"
    age = f" {spoken((datetime.now(UTC) - standing.since).total_seconds())}" if standing.since else ""
    behind = f", {standing.sync}" if standing.sync != "Synced" else ""
    return f"{screen.mark(standing.health)}{age}{behind}"


def _runs(session: Session, environment: Environment) -> str:
    running = session.planner.running(environment) if environment.name not in session.broken else None
    return "–" if running is None else _release(running.release) if running.release else str(running)


def _gates(session: Session, environment: Environment, screen: Screen) -> list[str]:
    """Render the gates of the pending promotion, or without one the holds."""
    plan = session.waiting.get(environment.name)
    found = [judged(each, screen) for each in (plan.verdicts if plan else session.planner.holds(environment))]
    return found or ["–"]


def judged(verdict: Verdict, screen: Screen) -> str:
    mark = screen.sign("Healthy" if verdict.is_open else "failed")
    return f"{mark} {verdict.gate}"


def _next(session: Session, environment: Environment) -> str:
    plan = session.waiting.get(environment.name)
    if plan is None:
        usual = f"has all of {environment.after}" if environment.name in session.waiting else "–"
        step = session.planner.step(environment)
        return step.brief if step else "held" if session.planner.holds(environment) else usual
    state = "ready" if plan.is_open else f"waits: {plan.closed[0].gate}"
    return f"promote {plan.release.name} → {environment.name} ({state})"


# -- plan --


def planned(plan: Plan, screen: Screen) -> Iterator[str]:
    way = "roll back" if plan.is_back else "promote"
    skipped = f", skipping {', '.join(plan.asked.skipped)}" if plan.asked.skipped else ""
    come = f"from {plan.source.name}{skipped}" if not plan.is_back else f"instead of {plan.over}"
    yield f"{way} {plan.release} to {plan.target.name}, {come}"
    yield "moves:" if plan.moving.moves else f"moves: nothing; {plan.target.name} has all of {plan.release.name}"
    for line in _moves(plan.moving.moves):
        yield f"  {line}"
    for path in plan.files:
        yield f"  in {path}"
    if kept := _kept(plan):
        yield f"stays as it is in {plan.target.name}: {kept}"
    if plan.commits:
        yield f"new since {plan.over.name}: {plan.commits} commit{'s' if plan.commits > 1 else ''}"
    if plan.verdicts:
        yield "gates:"
        width = max(len(each.gate) for each in plan.verdicts)
        for each in plan.verdicts:
            who = f" (can open it: {each.who})" if each.who and not each.is_open else ""
            mark = screen.sign("Healthy" if each.is_open else "failed")
            yield f"  {mark} {each.gate.ljust(width)}  {plain(each.why)}{who}"
    for line in plan.afterwards:
        yield f"afterwards: {plain(line)}"


def _moves(moves: Sequence[Move]) -> list[str]:
    from argosy.features.promote.moves import shown

    rows = [
        (str(each.kind), _moved(each), *(_brief(shown(each.at, value)) for value in (each.before, each.after)))
        for each in moves
    ]
    widths = [max((len(row[place]) for row in rows), default=0) for place in range(2)]
    return [f"{row[0].ljust(widths[0])}  {row[1].ljust(widths[1])}  {row[2]} → {row[3]}" for row in rows]


def _moved(move: Move) -> str:
    """Add the field's name for parameters, because an object has many."""
    from argosy.features.promote.moves import name_of

    return plain(f"{move.owner} {name_of(move.at)}" if move.kind == "parameter" else move.owner)


def _brief(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        return plain(" ".join(map(str, value)))
    return plain(short(value)) if isinstance(value, str) and "/" in value else plain(str(value))


def _kept(plan: Plan) -> str:
    from argosy.features.promote.moves import told

    found: dict[str, str] = {}
    for name, value in told(plan.moving.stays):
        found.setdefault(name, value)
    if plan.is_back:  # compared with itself, so its own settings do not differ
        return plain(", ".join([*(f"{name} {value}" for name, value in found.items()), "all else"]))
    if plan.prefix:
        found["prefix"] = plan.prefix
    return plain(", ".join(f"{name} {value}" for name, value in found.items()))


# -- history --


def happened(entry: Entry) -> tuple[str, ...]:
    when = datetime.fromtimestamp(entry.seconds, UTC).strftime("%Y-%m-%d %H:%M")
    what = str(entry.action)
    release = entry.release.name if entry.release else "–"
    more = []
    if entry.source and entry.action == "promote":
        more.append(f"from {entry.source}")
    if entry.over:
        more.append(f"instead of {entry.over.name}")
    if entry.skipped:
        more.append(f"skipped {', '.join(entry.skipped)}")
    if entry.role:
        more.append(f"as {entry.role}")
    if entry.reason:
        more.append(entry.reason)
    by = f"{entry.by.name} ({entry.by.known_by})"
    return when, entry.environment, what, release, by, entry.commit[:7], "; ".join(more)


# -- documents --


def status_document(session: Session) -> dict[str, Any]:
    from argosy.features.promote.releases import Kind

    plans, found = session.waiting, list[dict[str, Any]]()
    for each in session.survey.way.environments:
        if each.name in session.broken:
            found.append({"name": each.name, "after": each.after or None, "problem": str(session.broken[each.name])})
            continue
        view, standing = session.survey.view(each), session.planner.standing(each)
        plan = plans.get(each.name)
        found.append({
            "name": each.name, "after": each.after or None, "application": each.application,
            "release": _release_document(session.survey.release(each)),
            "models": sorted(set(map(str, view.contents.of(Kind.MODEL).values()))),
            "images": sorted(set(map(str, view.contents.of(Kind.IMAGE).values()))),
            "health": standing.health if standing else None, "sync": standing.sync if standing else None,
            "runs": _running_document(session.planner.running(each)),
            "holds": [{"why": held.why, "next": held.next} for held in session.planner.holds(each)],
            "step": step.command if (step := session.planner.step(each)) else None,
            "next": plan_document(plan) if plan else None,
        })  # fmt: skip
    return {"apiVersion": API, "kind": "PromotionStatus", "environments": found, "notes": session.notes}


def _running_document(running: Running | None) -> dict[str, Any] | None:
    return {"revision": running.revision, "release": _release_document(running.release)} if running else None


def plan_document(plan: Plan) -> dict[str, Any]:
    from argosy.features.promote.moves import shown

    return {
        "apiVersion": API,
        "kind": "PromotionPlan",
        "from": plan.source.name,
        "to": plan.target.name,
        "release": _release_document(plan.release),
        "over": _release_document(plan.over),
        "isRollback": plan.is_back,
        "skipped": list(plan.asked.skipped),
        "moves": [
            {
                "kind": each.kind.value,
                **_place(each.at),
                "from": shown(each.at, each.before),
                "to": shown(each.at, each.after),
            }
            for each in plan.moving.moves
        ],
        "stays": [
            {**_place(each.at), "value": shown(each.at, each.target), "there": shown(each.at, each.source)}
            for each in plan.moving.stays
        ],
        "files": sorted(plan.files),
        "gates": [
            {"gate": each.gate, "open": each.is_open, "why": each.why, "who": each.who} for each in plan.verdicts
        ],
        "ready": plan.is_open,
        "afterwards": list(plan.afterwards),
        "notes": list(plan.notes),
    }


def _place(at: At) -> dict[str, str]:
    return {"object": str(at.owner), "field": at.path}


def history_document(log: Sequence[Entry]) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "PromotionHistory", "items": [_entry_document(each) for each in log]}


def _entry_document(entry: Entry) -> Mapping[str, Any]:
    return {
        "action": entry.action.value, "environment": entry.environment, "from": entry.source or None,
        "release": _release_document(entry.release), "over": _release_document(entry.over),
        "by": entry.by.name, "knownBy": entry.by.known_by, "reason": entry.reason or None,
        "skipped": list(entry.skipped), "gates": list(entry.gates), "commit": entry.commit,
        "time": datetime.fromtimestamp(entry.seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }  # fmt: skip


def _release_document(release: Release | None) -> dict[str, Any] | None:
    return {"name": release.name, "commit": release.commit, "byHand": release.is_by_hand} if release else None


def graph(environments: Sequence[Environment]) -> Iterator[str]:
    """Render the pipeline in Graphviz dot format."""
    yield "digraph promotion {"
    yield "  rankdir=LR;"
    for each in environments:
        yield f'  "{each.name}";'
        if each.after:
            gates = ", ".join(f"{gate.kind} {gate.value}".strip() for gate in each.gates)
            yield f'  "{each.after}" -> "{each.name}" [label="{gates}"];'
    yield "}"

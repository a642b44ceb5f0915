"""`argosy app adopt|hand-back`: move Applications between Argo CD and argosy."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from argosy.cli.durations import seconds
from argosy.cli.error_messages import tell
from argosy.cli.exit_codes import REFUSED, TIMED_OUT
from argosy.cli.prompts import agree
from argosy.cli.verbs import Commands, at_desk, can_ask, print_data, typed, verb
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.gitops.application_client.adoption import Move
    from argosy.gitops.application_client.client import Desk

API = "cli.argosy.dev/v1"
DONE = {"adopt": "adopted", "hand-back": "handed back"}


def add_to(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = verb(
        parts, "adopt", "let argosy deliver Applications of Argo CD", run_move, named="any", forms=("text", "json"),
        examples=("adopt models --dry-run", "adopt models -y", "adopt -l team=ml --hold -y"),
    )  # fmt: skip
    _add_flags(parser)
    about = "also hold automated sync until: argosy app release"
    parser.add_argument("--hold", action="store_true", help=about)
    parser = verb(
        parts, "hand-back", "give Applications back to Argo CD", run_move, named="any", forms=("text", "json"),
        examples=("hand-back models --dry-run", "hand-back -l team=ml -y"),
    )  # fmt: skip
    _add_flags(parser)


def _add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-l", "--selector", default="", metavar="LABELS", help="all Applications with these labels")
    parser.add_argument("--dry-run", action="store_true", help="only show the plan")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    about = "wait this many seconds for a running operation to end (default: 0, which refuses)"
    parser.add_argument("--timeout", type=seconds, default=0.0, metavar="S", help=about)


def run_move(chosen: argparse.Namespace) -> int:
    if not chosen.names and not chosen.selector:
        raise UserError(f"no Application selected; argosy app {chosen.part} NAME, or select several with -l LABELS")

    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.adoption import Way, plan_moves, until_free
        from argosy.gitops.coexistence.argocd_detection import find_engines
        from argosy.kube.controller.wait import TooLate

        apps = await desk.chosen(chosen.names, chosen.selector)
        if chosen.timeout and not chosen.dry_run:
            try:
                apps = await until_free(desk, apps, chosen.timeout)
            except TooLate as error:
                tell(error, doing=f"{typed(chosen)} failed")
                return TIMED_OUT
        engines = await find_engines(desk.cluster, desk.control)
        holds = getattr(chosen, "hold", False)
        planned = await plan_moves(desk, apps, Way(chosen.part), engines, holds=holds)
        return await _carried_out(desk, chosen, planned)

    return at_desk(chosen, work, writes=True)


async def _carried_out(desk: Desk, chosen: argparse.Namespace, planned: Sequence[Move]) -> int:
    is_json = chosen.output == "json"
    if not is_json:
        print("\n".join(_lines(chosen.part, planned)))
    is_refused = any(each.refusal for each in planned)
    todo = [] if is_refused or chosen.dry_run else [each for each in planned if each.is_needed]
    if todo:
        _confirm(chosen, len(todo), planned)
        from argosy.gitops.application_client.adoption import move

        for each in todo:
            await move(desk, each)
            if not is_json:
                print(f"application '{each.app.name}' {DONE[chosen.part]}")
    if is_json:
        items = [each.document() for each in planned]
        head = {"apiVersion": API, "kind": "MovePlan", "way": chosen.part, "done": bool(todo)}
        print_data({**head, "items": items}, "json")
    if is_refused:
        return 1 if chosen.dry_run else REFUSED
    return 0


def _confirm(chosen: argparse.Namespace, count: int, planned: Sequence[Move]) -> None:
    if chosen.yes:
        return
    what = f"{chosen.part} {count} Application{'s' if count > 1 else ''}"
    if not can_ask():
        raise UserError(f"cannot ask for confirmation to {what} without a terminal; add -y")
    lines, is_printed = _lines(chosen.part, planned), chosen.output != "json"
    agree(f"{what}?", lines, is_printed=is_printed, refusal="nothing was moved")


def _lines(part: str, planned: Sequence[Move]) -> list[str]:
    from argosy.gitops.application_client.adoption import objects

    lines: list[str] = []
    for each in planned:
        lines.append(f"{each.app.namespace}/{each.app.name}")
        if not each.is_needed:
            lines.append(f"  unchanged  {each.now}")
            continue
        lines += [f"  now        {each.now}", f"  then       {each.then}"]
        if each.compared:
            lines += [f"  {'compared' if not number else '':<9}  {text}" for number, text in enumerate(each.compared)]
        elif each.objects:
            lines.append(f"  compared   no status changes: {objects(each.objects)}")
        lines += ["  hold       automated sync is held until: argosy app release"] if each.holds else []
        lines += [f"  ! {text}" for text in each.notes]
        lines += [f"  ✗ {each.refusal}"] if each.refusal else []
    count = sum(each.is_needed and not each.refusal for each in planned)
    refused = sum(bool(each.refusal) for each in planned)
    return [*lines, "", _summary(part, count, refused)]


def _summary(part: str, count: int, refused: int) -> str:
    if refused:
        return f"Plan: {refused} refused{f' of {count + refused}' if count else ''}. Nothing changes."
    if not count:
        return "Plan: nothing to do."
    what = "written" if part == "adopt" else "removed"
    whose = "of each " if count > 1 else ""
    return f"Plan: {count} to {part}. Two annotations {whose}are {what}; no resource is changed."

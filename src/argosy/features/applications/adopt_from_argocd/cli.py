"""`argosy app adopt|hand-back`: move Applications between Argo CD and argosy."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from argosy.cli.error_messages import print_error
from argosy.cli.exit_codes import EXIT_REFUSED, EXIT_TIMED_OUT
from argosy.cli.prompts import confirm_plan
from argosy.cli.seconds_flag_parser import parse_seconds
from argosy.cli.subcommand_flags_and_runner import (
    SubParsersAction,
    add_app_subcommand,
    format_command,
    is_interactive,
    print_document,
    run_with_service,
)
from argosy.errors import UserError
from argosy.kube.well_known_kinds import CLI_API_VERSION

if TYPE_CHECKING:
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.gitops.application_client.argocd_adoption import AdoptionMove

PAST_TENSES = {"adopt": "adopted", "hand-back": "handed back"}


def add_commands(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_app_subcommand(
        parts,
        "adopt",
        "let argosy deliver Applications of Argo CD",
        run_move,
        name_count="any",
        outputs=("text", "json"),
        examples=("adopt models --dry-run", "adopt models -y", "adopt -l team=ml --hold -y"),
    )
    _add_flags(parser)
    help_text = "also hold automated sync until: argosy app release"
    parser.add_argument("--hold", action="store_true", help=help_text)
    parser = add_app_subcommand(
        parts, "hand-back", "give Applications back to Argo CD", run_move, name_count="any", outputs=("text", "json"),
        examples=("hand-back models --dry-run", "hand-back -l team=ml -y"),
    )  # fmt: skip
    _add_flags(parser)


def _add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-l", "--selector", default="", metavar="LABELS", help="all Applications with these labels")
    parser.add_argument("--dry-run", action="store_true", help="only show the plan")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    help_text = "wait this many seconds for a running operation to end (default: 0, which refuses)"
    parser.add_argument("--timeout", type=parse_seconds, default=0.0, metavar="S", help=help_text)


def run_move(args: argparse.Namespace) -> int:
    if not args.names and not args.selector:
        raise UserError(f"no Application selected; argosy app {args.part} NAME, or select several with -l LABELS")

    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.argocd_adoption import AdoptionDirection, plan_moves, wait_until_idle
        from argosy.gitops.coexistence.argocd_detection import detect_engines
        from argosy.kube.controller.object_condition_wait import WaitTimeout

        apps = await service.load_selected(args.names, args.selector)
        if args.timeout and not args.dry_run:
            try:
                apps = await wait_until_idle(service, apps, args.timeout)
            except WaitTimeout as error:
                print_error(error, failed_command=f"{format_command(args)} failed")
                return EXIT_TIMED_OUT
        engines = await detect_engines(service.cluster, service.control_namespace)
        hold_automated_sync = getattr(args, "hold", False)
        moves = await plan_moves(
            service, apps, AdoptionDirection(args.part), engines, hold_automated_sync=hold_automated_sync
        )
        return await _run_moves(service, args, moves)

    return run_with_service(args, work, show_target=True)


async def _run_moves(service: ApplicationService, args: argparse.Namespace, moves: Sequence[AdoptionMove]) -> int:
    is_json = args.output == "json"
    if not is_json:
        print("\n".join(_render_plan(args.part, moves)))
    is_refused = any(planned_move.refusal for planned_move in moves)
    needed_moves = (
        [] if is_refused or args.dry_run else [planned_move for planned_move in moves if planned_move.is_needed]
    )
    if needed_moves:
        _confirm(args, len(needed_moves), moves)
        from argosy.gitops.application_client.argocd_adoption import apply_move

        for planned_move in needed_moves:
            await apply_move(service, planned_move)
            if not is_json:
                print(f"application '{planned_move.app.name}' {PAST_TENSES[args.part]}")
    if is_json:
        items = [planned_move.to_wire() for planned_move in moves]
        header = {"apiVersion": CLI_API_VERSION, "kind": "MovePlan", "way": args.part, "done": bool(needed_moves)}
        print_document({**header, "items": items}, "json")
    if is_refused:
        return 1 if args.dry_run else EXIT_REFUSED
    return 0


def _confirm(args: argparse.Namespace, count: int, moves: Sequence[AdoptionMove]) -> None:
    if args.yes:
        return
    action = f"{args.part} {count} Application{'s' if count > 1 else ''}"
    if not is_interactive():
        raise UserError(f"cannot ask for confirmation to {action} without a terminal; add -y")
    lines, is_printed = _render_plan(args.part, moves), args.output != "json"
    confirm_plan(f"{action}?", lines, is_printed=is_printed, refusal="nothing was moved")


def _render_plan(direction: str, moves: Sequence[AdoptionMove]) -> list[str]:
    from argosy.gitops.application_client.argocd_adoption import format_object_count

    lines: list[str] = []
    for planned_move in moves:
        lines.append(f"{planned_move.app.namespace}/{planned_move.app.name}")
        if not planned_move.is_needed:
            lines.append(f"  unchanged  {planned_move.delivered_by}")
            continue
        lines += [f"  now        {planned_move.delivered_by}", f"  then       {planned_move.delivered_by_after}"]
        if planned_move.status_changes:
            lines += [
                f"  {'compared' if not index else '':<9}  {text}"
                for index, text in enumerate(planned_move.status_changes)
            ]
        elif planned_move.objects:
            lines.append(f"  compared   no status changes: {format_object_count(planned_move.objects)}")
        lines += (
            ["  hold       automated sync is held until: argosy app release"]
            if planned_move.holds_automated_sync
            else []
        )
        lines += [f"  ! {text}" for text in planned_move.notes]
        lines += [f"  ✗ {planned_move.refusal}"] if planned_move.refusal else []
    count = sum(planned_move.is_needed and not planned_move.refusal for planned_move in moves)
    refused = sum(bool(planned_move.refusal) for planned_move in moves)
    return [*lines, "", _render_summary(direction, count, refused)]


def _render_summary(direction: str, count: int, refused: int) -> str:
    if refused:
        return f"Plan: {refused} refused{f' of {count + refused}' if count else ''}. Nothing changes."
    if not count:
        return "Plan: nothing to do."
    verb_text = "written" if direction == "adopt" else "removed"
    of_each = "of each " if count > 1 else ""
    return f"Plan: {count} to {direction}. Two annotations {of_each}are {verb_text}; no resource is changed."

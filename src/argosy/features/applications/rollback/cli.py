"""`argosy app rollback`: show the plan, ask for confirmation in a terminal, follow the rollback until it ends."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.exit_codes import EXIT_INTERRUPTED, EXIT_NEGATIVE
from argosy.cli.subcommand_flags_and_runner import (
    SubParsersAction,
    add_app_subcommand,
    confirm,
    is_compat,
    is_interactive,
    print_message,
    run_with_service,
)
from argosy.features.applications.sync.cli import (
    OUTPUT_FORMATS,
    add_timeout,
    follow_operation_to_end,
    run_interruptible,
)

if TYPE_CHECKING:
    from argosy.gitops.application import Application
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.gitops.status.history import DeploymentRecord

MAX_PLAN_LINES = 24  # lines of a plan


def add_commands(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_app_subcommand(
        parts, "rollback", "roll back to a previous deployment", run_rollback, outputs=OUTPUT_FORMATS,
        examples=("rollback models", "rollback models 3 --hold --reason 'latency'"),
    )  # fmt: skip
    help_text = "id of the deployment in the history (default: the last one that differs)"
    parser.add_argument("id", nargs="?", type=int, metavar="ID", help=help_text)
    parser.add_argument("--prune", action="store_true", help="delete objects that the deployment did not have")
    parser.add_argument("--hold", action="store_true", help="pause automated sync until it is released")
    parser.add_argument("--reason", default="", metavar="TEXT", help="reason of the hold")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    add_timeout(parser)


def run_rollback(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.application_actions import (
            choose_rollback_entry,
            is_already_deployed,
            roll_back,
            would_auto_sync,
        )
        from argosy.gitops.application_client.sync_checks import check_sync_windows

        app = await service.load_application(args.name)
        entry = choose_rollback_entry(app, args.id, is_compat=is_compat(args))
        await check_sync_windows(service, [app])
        if is_already_deployed(app, entry):
            message = f"deployment {entry.id} is already deployed"
            print_message(f"{app.name}: {message}; choose an older one: argosy app history {app.name}")
        reason = (args.reason or f"rolled back to {entry.id}") if args.hold or args.reason else None
        _print_rollback_revisions(app, entry, args)
        if not is_compat(args) and not args.yes and is_interactive():
            await _print_plan(service, app, entry, prunes=args.prune)
            needs_hold = would_auto_sync(app) and reason is None
            question = f"{app.name} has automated sync. Hold it and roll back?" if needs_hold else "Roll back?"
            if code := _confirm_rollback(app, question):
                return code
            reason = f"rolled back to {entry.id}" if needs_hold else reason
        started = await roll_back(service, app, entry, prune=args.prune, hold_reason=reason, report=print_message)
        code = await follow_operation_to_end(service, started, args, "rollback")
        if reason is not None:
            print_message(
                f"{app.name}: automated sync is held ({reason}); resume it with: argosy app release {app.name}"
            )
        return code

    return run_interruptible(lambda: run_with_service(args, work, show_target=True), args.name)


def _confirm_rollback(app: Application, question: str) -> int:
    """Ask for confirmation; return 0 for yes, else the exit code."""
    try:
        code = 0 if confirm(question) else EXIT_NEGATIVE
    except KeyboardInterrupt:
        print_message("")
        code = EXIT_INTERRUPTED
    if code:
        print_message(f"{app.name}: rollback cancelled; nothing changed")
    return code


def _print_rollback_revisions(app: Application, entry: DeploymentRecord, args: argparse.Namespace) -> None:
    from argosy.gitops.application_client import status_summary

    if not is_compat(args):
        current_text, target_text = (
            ", ".join(map(status_summary.shorten_revision, revisions))
            for revisions in (status_summary.read_synced_revisions(app), entry.revisions)
        )
        print_message(
            f"{app.name}: rolling back from {current_text or 'nothing'} to deployment {entry.id}: "
            f"{target_text}, {entry.deployed}"
        )


async def _print_plan(service: ApplicationService, app: Application, entry: DeploymentRecord, *, prunes: bool) -> None:
    """Print the changes. A failed comparison does not stop the rollback, as the controller may have more access."""
    from argosy.errors import ArgosyError
    from argosy.features.applications.diff.text_output import render_plan
    from argosy.gitops.application_client.app_state_reader import open_reader
    from argosy.gitops.application_client.diff_presentation import list_differing_objects
    from argosy.gitops.application_client.rollback_preview import preview_rollback

    try:
        async with open_reader(service, app=app) as reader:
            app_state = await preview_rollback(reader, app, entry)
            masked = reader.reconciler_settings.diff.masked_annotations
    except ArgosyError as error:
        print_message(f"  cannot show the changes: {error}")
        return
    if not app_state.is_complete:
        message = next(
            (condition.message for condition in app_state.conditions if condition.type.is_error),
            "the comparison failed",
        )
        print_message(f"  cannot show the changes: {message}")
        return
    lines = render_plan(list_differing_objects(app_state.comparison, masked), prunes=prunes)
    for line in lines[:MAX_PLAN_LINES] or ["no changes: the cluster already matches that deployment"]:
        print_message(f"  {line}")
    if len(lines) > MAX_PLAN_LINES:
        print_message(f"  … and {len(lines) - MAX_PLAN_LINES} more lines")

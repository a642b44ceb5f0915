"""Prints the result of an operation, and chooses the exit code."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.error_messages import print_failure
from argosy.cli.exit_codes import EXIT_NEGATIVE, EXIT_REFUSED, EXIT_TIMED_OUT
from argosy.cli.subcommand_flags_and_runner import choose_output, is_compat, print_document, print_message
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.gitops.application import Application
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.gitops.application_client.condition_wait import WaitResult

MAX_NAMED_OBJECTS = 12  # in messages


async def print_result(service: ApplicationService, result: WaitResult, args: argparse.Namespace, action: str) -> int:
    """Print the result of the operation, or why it has not finished; return the exit code."""
    from argosy.gitops.application_client.condition_wait import (
        WaitOutcome,
        describe_missing_controller,
        is_operation_started,
    )
    from argosy.gitops.application_client.stuck_pods import NOT_STARTING_REASONS, describe_stuck_pods

    app = result.app
    if app is None:
        raise UserError(f"{action}: the Application was deleted")
    if is_compat(args):
        app = await _refresh_after_operation(service, app)
    await print_final_state(service, app, args)
    if result.outcome is WaitOutcome.TOO_LATE:
        is_started = app.state is not None and is_operation_started(app)
        blocker = (
            app.state.message
            if app.state is not None and is_started
            else await describe_missing_controller(service, app)
        )
        wait, terminate = (
            f"argosy app {arguments}" for arguments in (f"wait {app.name} --operation", f"terminate-op {app.name}")
        )
        advice = f"it {'is still running' if is_started else 'has not started'}; {wait}, or: {terminate}"
        stuck = (
            (await describe_stuck_pods(service, app) or await describe_stuck_pods(service, app, NOT_STARTING_REASONS))
            if is_started
            else []
        )
        print_failure(
            f"{app.name}: {action} has not finished after {args.timeout:g} s",
            [blocker, *stuck[:MAX_NAMED_OBJECTS]],
            advice,
        )
        return EXIT_TIMED_OUT
    if (
        is_compat(args)
        and action == "sync"
        and not (args.resource or args.label)
        and (prune_count := _count_skipped_prunes(app))
    ):
        print_failure(f"{app.name}: {prune_count} resources require pruning", "", f"argocd app sync {app.name} --prune")
        return EXIT_NEGATIVE
    return report_outcome(app, action)


def _count_skipped_prunes(app: Application) -> int:
    """argo: A full sync fails if objects remain to be pruned."""
    from argosy.gitops.application_client.status_summary import read_sync_status

    state = app.state
    if state is None or state.request.sync.dry_run or state.phase != "Succeeded" or read_sync_status(app) == "Synced":
        return 0
    return sum(result.result_code == "PruneSkipped" for result in state.results)


async def _refresh_after_operation(service: ApplicationService, app: Application) -> Application:
    """argo: Refresh the Application before printing the result, except after a dry run."""
    from argosy.gitops.application_client.application_actions import refresh_and_wait
    from argosy.kube.controller.object_condition_wait import WaitTimeout

    if app.state is None or app.state.request.sync.dry_run:
        return app
    try:
        return await refresh_and_wait(service, app, is_hard=False, timeout_seconds=60.0, report=print_message)
    except WaitTimeout:
        return app


async def print_final_state(
    service: ApplicationService, app: Application, args: argparse.Namespace, *, shows_operation: bool = True
) -> None:
    """Print the final state in the chosen output format; the table format has been printed during the operation."""
    from argosy.features.applications.read.cli import print_app, print_tree

    output = choose_output(args)
    if output in ("json", "yaml"):
        print_document(dict(app.wire), output)
    elif is_compat(args):
        from argosy.features.applications.read.argocd_printer import print_after_sync_or_wait

        await print_after_sync_or_wait(service, app, output, shows_operation=shows_operation)
    elif output.startswith("tree"):
        await print_tree(service, app)
    elif output == "wide":
        print()
        await print_app(service, app, shows_operation=True)


def report_outcome(app: Application, action: str) -> int:
    from argosy.gitops.application_client import status_summary

    state = app.state
    if state is None or state.phase == "Succeeded":
        is_dry_run = state is not None and state.request.sync.dry_run
        revision = (
            status_summary.shorten_revision(
                state.revision or ", ".join(map(status_summary.shorten_revision, state.revisions))
            )
            if state
            else ""
        )
        suffix = " (dry run: nothing changed)" if is_dry_run else ""
        print_message(f"{app.name}: {action} to {revision or 'its revision'} succeeded{suffix}")
        return 0
    failures = status_summary.list_failed_tasks(app)[:MAX_NAMED_OBJECTS]
    advice = _build_advice(app, state.message)
    print_failure(f"{app.name}: {action} {state.phase.value.lower()}", [state.message, *failures], advice)
    return EXIT_REFUSED if status_summary.is_refused_by_project(app) else EXIT_NEGATIVE


def _build_advice(app: Application, message: str) -> str:
    from argosy.gitops.application_client.status_summary import is_refused_by_project
    from argosy.kube.schema.name_label_address_syntax import check_dns_label

    if is_refused_by_project(app):
        move_advice = f"move the Application: argosy app set {app.name} --project NAME"
        return f"see what the project permits: argosy proj get {app.project}, and change the project, or {move_advice}"
    namespace = app.destination.namespace
    if namespace and f'namespaces "{namespace}" not found' in message:
        if name_errors := check_dns_label(namespace):
            correction = f"correct it: argosy app set {app.name} --dest-namespace NAME"
            return (
                f"{namespace!r} cannot be the name of a namespace ({name_errors[0].partition(' (e.g.')[0]}); "
                f"{correction}"
            )
        return f"argosy app set {app.name} --sync-option CreateNamespace=true, then: argosy app sync {app.name}"
    return f"argosy app get {app.name} --show-operation"

"""`argosy app wait`: wait until Applications reach a status, or until they cannot reach it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from argosy.cli.error_messages import print_failure
from argosy.cli.exit_codes import EXIT_NEGATIVE, EXIT_TIMED_OUT
from argosy.cli.subcommand_flags_and_runner import (
    SubParsersAction,
    add_app_subcommand,
    choose_output,
    is_compat,
    print_message,
    run_with_service,
)
from argosy.errors import UserError
from argosy.features.applications.sync.cli import OUTPUT_FORMATS, add_timeout
from argosy.features.applications.sync.operation_result_output import print_final_state, report_outcome

if TYPE_CHECKING:
    from argosy.gitops.application import Application
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.gitops.application_client.condition_wait import WaitConditions, WaitResult


def add_commands(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_app_subcommand(
        parts, "wait", "wait until Applications reach a status", run_wait, name_count="any", outputs=OUTPUT_FORMATS,
        examples=("wait models", "wait models --health --timeout 300", "wait -l env=dev --sync"),
    )  # fmt: skip
    _add_wait_flags(parser)


def _add_wait_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-l", "--selector", default="", metavar="LABELS", help="all Applications with these labels")
    add("--sync", action="store_true", help="wait until it is Synced")
    add("--health", action="store_true", help="wait until it is Healthy")
    add("--operation", action="store_true", help="wait until its operation has finished")
    add("--suspended", action="store_true", help="wait until it is Suspended")
    add("--degraded", action="store_true", help="wait until it is Degraded")
    add("--delete", action="store_true", help="wait until it is deleted")
    add("--hydrated", action="store_true", help="for compatibility: argosy does not hydrate, so this is always true")
    help_text = "wait only for this object: GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME, as for sync; repeatable"
    add("--resource", action="append", default=[], metavar="RESOURCE", help=help_text)
    help_text = "keep waiting even if the status cannot be reached"
    add("--no-fail-fast", action="store_true", help=help_text)
    add_timeout(parser)


def run_wait(args: argparse.Namespace) -> int:
    if not args.names and not args.selector:
        raise UserError("no Application selected; argosy app wait NAME, or select several with -l LABELS")

    async def work(service: ApplicationService) -> int:
        import asyncio

        from argosy.gitops.application_client.application_service import ApplicationNotFound

        try:
            apps = await service.load_selected(args.names, args.selector)
        except ApplicationNotFound:
            if args.delete:
                return 0
            raise
        codes = await asyncio.gather(*(_wait_for_application(service, app, args) for app in apps))
        return max(codes, default=0)

    return run_with_service(args, work)


def _read_wait_condition(args: argparse.Namespace) -> WaitConditions:
    from argosy.gitops.application_client.condition_wait import WaitConditions

    words = {"Healthy": args.health, "Suspended": args.suspended, "Degraded": args.degraded}
    health = frozenset(word for word, is_wanted in words.items() if is_wanted)
    if not (args.sync or args.operation or health or args.delete or args.hydrated):
        return WaitConditions(
            True, True, frozenset({"Healthy"}), resources=tuple(args.resource), gives_up_early=_fails_fast(args)
        )
    return WaitConditions(
        args.sync, args.operation, health, args.delete, tuple(args.resource), gives_up_early=_fails_fast(args)
    )


def _fails_fast(args: argparse.Namespace) -> bool:
    return not args.no_fail_fast and not is_compat(args)


async def _wait_for_application(service: ApplicationService, app: Application, args: argparse.Namespace) -> int:
    from argosy.features.applications.sync.progress_output import ResultLinePrinter, WaitReporter
    from argosy.gitops.application_client.condition_wait import WaitOutcome, wait_for_conditions

    wait_condition, output = _read_wait_condition(args), choose_output(args)
    reporter = ResultLinePrinter(sys.stdout) if output == "wide" else WaitReporter(wait_condition, print_message)
    result = await wait_for_conditions(service, app, wait_condition, args.timeout, reporter.show, print_message)
    if result.app is not None and (result.outcome is WaitOutcome.REACHED or is_compat(args)):
        await print_final_state(service, result.app, args, shows_operation=wait_condition.operation)
    if result.outcome is WaitOutcome.REACHED:
        if code := _report_operation_failure(result, wait_condition):
            return code
        if output == "table":
            print_message(f"{app.name}: {'was deleted' if result.app is None else 'reached the requested status'}")
        return 0
    await _report_unmet_condition(service, result, wait_condition, args, app.name)
    return EXIT_TIMED_OUT if result.outcome is WaitOutcome.TOO_LATE else EXIT_NEGATIVE


def _report_operation_failure(result: WaitResult, wait_condition: WaitConditions) -> int:
    """Report a failed operation if the command waits only for the operation."""
    state = result.app.state if result.app is not None else None
    is_operation_only = (
        wait_condition.operation
        and wait_condition.gives_up_early
        and not wait_condition.sync
        and not wait_condition.health
    )
    if not is_operation_only or result.app is None or state is None or state.phase not in ("Failed", "Error"):
        return 0
    return report_outcome(result.app, "operation")


async def _report_unmet_condition(
    service: ApplicationService, result: WaitResult, wait_condition: WaitConditions, args: argparse.Namespace, name: str
) -> None:
    """Report the unmet conditions and their causes, down to the objects."""
    from argosy.gitops.application_client.condition_wait import WaitOutcome
    from argosy.gitops.application_client.unsynced_unhealthy_reasons import list_unsynced_unhealthy_reasons

    if result.app is None:
        print_failure(f"{name} was deleted", "the Application does not exist any more", "argosy app list")
        return
    problem = f"timed out after {args.timeout:g} s" if result.outcome is WaitOutcome.TOO_LATE else "waiting cannot help"
    missing = "; ".join(wait_condition.list_unmet(result.app)) or "the requested status was not reached"
    reasons = dict.fromkeys([result.reason, *await list_unsynced_unhealthy_reasons(service, result.app)])
    print_failure(f"{name}: {problem}: {missing}", list(reasons), _next_command(result, name))


def _next_command(result: WaitResult, name: str) -> str:
    from argosy.gitops.application_client import status_summary
    from argosy.gitops.status.sync_hold_annotation import read_hold

    app = result.app
    assert app is not None
    if status_summary.is_busy(app):
        return f"argosy app get {name} --show-operation, or end it: argosy app terminate-op {name}"
    if status_summary.read_sync_status(app) == "OutOfSync":
        is_held = read_hold(app.annotations) is not None
        next_step = f"argosy app release {name}" if is_held else f"argosy app sync {name}"
        return f"argosy app diff {name}, then: {next_step}"
    return (
        f"argosy app tree {name}, or: argosy app logs {name}"
        if status_summary.read_health_status(app) != "Healthy"
        else (f"argosy app get {name}")
    )

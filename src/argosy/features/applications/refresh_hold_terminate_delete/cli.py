"""`argosy app hold|release|refresh|terminate-op|confirm-deletion|delete`: single changes of an Application."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.error_messages import print_failure
from argosy.cli.exit_codes import EXIT_TIMED_OUT
from argosy.cli.seconds_flag_parser import parse_seconds
from argosy.cli.subcommand_flags_and_runner import (
    SubParsersAction,
    add_app_subcommand,
    add_bool_flag,
    confirm,
    format_command,
    is_compat,
    is_interactive,
    print_message,
    run_with_service,
)
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.gitops.application import Application
    from argosy.gitops.application_client.application_service import ApplicationService


def add_commands(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_app_subcommand(
        parts, "hold", "pause automated sync until it is released", run_hold,
        examples=("hold models", "hold models --reason 'incident 42'"),
    )  # fmt: skip
    parser.add_argument("--reason", default="", metavar="TEXT", help="reason of the hold, visible to everyone")
    add_app_subcommand(parts, "release", "end a hold", run_release, examples=("release models", "release ml/models"))
    parser = add_app_subcommand(
        parts, "refresh", "compare an Application with Git again", run_refresh,
        examples=("refresh models", "refresh models --hard"),
    )  # fmt: skip
    parser.add_argument("--hard", action="store_true", help="also render its manifests again")
    help_text = "wait at most this many seconds (default: 60)"
    parser.add_argument("--timeout", type=parse_seconds, default=60.0, metavar="S", help=help_text)
    add_app_subcommand(
        parts, "terminate-op", "terminate the running operation", run_terminate,
        examples=("terminate-op models", "terminate-op ml/models"),
    )  # fmt: skip
    add_app_subcommand(
        parts,
        "confirm-deletion",
        "confirm the deletion or pruning of objects that require confirmation",
        run_confirm_deletion,
        examples=("confirm-deletion models", "confirm-deletion ml/models"),
    )
    parser = add_app_subcommand(
        parts, "delete", "delete Applications and their objects", run_delete, name_count="any",
        examples=("delete models", "delete models --cascade=false -y", "delete -l env=preview -y --wait"),
    )  # fmt: skip
    parser.add_argument("-l", "--selector", default="", metavar="LABELS", help="all Applications with these labels")
    add_bool_flag(parser, "--cascade", "also delete its objects (default: true)", default=True)
    help_text = "foreground (default: delete dependents first) or background"
    policies = ("foreground", "background")
    parser.add_argument("-p", "--propagation-policy", choices=policies, default="foreground", help=help_text)
    parser.add_argument("--wait", action="store_true", help="wait until it is deleted")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    help_text = "with --wait: give up after this many seconds (default: never)"
    parser.add_argument("--timeout", type=parse_seconds, default=0.0, metavar="S", help=help_text)


def run_hold(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.application_actions import hold_automated_sync
        from argosy.gitops.status.sync_hold_annotation import read_hold

        app, changed = await hold_automated_sync(service, await service.load_application(args.name), args.reason)
        current_hold = read_hold(app.annotations)
        held_by = f" by {current_hold.by}" if current_hold and current_hold.by else ""
        print(f"{app.name}: {'held' if changed else 'unchanged: already held'}{held_by}")
        print_message(f"automated sync is paused; resume it with: argosy app release {app.name}")
        return 0

    return run_with_service(args, work, show_target=True)


def run_release(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.application_actions import release_hold

        app, changed = await release_hold(service, await service.load_application(args.name))
        print(f"{app.name}: {'released' if changed else 'unchanged: not held'}")
        return 0

    return run_with_service(args, work, show_target=True)


def run_refresh(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client import status_summary
        from argosy.gitops.application_client.application_actions import refresh_and_wait
        from argosy.kube.controller.object_condition_wait import WaitTimeout

        try:
            app = await service.load_application(args.name)
            app = await refresh_and_wait(
                service, app, is_hard=args.hard, timeout_seconds=args.timeout, report=print_message
            )
        except WaitTimeout as error:
            from argosy.cli.error_messages import print_error

            print_error(error, failed_command=f"{format_command(args)} failed")
            return EXIT_TIMED_OUT
        revisions = ", ".join(map(status_summary.shorten_revision, status_summary.read_synced_revisions(app)))
        print(
            f"{app.name}: {status_summary.read_sync_status(app)}, "
            f"{status_summary.read_health_status(app)}{f' at {revisions}' if revisions else ''}"
        )
        return 0

    return run_with_service(args, work, show_target=True)


def run_terminate(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.application_actions import terminate_operation

        app = await terminate_operation(service, await service.load_application(args.name))
        print(f"Application '{app.name}' operation terminating")
        return 0

    return run_with_service(args, work, show_target=True)


def run_confirm_deletion(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.application_actions import confirm_deletion

        app = await confirm_deletion(service, await service.load_application(args.name))
        print(f"Application '{app.name}' updated successfully")
        return 0

    return run_with_service(args, work, show_target=True)


def run_delete(args: argparse.Namespace) -> int:
    if not args.names and not args.selector:
        raise UserError("no Application selected; argosy app delete NAME, or select several with -l LABELS")

    async def work(service: ApplicationService) -> int:
        apps = await service.load_selected(args.names, args.selector)
        codes = [await _delete_application(service, app, args) for app in apps]
        return max(codes, default=0)

    return run_with_service(args, work, show_target=True)


async def _delete_application(service: ApplicationService, app: Application, args: argparse.Namespace) -> int:
    from argosy.gitops.application_client import status_summary
    from argosy.gitops.application_client.application_actions import delete_application
    from argosy.gitops.application_client.condition_wait import WaitConditions, WaitOutcome, wait_for_conditions

    if not _confirm_delete(app, args):
        print_message(f"The command to delete '{app.name}' was cancelled")
        return 0
    await delete_application(service, app, cascades=args.cascade, policy=args.propagation_policy)
    if status_summary.is_busy(app) and not is_compat(args):
        print_message(f"{app.name}: its operation ends first; to end it now: argosy app terminate-op {app.name}")
    if not args.wait:
        print(f"application '{app.name}' deleted")
        return 0
    result = await wait_for_conditions(service, app, WaitConditions(is_deleted=True), args.timeout, lambda _: None)
    if result.outcome is WaitOutcome.TOO_LATE:
        reason = status_summary.describe_problem(result.app) if result.app else ""
        print_failure(f"{app.name} still exists after {args.timeout:g} s", reason, f"argosy app get {app.name}")
        return EXIT_TIMED_OUT
    print(f"application '{app.name}' deleted")
    return 0


def _confirm_delete(app: Application, args: argparse.Namespace) -> bool:
    if args.yes:
        return True
    scope = " and all its resources" if args.cascade else "; its resources stay"
    if is_interactive():
        return confirm(f"Are you sure you want to delete '{app.name}'{scope}?")
    if is_compat(args):
        return True  # argo: asks only in terminals
    raise UserError(f"{app.name}{scope}: cannot ask for confirmation without a terminal; add -y")

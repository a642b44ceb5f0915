"""`argosy setup plan|apply|status|destroy`: plan, apply, show and remove the setup of argosy.yaml."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from argosy.cli.prompts import confirm_plan
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.features.setup.delivery_service import PlannedSetup, SetupCallbacks, SetupChange, SetupRequest


def run_plan(args: argparse.Namespace) -> int:
    from argosy.cli.cluster_flags import read_target_options
    from argosy.features.setup import delivery_service as delivering

    def run() -> int:
        planned = delivering.plan_setup(read_target_options(args), _load_request(args))
        _print_plan(args, planned, f"argosy setup apply -f {args.file}")
        return 1 if planned.plan.problems else 0

    return run_with_exit_codes(run)


def run_apply(args: argparse.Namespace) -> int:
    from argosy.cli.cluster_flags import read_target_options
    from argosy.features.setup import delivery_service as delivering
    from argosy.features.setup.text_output import plan_to_wire

    if args.dry_run:
        return run_plan(args)

    def run() -> int:
        result = delivering.apply_setup(
            read_target_options(args), _load_request(args), _build_callbacks(args), args.timeout
        )
        if args.output != "text":
            _print_data(args, plan_to_wire(result, "SetupResult"))
        return 0

    return run_with_exit_codes(run)


def run_status(args: argparse.Namespace) -> int:
    from argosy.cli.cluster_flags import read_target_options
    from argosy.features.setup import delivery_service as delivering
    from argosy.features.setup.text_output import render_status, status_to_wire

    def run() -> int:
        setup_status = delivering.load_setup_status(read_target_options(args), _load_request(args))
        if args.output == "text":
            print("\n".join(render_status(setup_status)))
        else:
            _print_data(args, status_to_wire(setup_status))
        return 0 if setup_status.is_complete else 1

    return run_with_exit_codes(run)


def run_destroy(args: argparse.Namespace) -> int:
    from argosy.cli.cluster_flags import read_target_options
    from argosy.features.setup import delivery_service as delivering
    from argosy.features.setup.text_output import plan_to_wire

    if args.namespaces and not (args.yes or args.dry_run):
        raise UserError("--namespaces removes the namespaces with everything in them; add -y to confirm")

    def run() -> int:
        callbacks, options = _build_callbacks(args), read_target_options(args)
        try:
            result = delivering.destroy_setup(
                options, _load_request(args), callbacks, args.timeout, with_namespaces=args.namespaces
            )
        except _DryRunStop as dry_run:
            result = dry_run.planned
        if args.output != "text":
            _print_data(args, plan_to_wire(result, "SetupPlan" if args.dry_run else "SetupResult"))
        return 0

    return run_with_exit_codes(run)


class _DryRunStop(UserError):
    """Stops a dry run before the first write."""

    def __init__(self, planned: PlannedSetup) -> None:
        super().__init__("nothing was written")
        self.planned = planned


def _load_request(args: argparse.Namespace) -> SetupRequest:
    from argosy.features.setup.argosy_yaml_loader import load_setup_request

    return load_setup_request(args.file)


def _build_callbacks(args: argparse.Namespace) -> SetupCallbacks:
    from argosy.features.setup.delivery_service import SetupCallbacks
    from argosy.features.setup.text_output import render_executed_change

    def confirm(planned: PlannedSetup) -> None:
        if args.dry_run:
            raise _DryRunStop(planned)
        if planned.plan.problems:
            raise UserError(planned.plan.problems[0])
        print(f"target: {planned.where}", file=sys.stderr, flush=True)
        if not args.yes:
            _confirm_plan(planned, is_printed=args.output == "text")

    def print_change(change: SetupChange, verb: str) -> None:
        if args.output == "text":
            print(render_executed_change(change, verb), flush=True)

    def show(planned: PlannedSetup) -> None:
        if args.output == "text":
            _print_plan(args, planned)

    return SetupCallbacks(show, confirm, print_change)


def _confirm_plan(planned: PlannedSetup, *, is_printed: bool) -> None:
    from argosy.features.setup.text_output import render_plan

    if not sys.stdin.isatty():
        raise UserError("this changes the cluster and there is no terminal for a confirmation; add -y to continue")
    refusal_message = "nothing was changed; run it again and answer y to continue"
    confirm_plan("Do it?", render_plan(planned), is_printed=is_printed, refusal=refusal_message)


def _print_plan(args: argparse.Namespace, planned: PlannedSetup, command: str = "") -> None:
    from argosy.features.setup.text_output import plan_to_wire, render_plan, render_summary

    if args.output != "text":
        _print_data(args, plan_to_wire(planned))
        return
    for line in (*render_plan(planned), *render_summary(planned, command)):
        print(line)


def _print_data(args: argparse.Namespace, data: dict[str, Any]) -> None:
    from argosy.cli.output import print_data

    print_data(data, args.output)


def run_with_exit_codes(run: Callable[[], int]) -> int:
    """Run a command and map errors to exit codes: 1 if something is missing, 4 after a timeout."""
    from argosy.features.setup.delivery_service import WaitTimeout
    from argosy.features.setup.setup_subcommand_entry_points import (
        ArgoCDNotFound,
        ArgoCDNotReady,
        RequiredFileMissing,
    )

    try:
        return run()
    except (WaitTimeout, ArgoCDNotReady) as error:
        return _print_error(error, 4)
    except (RequiredFileMissing, ArgoCDNotFound) as error:
        return _print_error(error, 1)


def _print_error(error: UserError, code: int) -> int:
    problem, _, advice = str(error).partition("; ")
    print(f"Error: {problem}\nnext: {advice}", file=sys.stderr)
    return code

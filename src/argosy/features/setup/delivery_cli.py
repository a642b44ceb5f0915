"""`argosy setup plan|apply|status|destroy`: plan, apply, show and remove the setup of argosy.yaml."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from argosy.cli.prompts import agree
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.features.setup.delivery_service import Change, Planned, Request, Talk


def plan(chosen: argparse.Namespace) -> int:
    from argosy.cli.target_flags import target_options
    from argosy.features.setup import delivery_service as delivering

    def run() -> int:
        planned = delivering.plan(target_options(chosen), _request(chosen))
        _show_plan(chosen, planned, f"argosy setup apply -f {chosen.file}")
        return 1 if planned.plan.problems else 0

    return answered(run)


def apply(chosen: argparse.Namespace) -> int:
    from argosy.cli.target_flags import target_options
    from argosy.features.setup import delivery_service as delivering
    from argosy.features.setup.text_output import plan_data

    if chosen.dry_run:
        return plan(chosen)

    def run() -> int:
        done = delivering.apply(target_options(chosen), _request(chosen), _talk(chosen), chosen.timeout)
        if chosen.output != "text":
            _print_data(chosen, plan_data(done, "SetupResult"))
        return 0

    return answered(run)


def status(chosen: argparse.Namespace) -> int:
    from argosy.cli.target_flags import target_options
    from argosy.features.setup import delivery_service as delivering
    from argosy.features.setup.text_output import status_data, status_lines

    def run() -> int:
        found = delivering.status(target_options(chosen), _request(chosen))
        if chosen.output == "text":
            print("\n".join(status_lines(found)))
        else:
            _print_data(chosen, status_data(found))
        return 0 if found.is_complete else 1

    return answered(run)


def destroy(chosen: argparse.Namespace) -> int:
    from argosy.cli.target_flags import target_options
    from argosy.features.setup import delivery_service as delivering
    from argosy.features.setup.text_output import plan_data

    if chosen.namespaces and not (chosen.yes or chosen.dry_run):
        raise UserError("--namespaces removes the namespaces with everything in them; add -y to confirm")

    def run() -> int:
        talk, options = _talk(chosen), target_options(chosen)
        try:
            done = delivering.destroy(
                options, _request(chosen), talk, chosen.timeout, with_namespaces=chosen.namespaces
            )
        except _Rehearsed as rehearsed:
            done = rehearsed.planned
        if chosen.output != "text":
            _print_data(chosen, plan_data(done, "SetupPlan" if chosen.dry_run else "SetupResult"))
        return 0

    return answered(run)


class _Rehearsed(UserError):
    """Stops a dry run before the first write."""

    def __init__(self, planned: Planned) -> None:
        super().__init__("nothing was written")
        self.planned = planned


def _request(chosen: argparse.Namespace) -> Request:
    from argosy.features.setup.requests import read_request

    return read_request(chosen.file)


def _talk(chosen: argparse.Namespace) -> Talk:
    from argosy.features.setup.delivery_service import Talk
    from argosy.features.setup.text_output import done_line

    def confirm(planned: Planned) -> None:
        if chosen.dry_run:
            raise _Rehearsed(planned)
        if planned.plan.problems:
            raise UserError(planned.plan.problems[0])
        print(f"target: {planned.where}", file=sys.stderr, flush=True)
        if not chosen.yes:
            _confirm(planned, is_printed=chosen.output == "text")

    def done(change: Change, verb: str) -> None:
        if chosen.output == "text":
            print(done_line(change, verb), flush=True)

    def show(planned: Planned) -> None:
        if chosen.output == "text":
            _show_plan(chosen, planned)

    return Talk(show, confirm, done)


def _confirm(planned: Planned, *, is_printed: bool) -> None:
    from argosy.features.setup.text_output import plan_lines

    if not sys.stdin.isatty():
        raise UserError("this changes the cluster and there is no terminal for a confirmation; add -y to continue")
    no = "nothing was changed; run it again and answer y to continue"
    agree("Do it?", plan_lines(planned), is_printed=is_printed, refusal=no)


def _show_plan(chosen: argparse.Namespace, planned: Planned, command: str = "") -> None:
    from argosy.features.setup.text_output import closing_lines, plan_data, plan_lines

    if chosen.output != "text":
        _print_data(chosen, plan_data(planned))
        return
    for line in (*plan_lines(planned), *closing_lines(planned, command)):
        print(line)


def _print_data(chosen: argparse.Namespace, data: dict[str, Any]) -> None:
    from argosy.cli.output import print_data

    print_data(data, chosen.output)


def answered(run: Callable[[], int]) -> int:
    """Run a command and map errors to exit codes: 1 if something is missing, 4 after a timeout."""
    from argosy.features.setup.delivery_service import TooLate
    from argosy.features.setup.preparation import Missing, NotInstalled, NotReady

    try:
        return run()
    except (TooLate, NotReady) as error:
        return _error(error, 4)
    except (Missing, NotInstalled) as error:
        return _error(error, 1)


def _error(error: UserError, code: int) -> int:
    what, _, advice = str(error).partition("; ")
    print(f"Error: {what}\nnext: {advice}", file=sys.stderr)
    return code

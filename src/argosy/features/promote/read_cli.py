"""`argosy promote status|plan|history|graph`: commands that read the environments and write nothing."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from argosy.cli.error_messages import keep_exit_code
from argosy.cli.exit_codes import EXIT_NEGATIVE, EXIT_OK
from argosy.cli.subcommand_flags_and_runner import print_document, print_message
from argosy.cli.tables import MESSAGE_COLUMN, TerminalOutput, drop_control_characters
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.features.promote.commits import PromotionCommit
    from argosy.features.promote.plan import PromotionPlan, PromotionRequest
    from argosy.features.promote.service import PromotionSession

# Of the first environment, which gets releases from commits.
COMMIT_HEADINGS = ("TIME", "RELEASE", "BY", "COMMIT", MESSAGE_COLUMN)
HISTORY_HEADINGS = ("TIME", "ENVIRONMENT", "WHAT", "RELEASE", "BY", "COMMIT", MESSAGE_COLUMN)


def run_status(session: PromotionSession, args: argparse.Namespace) -> int:
    from argosy.features.promote import text_output as shown

    code = EXIT_NEGATIVE if session.build_errors else EXIT_OK
    if args.output != "text":
        print_document(shown.status_to_wire(session), args.output)
        return code
    for line in shown.render_status(session, TerminalOutput(sys.stdout)):
        print(line)
    sys.stdout.flush()
    for error in session.build_errors.values():
        print_message(f"problem: {drop_control_characters(str(error))}")
    for note in session.notes:
        print_message(f"note: {drop_control_characters(note)}")
    if session.cluster_state.unavailable_reason:
        print_message(
            f"note: {drop_control_characters(session.cluster_state.unavailable_reason)}: gates that need a "
            "cluster are closed"
        )
    if advice := session.next_command:
        print_message(f"next: {advice}")
    return code


def run_plan(session: PromotionSession, args: argparse.Namespace) -> int:
    plan = session.plan(read_request(session, args))
    # A stale clone cannot prove that nothing changes.
    is_stale = any(result.kind == "clone" for result in plan.closed_gates)
    with keep_exit_code(EXIT_OK if plan.is_open or not (plan.changes.moves or is_stale) else EXIT_NEGATIVE) as code:
        print_plan(plan, args.output)
        if plan.changes.moves or is_stale:
            print_message(f"next: {choose_command_after_plan(plan, args)}")
    return code


def print_plan(plan: PromotionPlan, output: str, commit_result: PromotionCommit | None = None) -> None:
    from argosy.features.promote import text_output as shown

    if output != "text":
        commit_fields = {
            "commit": commit_result.commit if commit_result else None,
            "branch": commit_result.branch if commit_result else None,
        }
        print_document({**shown.plan_to_wire(plan), **commit_fields}, output)
        return
    screen = TerminalOutput(sys.stdout)
    for line in shown.render_plan(plan, screen):
        print("\n".join(screen.wrap_text(line, 6 if line.startswith(" ") else 2)))
    sys.stdout.flush()
    for note in plan.notes:
        print_message(f"note: {drop_control_characters(note)}")


def read_request(session: PromotionSession, args: argparse.Namespace) -> PromotionRequest:
    from argosy.features.promote.plan import PromotionRequest

    if not args.to:
        environment_name = (
            args.release
            if args.release in [environment.name for environment in session.snapshot.pipeline.environments]
            else ""
        )
        command = f"argosy promote {args.part} --to {environment_name or session.default_target}"
        raise UserError(f"missing --to ENV: the target environment; {command}")
    if args.release and args.named and args.release != args.named:
        raise UserError(f"two releases given, {args.release} and {args.named}; omit one")
    args.release = args.release or args.named
    return PromotionRequest(args.to, args.release, tuple(args.skip), args.reason)


def choose_command_after_plan(plan: PromotionPlan, args: argparse.Namespace) -> str:
    if not plan.is_open:
        from argosy.features.promote.gates import choose_next_command

        offline_advice = "run it without --offline: some gates need a cluster"
        cluster_advice = "start a cluster, or choose one with --kubeconfig or --context, and try again"
        return choose_next_command(plan.closed_gates) or (offline_advice if args.offline else cluster_advice)
    skipped = "".join(f" --skip {name}" for name in args.skip) + (" --reason TEXT" if args.skip else "")
    release_argument = f" {args.release}" if args.release else ""
    return f"argosy promote run{release_argument} --to {plan.target.name}{skipped}"


def run_history(session: PromotionSession, args: argparse.Namespace) -> int:
    from argosy.features.promote import text_output as shown

    name = session.find_environment(args.environment).name if args.environment else ""
    log = [entry for entry in session.snapshot.log if name in ("", entry.environment)]
    if args.output != "text":
        print_document(shown.history_to_wire(log), args.output)
        return EXIT_OK
    if name and not session.find_environment(name).after:
        for line in TerminalOutput(sys.stdout).format_table(
            COMMIT_HEADINGS, session.snapshot.list_changes(session.find_environment(name))
        ):
            print(line)
        return EXIT_OK
    if not log:
        print_message("no promotions yet; start with: argosy promote status")
        return EXIT_OK
    for line in TerminalOutput(sys.stdout).format_table(
        HISTORY_HEADINGS, [shown.build_history_row(entry) for entry in log], uncut_column=MESSAGE_COLUMN
    ):
        print(line)
    return EXIT_OK


def run_graph(session: PromotionSession, args: argparse.Namespace) -> int:
    from argosy.features.promote.text_output import render_graph

    for line in render_graph(session.snapshot.pipeline.environments):
        print(line)
    return EXIT_OK

"""`argosy promote status|plan|run|rollback|approve|reject|hold|resume|history|graph`: the command line."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.error_messages import keep_exit_code, print_failure, report_error
from argosy.cli.exit_codes import EXIT_NEGATIVE, EXIT_OK
from argosy.cli.progress import show_progress_if_slow
from argosy.cli.subcommands import add_subcommand, print_document, print_message
from argosy.cli.tables import MESSAGE_COLUMN, TerminalOutput, drop_control_characters
from argosy.cli.target_flags import add_target_flags, read_target_options
from argosy.errors import ArgosyError, UserError

if TYPE_CHECKING:
    from argosy.features.promote.commits import PromotionCommit
    from argosy.features.promote.plan import PromotionPlan, PromotionRequest
    from argosy.features.promote.service import PromotionSession

Commands = argparse._SubParsersAction  # the type argparse gives no public name
SessionCommand = Callable[["PromotionSession", argparse.Namespace], int]

EXAMPLES = """\
Examples:
  argosy promote status
  argosy promote plan --to staging
  argosy promote run --to staging

See also: docs/guides/promoting.md
"""
SEE_ALSO = "See also: docs/guides/promoting.md, docs/reference/cli.md"
COMMIT_HEADINGS = (
    "TIME",
    "RELEASE",
    "BY",
    "COMMIT",
    MESSAGE_COLUMN,
)  # of the first environment, which gets releases from commits
HISTORY_HEADINGS = ("TIME", "ENVIRONMENT", "WHAT", "RELEASE", "BY", "COMMIT", MESSAGE_COLUMN)
VERBS = "status|plan|run|rollback|approve|reject|hold|resume|history|graph"


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "promote",
        help="take a release from one environment to the next, through gates",
        description="Git defines the release, gates decide whether it may be promoted; a promotion is a commit.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar=VERBS, required=True)
    description = "show the release of each environment and the next promotion"
    _add_command(parts, "status", description, _run_status, ["status", "status -o json"])
    description = "show the changes, the values that stay, and which gates are open"
    _add_release_arguments(
        _add_command(parts, "plan", description, _run_plan, ["plan --to staging", "plan r42 --to staging"])
    )
    description = "promote a release: one commit, with the gate results in its message"
    run = _add_command(
        parts, "run", description, _run_promotion, ["run --to staging", "run r42 --to staging --branch promote-r42"]
    )
    _add_branch_flag(_add_release_arguments(run))
    description = "restore the previous release of an environment, and hold the current one"
    examples = ["rollback production", "rollback production --reason 'wrong answers'"]
    rollback = _add_command(parts, "rollback", description, _run_rollback, examples)
    _add_branch_flag(_add_reason_flag(_add_environment_argument(rollback)))
    for word in ("approve", "reject"):
        description = f"{word} a release, as a commit"
        subparser = _add_command(
            parts, word, description, _run_answer, [f"{word} --to production", f"{word} r42 --to production"]
        )
        _add_branch_flag(_add_release_arguments(subparser))
    description = "block promotions to an environment until it is resumed"
    _add_branch_flag(
        _add_reason_flag(
            _add_environment_argument(
                _add_command(parts, "hold", description, _run_hold, ["hold production --reason 'quarter end'"])
            )
        )
    )
    description = "end a hold, including one from a rollback"
    _add_branch_flag(
        _add_reason_flag(
            _add_environment_argument(_add_command(parts, "resume", description, _run_hold, ["resume production"]))
        )
    )
    examples = ["history", "history production"]
    listing = _add_command(parts, "history", "list promotions, approvals and holds", _run_history, examples)
    listing.add_argument("environment", nargs="?", default="", metavar="ENV", help="only this environment")
    graph_examples = ["graph", "graph | dot -Tsvg"]
    _add_command(
        parts,
        "graph",
        "print the environments and their gates as a dot graph",
        _run_graph,
        graph_examples,
        has_output_flag=False,
    )


def _add_command(
    parts: Commands[argparse.ArgumentParser],
    name: str,
    description: str,
    run_command: SessionCommand,
    examples: list[str],
    *,
    has_output_flag: bool = True,
) -> argparse.ArgumentParser:
    parser = add_subcommand(parts, name, description, [f"promote {example}" for example in examples], see_also=SEE_ALSO)
    description = "a folder of the repository (default: the current folder, else the repository of a running demo)"
    parser.add_argument("--repo", type=Path, metavar="DIR", help=description)
    parser.add_argument(
        "--offline", action="store_true", help="do not contact a cluster; gates that need one stay closed"
    )
    if has_output_flag:
        description = "text (default), json or yaml"
        parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text", help=description)
    add_target_flags(parser)
    parser.set_defaults(run=functools.partial(_run_with_session, run_command))
    return parser


def _add_release_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    description = "a release such as r42, or a commit (default: the release of the previous environment)"
    parser.add_argument("release", nargs="?", default="", metavar="RELEASE", help=description)
    parser.add_argument("--release", dest="named", default="", metavar="RELEASE", help="the same, as a flag")
    parser.add_argument("--to", default="", metavar="ENV", help="the target environment (required)")
    description = "skip the previous environment; requires --reason"
    parser.add_argument("--skip", action="append", default=[], metavar="ENV", help=description)
    return _add_reason_flag(parser)


def _add_environment_argument(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("environment", metavar="ENV", help="the environment")
    return parser


def _add_reason_flag(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--reason", default="", metavar="TEXT", help="the reason, kept in the history")
    return parser


def _add_branch_flag(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    description = "commit to a new branch, for a pull request (default: the current branch)"
    parser.add_argument("--branch", default="", metavar="NAME", help=description)
    return parser


def _run_with_session(run_command: SessionCommand, args: argparse.Namespace) -> int:
    from argosy.cli.connection import build_service_opener, find_demo_repository
    from argosy.features.promote.service import open_session

    try:
        options = read_target_options(args)
        demo = partial(find_demo_repository, options)
        session_context = open_session(
            args.repo, build_service_opener(options), demo, is_offline=args.offline, log=print_message
        )
        with show_progress_if_slow("reading the cluster and checking the files"), session_context as promotion_session:
            for note in promotion_session.uncommitted_gates:
                print_message(f"note: {drop_control_characters(note)}")
            return run_command(promotion_session, args)
    except ArgosyError as error:
        return report_error(error, f"promote {args.part} failed")


# -- reading --


def _run_status(session: PromotionSession, args: argparse.Namespace) -> int:
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


def _run_plan(session: PromotionSession, args: argparse.Namespace) -> int:
    plan = session.plan(_read_request(session, args))
    is_stale = any(
        result.kind == "clone" for result in plan.closed_gates
    )  # a stale clone cannot prove that nothing changes
    with keep_exit_code(EXIT_OK if plan.is_open or not (plan.changes.moves or is_stale) else EXIT_NEGATIVE) as code:
        _print_plan(plan, args.output)
        if plan.changes.moves or is_stale:
            print_message(f"next: {_choose_next_command(plan, args)}")
    return code


def _print_plan(plan: PromotionPlan, output: str, commit_result: PromotionCommit | None = None) -> None:
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


def _read_request(session: PromotionSession, args: argparse.Namespace) -> PromotionRequest:
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


def _choose_next_command(plan: PromotionPlan, args: argparse.Namespace) -> str:
    if not plan.is_open:
        from argosy.features.promote.gates import choose_next_command

        offline_advice = "run it without --offline: some gates need a cluster"
        cluster_advice = "start a cluster, or choose one with --kubeconfig or --context, and try again"
        return choose_next_command(plan.closed_gates) or (offline_advice if args.offline else cluster_advice)
    skipped = "".join(f" --skip {name}" for name in args.skip) + (" --reason TEXT" if args.skip else "")
    release_argument = f" {args.release}" if args.release else ""
    return f"argosy promote run{release_argument} --to {plan.target.name}{skipped}"


def _run_history(session: PromotionSession, args: argparse.Namespace) -> int:
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


def _run_graph(session: PromotionSession, args: argparse.Namespace) -> int:
    from argosy.features.promote.text_output import render_graph

    for line in render_graph(session.snapshot.pipeline.environments):
        print(line)
    return EXIT_OK


# -- writing --


def _run_promotion(session: PromotionSession, args: argparse.Namespace) -> int:
    return _promote_locked(session, args, _read_request(session, args))


def _run_rollback(session: PromotionSession, args: argparse.Namespace) -> int:
    from argosy.features.promote.plan import PromotionRequest

    target = session.find_environment(args.environment)
    return _promote_locked(
        session, args, PromotionRequest(target.name, session.planner.find_previous_release(target), (), args.reason)
    )


def _promote_locked(session: PromotionSession, args: argparse.Namespace, request: PromotionRequest) -> int:
    from argosy.features.promote.commits import commit_promotion

    with session.snapshot.repository.lock_promotions():
        session.reload_if_moved()
        if _reject_stale_clone(session, args):
            return EXIT_NEGATIVE
        plan = session.plan(request)
        if not plan.changes.moves:
            _print_plan(plan, args.output)
            print_message(f"nothing to do: {plan.target.name} has all of {plan.release.name}")
            return EXIT_OK
        if args.part == "rollback" and session.planner.find_previous_release(plan.target) != request.release:
            problem = (
                f"{plan.target.name} has {session.snapshot.get_release(plan.target).name} now: another change "
                "came first"
            )
            print_failure("promote rollback: nothing was written", [problem], "argosy promote status")
            return EXIT_NEGATIVE  # the user asked to roll back another release
        if not plan.is_open:
            closed = [f"{result.gate}: {drop_control_characters(result.reason)}" for result in plan.closed_gates]
            args.skip = list(request.skipped)
            print_failure(
                f"{plan.release.name} is not promoted to {plan.target.name}", closed, _choose_next_command(plan, args)
            )
            return EXIT_NEGATIVE
        commit_result = commit_promotion(session.snapshot, plan, session.actor, args.branch)
    session.refresh_application(plan.target)
    with keep_exit_code(EXIT_OK) as code:
        _print_plan(plan, args.output, commit_result)
        verb = "committed" if commit_result.is_new else "was committed before:"
        print_message(f"{verb} {commit_result.commit[:7]} to {commit_result.branch}: {_build_title(plan)}")
        print_message(f"next: {_choose_command_after_commit(session, plan, commit_result, args)}")
    return code


def _build_title(plan: PromotionPlan) -> str:
    from argosy.features.promote.commits import build_subject

    return build_subject(plan)


def _choose_command_after_commit(
    session: PromotionSession, plan: PromotionPlan, commit_result: PromotionCommit, args: argparse.Namespace
) -> str:
    if args.branch:
        return (
            f"git push -u origin {commit_result.branch}, then open a pull request; the commit message has the "
            "gate results"
        )
    if session.is_read_by_engine:
        waits = "argosy app wait" if plan.target.sync == "auto" else "argosy app sync"
        return f"{waits} {plan.target.application}"
    word = "wait" if plan.target.sync == "auto" else "sync"
    return f"git push; then: argosy app {word} {plan.target.application}"


def _run_answer(session: PromotionSession, args: argparse.Namespace) -> int:
    from argosy.features.promote.commits import commit_approval

    is_yes = args.part == "approve"
    with session.snapshot.repository.lock_promotions():
        session.reload_if_moved()
        if _reject_stale_clone(session, args):
            return EXIT_NEGATIVE
        request = _read_request(session, args)
        target = session.find_environment(request.target)
        release = session.planner.resolve_release(request)
        commit_result = commit_approval(
            session.snapshot, target, release, session.actor, is_approved=is_yes, reason=args.reason, branch=args.branch
        )
    word = "approved" if is_yes else "rejected"
    summary = f"{word} {release} for {target.name} as {session.actor.name}"
    return _print_commit_result(session, args, commit_result, summary, f"argosy promote plan --to {target.name}")


def _run_hold(session: PromotionSession, args: argparse.Namespace) -> int:
    from argosy.features.promote.commits import commit_hold, commit_resume

    is_hold = args.part == "hold"
    with session.snapshot.repository.lock_promotions():
        session.reload_if_moved()
        if _reject_stale_clone(session, args):
            return EXIT_NEGATIVE
        target = session.find_environment(args.environment)
        commit_result = (commit_hold if is_hold else commit_resume)(
            session.snapshot, target, session.actor, args.reason, args.branch
        )
    ended = "no longer held" if commit_result.is_new else "not held"
    summary = f"{target.name} is {'held: promotions to it are blocked' if is_hold else ended}"
    next_command = f"argosy promote resume {target.name}" if is_hold else f"argosy promote plan --to {target.name}"
    return _print_commit_result(session, args, commit_result, summary, next_command)


def _reject_stale_clone(session: PromotionSession, args: argparse.Namespace) -> bool:
    """Report a stale clone and return True: a commit made there could miss decisions of others."""
    from argosy.features.promote.clone_state import check_clone

    results = check_clone(session.snapshot.clone)
    if results:
        print_failure(
            f"promote {args.part}: nothing was written",
            [drop_control_characters(result.reason) for result in results],
            results[0].next_command,
        )
    return bool(results)


def _print_commit_result(
    session: PromotionSession, args: argparse.Namespace, commit_result: PromotionCommit, summary: str, next_command: str
) -> int:
    if args.output != "text":
        from argosy.features.promote.text_output import API_VERSION

        document = {
            "apiVersion": API_VERSION,
            "kind": "PromotionNote",
            "commit": commit_result.commit,
            "branch": commit_result.branch,
        }
        print_document({**document, "isNew": commit_result.is_new}, args.output)
    else:
        print(drop_control_characters(summary) + ("" if commit_result.is_new else " (unchanged)"))
    print_message(
        f"committed {commit_result.commit[:7]} to {commit_result.branch}"
        if commit_result.is_new
        else "nothing was written"
    )
    print_message(
        f"next: {next_command}"
        if session.is_read_by_engine or not commit_result.is_new
        else f"next: git push; then: {next_command}"
    )
    return EXIT_OK

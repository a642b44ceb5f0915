"""`argosy promote run|rollback|approve|reject|hold|resume`: commands that commit."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.error_messages import keep_exit_code, print_failure
from argosy.cli.exit_codes import EXIT_NEGATIVE, EXIT_OK
from argosy.cli.subcommand_flags_and_runner import print_document, print_message
from argosy.cli.tables import drop_control_characters
from argosy.features.promote.read_cli import choose_command_after_plan, print_plan, read_request
from argosy.kube.well_known_kinds import CLI_API_VERSION

if TYPE_CHECKING:
    from argosy.features.promote.commits import PromotionCommit
    from argosy.features.promote.plan import PromotionPlan, PromotionRequest
    from argosy.features.promote.service import PromotionSession


def run_promotion(session: PromotionSession, args: argparse.Namespace) -> int:
    return _promote_locked(session, args, read_request(session, args))


def run_rollback(session: PromotionSession, args: argparse.Namespace) -> int:
    from argosy.features.promote.plan import PromotionRequest

    target = session.find_environment(args.environment)
    return _promote_locked(
        session,
        args,
        PromotionRequest(target.name, session.planner.releases.find_previous_release_commit(target), (), args.reason),
    )


def _promote_locked(session: PromotionSession, args: argparse.Namespace, request: PromotionRequest) -> int:
    from argosy.features.promote.commits import commit_promotion

    with session.snapshot.repository.lock_promotions():
        session.reload_if_moved()
        if _reject_stale_clone(session, args):
            return EXIT_NEGATIVE
        plan = session.plan(request)
        if not plan.changes.moves:
            print_plan(plan, args.output)
            print_message(f"nothing to do: {plan.target.name} has all of {plan.release.name}")
            return EXIT_OK
        if (
            args.part == "rollback"
            and session.planner.releases.find_previous_release_commit(plan.target) != request.release
        ):
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
                f"{plan.release.name} is not promoted to {plan.target.name}",
                closed,
                choose_command_after_plan(plan, args),
            )
            return EXIT_NEGATIVE
        commit_result = commit_promotion(session.snapshot, plan, session.actor, args.branch)
    session.refresh_application(plan.target)
    with keep_exit_code(EXIT_OK) as code:
        print_plan(plan, args.output, commit_result)
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


def run_approval(session: PromotionSession, args: argparse.Namespace) -> int:
    from argosy.features.promote.commits import commit_approval

    is_yes = args.part == "approve"
    with session.snapshot.repository.lock_promotions():
        session.reload_if_moved()
        if _reject_stale_clone(session, args):
            return EXIT_NEGATIVE
        request = read_request(session, args)
        target = session.find_environment(request.target)
        release = session.planner.resolve_release(request)
        commit_result = commit_approval(
            session.snapshot, target, release, session.actor, is_approved=is_yes, reason=args.reason, branch=args.branch
        )
    word = "approved" if is_yes else "rejected"
    summary = f"{word} {release} for {target.name} as {session.actor.name}"
    return _print_commit_result(session, args, commit_result, summary, f"argosy promote plan --to {target.name}")


def run_hold(session: PromotionSession, args: argparse.Namespace) -> int:
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
    from argosy.features.promote.shallow_or_behind_clone_gate import check_clone

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
        document = {
            "apiVersion": CLI_API_VERSION,
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

"""Runs actions requested on the page (promote, approve, hold): plans again and commits, under the repository's lock.

In: a session, the actor, the action. Out: PromotionCommit. Never: does what the plan does not allow; acts in the name
of the server's user.
"""

from __future__ import annotations

from argosy.errors import UserError
from argosy.features.promote.commits import (
    PromotionCommit,
    commit_approval,
    commit_hold,
    commit_promotion,
    commit_resume,
)
from argosy.features.promote.plan import PromotionRequest
from argosy.features.promote.promotion_log_trailers import PromotionActor
from argosy.features.promote.service import PromotionSession
from argosy.features.promote.shallow_or_behind_clone_gate import check_clone

ACTIONS = ("promote", "approve", "reject", "hold", "resume")


def run_action(
    session: PromotionSession, action: str, target: str, actor: PromotionActor, *, commit: str = "", reason: str = ""
) -> PromotionCommit:
    """Run an action. `commit` is the release that the caller saw; raises UserError if another release is next now."""
    if action not in ACTIONS:
        raise UserError(f"unknown action {action!r}; choose one of {', '.join(ACTIONS)}")
    with session.snapshot.repository.lock_promotions():
        session.reload_if_moved()
        if problems := [result.reason for result in check_clone(session.snapshot.clone)]:
            raise UserError(f"this clone is out of date: {problems[0]}; update it: git pull")
        commit_result = _run_locked(session, action, target, actor, commit, reason)
    session.refresh_application(session.find_environment(target))
    return commit_result


def _run_locked(
    session: PromotionSession, action: str, target: str, actor: PromotionActor, commit: str, reason: str
) -> PromotionCommit:
    environment = session.find_environment(target)
    if action in ("hold", "resume"):
        return (commit_hold if action == "hold" else commit_resume)(session.snapshot, environment, actor, reason)
    plan = session.plan(PromotionRequest(environment.name, reason=reason))
    if commit and plan.release.commit != commit:
        raise UserError(f"{target}: the next release has changed to {plan.release}; reload the page")
    if action in ("approve", "reject"):
        return commit_approval(
            session.snapshot, environment, plan.release, actor, is_approved=action == "approve", reason=reason
        )
    if not plan.changes.moves:
        return PromotionCommit(session.snapshot.head, session.snapshot.repository.branch, is_new=False)
    if not plan.is_open:
        closed = "; ".join(f"{result.gate}: {result.reason}" for result in plan.closed_gates)
        raise UserError(f"{plan.release.name} is not promoted to {target}: {closed}; open these gates first")
    return commit_promotion(session.snapshot, plan, actor)

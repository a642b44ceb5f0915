"""Runs actions requested on the page (promote, approve, hold): plans again and commits, under the repository's lock.

In: a session, the actor, the action. Out: PromotionCommit. Never: does what the plan does not allow; acts in the name
of the server's user.
"""

from __future__ import annotations

from argosy.errors import UserError
from argosy.features.promote.clone_state import stale
from argosy.features.promote.commits import Done, answer, hold, promote, resume
from argosy.features.promote.plan import Asked
from argosy.features.promote.promotion_log import By
from argosy.features.promote.service import Session

DEEDS = ("promote", "approve", "reject", "hold", "resume")


def do(session: Session, deed: str, target: str, by: By, *, commit: str = "", reason: str = "") -> Done:
    """Run an action. `commit` is the release that the caller saw; raises UserError if another release is next now."""
    if deed not in DEEDS:
        raise UserError(f"unknown action {deed!r}; choose one of {', '.join(DEEDS)}")
    with session.survey.repository.alone():
        session.again()
        if problems := [each.why for each in stale(session.survey.clone)]:
            raise UserError(f"this clone is out of date: {problems[0]}; update it: git pull")
        done = _done(session, deed, target, by, commit, reason)
    session.seen(session.environment(target))
    return done


def _done(session: Session, deed: str, target: str, by: By, commit: str, reason: str) -> Done:
    environment = session.environment(target)
    if deed in ("hold", "resume"):
        return (hold if deed == "hold" else resume)(session.survey, environment, by, reason)
    plan = session.plan(Asked(environment.name, reason=reason))
    if commit and plan.release.commit != commit:
        raise UserError(f"{target}: the next release has changed to {plan.release}; reload the page")
    if deed in ("approve", "reject"):
        return answer(session.survey, environment, plan.release, by, is_yes=deed == "approve", reason=reason)
    if not plan.moving.moves:
        return Done(session.survey.head, session.survey.repository.branch, is_new=False)
    if not plan.is_open:
        closed = "; ".join(f"{each.gate}: {each.why}" for each in plan.closed)
        raise UserError(f"{plan.release.name} is not promoted to {target}: {closed}; open these gates first")
    return promote(session.survey, plan, by)

"""Commits promotions, approvals and holds: one commit each.

In: a RepositorySnapshot, a plan, the actor. Out: PromotionCommit. Never: a partial write: moving the branch is the last
step and is atomic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from argosy.errors import UserError
from argosy.features.promote.cluster_facts import Answers
from argosy.features.promote.environment_states import Survey
from argosy.features.promote.environments import ANYBODY
from argosy.features.promote.gates import takes_back
from argosy.features.promote.moves import Move, shown, told
from argosy.features.promote.plan import Plan
from argosy.features.promote.promotion_log import MARK, Action, By, Entry, entries, last, message
from argosy.features.promote.releases import Release
from argosy.gitops.delivery_file.values import Environment, Gate


@dataclass(frozen=True)
class Done:
    commit: str
    branch: str
    is_new: bool = True  # False: the commit existed before, and nothing was written


def who(survey: Survey, answers: Answers) -> By:
    """Return the user that the cluster authenticated, or without a cluster the one configured in Git."""
    return answers.by or By(survey.repository.identity()[1])


def promote(survey: Survey, plan: Plan, by: By, branch: str = "") -> Done:
    """Commit to the current branch, or to a new branch from the current head."""
    repository = survey.repository
    goal = branch or _current(survey)
    entry = Entry(
        Action.ROLLBACK if plan.is_back else Action.PROMOTE,
        plan.target.name,
        by,
        plan.release,
        plan.source.name,
        plan.over,
        plan.asked.reason,
        plan.asked.skipped,
        gates=tuple(f"{each.gate}: {'open' if each.is_open else 'closed'}: {each.why}" for each in plan.verdicts),
    )
    text = message(entry, subject(plan), list(_body(plan)))
    is_here = repository.place.top is not None and goal == repository.branch
    if is_here and (dirty := _changed(survey, plan)):
        told = f"{', '.join(dirty)}: uncommitted changes"
        raise UserError(f"{told}; commit or stash them, or promote on a new branch: --branch NAME")
    before = repository.commit_of(f"refs/heads/{goal}")
    if branch and before:
        return _again(survey, branch, before, entry)
    commit = repository.stage(survey.head, plan.files, text)
    repository.move(goal, commit, "" if branch else survey.head, f"argosy promote: {subject(plan)}")
    return Done(commit, goal)


def _again(survey: Survey, branch: str, tip: str, entry: Entry) -> Done:
    known = next(iter(entries(survey.repository.log(tip, MARK))), None)
    is_it = known is not None and (known.commit, known.release, known.environment) == (
        tip, entry.release, entry.environment,
    )  # fmt: skip
    if is_it and survey.repository.commit_of(f"{tip}~1") == survey.head:
        return Done(tip, branch, is_new=False)
    raise _there(branch)


def _there(branch: str) -> UserError:
    return UserError(f"branch {branch} already exists; choose another name, or delete it: git branch -D {branch}")


def _current(survey: Survey) -> str:
    if not (branch := survey.repository.branch):
        raise UserError("HEAD is detached; check out a branch, or create one: --branch NAME")
    return branch


def _changed(survey: Survey, plan: Plan) -> list[str]:
    """List uncommitted edits of the files to write, except files that already have the new content after a crash."""
    top = survey.repository.place.top
    assert top is not None
    dirty = survey.repository.dirty(list(plan.files))
    return [path for path in dirty if not _is_same(top / path, plan.files.get(path))]


def _is_same(path: Path, content: bytes | None) -> bool:
    return content is not None and path.is_file() and path.read_bytes() == content


def subject(plan: Plan) -> str:
    if plan.is_back:
        return f"Roll back {plan.target.name} to {plan.release.name}"
    return f"Promote {plan.release.name} to {plan.target.name}"


def _body(plan: Plan) -> list[str]:
    lines = [f"{'Back' if plan.is_back else f'From {plan.source.name}'}, commit {plan.release.commit[:12]}:", ""]
    lines += [f"* {line}" for line in moves_told(plan.moving.moves)]
    kept = ", ".join(dict.fromkeys(f"{name} {value}" for name, value in told(plan.moving.stays)))
    lines += ["", f"Kept as they are in {plan.target.name}: {kept}."] if kept else []
    lines += ["", f"Skipped: {', '.join(plan.asked.skipped)}."] if plan.asked.skipped else []
    lines += ["", "Gates:", "", *(f"* {each.gate}: {each.why}" for each in plan.verdicts)] if plan.verdicts else []
    return lines


def moves_told(moves: Sequence[Move]) -> list[str]:
    return [
        f"{move.kind} {move.owner} {move.at.path}: "
        f"{_text(shown(move.at, move.before))} → {_text(shown(move.at, move.after))}"
        for move in moves
    ]


def _text(value: object) -> str:
    return "–" if value is None else " ".join(map(str, value)) if isinstance(value, list) else str(value)


# -- entries without file changes --


def answer(
    survey: Survey, target: Environment, release: Release, by: By, *, is_yes: bool, reason: str, branch: str = ""
) -> Done:
    """Commit an approval or a rejection."""
    gate = _answered(survey, target, by)
    word = "Approve" if is_yes else "Reject"
    entry = Entry(Action.APPROVE if is_yes else Action.REJECT, target.name, by, release, role=gate.value, reason=reason)
    ours = [each for each in survey.log if each.environment == target.name]
    since = takewhile(lambda each: not takes_back(each, release), ours)
    latest = next((each for each in since if each.release == release and each.role), None)
    if latest and latest.action is entry.action and latest.by.name == by.name:
        return Done(latest.commit, _current(survey), is_new=False)
    return _noted(survey, entry, f"{word} {release.name} for {target.name}", branch)


def _answered(survey: Survey, target: Environment, by: By) -> Gate:
    """Return the approval gate whose role the actor has; there may be several gates with different roles."""
    gates = [each for each in target.gates if each.kind == "approval"]
    if not gates:
        advice = f"add a gate to {survey.way.told_by}: approval: ROLE"
        raise UserError(f"{target.name} has no approval gate; {advice}")
    for gate in gates:
        role = survey.way.role(gate.value)
        if gate.value == ANYBODY or (role and by.has(role.groups)):
            return gate
    roles = {gate.value: survey.way.role(gate.value) for gate in gates}
    members = ", ".join(dict.fromkeys(name for role in roles.values() if role for name in role.groups))
    told = f"{by.name} does not have the role {' or '.join(roles)}"
    who_can = members or "none: rbac.roles has no such role"
    raise UserError(f"{told} (members: {who_can}); ask one of them, or change {survey.way.told_by}")


def hold(survey: Survey, target: Environment, by: By, reason: str, branch: str = "") -> Done:
    _after_another(target, f"to pause its syncs: argosy app hold {target.application}")
    known = last(survey.log, target.name, Action.HOLD, Action.RESUME)
    if known and known.action is Action.HOLD:
        return Done(known.commit, _current(survey), is_new=False)
    return _noted(survey, Entry(Action.HOLD, target.name, by, reason=reason), f"Hold {target.name}", branch)


def resume(survey: Survey, target: Environment, by: By, reason: str, branch: str = "") -> Done:
    _after_another(target, f"to end a hold of its syncs: argosy app release {target.application}")
    known = last(survey.log, target.name, Action.HOLD, Action.RESUME, Action.ROLLBACK)
    if known is None or known.action is Action.RESUME:
        return Done(known.commit if known else survey.head, _current(survey), is_new=False)
    return _noted(survey, Entry(Action.RESUME, target.name, by, reason=reason), f"Resume {target.name}", branch)


def _after_another(target: Environment, instead: str) -> None:
    if not target.after:
        raise UserError(f"{target.name} is the first environment, so it has no promotions; {instead}")


def _noted(survey: Survey, entry: Entry, title: str, branch: str) -> Done:
    """Create a commit that changes no file."""
    repository = survey.repository
    goal = branch or _current(survey)
    if branch and repository.commit_of(f"refs/heads/{branch}"):
        raise _there(branch)
    commit = repository.stage(survey.head, {}, message(entry, title))
    repository.move(goal, commit, "" if branch else survey.head, f"argosy promote: {title}")
    return Done(commit, goal)

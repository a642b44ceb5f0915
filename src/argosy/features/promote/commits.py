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
from argosy.features.promote.classified_manifest_fields import Release
from argosy.features.promote.environment_cluster_state import EnvironmentClusterState
from argosy.features.promote.environments_at_commit import RepositorySnapshot
from argosy.features.promote.gates import is_rollback_of
from argosy.features.promote.plan import PromotionPlan
from argosy.features.promote.promotion_changes import FieldMove, describe_kept, mask_field_value
from argosy.features.promote.promotion_log_trailers import (
    COMMIT_MARK,
    PromotionAction,
    PromotionActor,
    PromotionLogEntry,
    build_message,
    find_latest,
    read_entries,
)
from argosy.features.promote.promotion_pipeline import ANYBODY_ROLE
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment, PromotionGate


@dataclass(frozen=True)
class PromotionCommit:
    commit: str
    branch: str
    is_new: bool = True  # False: the commit existed before, and nothing was written


def identify_actor(snapshot: RepositorySnapshot, cluster_state: EnvironmentClusterState) -> PromotionActor:
    """Return the user that the cluster authenticated, or without a cluster the one configured in Git."""
    return cluster_state.actor or PromotionActor(snapshot.repository.find_identity()[1])


def commit_promotion(
    snapshot: RepositorySnapshot, plan: PromotionPlan, actor: PromotionActor, branch: str = ""
) -> PromotionCommit:
    """Commit to the current branch, or to a new branch from the current head."""
    repository = snapshot.repository
    target_branch = branch or _get_current_branch(snapshot)
    entry = PromotionLogEntry(
        PromotionAction.ROLLBACK if plan.is_rollback else PromotionAction.PROMOTE,
        plan.target.name,
        actor,
        plan.release,
        plan.source.name,
        plan.replaced,
        plan.request.reason,
        plan.request.skipped,
        gates=tuple(
            f"{result.gate}: {'open' if result.is_open else 'closed'}: {result.reason}" for result in plan.gate_results
        ),
    )
    text = build_message(entry, build_subject(plan), list(_build_body(plan)))
    is_checked_out = repository.paths.top is not None and target_branch == repository.branch
    if is_checked_out and (dirty := _list_conflicting_edits(snapshot, plan)):
        problem = f"{', '.join(dirty)}: uncommitted changes"
        raise UserError(f"{problem}; commit or stash them, or promote on a new branch: --branch NAME")
    before = repository.find_commit(f"refs/heads/{target_branch}")
    if branch and before:
        return _find_repeated_commit(snapshot, branch, before, entry)
    commit = repository.create_commit(snapshot.head, plan.files, text)
    repository.move_branch(
        target_branch, commit, "" if branch else snapshot.head, f"argosy promote: {build_subject(plan)}"
    )
    return PromotionCommit(commit, target_branch)


def _find_repeated_commit(
    snapshot: RepositorySnapshot, branch: str, tip: str, entry: PromotionLogEntry
) -> PromotionCommit:
    latest = next(iter(read_entries(snapshot.repository.list_marked_commits(tip, COMMIT_MARK))), None)
    is_same_promotion = latest is not None and (latest.commit, latest.release, latest.environment) == (
        tip, entry.release, entry.environment,
    )  # fmt: skip
    if is_same_promotion and snapshot.repository.find_commit(f"{tip}~1") == snapshot.head:
        return PromotionCommit(tip, branch, is_new=False)
    raise _build_branch_exists_error(branch)


def _build_branch_exists_error(branch: str) -> UserError:
    return UserError(f"branch {branch} already exists; choose another name, or delete it: git branch -D {branch}")


def _get_current_branch(snapshot: RepositorySnapshot) -> str:
    if not (branch := snapshot.repository.branch):
        raise UserError("HEAD is detached; check out a branch, or create one: --branch NAME")
    return branch


def _list_conflicting_edits(snapshot: RepositorySnapshot, plan: PromotionPlan) -> list[str]:
    """List uncommitted edits of the files to write, except files that already have the new content after a crash."""
    top = snapshot.repository.paths.top
    assert top is not None
    dirty = snapshot.repository.list_uncommitted(list(plan.files))
    return [path for path in dirty if not _has_content(top / path, plan.files.get(path))]


def _has_content(path: Path, content: bytes | None) -> bool:
    return content is not None and path.is_file() and path.read_bytes() == content


def build_subject(plan: PromotionPlan) -> str:
    if plan.is_rollback:
        return f"Roll back {plan.target.name} to {plan.release.name}"
    return f"Promote {plan.release.name} to {plan.target.name}"


def _build_body(plan: PromotionPlan) -> list[str]:
    lines = [f"{'Back' if plan.is_rollback else f'From {plan.source.name}'}, commit {plan.release.commit[:12]}:", ""]
    lines += [f"* {line}" for line in render_moves(plan.changes.moves)]
    kept_text = ", ".join(dict.fromkeys(f"{name} {value}" for name, value in describe_kept(plan.changes.stays)))
    lines += ["", f"Kept as they are in {plan.target.name}: {kept_text}."] if kept_text else []
    lines += ["", f"Skipped: {', '.join(plan.request.skipped)}."] if plan.request.skipped else []
    lines += (
        ["", "Gates:", "", *(f"* {result.gate}: {result.reason}" for result in plan.gate_results)]
        if plan.gate_results
        else []
    )
    return lines


def render_moves(moves: Sequence[FieldMove]) -> list[str]:
    return [
        f"{move.kind} {move.owner} {move.address.path}: "
        f"{_format_value(mask_field_value(move.address, move.before))} → "
        f"{_format_value(mask_field_value(move.address, move.after))}"
        for move in moves
    ]


def _format_value(value: object) -> str:
    return "–" if value is None else " ".join(map(str, value)) if isinstance(value, list) else str(value)


# -- entries without file changes --


def commit_approval(
    snapshot: RepositorySnapshot,
    target: DeliveryEnvironment,
    release: Release,
    actor: PromotionActor,
    *,
    is_approved: bool,
    reason: str,
    branch: str = "",
) -> PromotionCommit:
    """Commit an approval or a rejection."""
    gate = _find_approval_gate_for_actor(snapshot, target, actor)
    word = "Approve" if is_approved else "Reject"
    entry = PromotionLogEntry(
        PromotionAction.APPROVE if is_approved else PromotionAction.REJECT,
        target.name,
        actor,
        release,
        role=gate.value,
        reason=reason,
    )
    environment_entries = [item for item in snapshot.log if item.environment == target.name]
    since = takewhile(lambda item: not is_rollback_of(item, release), environment_entries)
    latest = next((item for item in since if item.release == release and item.role), None)
    if latest and latest.action is entry.action and latest.actor.name == actor.name:
        return PromotionCommit(latest.commit, _get_current_branch(snapshot), is_new=False)
    return _commit_log_entry(snapshot, entry, f"{word} {release.name} for {target.name}", branch)


def _find_approval_gate_for_actor(
    snapshot: RepositorySnapshot, target: DeliveryEnvironment, actor: PromotionActor
) -> PromotionGate:
    """Return the approval gate whose role the actor has; there may be several gates with different roles."""
    gates = [candidate for candidate in target.gates if candidate.kind == "approval"]
    if not gates:
        advice = f"add a gate to {snapshot.pipeline.defined_in}: approval: ROLE"
        raise UserError(f"{target.name} has no approval gate; {advice}")
    for gate in gates:
        role = snapshot.pipeline.find_role(gate.value)
        if gate.value == ANYBODY_ROLE or (role and actor.is_member_of(role.groups)):
            return gate
    roles = {gate.value: snapshot.pipeline.find_role(gate.value) for gate in gates}
    members = ", ".join(dict.fromkeys(name for role in roles.values() if role for name in role.groups))
    problem = f"{actor.name} does not have the role {' or '.join(roles)}"
    members_text = members or "none: rbac.roles has no such role"
    raise UserError(f"{problem} (members: {members_text}); ask one of them, or change {snapshot.pipeline.defined_in}")


def commit_hold(
    snapshot: RepositorySnapshot, target: DeliveryEnvironment, actor: PromotionActor, reason: str, branch: str = ""
) -> PromotionCommit:
    _require_previous_environment(target, f"to pause its syncs: argosy app hold {target.application}")
    latest = find_latest(snapshot.log, target.name, PromotionAction.HOLD, PromotionAction.RESUME)
    if latest and latest.action is PromotionAction.HOLD:
        return PromotionCommit(latest.commit, _get_current_branch(snapshot), is_new=False)
    return _commit_log_entry(
        snapshot,
        PromotionLogEntry(PromotionAction.HOLD, target.name, actor, reason=reason),
        f"Hold {target.name}",
        branch,
    )


def commit_resume(
    snapshot: RepositorySnapshot, target: DeliveryEnvironment, actor: PromotionActor, reason: str, branch: str = ""
) -> PromotionCommit:
    _require_previous_environment(target, f"to end a hold of its syncs: argosy app release {target.application}")
    latest = find_latest(
        snapshot.log, target.name, PromotionAction.HOLD, PromotionAction.RESUME, PromotionAction.ROLLBACK
    )
    if latest is None or latest.action is PromotionAction.RESUME:
        return PromotionCommit(latest.commit if latest else snapshot.head, _get_current_branch(snapshot), is_new=False)
    return _commit_log_entry(
        snapshot,
        PromotionLogEntry(PromotionAction.RESUME, target.name, actor, reason=reason),
        f"Resume {target.name}",
        branch,
    )


def _require_previous_environment(target: DeliveryEnvironment, advice: str) -> None:
    if not target.after:
        raise UserError(f"{target.name} is the first environment, so it has no promotions; {advice}")


def _commit_log_entry(
    snapshot: RepositorySnapshot, entry: PromotionLogEntry, title: str, branch: str
) -> PromotionCommit:
    """Create a commit that changes no file."""
    repository = snapshot.repository
    target_branch = branch or _get_current_branch(snapshot)
    if branch and repository.find_commit(f"refs/heads/{branch}"):
        raise _build_branch_exists_error(branch)
    commit = repository.create_commit(snapshot.head, {}, build_message(entry, title))
    repository.move_branch(target_branch, commit, "" if branch else snapshot.head, f"argosy promote: {title}")
    return PromotionCommit(commit, target_branch)

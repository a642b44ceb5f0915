"""Checks whether a clone is complete and up to date with its upstream branch.

In: the clone's counts. Out: notes, and reasons not to commit here. Never: calls git; guesses what was not fetched.
"""

from __future__ import annotations

from argosy.features.promote.gates import GateResult
from argosy.gitops.workspace.git_repository import UpstreamState

SHALLOW_CLONE_MESSAGE = "this clone is shallow: release numbers and earlier approvals and holds are unknown"


def check_clone(clone: UpstreamState) -> list[GateResult]:
    """Return closed gates for a clone whose commits could have wrong release numbers or miss decisions of others."""
    results = []
    if clone.is_shallow:
        results.append(
            GateResult("clone", False, SHALLOW_CLONE_MESSAGE, next_command="git fetch --unshallow", kind="clone")
        )
    if clone.behind:
        subject = "HEAD is detached, and" if clone.is_detached else "this branch is"
        reason = f"{subject} {format_commit_count(clone.behind)} behind {clone.upstream}"
        results.append(GateResult("clone", False, reason, next_command=_choose_update_command(clone), kind="clone"))
    return results


def _choose_update_command(clone: UpstreamState) -> str:
    if clone.is_detached:
        return "check a branch out: git switch BRANCH"
    return "git pull --rebase" if clone.ahead else "git pull"


def list_clone_notes(clone: UpstreamState) -> list[str]:
    messages = [f"{result.reason}; {result.next_command}" for result in check_clone(clone)]
    if clone.ahead and not clone.is_detached:
        messages.append(f"{format_commit_count(clone.ahead)} not pushed to {clone.upstream}, so not deployed; git push")
    return messages


def format_commit_count(commits: int) -> str:
    return f"{commits} commit{'s' if commits != 1 else ''}"

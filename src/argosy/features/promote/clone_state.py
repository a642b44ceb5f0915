"""Checks whether a clone is complete and up to date with its upstream branch.

In: the clone's counts. Out: notes, and reasons not to commit here. Never: calls git; guesses what was not fetched.
"""

from __future__ import annotations

from argosy.features.promote.gates import Verdict
from argosy.gitops.workspace.git_repository import Clone

SHALLOW = "this clone is shallow: release numbers and earlier approvals and holds are unknown"


def stale(clone: Clone) -> list[Verdict]:
    """Return closed gates for a clone whose commits could have wrong release numbers or miss decisions of others."""
    found = []
    if clone.is_shallow:
        found.append(Verdict("clone", False, SHALLOW, next="git fetch --unshallow", kind="clone"))
    if clone.behind:
        where = "HEAD is detached, and" if clone.is_detached else "this branch is"
        told = f"{where} {counted(clone.behind)} behind {clone.follows}"
        found.append(Verdict("clone", False, told, next=_catching_up(clone), kind="clone"))
    return found


def _catching_up(clone: Clone) -> str:
    if clone.is_detached:
        return "check a branch out: git switch BRANCH"
    return "git pull --rebase" if clone.ahead else "git pull"


def notes(clone: Clone) -> list[str]:
    found = [f"{each.why}; {each.next}" for each in stale(clone)]
    if clone.ahead and not clone.is_detached:
        found.append(f"{counted(clone.ahead)} not pushed to {clone.follows}, so not deployed; git push")
    return found


def counted(commits: int) -> str:
    return f"{commits} commit{'s' if commits != 1 else ''}"

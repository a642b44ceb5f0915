"""How a clone stands to the branch that it follows.

In: what git counted. Out: notes, and why nothing may be written here. Never: asks git; guesses what was not fetched.
"""

from __future__ import annotations

from argosy.features.promote.gates import Verdict
from argosy.gitops.workspace.git_repository import Clone

SHALLOW = "this clone is shallow: numbers of releases, and what was decided before, are not known here"


def stale(clone: Clone) -> list[Verdict]:
    """Why a commit made here would tell of releases that are none, or miss what others decided."""
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
        found.append(f"{counted(clone.ahead)} not pushed to {clone.follows}: nothing of that is deployed; git push")
    return found


def counted(commits: int) -> str:
    return f"{commits} commit{'s' if commits != 1 else ''}"

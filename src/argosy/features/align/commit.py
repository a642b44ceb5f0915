"""Commits the changed files to a new branch.

In: WorkingTreeEdits and a branch name. Out: the commit. Never: touches a file of the working tree; moves an existing
branch; leaves a partial commit, because creating the branch is the last step.
"""

from __future__ import annotations

from pathlib import Path

from argosy.errors import UserError
from argosy.features.align.working_tree_edits import WorkingTreeEdits
from argosy.gitops.workspace.git_repository import GitRepository


def commit_to_branch(files: WorkingTreeEdits, branch: str, message: str) -> str:
    repository = GitRepository.open(Path(files.root))
    if repository is None:
        raise UserError("not a Git repository; use --write", where=files.root)
    if not repository.succeeds("check-ref-format", "--branch", branch):
        raise UserError(f"invalid branch name {branch!r}; choose another", where="--branch")
    if repository.find_commit(f"refs/heads/{branch}"):
        raise UserError(f"branch {branch!r} already exists; choose another name", where="--branch")
    changed = {path: new.encode() for path, (_, new) in files.changed.items()}
    if dirty := repository.list_uncommitted(sorted(changed)):
        problem = "uncommitted changes; commit them first, or use --write"
        raise UserError(problem, where=", ".join(dirty))
    head = repository.find_commit("HEAD")
    if not head:
        raise UserError("has no commit yet; commit what is there first", where=files.root)
    commit_id = repository.create_commit(head, changed, f"{message}\n")
    repository.move_branch(branch, commit_id, "", "argosy align")
    return commit_id

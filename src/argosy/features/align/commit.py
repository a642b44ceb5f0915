"""What was changed as one commit on a new branch. In: Files, a name. Out: the commit. Never: a file of the working tree
touched; a branch that is there moved; half a commit: until the branch leads to it, nothing has happened."""

from __future__ import annotations

from pathlib import Path

from argosy.errors import UserError
from argosy.features.align.application_files import Files
from argosy.gitops.workspace.git_repository import Repository


def commit(files: Files, branch: str, message: str) -> str:
    repository = Repository.open(Path(files.root))
    if repository is None:
        raise UserError("is no Git repository, so nothing can be committed; use --write", where=files.root)
    if not repository.says("check-ref-format", "--branch", branch):
        raise UserError(f"{branch!r} is no name for a branch; choose another", where="--branch")
    if repository.commit_of(f"refs/heads/{branch}"):
        raise UserError(f"there is a branch {branch!r} already; choose another name", where="--branch")
    changed = {path: new.encode() for path, (_, new) in files.changed.items()}
    if dirty := repository.dirty(sorted(changed)):
        told = "has changes that are not committed; commit them first, or use --write"
        raise UserError(told, where=", ".join(dirty))
    head = repository.commit_of("HEAD")
    if not head:
        raise UserError("has no commit yet; commit what is there first", where=files.root)
    made = repository.stage(head, changed, f"{message}\n")
    repository.move(branch, made, "", "argosy align")
    return made

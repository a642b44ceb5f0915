"""A bare Git repository that others clone from and push to.

In: files and a message. Out: commits. Never: a partial commit; uses the user's Git settings.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from argosy.errors import UserError
from argosy.gitops.workspace.git_repository_creation import DEFAULT_BRANCH, RepositoryFile, find_git

EXECUTABLE_MODE, FILE_MODE = "100755", "100644"
# Ignore all Git settings: a template folder, signing key or hooks path would change the repository.
ISOLATED_GIT_ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
}


@dataclass(frozen=True)
class CommitAuthor:
    name: str
    email: str

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


@dataclass(frozen=True)
class CommitContent:
    """Files that a commit writes and removes; other files stay unchanged."""

    files: Sequence[RepositoryFile]
    message: str
    author: CommitAuthor
    seconds: int  # Unix time in seconds
    removed: Sequence[str] = ()  # paths


class BareRepository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def exists(self) -> bool:
        return (self.folder / "HEAD").is_file()

    def create(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _run_git(self.folder, "init", "--quiet", "--bare")
        _run_git(self.folder, "symbolic-ref", "HEAD", f"refs/heads/{DEFAULT_BRANCH}")

    def commit(self, changes: Sequence[CommitContent], *, branch: str = DEFAULT_BRANCH, start: str = "") -> list[str]:
        """Commit all changes to the branch, in order, and return their ids. Fails if somebody pushes in between.

        A branch that does not exist yet starts at `start`.
        """
        tip = self._find_tip(branch) or start
        head = f"feature done\ncommit refs/heads/{branch}"
        parent = f"from {tip}\n" if tip else ""
        stream = b"".join(
            _build_import_commands(change, *((head, parent) if index == 0 else (f"commit refs/heads/{branch}", "")))
            for index, change in enumerate(changes)
        )
        _run_git(self.folder, "fast-import", "--quiet", stdin=stream + b"done\n")
        return self.list_commits(branch)[-len(changes) :]

    def _find_tip(self, branch: str) -> str:
        return _run_git(self.folder, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}").decode().strip()

    def list_commits(self, branch: str = DEFAULT_BRANCH) -> list[str]:
        """Return the commits of the branch, the oldest first."""
        return _run_git(self.folder, "rev-list", "--reverse", branch).decode().split()

    def list_messages(self, branch: str = DEFAULT_BRANCH) -> dict[str, str]:
        """Return the full message of each commit, the newest first."""
        listed = _run_git(self.folder, "log", "--format=%H %B%x00", branch).decode()
        pairs = (entry.strip().partition(" ") for entry in listed.split("\0") if entry.strip())
        return {commit: message for commit, _, message in pairs}

    def read_file(self, path: str, commit: str = DEFAULT_BRANCH) -> bytes:
        return _run_git(self.folder, "cat-file", "blob", f"{commit}:{path}")

    def list_changed_paths(self, commit: str) -> list[str]:
        """Return the paths that a commit changed."""
        names = ("diff-tree", "--no-commit-id", "--name-only", "-r", "-z", commit)
        return [path for path in _run_git(self.folder, *names).decode().split("\0") if path]


def _build_import_commands(change: CommitContent, head: str, parent: str) -> bytes:
    """Build the git fast-import stream; the final `done` makes git reject a truncated stream."""
    message = change.message.encode()
    lines = [
        head,
        f"author {change.author} {change.seconds} +0000",
        f"committer {change.author} {change.seconds} +0000",
    ]
    commands = "\n".join(lines).encode() + b"\ndata %d\n%s\n" % (len(message), message) + parent.encode()
    commands += "".join(f"D {path}\n" for path in change.removed).encode()
    for file in change.files:
        mode = EXECUTABLE_MODE if file.is_executable else FILE_MODE
        commands += f"M {mode} inline {file.path}\ndata {len(file.content)}\n".encode() + file.content + b"\n"
    return commands


def _run_git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    environment: Mapping[str, str] = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    result = subprocess.run(
        [find_git(), "--git-dir", str(folder), *arguments],
        env={**environment, **ISOLATED_GIT_ENVIRONMENT},
        input=stdin,
        capture_output=True,
        check=False,
    )
    if result.returncode:
        error_text = " ".join(result.stderr.decode(errors="replace").split()) or f"exit code {result.returncode}"
        raise UserError(f"git {arguments[0]}: {error_text}; check whether the repository is intact", where=str(folder))
    return result.stdout

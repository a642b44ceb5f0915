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
from argosy.gitops.workspace.new_repository import BRANCH, File, find_git

PROGRAM, PLAIN = "100755", "100644"
# Ignore all Git settings: a template folder, signing key or hooks path would change the repository.
ALONE: Final = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}


@dataclass(frozen=True)
class Author:
    name: str
    email: str

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


@dataclass(frozen=True)
class Change:
    """Files that a commit writes and removes; other files stay unchanged."""

    files: Sequence[File]
    message: str
    author: Author
    seconds: int  # Unix time in seconds
    removed: Sequence[str] = ()  # paths


class BareRepository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def is_there(self) -> bool:
        return (self.folder / "HEAD").is_file()

    def create(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _git(self.folder, "init", "--quiet", "--bare")
        _git(self.folder, "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")

    def commit(self, changes: Sequence[Change], *, branch: str = BRANCH, start: str = "") -> list[str]:
        """Commit all changes to the branch, in order, and return their ids. Fails if somebody pushes in between.

        A branch that does not exist yet starts at `start`.
        """
        before = self._tip(branch) or start
        head = f"feature done\ncommit refs/heads/{branch}"
        parent = f"from {before}\n" if before else ""
        stream = b"".join(
            _spoken(change, *((head, parent) if number == 0 else (f"commit refs/heads/{branch}", "")))
            for number, change in enumerate(changes)
        )
        _git(self.folder, "fast-import", "--quiet", given=stream + b"done\n")
        return self.commits(branch)[-len(changes) :]

    def _tip(self, branch: str) -> str:
        return _git(self.folder, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}").decode().strip()

    def commits(self, branch: str = BRANCH) -> list[str]:
        """Return the commits of the branch, the oldest first."""
        return _git(self.folder, "rev-list", "--reverse", branch).decode().split()

    def messages(self, branch: str = BRANCH) -> dict[str, str]:
        """Return the full message of each commit, the newest first."""
        listed = _git(self.folder, "log", "--format=%H %B%x00", branch).decode()
        pairs = (each.strip().partition(" ") for each in listed.split("\0") if each.strip())
        return {commit: message for commit, _, message in pairs}

    def read(self, path: str, commit: str = BRANCH) -> bytes:
        return _git(self.folder, "cat-file", "blob", f"{commit}:{path}")

    def changed(self, commit: str) -> list[str]:
        """Return the paths that a commit changed."""
        names = ("diff-tree", "--no-commit-id", "--name-only", "-r", "-z", commit)
        return [path for path in _git(self.folder, *names).decode().split("\0") if path]


def _spoken(change: Change, head: str, parent: str) -> bytes:
    """Build the git fast-import stream; the final `done` makes git reject a truncated stream."""
    message = change.message.encode()
    lines = [
        head,
        f"author {change.author} {change.seconds} +0000",
        f"committer {change.author} {change.seconds} +0000",
    ]
    spoken = "\n".join(lines).encode() + b"\ndata %d\n%s\n" % (len(message), message) + parent.encode()
    spoken += "".join(f"D {path}\n" for path in change.removed).encode()
    for file in change.files:
        mode = PROGRAM if file.is_program else PLAIN
        spoken += f"M {mode} inline {file.path}\ndata {len(file.content)}\n".encode() + file.content + b"\n"
    return spoken


def _git(folder: Path, *words: str, given: bytes = b"") -> bytes:
    own: Mapping[str, str] = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        [find_git(), "--git-dir", str(folder), *words],
        env={**own, **ALONE},
        input=given,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split()) or f"exit code {done.returncode}"
        raise UserError(f"git {words[0]}: {said}; check whether the repository is intact", where=str(folder))
    return done.stdout

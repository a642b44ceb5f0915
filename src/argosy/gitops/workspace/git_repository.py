"""A Git repository, with or without a working tree: trees, log, and atomic commits.

In: a folder. Out: trees, messages, commits. Never: runs a hook; moves a branch that was moved in the meantime.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from argosy.errors import TransientError, UserError
from argosy.gitops.source.git.commit_tree import GitTree
from argosy.gitops.source.git.object_reader import ObjectReader
from argosy.gitops.source.limits import SourceLimits
from argosy.gitops.workspace.new_repository import OF_ANOTHER, find_git
from argosy.isolation.scratch_folders import scratch_folder

PATIENCE: Final = 30.0  # seconds to wait for another promotion of the same repository
PLAINLY: Final = ("-c", "log.showSignature=false", "-c", "core.quotePath=false")  # override output settings
# Reading takes no lock: `git status` would lock the index, and a concurrent promotion would fail.
GIT_ENVIRONMENT: Final = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
NONE: Final = "0" * 40


class GitRefused(UserError):
    """A git command failed."""


@dataclass(frozen=True)
class Clone:
    """Relation to the upstream branch, as far as it was fetched."""

    is_shallow: bool = False
    follows: str = ""  # origin/main; empty if there is no upstream
    ahead: int = 0
    behind: int = 0
    is_detached: bool = False


@dataclass(frozen=True)
class Place:
    """Paths of a repository, and the current folder in it."""

    folder: Path  # to run git in
    git: Path  # Git directory of this working tree
    shared: Path
    top: Path | None  # None: bare repository
    inner: str = ""  # the current folder, relative to the top


class Repository:
    def __init__(self, place: Place) -> None:
        self.place = place
        self._objects = ObjectReader(place.shared, SourceLimits(), str(place.folder))

    @classmethod
    def open(cls, folder: Path) -> Repository | None:
        """Open the repository that contains the folder; None if there is none."""
        words = ("rev-parse", "--path-format=absolute", "--is-bare-repository", "--git-dir", "--git-common-dir")
        try:
            bare, git, shared = _run(folder, *words).splitlines()
            if bare == "true":
                return cls(Place(folder, Path(git), Path(shared), None))
            top = _run(folder, "rev-parse", "--show-toplevel")
            inner = _run(folder, "rev-parse", "--show-prefix")
        except GitRefused as error:
            if "dubious ownership" in error.message:
                advice = f"git config --global --add safe.directory {folder}"
                raise UserError(f"belongs to another user, so git refuses it; {advice}", where=str(folder)) from error
            return None
        return cls(Place(Path(top), Path(git), Path(shared), Path(top), inner.strip("/")))

    def git(self, *words: str, given: str | bytes | None = None, more: Mapping[str, str] | None = None) -> str:
        return _run(self.place.folder, *words, given=given, more=more)

    def says(self, *words: str) -> bool:
        """Run a git command that answers with its exit code."""
        try:
            self.git(*words)
        except GitRefused:
            return False
        return True

    # -- reading --

    @property
    def branch(self) -> str:
        """The current branch; empty if HEAD is detached."""
        try:
            return self.git("symbolic-ref", "--quiet", "--short", "HEAD")
        except GitRefused:
            return ""

    @property
    def is_shallow(self) -> bool:
        return (self.place.shared / "shallow").is_file()

    def commit_of(self, ref: str) -> str:
        """Resolve a ref to a commit; empty if it does not exist."""
        try:
            return self.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        except GitRefused:
            return ""

    def head(self) -> str:
        if not (found := self.commit_of("HEAD")):
            raise UserError("has no commit yet; commit first, then promote", where=str(self.place.folder))
        return found

    def tree(self, commit: str) -> GitTree:
        return GitTree(self._objects, self.git("rev-parse", f"{commit}^{{tree}}"))

    def log(self, commit: str, mark: str) -> list[tuple[str, int, str]]:
        """Return commits whose message has a line that starts with the mark, the newest first."""
        words = ("log", "--topo-order", "--format=%H %ct%n%B%x00", f"--grep=^{mark}", commit)
        found = []
        for text in self.git(*words).split("\0"):
            if text := text.strip("\n"):
                head, _, message = text.partition("\n")
                name, _, seconds = head.partition(" ")
                found.append((name, int(seconds), message))
        return found

    def log_upstream(self, commit: str, mark: str) -> list[tuple[str, int, str]]:
        """Like `list_marked_commits`, for commits that only the upstream branch has; empty without upstream."""
        try:
            return self.log(f"{commit}..@{{upstream}}", mark)
        except GitRefused:
            return []

    def last_change(self, commit: str, paths: Sequence[str]) -> str:
        """Return the newest commit of the branch that changed one of the paths, or the given commit."""
        words = [f":(literal,top){path}" for path in paths]
        found = self.git("log", "-1", "--first-parent", "--format=%H", commit, "--", *words)
        return found or commit

    def changes(self, commit: str, paths: Sequence[str], most: int) -> list[tuple[str, str, str, str]]:
        """Return the newest commits of the branch that changed one of the paths: id, time, author and subject."""
        words = [f":(literal,top){path}" for path in paths]
        form = "--date=format-local:%Y-%m-%d %H:%M", "--format=%H%x00%cd%x00%ae%x00%s"
        said = self.git("log", f"-{most}", "--first-parent", *form, commit, "--", *words, more={"TZ": "UTC"})
        found = []
        for line in said.splitlines():
            name, when, by, subject = line.split("\0", 3)
            found.append((name, when, by, subject))
        return found

    def number(self, commit: str) -> int:
        return int(self.git("rev-list", "--count", "--first-parent", commit))

    def nth(self, number: int, commit: str) -> str:
        """Return the commit of the branch with this number; empty if there is none."""
        back = self.number(commit) - number
        return self.commit_of(f"{commit}~{back}") if back >= 0 and number > 0 else ""

    def contains(self, commit: str, ancestor: str) -> bool | None:
        """True if a commit contains an ancestor; None if one of them is not in this clone."""
        if not (self.commit_of(commit) and self.commit_of(ancestor)):
            return None
        return self.says("merge-base", "--is-ancestor", ancestor, commit)

    def is_same(self, one: str, other: str, paths: Sequence[str]) -> bool:
        """True if two commits have the same files at the paths."""
        return self.says("diff", "--quiet", one, other, "--", *(f":(literal,top){path}" for path in paths))

    def seconds(self, commit: str) -> int:
        return int(self.git("show", "-s", "--format=%ct", commit))

    def count(self, after: str, to: str, paths: Sequence[str]) -> int:
        words = [f":(literal,top){path}" for path in paths]
        return int(self.git("rev-list", "--count", f"{after}..{to}", "--", *words))

    def clone(self) -> Clone:
        """Return the relation to the upstream branch, as far as it was fetched."""
        if not (follows := self._follows()):
            return Clone(self.is_shallow, is_detached=not self.branch)
        ahead, behind = self.git("rev-list", "--left-right", "--count", f"HEAD...{follows}").split()
        return Clone(self.is_shallow, follows, int(ahead), int(behind), not self.branch)

    def _follows(self) -> str:
        """Return the upstream branch. A detached HEAD that no remote branch points at is compared with origin/HEAD."""
        try:
            return self.git("rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}")
        except GitRefused:
            if self.branch or self.git("for-each-ref", "--points-at=HEAD", "refs/remotes"):
                return ""
            return "origin/HEAD" if self.commit_of("refs/remotes/origin/HEAD") else ""

    def is_unpushed(self, commit: str) -> bool:
        """True if no remote branch contains the commit, as far as known here; False without remote branches."""
        if not self.git("for-each-ref", "--count=1", "refs/remotes"):
            return False
        return not self.git("for-each-ref", "--count=1", f"--contains={commit}", "refs/remotes")

    def identity(self) -> tuple[str, str]:
        """Return name and email from Git's configuration; else of the account on this machine."""
        found = []
        for name, usual in (("user.name", getpass.getuser()), ("user.email", f"{getpass.getuser()}@localhost")):
            variable = f"GIT_AUTHOR_{name.removeprefix('user.').upper()}"
            try:
                found.append(os.environ.get(variable) or self.git("config", "--get", name) or usual)
            except GitRefused:
                found.append(usual)
        return found[0], found[1]

    def dirty(self, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that have uncommitted changes."""
        if self.place.top is None or not paths:
            return []
        words = [f":(literal,top){path}" for path in paths]
        said = self.git("status", "--porcelain", "-z", "--untracked-files=all", "--", *words)
        return [each[3:] for each in said.split("\0") if each]

    # -- writing --

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Allow one promotion at a time; the lock is released when the process ends in any way."""
        with open(self.place.shared / "argosy-promote.lock", "a", opener=_private) as file:
            ends = time.monotonic() + PATIENCE
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() > ends:
                        message = f"another promotion has run here for {PATIENCE:.0f} s; check what it waits for"
                        raise TransientError(message) from None
                    time.sleep(0.05)
            yield

    def stage(self, base: str, files: Mapping[str, bytes], message: str) -> str:
        """Create a commit on top of another, on no branch yet: it has no effect until a branch points at it."""
        with scratch_folder("argosy-promote-") as folder:
            own = {"GIT_INDEX_FILE": str(folder / "index")}
            self.git("read-tree", base, more=own)
            for path, content in files.items():
                blob = self.git("hash-object", "-w", "--stdin", given=content)
                mode = self.git("ls-files", "--stage", "--full-name", "--", f":(literal,top){path}", more=own)[:6]
                self.git("update-index", "--add", "--cacheinfo", f"{mode or '100644'},{blob},{path}", more=own)
            tree = self.git("write-tree", more=own)
        name, address = self.identity()
        who = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER")
               for part, value in (("NAME", name), ("EMAIL", address))}  # fmt: skip
        signed = ["-S"] if self._is_signed() else []
        return self.git("commit-tree", tree, "-p", base, *signed, "-F", "-", given=message, more=who)

    def _is_signed(self) -> bool:
        try:
            return self.git("config", "--type=bool", "--get", "commit.gpgsign") == "true"
        except GitRefused:
            return False

    def move(self, branch: str, commit: str, before: str, why: str) -> None:
        """Move the branch to the commit, atomically. `before`: the expected current commit; empty if the branch is
        new.
        """
        reference = f"refs/heads/{branch}"
        if not self.says("check-ref-format", reference):
            raise UserError(f"{branch!r} is not a valid branch name; choose another")
        is_here = self.place.top is not None and branch == self.branch
        if is_here and (self.place.git / "index.lock").exists():
            told = "git is running here, or was killed: index.lock exists"
            raise UserError(f"{told}; wait for it, or delete the file if no git is running", where=str(self.place.git))
        if is_here:
            self.says("update-index", "-q", "--refresh")  # otherwise a file with only a new timestamp counts as changed
            if before != self.commit_of("HEAD") or not self.says("read-tree", "-m", "-u", before, commit):
                raise _meanwhile(branch)
        try:
            self.git("update-ref", "-m", why, reference, commit, before or NONE)
        except GitRefused as error:
            if is_here:
                self.says("read-tree", "-m", "-u", commit, before)
            raise _meanwhile(branch) from error


def _meanwhile(branch: str) -> UserError:
    return UserError(f"{branch} was changed by somebody else meanwhile; check the plan again, and retry")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _run(folder: Path, *words: str, given: str | bytes | None = None, more: Mapping[str, str] | None = None) -> str:
    own = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER}
    content = given.encode() if isinstance(given, str) else given
    done = subprocess.run(
        [find_git(), *PLAINLY, *words],
        cwd=folder,
        env={**own, **GIT_ENVIRONMENT, **(more or {})},
        input=content,
        stdin=subprocess.DEVNULL if content is None else None,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split()) or f"exit code {done.returncode}"
        raise GitRefused(f"git {words[0]}: {said}; check whether the repository is intact", where=str(folder))
    return done.stdout.decode(errors="replace").rstrip("\n")

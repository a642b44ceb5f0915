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
from argosy.gitops.workspace.git_repository_creation import GIT_REDIRECT_VARIABLES, find_git
from argosy.isolation.scratch_folders import create_scratch_folder

PROMOTION_LOCK_TIMEOUT_SECONDS: Final = 30.0  # seconds to wait for another promotion of the same repository
GIT_OUTPUT_OPTIONS: Final = ("-c", "log.showSignature=false", "-c", "core.quotePath=false")  # override output settings
# Reading takes no lock: `git status` would lock the index, and a concurrent promotion would fail.
GIT_ENVIRONMENT: Final = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
ZERO_COMMIT: Final = "0" * 40


class GitCommandFailed(UserError):
    """A git command failed."""


@dataclass(frozen=True)
class UpstreamState:
    """Relation to the upstream branch, as far as it was fetched."""

    is_shallow: bool = False
    upstream: str = ""  # origin/main; empty if there is no upstream
    ahead: int = 0
    behind: int = 0
    is_detached: bool = False


@dataclass(frozen=True)
class RepositoryPaths:
    """Paths of a repository, and the current folder in it."""

    folder: Path  # to run git in
    git_folder: Path  # Git directory of this working tree
    shared_folder: Path
    top: Path | None  # None: bare repository
    current_path: str = ""  # the current folder, relative to the top


class GitRepository:
    def __init__(self, paths: RepositoryPaths) -> None:
        self.paths = paths
        self._objects = ObjectReader(paths.shared_folder, SourceLimits(), str(paths.folder))

    @classmethod
    def open(cls, folder: Path) -> GitRepository | None:
        """Open the repository that contains the folder; None if there is none."""
        arguments = ("rev-parse", "--path-format=absolute", "--is-bare-repository", "--git-dir", "--git-common-dir")
        try:
            is_bare_text, git, shared = _run_git(folder, *arguments).splitlines()
            if is_bare_text == "true":
                return cls(RepositoryPaths(folder, Path(git), Path(shared), None))
            top = _run_git(folder, "rev-parse", "--show-toplevel")
            inner = _run_git(folder, "rev-parse", "--show-prefix")
        except GitCommandFailed as error:
            if "dubious ownership" in error.message:
                advice = f"git config --global --add safe.directory {folder}"
                raise UserError(f"belongs to another user, so git refuses it; {advice}", where=str(folder)) from error
            return None
        return cls(RepositoryPaths(Path(top), Path(git), Path(shared), Path(top), inner.strip("/")))

    def run_git(
        self, *arguments: str, stdin: str | bytes | None = None, environment: Mapping[str, str] | None = None
    ) -> str:
        return _run_git(self.paths.folder, *arguments, stdin=stdin, environment=environment)

    def succeeds(self, *arguments: str) -> bool:
        """Run a git command that answers with its exit code."""
        try:
            self.run_git(*arguments)
        except GitCommandFailed:
            return False
        return True

    # -- reading --

    @property
    def branch(self) -> str:
        """The current branch; empty if HEAD is detached."""
        try:
            return self.run_git("symbolic-ref", "--quiet", "--short", "HEAD")
        except GitCommandFailed:
            return ""

    @property
    def is_shallow(self) -> bool:
        return (self.paths.shared_folder / "shallow").is_file()

    def find_commit(self, ref: str) -> str:
        """Resolve a ref to a commit; empty if it does not exist."""
        try:
            return self.run_git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        except GitCommandFailed:
            return ""

    def get_head(self) -> str:
        if not (commit := self.find_commit("HEAD")):
            raise UserError("has no commit yet; commit first, then promote", where=str(self.paths.folder))
        return commit

    def open_tree(self, commit: str) -> GitTree:
        return GitTree(self._objects, self.run_git("rev-parse", f"{commit}^{{tree}}"))

    def list_marked_commits(self, commit: str, mark: str) -> list[tuple[str, int, str]]:
        """Return commits whose message has a line that starts with the mark, the newest first."""
        arguments = ("log", "--topo-order", "--format=%H %ct%n%B%x00", f"--grep=^{mark}", commit)
        commits = []
        for text in self.run_git(*arguments).split("\0"):
            if text := text.strip("\n"):
                header, _, message = text.partition("\n")
                commit_id, _, seconds = header.partition(" ")
                commits.append((commit_id, int(seconds), message))
        return commits

    def list_upstream_marked_commits(self, commit: str, mark: str) -> list[tuple[str, int, str]]:
        """Like `list_marked_commits`, for commits that only the upstream branch has; empty without upstream."""
        try:
            return self.list_marked_commits(f"{commit}..@{{upstream}}", mark)
        except GitCommandFailed:
            return []

    def find_last_change(self, commit: str, paths: Sequence[str]) -> str:
        """Return the newest commit of the branch that changed one of the paths, or the given commit."""
        pathspecs = [f":(literal,top){path}" for path in paths]
        commit_id = self.run_git("log", "-1", "--first-parent", "--format=%H", commit, "--", *pathspecs)
        return commit_id or commit

    def list_changes(self, commit: str, paths: Sequence[str], limit: int) -> list[tuple[str, str, str, str]]:
        """Return the newest commits of the branch that changed one of the paths: id, time, author and subject."""
        pathspecs = [f":(literal,top){path}" for path in paths]
        format_options = "--date=format-local:%Y-%m-%d %H:%M", "--format=%H%x00%cd%x00%ae%x00%s"
        output = self.run_git(
            "log", f"-{limit}", "--first-parent", *format_options, commit, "--", *pathspecs, environment={"TZ": "UTC"}
        )
        changes = []
        for line in output.splitlines():
            commit_id, time_text, author, subject = line.split("\0", 3)
            changes.append((commit_id, time_text, author, subject))
        return changes

    def count_first_parents(self, commit: str) -> int:
        return int(self.run_git("rev-list", "--count", "--first-parent", commit))

    def find_nth_commit(self, number: int, commit: str) -> str:
        """Return the commit of the branch with this number; empty if there is none."""
        distance = self.count_first_parents(commit) - number
        return self.find_commit(f"{commit}~{distance}") if distance >= 0 and number > 0 else ""

    def contains(self, commit: str, ancestor: str) -> bool | None:
        """True if a commit contains an ancestor; None if one of them is not in this clone."""
        if not (self.find_commit(commit) and self.find_commit(ancestor)):
            return None
        return self.succeeds("merge-base", "--is-ancestor", ancestor, commit)

    def has_same_files(self, first: str, second: str, paths: Sequence[str]) -> bool:
        """True if two commits have the same files at the paths."""
        return self.succeeds("diff", "--quiet", first, second, "--", *(f":(literal,top){path}" for path in paths))

    def get_commit_seconds(self, commit: str) -> int:
        return int(self.run_git("show", "-s", "--format=%ct", commit))

    def count_commits(self, after: str, to: str, paths: Sequence[str]) -> int:
        pathspecs = [f":(literal,top){path}" for path in paths]
        return int(self.run_git("rev-list", "--count", f"{after}..{to}", "--", *pathspecs))

    def get_upstream_state(self) -> UpstreamState:
        """Return the relation to the upstream branch, as far as it was fetched."""
        if not (upstream := self._find_upstream()):
            return UpstreamState(self.is_shallow, is_detached=not self.branch)
        ahead, behind = self.run_git("rev-list", "--left-right", "--count", f"HEAD...{upstream}").split()
        return UpstreamState(self.is_shallow, upstream, int(ahead), int(behind), not self.branch)

    def _find_upstream(self) -> str:
        """Return the upstream branch. A detached HEAD that no remote branch points at is compared with origin/HEAD."""
        try:
            return self.run_git("rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}")
        except GitCommandFailed:
            if self.branch or self.run_git("for-each-ref", "--points-at=HEAD", "refs/remotes"):
                return ""
            return "origin/HEAD" if self.find_commit("refs/remotes/origin/HEAD") else ""

    def is_unpushed(self, commit: str) -> bool:
        """True if no remote branch contains the commit, as far as known here; False without remote branches."""
        if not self.run_git("for-each-ref", "--count=1", "refs/remotes"):
            return False
        return not self.run_git("for-each-ref", "--count=1", f"--contains={commit}", "refs/remotes")

    def find_identity(self) -> tuple[str, str]:
        """Return name and email from Git's configuration; else of the account on this machine."""
        values = []
        for name, default in (("user.name", getpass.getuser()), ("user.email", f"{getpass.getuser()}@localhost")):
            variable = f"GIT_AUTHOR_{name.removeprefix('user.').upper()}"
            try:
                values.append(os.environ.get(variable) or self.run_git("config", "--get", name) or default)
            except GitCommandFailed:
                values.append(default)
        return values[0], values[1]

    def list_uncommitted(self, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that have uncommitted changes."""
        if self.paths.top is None or not paths:
            return []
        pathspecs = [f":(literal,top){path}" for path in paths]
        output = self.run_git("status", "--porcelain", "-z", "--untracked-files=all", "--", *pathspecs)
        return [entry[3:] for entry in output.split("\0") if entry]

    # -- writing --

    @contextmanager
    def lock_promotions(self) -> Iterator[None]:
        """Allow one promotion at a time; the lock is released when the process ends in any way."""
        with open(self.paths.shared_folder / "argosy-promote.lock", "a", opener=_open_private) as file:
            deadline = time.monotonic() + PROMOTION_LOCK_TIMEOUT_SECONDS
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        message = (
                            f"another promotion has run here for {PROMOTION_LOCK_TIMEOUT_SECONDS:.0f} s; check "
                            "what it waits for"
                        )
                        raise TransientError(message) from None
                    time.sleep(0.05)
            yield

    def create_commit(self, base: str, files: Mapping[str, bytes], message: str) -> str:
        """Create a commit on top of another, on no branch yet: it has no effect until a branch points at it."""
        with create_scratch_folder("argosy-promote-") as folder:
            index_environment = {"GIT_INDEX_FILE": str(folder / "index")}
            self.run_git("read-tree", base, environment=index_environment)
            for path, content in files.items():
                blob = self.run_git("hash-object", "-w", "--stdin", stdin=content)
                mode = self.run_git(
                    "ls-files", "--stage", "--full-name", "--", f":(literal,top){path}", environment=index_environment
                )[:6]
                self.run_git(
                    "update-index",
                    "--add",
                    "--cacheinfo",
                    f"{mode or '100644'},{blob},{path}",
                    environment=index_environment,
                )
            tree = self.run_git("write-tree", environment=index_environment)
        name, address = self.find_identity()
        identity_environment = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER")
               for part, value in (("NAME", name), ("EMAIL", address))}  # fmt: skip
        sign_options = ["-S"] if self._must_sign_commits() else []
        return self.run_git(
            "commit-tree", tree, "-p", base, *sign_options, "-F", "-", stdin=message, environment=identity_environment
        )

    def _must_sign_commits(self) -> bool:
        try:
            return self.run_git("config", "--type=bool", "--get", "commit.gpgsign") == "true"
        except GitCommandFailed:
            return False

    def move_branch(self, branch: str, commit: str, before: str, reason: str) -> None:
        """Move the branch to the commit, atomically. `before`: the expected current commit; empty if the branch is
        new.
        """
        reference = f"refs/heads/{branch}"
        if not self.succeeds("check-ref-format", reference):
            raise UserError(f"{branch!r} is not a valid branch name; choose another")
        is_checked_out = self.paths.top is not None and branch == self.branch
        if is_checked_out and (self.paths.git_folder / "index.lock").exists():
            problem = "git is running here, or was killed: index.lock exists"
            raise UserError(
                f"{problem}; wait for it, or delete the file if no git is running", where=str(self.paths.git_folder)
            )
        if is_checked_out:
            self.succeeds(
                "update-index", "-q", "--refresh"
            )  # otherwise a file with only a new timestamp counts as changed
            if before != self.find_commit("HEAD") or not self.succeeds("read-tree", "-m", "-u", before, commit):
                raise _build_moved_branch_error(branch)
        try:
            self.run_git("update-ref", "-m", reason, reference, commit, before or ZERO_COMMIT)
        except GitCommandFailed as error:
            if is_checked_out:
                self.succeeds("read-tree", "-m", "-u", commit, before)
            raise _build_moved_branch_error(branch) from error


def _build_moved_branch_error(branch: str) -> UserError:
    return UserError(f"{branch} was changed by somebody else meanwhile; check the plan again, and retry")


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _run_git(
    folder: Path, *arguments: str, stdin: str | bytes | None = None, environment: Mapping[str, str] | None = None
) -> str:
    inherited = {name: value for name, value in os.environ.items() if name not in GIT_REDIRECT_VARIABLES}
    content = stdin.encode() if isinstance(stdin, str) else stdin
    result = subprocess.run(
        [find_git(), *GIT_OUTPUT_OPTIONS, *arguments],
        cwd=folder,
        env={**inherited, **GIT_ENVIRONMENT, **(environment or {})},
        input=content,
        stdin=subprocess.DEVNULL if content is None else None,
        capture_output=True,
        check=False,
    )
    if result.returncode:
        error_text = " ".join(result.stderr.decode(errors="replace").split()) or f"exit code {result.returncode}"
        raise GitCommandFailed(
            f"git {arguments[0]}: {error_text}; check whether the repository is intact", where=str(folder)
        )
    return result.stdout.decode(errors="replace").rstrip("\n")

"""Reads a local repository in place: refs, differences between two states, files.

In: the folders of a working tree, refs. Out: commits, changed paths, trees. Never: writes; fetches; runs a hook.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from argosy.errors import CorruptSource, SourceTimeout, SourceTooLarge
from argosy.gitops.source.git.command import GitFailed, TooMuchOutput, build_environment, run_git
from argosy.gitops.source.git.commit_tree import GitTree
from argosy.gitops.source.git.object_reader import ObjectReader
from argosy.gitops.source.limits import SourceLimits

GIT_TIMEOUT_SECONDS: Final = 30.0
MAX_OUTPUT_BYTES: Final = 64 << 20
_SUBMODULE_MODE: Final = "160000"
# Links stay links: the working tree belongs to the user and is only read.
_GIT_CONFIG: Final = {"core.symlinks": "true", "core.quotePath": "false", "diff.renames": "false"}


class ChangedFile(NamedTuple):
    """A file that differs between two states."""

    path: str
    existed_before: bool
    exists_after: bool


class _LocalObjectReader(ObjectReader):
    """Objects of a user's repository: missing ones are reported, and nothing is written into it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _LocalObjectReader, (self.folder, self.limits, self.where)

    def _mark_corrupt(self, id: str, problem: str) -> CorruptSource:
        message = f"object {id[:10]} {problem} in this clone; run git fetch --unshallow, or git fsck"
        return CorruptSource(message, where=self.where)


class LocalRepository:
    def __init__(self, root: Path, git_dir: Path, common_dir: Path) -> None:
        """`git_dir` is git's folder of this working tree, `common_dir` the one shared by all working trees."""
        self.root, self.git_dir, self.common_dir = root, git_dir, common_dir
        self.objects = _LocalObjectReader(git_dir, SourceLimits(), str(root))

    @property
    def is_shallow(self) -> bool:
        return (self.common_dir / "shallow").exists()

    async def resolve_commit(self, ref: str) -> str:
        """Return the commit id of a ref; empty if git knows none."""
        try:
            output = await self._run_git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        except GitFailed:
            return ""
        return output.decode().strip()

    async def find_default_ref(self, remote: str) -> str:
        """Return for example `origin/main`; empty if the default branch of the remote is unknown."""
        try:
            output = await self._run_git("symbolic-ref", "--quiet", "--short", f"refs/remotes/{remote}/HEAD")
        except GitFailed:
            return ""
        return output.decode().strip()

    async def find_merge_base(self, left: str, right: str) -> str:
        """Return the newest common commit; empty if there is none in this clone."""
        try:
            return (await self._run_git("merge-base", left, right)).decode().split("\n")[0].strip()
        except GitFailed:
            return ""

    async def load_tree(self, commit: str) -> GitTree:
        output = await self._run_git("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")
        return GitTree(self.objects, output.decode().strip())

    async def list_changed_files(self, before: str, after: str = "") -> list[ChangedFile]:
        """List the files that differ between two commits, or between one and the working tree with untracked files."""
        # Only `git diff` compares the content of touched files; without optional locks it writes nothing.
        command = ["diff-tree", "-r"] if after else ["diff", "--no-ext-diff", "--no-textconv"]
        refs = [before, after] if after else [before]
        output = await self._run_git(*command, "--raw", "-z", "--no-renames", "--ignore-submodules=all", *refs, "--")
        changed_files = _read_raw_diff(output)
        if not after:
            untracked = await self._run_git("ls-files", "-z", "--others", "--exclude-standard")
            changed_files += [
                ChangedFile(path, False, True) for path in _split_names(untracked) if not path.endswith("/")
            ]
        return list({changed_file.path: changed_file for changed_file in changed_files}.values())

    async def list_matching_files(self, commit: str, expressions: Sequence[str], patterns: Sequence[str]) -> list[str]:
        """List the files of a commit that have a matching line for each expression."""
        expression_arguments = [argument for expression in expressions for argument in ("-e", expression)]
        try:
            command = ["grep", "-z", "-l", "-I", "-E", "--full-name", "--all-match", *expression_arguments]
            output = await self._run_git(*command, commit, "--", *patterns)
        except GitFailed as error:
            if error.code == 1:
                return []
            raise
        return [name.partition(":")[2] for name in _split_names(output)]

    async def list_tracked_files(self) -> list[str]:
        """List the files of the index: committed or staged."""
        return _split_names(await self._run_git("ls-files", "-z", "--cached", "--full-name", ":/"))

    async def list_files(self, commit: str) -> list[str]:
        return _split_names(await self._run_git("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit))

    def close(self) -> None:
        self.objects.close()

    async def _run_git(self, *arguments: str) -> bytes:
        command = [f"--work-tree={self.root}", "-C", str(self.root), *arguments]
        env = build_environment(_GIT_CONFIG, {"GIT_ALLOW_PROTOCOL": "none"})
        try:
            return await run_git(
                self.git_dir, command, env=env, seconds=GIT_TIMEOUT_SECONDS, max_output_bytes=MAX_OUTPUT_BYTES
            )
        except TimeoutError:
            raise SourceTimeout("git timed out; try again", where=str(self.root)) from None
        except TooMuchOutput:
            raise SourceTooLarge("too many files differ; choose a closer base") from None


def _split_names(output: bytes) -> list[str]:
    return [name.decode("utf-8", "surrogateescape") for name in output.split(b"\0") if name]


def _read_raw_diff(output: bytes) -> list[ChangedFile]:
    """Parse `git diff --raw -z`: `:100644 000000 id id D`, NUL, path, NUL."""
    parts = output.split(b"\0")
    changed_files = []
    for metadata, path in zip(parts[::2], parts[1::2], strict=False):
        old, new, _, _, status = metadata.decode().lstrip(":").split()
        if _SUBMODULE_MODE not in (old, new):
            name = path.decode("utf-8", "surrogateescape")
            # During a merge an unmerged path has no single mode; its file has conflict markers, or is gone.
            is_unmerged = status.startswith("U")
            changed_files.append(ChangedFile(name, is_unmerged or old != "000000", is_unmerged or new != "000000"))
    return changed_files

"""Reads a local repository in place: refs, differences between two states, files.

In: the folders of a working tree, refs. Out: commits, changed paths, trees. Never: writes; fetches; runs a hook.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from argosy.errors import CorruptSource, SourceTimeout, SourceTooLarge
from argosy.gitops.source.git.command import GitFailed, TooMuchOutput, environment, run_git
from argosy.gitops.source.git.commit_tree import GitTree
from argosy.gitops.source.git.object_reader import ObjectReader
from argosy.gitops.source.limits import SourceLimits

SECONDS: Final = 30.0
MOST_OUTPUT: Final = 64 << 20
_SUBMODULE: Final = "160000"
# Links stay links: the working tree belongs to the user and is only read.
_CONFIG: Final = {"core.symlinks": "true", "core.quotePath": "false", "diff.renames": "false"}


class Changed(NamedTuple):
    """A file that differs between two states."""

    path: str
    is_before: bool
    is_after: bool


class _OwnObjects(ObjectReader):
    """Objects of a user's repository: missing ones are reported, and nothing is written into it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _OwnObjects, (self.folder, self.limits, self.where)

    def _corrupt(self, id: str, what: str) -> CorruptSource:
        told = f"object {id[:10]} {what} in this clone; run git fetch --unshallow, or git fsck"
        return CorruptSource(told, where=self.where)


class History:
    def __init__(self, root: Path, own: Path, shared: Path) -> None:
        """`git_dir` is git's folder of this working tree, `common_dir` the one shared by all working trees."""
        self.root, self.own, self.shared = root, own, shared
        self.objects = _OwnObjects(own, SourceLimits(), str(root))

    @property
    def is_shallow(self) -> bool:
        return (self.shared / "shallow").exists()

    async def commit(self, ref: str) -> str:
        """Return the commit id of a ref; empty if git knows none."""
        try:
            said = await self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        except GitFailed:
            return ""
        return said.decode().strip()

    async def default_ref(self, remote: str) -> str:
        """Return for example `origin/main`; empty if the default branch of the remote is unknown."""
        try:
            said = await self._git("symbolic-ref", "--quiet", "--short", f"refs/remotes/{remote}/HEAD")
        except GitFailed:
            return ""
        return said.decode().strip()

    async def merge_base(self, one: str, other: str) -> str:
        """Return the newest common commit; empty if there is none in this clone."""
        try:
            return (await self._git("merge-base", one, other)).decode().split("\n")[0].strip()
        except GitFailed:
            return ""

    async def tree(self, commit: str) -> GitTree:
        said = await self._git("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")
        return GitTree(self.objects, said.decode().strip())

    async def changed(self, before: str, after: str = "") -> list[Changed]:
        """List the files that differ between two commits, or between one and the working tree with untracked files."""
        # Only `git diff` compares the content of touched files; without optional locks it writes nothing.
        words = ["diff-tree", "-r"] if after else ["diff", "--no-ext-diff", "--no-textconv"]
        refs = [before, after] if after else [before]
        said = await self._git(*words, "--raw", "-z", "--no-renames", "--ignore-submodules=all", *refs, "--")
        found = _read_raw(said)
        if not after:
            others = await self._git("ls-files", "-z", "--others", "--exclude-standard")
            found += [Changed(path, False, True) for path in _names(others) if not path.endswith("/")]
        return list({each.path: each for each in found}.values())

    async def holding(self, commit: str, expressions: Sequence[str], patterns: Sequence[str]) -> list[str]:
        """List the files of a commit that have a matching line for each expression."""
        asked = [word for each in expressions for word in ("-e", each)]
        try:
            words = ["grep", "-z", "-l", "-I", "-E", "--full-name", "--all-match", *asked]
            said = await self._git(*words, commit, "--", *patterns)
        except GitFailed as error:
            if error.code == 1:
                return []
            raise
        return [name.partition(":")[2] for name in _names(said)]

    async def tracked(self) -> list[str]:
        """List the files of the index: committed or staged."""
        return _names(await self._git("ls-files", "-z", "--cached", "--full-name", ":/"))

    async def files(self, commit: str) -> list[str]:
        return _names(await self._git("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit))

    def close(self) -> None:
        self.objects.close()

    async def _git(self, *arguments: str) -> bytes:
        words = [f"--work-tree={self.root}", "-C", str(self.root), *arguments]
        env = environment(_CONFIG, {"GIT_ALLOW_PROTOCOL": "none"})
        try:
            return await run_git(self.own, words, env=env, seconds=SECONDS, most_output=MOST_OUTPUT)
        except TimeoutError:
            raise SourceTimeout("git timed out; try again", where=str(self.root)) from None
        except TooMuchOutput:
            raise SourceTooLarge("too many files differ; choose a closer base") from None


def _names(said: bytes) -> list[str]:
    return [each.decode("utf-8", "surrogateescape") for each in said.split(b"\0") if each]


def _read_raw(said: bytes) -> list[Changed]:
    """Parse `git diff --raw -z`: `:100644 000000 id id D`, NUL, path, NUL."""
    parts = said.split(b"\0")
    found = []
    for about, path in zip(parts[::2], parts[1::2], strict=False):
        old, new, _, _, status = about.decode().lstrip(":").split()
        if _SUBMODULE not in (old, new):
            name = path.decode("utf-8", "surrogateescape")
            # During a merge an unmerged path has no single mode; its file has conflict markers, or is gone.
            is_torn = status.startswith("U")
            found.append(Changed(name, is_torn or old != "000000", is_torn or new != "000000"))
    return found

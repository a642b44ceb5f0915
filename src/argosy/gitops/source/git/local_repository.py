"""A repository on this machine, read where it is: its refs, what two states of it differ in, its files.

In: a working tree's folders and refs. Out: commits, changed paths, trees. Never: writes; fetches; runs a hook.
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
# A link is a link here: the working tree is somebody's own, and is only looked at.
_CONFIG: Final = {"core.symlinks": "true", "core.quotePath": "false", "diff.renames": "false"}


class Changed(NamedTuple):
    """A file that two states do not have in common."""

    path: str
    is_before: bool
    is_after: bool


class _OwnObjects(ObjectReader):
    """Of a repository that is not ours: what is missing in it is told, and nothing is noted there."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _OwnObjects, (self.folder, self.limits, self.where)

    def _corrupt(self, id: str, what: str) -> CorruptSource:
        told = f"object {id[:10]} {what} in this clone; fetch it whole: git fetch --unshallow, or git fsck"
        return CorruptSource(told, where=self.where)


class History:
    def __init__(self, root: Path, own: Path, shared: Path) -> None:
        """`own` is where git keeps what is this working tree's alone, `shared` what all of the repository share."""
        self.root, self.own, self.shared = root, own, shared
        self.objects = _OwnObjects(own, SourceLimits(), str(root))

    @property
    def is_shallow(self) -> bool:
        return (self.shared / "shallow").exists()

    async def commit(self, ref: str) -> str:
        """The commit that git takes the ref for; empty where it knows none."""
        try:
            said = await self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        except GitFailed:
            return ""
        return said.decode().strip()

    async def default_ref(self, remote: str) -> str:
        """`origin/main`, where the remote has said what its default branch is."""
        try:
            said = await self._git("symbolic-ref", "--quiet", "--short", f"refs/remotes/{remote}/HEAD")
        except GitFailed:
            return ""
        return said.decode().strip()

    async def merge_base(self, one: str, other: str) -> str:
        """The last commit that both have; empty where there is none here."""
        try:
            return (await self._git("merge-base", one, other)).decode().split("\n")[0].strip()
        except GitFailed:
            return ""

    async def tree(self, commit: str) -> GitTree:
        said = await self._git("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")
        return GitTree(self.objects, said.decode().strip())

    async def changed(self, before: str, after: str = "") -> list[Changed]:
        """Between two commits, or between one and the working tree with all that git does not ignore."""
        # The porcelain alone looks into files that were only touched, and writes nothing while it may take no lock.
        words = ["diff-tree", "-r"] if after else ["diff", "--no-ext-diff", "--no-textconv"]
        refs = [before, after] if after else [before]
        said = await self._git(*words, "--raw", "-z", "--no-renames", "--ignore-submodules=all", *refs, "--")
        found = _read_raw(said)
        if not after:
            others = await self._git("ls-files", "-z", "--others", "--exclude-standard")
            found += [Changed(path, False, True) for path in _names(others) if not path.endswith("/")]
        return list({each.path: each for each in found}.values())

    async def holding(self, commit: str, expressions: Sequence[str], patterns: Sequence[str]) -> list[str]:
        """Files of a commit that hold a line for each of the expressions."""
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
        """Files of the index: committed, or added to be committed."""
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
            raise SourceTimeout("git did not answer in time; try again", where=str(self.root)) from None
        except TooMuchOutput:
            raise SourceTooLarge("too many files differ to be compared; name a nearer base") from None


def _names(said: bytes) -> list[str]:
    return [each.decode("utf-8", "surrogateescape") for each in said.split(b"\0") if each]


def _read_raw(said: bytes) -> list[Changed]:
    """`:100644 000000 id id D`, a zero, the path, a zero."""
    parts = said.split(b"\0")
    found = []
    for about, path in zip(parts[::2], parts[1::2], strict=False):
        old, new, _, _, status = about.decode().lstrip(":").split()
        if _SUBMODULE not in (old, new):
            name = path.decode("utf-8", "surrogateescape")
            # In the midst of a merge a path has no one mode; its file has marks in it, or is gone.
            is_torn = status.startswith("U")
            found.append(Changed(name, is_torn or old != "000000", is_torn or new != "000000"))
    return found

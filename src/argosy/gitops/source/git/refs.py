"""The refs of a repository, and how a user's ref resolves to one of them.

In: the output of `git ls-remote`; a ref. Out: a revision, or UnknownRef. Never: passes a user's ref to git.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from argosy.errors import CorruptSource, UnknownRef
from argosy.gitops.source.version_ranges import find_newest_tag, parse_range, parse_version

COMMIT_ID = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")
SHORT_COMMIT_ID = re.compile(r"[0-9a-fA-F]{7,63}")
_LS_REMOTE_LINE = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64})\t(\S+)")
HEADS_PREFIX, TAGS_PREFIX = "refs/heads/", "refs/tags/"


@dataclass(frozen=True, slots=True)
class Refs:
    """Maps full ref names to commits, and annotated tags to their tag objects."""

    commits: Mapping[str, str]
    tag_objects: Mapping[str, str] = field(default_factory=dict)

    @property
    def tags(self) -> list[str]:
        return [name.removeprefix(TAGS_PREFIX) for name in self.commits if name.startswith(TAGS_PREFIX)]

    @property
    def branches(self) -> list[str]:
        return [name.removeprefix(HEADS_PREFIX) for name in self.commits if name.startswith(HEADS_PREFIX)]

    @property
    def default_branch(self) -> str:
        """The branch that HEAD points to; main or master if several have its commit. Empty if there is none."""
        head = self.commits.get("HEAD")
        candidates = [name for name in self.branches if self.commits[HEADS_PREFIX + name] == head]
        return min(candidates, key=lambda name: (name != "main", name != "master", name), default="")

    def find_commit(self, ref: str, tag_prefix: str = "") -> str | None:
        return self.commits.get(self.full_name(ref, tag_prefix))

    def full_name(self, ref: str, tag_prefix: str = "") -> str:
        """Return the full ref name or "": a range selects its newest tag, a branch beats a tag of the same name."""
        name = find_newest_tag(ref, self.tags, tag_prefix) or ref or "HEAD"
        names = [name, HEADS_PREFIX + name, TAGS_PREFIX + name, f"refs/{name}"]
        if tag_prefix:
            names[:0] = [TAGS_PREFIX + tag_prefix + ref]
        return next((full for full in names if full in self.commits), "")

    def unknown_ref_error(self, ref: str, tag_prefix: str, where: str) -> UnknownRef:
        if not self.commits:
            return UnknownRef("the repository is empty; push a commit first", where=where)
        display_ref = f"{tag_prefix}{ref}"[:200]
        if parse_range(ref) and not parse_version(ref):
            return UnknownRef(
                f"none of the {len(self.tags)} tags is in the range {display_ref!r}; push such a tag, or widen the "
                "range (pre-releases match only if the range ends in -0)",
                where=where,
            )
        suggestions = difflib.get_close_matches(ref[:200], [*self.branches, *self.tags][:5000], n=3)
        hint = f"; did you mean {' or '.join(suggestions)}?" if suggestions else "; push it, or use an existing one"
        return UnknownRef(f"there is no branch, tag or commit {display_ref!r}{hint}", where=where)


def read_refs(listing: bytes, where: str) -> Refs:
    commits: dict[str, str] = {}
    tag_objects: dict[str, str] = {}
    for line in listing.splitlines():
        if line.startswith(b"ref: "):
            continue
        if not (match := _LS_REMOTE_LINE.fullmatch(line)):
            raise CorruptSource("the host sent an unreadable list of refs; run `git ls-remote`", where=where)
        name = match[2].decode(errors="surrogateescape")
        # An annotated tag has two lines: the second one, with ^{}, has the commit it points to.
        if (full_name := name.removesuffix("^{}")) != name and full_name in commits:
            tag_objects[full_name] = commits[full_name]
        commits[full_name] = match[1].decode()
    return Refs(commits, tag_objects)

"""The refs of a repository, and how a user's ref resolves to one of them.

In: the output of `git ls-remote`; a ref. Out: a revision, or UnknownRef. Never: passes a user's ref to git.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from argosy.errors import CorruptSource, UnknownRef
from argosy.gitops.source.version_ranges import newest_tag, parse_range, parse_version

COMMIT = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")
SHORT_COMMIT = re.compile(r"[0-9a-fA-F]{7,63}")
_LINE = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64})\t(\S+)")
HEADS, TAGS = "refs/heads/", "refs/tags/"


@dataclass(frozen=True, slots=True)
class Refs:
    """Maps full ref names to commits, and annotated tags to their tag objects."""

    commits: Mapping[str, str]
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def tags(self) -> list[str]:
        return [name.removeprefix(TAGS) for name in self.commits if name.startswith(TAGS)]

    @property
    def branches(self) -> list[str]:
        return [name.removeprefix(HEADS) for name in self.commits if name.startswith(HEADS)]

    @property
    def default_branch(self) -> str:
        """The branch that HEAD points to; main or master if several have its commit. Empty if there is none."""
        head = self.commits.get("HEAD")
        found = [name for name in self.branches if self.commits[HEADS + name] == head]
        return min(found, key=lambda name: (name != "main", name != "master", name), default="")

    def find(self, ref: str, tag_prefix: str = "") -> str | None:
        return self.commits.get(self.full_name(ref, tag_prefix))

    def full_name(self, ref: str, tag_prefix: str = "") -> str:
        """Return the full ref name or "": a range selects its newest tag, a branch beats a tag of the same name."""
        name = newest_tag(ref, self.tags, tag_prefix) or ref or "HEAD"
        names = [name, HEADS + name, TAGS + name, f"refs/{name}"]
        if tag_prefix:
            names[:0] = [TAGS + tag_prefix + ref]
        return next((full for full in names if full in self.commits), "")

    def unknown(self, ref: str, tag_prefix: str, where: str) -> UnknownRef:
        if not self.commits:
            return UnknownRef("the repository is empty; push a commit first", where=where)
        shown = f"{tag_prefix}{ref}"[:200]
        if parse_range(ref) and not parse_version(ref):
            return UnknownRef(
                f"none of the {len(self.tags)} tags is in the range {shown!r}; push such a tag, or widen the range "
                "(pre-releases match only if the range ends in -0)",
                where=where,
            )
        near = difflib.get_close_matches(ref[:200], [*self.branches, *self.tags][:5000], n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else "; push it, or use an existing one"
        return UnknownRef(f"there is no branch, tag or commit {shown!r}{hint}", where=where)


def read_refs(listing: bytes, where: str) -> Refs:
    commits: dict[str, str] = {}
    notes: dict[str, str] = {}
    for line in listing.splitlines():
        if line.startswith(b"ref: "):
            continue
        if not (found := _LINE.fullmatch(line)):
            raise CorruptSource("the host sent an unreadable list of refs; run `git ls-remote`", where=where)
        name = found[2].decode(errors="surrogateescape")
        # An annotated tag has two lines: the second one, with ^{}, has the commit it points to.
        if (full := name.removesuffix("^{}")) != name and full in commits:
            notes[full] = commits[full]
        commits[full] = found[1].decode()
    return Refs(commits, notes)

"""Reads which branch and commit a working tree has checked out.

In: the folder of a working tree. Out: branch and commit, from Git's own files. Never: starts git.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from argosy.gitops.workspace.paths import own_folder, shared_folder

_SHORTEST: Final = 7  # minimum characters of an abbreviated commit
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Head(NamedTuple):
    branch: str = ""  # empty if HEAD is detached
    commit: str = ""  # empty before the first commit, and outside of Git


def head_of(root: str) -> Head:
    try:
        kept = own_folder(root)
        said = (kept / "HEAD").read_text().strip()
        if not said.startswith("ref:"):
            return Head("", said if _COMMIT.fullmatch(said) else "")
        ref = said.removeprefix("ref:").strip()
        return Head(ref.removeprefix("refs/heads/"), _resolved(shared_folder(root), ref))
    except (OSError, UnicodeError):
        return Head()


def is_checked_out(root: str, ref: str) -> bool:
    """True if, as far as the files show, the working tree has this ref checked out."""
    if ref in ("", "HEAD"):
        return True
    head = head_of(root)
    if ref.removeprefix("refs/heads/") == head.branch or (len(ref) >= _SHORTEST and head.commit.startswith(ref)):
        return True
    try:
        tag = _resolved(shared_folder(root), f"refs/tags/{ref.removeprefix('refs/tags/')}")
    except (OSError, UnicodeError, ValueError):
        return False
    return bool(tag) and tag == head.commit


def is_merged_into(root: str, ref: str) -> bool:
    """True if the ref is the branch that changes are merged into: new files here are not there yet."""
    names = {"main", "master"}
    try:
        said = (shared_folder(root) / "refs" / "remotes" / "origin" / "HEAD").read_text().strip()
        names.add(said.removeprefix("ref: refs/remotes/origin/"))
    except (OSError, UnicodeError):
        pass
    return ref.removeprefix("refs/heads/") in names


def _resolved(kept: Path, ref: str) -> str:
    loose = kept / ref
    if ".." not in ref and loose.is_file():
        said = loose.read_text().strip()
        return said if _COMMIT.fullmatch(said) else ""
    packed = kept / "packed-refs"
    if not packed.is_file():
        return ""
    # An annotated tag has its commit on the next line.
    found = re.search(rb"^([0-9a-f]+) " + re.escape(ref.encode()) + rb"\n(?:\^([0-9a-f]+))?", packed.read_bytes(), re.M)
    return (found[2] or found[1]).decode() if found else ""

"""What a working tree has checked out.

In: the folder of a working tree. Out: its branch and commit, as git's own files say. Never: starts git.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from argosy.gitops.workspace.paths import own_folder, shared_folder

_SHORTEST: Final = 7  # characters of a commit that people write
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Head(NamedTuple):
    branch: str = ""  # empty where a commit is checked out
    commit: str = ""  # empty before the first one, and outside of Git


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
    """Is this, as far as the files show, what the working tree was made from?"""
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
    """Whether it is the branch that work goes to: what is new here is not there yet, and that is no mistake."""
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
    # A tag that is an object itself has the commit on the next line.
    found = re.search(rb"^([0-9a-f]+) " + re.escape(ref.encode()) + rb"\n(?:\^([0-9a-f]+))?", packed.read_bytes(), re.M)
    return (found[2] or found[1]).decode() if found else ""

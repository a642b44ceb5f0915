"""Reads which branch and commit a working tree has checked out.

In: the folder of a working tree. Out: branch and commit, from Git's own files. Never: starts git.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from argosy.gitops.workspace.enclosing_repository_lookup import find_git_folder, find_shared_git_folder

_MIN_COMMIT_CHARACTERS: Final = 7  # minimum characters of an abbreviated commit
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class CheckedOutHead(NamedTuple):
    branch: str = ""  # empty if HEAD is detached
    commit: str = ""  # empty before the first commit, and outside of Git


def read_head(root: str) -> CheckedOutHead:
    try:
        git_folder = find_git_folder(root)
        head_text = (git_folder / "HEAD").read_text().strip()
        if not head_text.startswith("ref:"):
            return CheckedOutHead("", head_text if _COMMIT.fullmatch(head_text) else "")
        ref = head_text.removeprefix("ref:").strip()
        return CheckedOutHead(ref.removeprefix("refs/heads/"), _resolve_ref(find_shared_git_folder(root), ref))
    except (OSError, UnicodeError):
        return CheckedOutHead()


def is_checked_out(root: str, ref: str) -> bool:
    """True if, as far as the files show, the working tree has this ref checked out."""
    if ref in ("", "HEAD"):
        return True
    head = read_head(root)
    if ref.removeprefix("refs/heads/") == head.branch or (
        len(ref) >= _MIN_COMMIT_CHARACTERS and head.commit.startswith(ref)
    ):
        return True
    try:
        tag = _resolve_ref(find_shared_git_folder(root), f"refs/tags/{ref.removeprefix('refs/tags/')}")
    except (OSError, UnicodeError, ValueError):
        return False
    return bool(tag) and tag == head.commit


def is_default_branch(root: str, ref: str) -> bool:
    """True if the ref is the branch that changes are merged into: new files here are not there yet."""
    names = {"main", "master"}
    try:
        head_text = (find_shared_git_folder(root) / "refs" / "remotes" / "origin" / "HEAD").read_text().strip()
        names.add(head_text.removeprefix("ref: refs/remotes/origin/"))
    except (OSError, UnicodeError):
        pass
    return ref.removeprefix("refs/heads/") in names


def _resolve_ref(git_folder: Path, ref: str) -> str:
    loose = git_folder / ref
    if ".." not in ref and loose.is_file():
        commit = loose.read_text().strip()
        return commit if _COMMIT.fullmatch(commit) else ""
    packed = git_folder / "packed-refs"
    if not packed.is_file():
        return ""
    # An annotated tag has its commit on the next line.
    match = re.search(rb"^([0-9a-f]+) " + re.escape(ref.encode()) + rb"\n(?:\^([0-9a-f]+))?", packed.read_bytes(), re.M)
    return (match[2] or match[1]).decode() if match else ""

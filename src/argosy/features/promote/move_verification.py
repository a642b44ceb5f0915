"""Verifies that edited files render to exactly the planned changes.

In: moves, and the target's contents before and after. Out: a description of the first problem. Never: shows a value
that looks like a secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.features.promote.moves import Move, shown
from argosy.features.promote.releases import At, Contents
from argosy.gitops.analysis.object_changes import HASH


def unproven(moves: Sequence[Move], before: Contents, after: Contents) -> str:
    """Describe the first missing or unplanned change; empty if all planned changes and no others were made."""
    named = {id(each): at for at, each in before.fields.items()}  # an object may have another name in the source
    wanted = {_plain(named.get(id(move.here), move.at)): move.after for move in moves}
    then = {_plain(at): each.value for at, each in before.fields.items()}
    for at, each in after.fields.items():
        old = then.pop(_plain(at), None)
        if each.value == old or each.pointer.startswith("/metadata/name"):
            continue
        if wanted.get(_plain(at)) == each.value:
            wanted.pop(_plain(at))
            continue
        if not _is_hashed(old, each.value):
            return f"{at.owner} {at.path} would be {shown(at, each.value)!r}"
    gone = next(iter(then), None)
    if gone is not None:
        return f"{gone[0]} {gone[1]} would be gone"
    missed = next(iter(wanted), None)
    return f"{missed[0]} {missed[1]} would stay as it is" if missed is not None else ""


def _plain(at: At) -> tuple[str, str]:
    return str(at.owner), at.path


def _is_hashed(old: Any, new: Any) -> bool:
    """True if the two names differ only in their generated hash suffix."""
    return isinstance(old, str) and isinstance(new, str) and HASH.sub("", old) == HASH.sub("", new)

"""Applies the rules that need the previous state of the repository.

In: paths and a base. Out: violations by rule. Never: fails without Git history, unless a base was given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from argosy.errors import ArgosyError
from argosy.gitops.analysis.violation import Sight
from argosy.gitops.workspace.checkouts import Talk
from argosy.gitops.workspace.paths import enclosing


def told_by_history(paths: Sequence[str], base: str, *, talk: Talk) -> Mapping[str, tuple[Sight, ...]]:
    """Compare the working tree with the base, or by default with the merge base of the target branch."""
    folder = paths[0] if paths else os.curdir
    if enclosing(os.path.realpath(folder)) is None and not base:
        return {}
    from argosy.features.preview.comparison import compare
    from argosy.features.preview.revisions import Repository, open_sides
    from argosy.features.preview.service import schemas_of

    repository = Repository(folder if os.path.isdir(folder) else os.path.dirname(folder) or os.curdir)
    try:
        found = compare(repository, open_sides(repository, base), talk=talk)
        if not found.touched and not found.lost:
            return {}
        from argosy.gitops.analysis.rules.history import IMMUTABLE, LOST, immutable, lost_applications

        sights = {IMMUTABLE: immutable(found.touched, schemas_of(found)), LOST: lost_applications(found.lost)}
    except ArgosyError:
        if base:
            raise
        return {}  # no commit, no branch to compare with, a shallow clone
    finally:
        repository.close()
    return {rule: tuple(each for each in seen if _is_below(each, paths)) for rule, seen in sights.items()}


def _is_below(sight: Sight, paths: Sequence[str]) -> bool:
    real = os.path.realpath(sight.place.file)
    typed = [os.path.realpath(path) for path in paths]
    return any(real == path or real.startswith(path.rstrip("/") + "/") for path in typed)

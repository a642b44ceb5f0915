"""Checks on the Git hosts whether branches and tags exist.

In: a repository URL and a ref. Out: an error message if the ref does not exist. Never: contacts a host unless
requested; reports an unreachable host as a finding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from argosy.errors import ArgosyError

if TYPE_CHECKING:
    from argosy.gitops.source.git.refs import Refs

RefsOf = Callable[[str], "Refs"]


class Hosts:
    """Refs of remote repositories; an unreachable repository is tried and noted once."""

    def __init__(self, refs_of: RefsOf | None) -> None:
        self._refs_of = refs_of
        self._silent: set[str] = set()
        self.notes: list[str] = []

    def absent(self, url: str, ref: str) -> str:
        from argosy.gitops.source.git.refs import SHORT_COMMIT

        if self._refs_of is None or url in self._silent or SHORT_COMMIT.fullmatch(ref):
            return ""  # a commit is not listed
        try:
            refs = self._refs_of(url)
        except ArgosyError as error:
            self._silent.add(url)
            self.notes.append(f"branches and tags were not checked: {error}")
            return ""
        return "" if refs.find(ref) else refs.unknown(ref, "", url).message

"""Asks the hosts of repositories for their branches and tags.

In: an address and a ref. Out: why the ref is not there, or nothing. Never: asks without being told to; holds a host
that does not answer against anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from argosy.errors import ArgosyError

if TYPE_CHECKING:
    from argosy.gitops.source.git.refs import Refs

RefsOf = Callable[[str], "Refs"]


class Hosts:
    """Each is asked once; what could not be asked is told once."""

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
            self.notes.append(f"branches and tags could not be asked for: {error}")
            return ""
        return "" if refs.find(ref) else refs.unknown(ref, "", url).message

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

FetchRefs = Callable[[str], "Refs"]


class RemoteRefs:
    """Refs of remote repositories; an unreachable repository is tried and noted once."""

    def __init__(self, fetch_refs: FetchRefs | None) -> None:
        self._fetch_refs = fetch_refs
        self._unreachable_urls: set[str] = set()
        self.notes: list[str] = []

    def find_missing_ref_error(self, url: str, ref: str) -> str:
        from argosy.gitops.source.git.refs import SHORT_COMMIT_ID

        if self._fetch_refs is None or url in self._unreachable_urls or SHORT_COMMIT_ID.fullmatch(ref):
            return ""  # a commit is not listed
        try:
            refs = self._fetch_refs(url)
        except ArgosyError as error:
            self._unreachable_urls.add(url)
            self.notes.append(f"branches and tags were not checked: {error}")
            return ""
        return "" if refs.find_commit(ref) else refs.unknown_ref_error(ref, "", url).message

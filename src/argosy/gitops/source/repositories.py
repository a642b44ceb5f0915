"""All repositories that an installation reads.

In: repoURL, ref. Out: Checkout(tree, revision), or a SourceError. Never: a project's mirror for another project.
"""

from __future__ import annotations

import hashlib
import logging
import operator
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from argosy.errors import SourceError
from argosy.gitops.application.repository_url import RepositoryUrl, parse_url
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.source.credentials import Credential, Trust, find_credential
from argosy.gitops.source.git.mirror import Mirror
from argosy.gitops.source.git.ref_fingerprint import Footprint, footprint
from argosy.gitops.source.git.remote import Observe, Remote
from argosy.gitops.source.settings import SourceSettings
from argosy.gitops.source.signatures import SignatureRule

log = logging.getLogger(__name__)
MOST_OPEN = 64  # each open mirror keeps a git process
RECENT_SECONDS = 1.0  # so long an address leads to the place that it led to: many applications ask at once
MOST_RECENT = 1_000


class Repositories:
    """Mirrors below one folder, made as they are asked for."""

    def __init__(
        self,
        folder: Path,
        settings: SourceSettings,
        credentials: Iterable[Credential] = (),
        trust: Trust | None = None,
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.credentials = tuple(credentials)
        self.trust = trust or Trust()
        self.observe: Observe | None = None  # told of each question to a host
        self._open: dict[Path, Mirror] = {}
        self._told: dict[tuple[str, str, str], str] = {}
        self._recent: dict[tuple[str, str], tuple[float, tuple[Any, ...], Path, Mirror]] = {}

    async def checkout(
        self,
        url: str,
        ref: str,
        *,
        project: str = "",
        tag_prefix: str = "",
        max_age: float = 0.0,
        signatures: SignatureRule | None = None,
    ) -> Checkout:
        """`max_age` is how many seconds old the host's word on its branches and tags may be.

        With a rule, a revision that is not signed as it asks is a NotVerified, whose last good one was.
        """
        try:
            mirror = self.mirror(url, project=project)
            found = await mirror.checkout(ref, tag_prefix=tag_prefix, max_age=max_age, signatures=signatures)
        except SourceError as error:
            self._tell((url, ref, project), str(error))
            raise
        if ref != found.revision:
            self._tell((url, ref, project), f"{parse_url(url)}: {ref} is {found.revision}")
        return found

    def _tell(self, asked: tuple[str, str, str], news: str) -> None:
        """Only what is new: the same is asked every few minutes."""
        if self._told.get(asked) == news:
            return
        if len(self._told) > MOST_RECENT:
            self._told.clear()
        self._told[asked] = news
        log.info("%s", news)

    def mirror(self, url: str, *, project: str = "") -> Mirror:
        rules = (self.settings, self.credentials, self.trust)
        known = self._recent.get((url, project))
        if known is not None and known[0] > time.monotonic() and all(map(operator.is_, known[1], rules)):
            folder, mirror = known[2], known[3]
            if self._open.get(folder) is mirror:
                self._open[folder] = self._open.pop(folder)
                return mirror
        folder, mirror = self._opened(url, project)
        if len(self._recent) > MOST_RECENT:
            self._recent.clear()
        self._recent[url, project] = time.monotonic() + RECENT_SECONDS, rules, folder, mirror
        return mirror

    def _opened(self, url: str, project: str) -> tuple[Path, Mirror]:
        asked = parse_url(url)
        place = self.settings.locate(asked)
        credential = None if place.scheme == "file" else find_credential(self.credentials, place, project)
        folder = self.folder / f"{_name(place, credential)}.git"
        mirror = self._open.pop(folder, None)
        remote = Remote(place, str(asked), credential, self.trust, self.settings.limits, self._asked)
        if mirror is None or mirror.remote != remote:
            if mirror is not None:
                mirror.close()
            mirror = Mirror(folder, remote)
        self._open[folder] = mirror  # last in the row: the first is the one that was not asked for the longest
        while len(self._open) > MOST_OPEN:
            self._open.pop(next(iter(self._open))).close()
        return folder, mirror

    def _asked(self, shown: str, request: str, seconds: float, is_good: bool) -> None:
        if self.observe is not None:
            self.observe(shown, request, seconds, is_good)

    def is_local(self, url: str) -> bool:
        """Whether it is really read from this machine; an address that may not be read is not."""
        try:
            return self.settings.locate(parse_url(url)).scheme == "file"
        except SourceError:
            return False

    def footprint(self, url: str) -> Footprint | None:
        """Of a repository on this machine: as long as it is the same, so are its refs. None: they must be asked for."""
        try:
            place = self.settings.locate(parse_url(url))
        except SourceError:
            return None
        return footprint(Path(place.path)) if place.scheme == "file" else None

    def close(self) -> None:
        for mirror in self._open.values():
            mirror.close()
        self._open.clear()
        self._recent.clear()


def _name(url: RepositoryUrl, credential: Credential | None) -> str:
    """What a project's own credentials have fetched is not for those who have none."""
    scope = (credential.project, credential.secret) if credential else ("", "")
    words = repr((str(url), scope)).encode()  # by the letter: hosts may tell cases apart
    return hashlib.sha256(words).hexdigest()[:32]

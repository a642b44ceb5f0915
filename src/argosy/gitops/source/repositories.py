"""Opens the mirrors of all repositories that an installation reads.

In: repoURL, ref. Out: Checkout(tree, revision), or a SourceError. Never: shares a mirror between projects.
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
RECENT_SECONDS = 1.0  # a URL is resolved again after this time; many Applications ask at once
MOST_RECENT = 1_000


class Repositories:
    """Mirrors below one folder, opened on demand."""

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
        self.observe: Observe | None = None  # called after each request to a Git host
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
        """Resolve the ref and return its file tree. `max_age`: seconds that the cached list of refs may be old.

        With a signature rule, an unsigned revision raises SignatureError, with the last verified one as `last_good`.
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
        """Log only changes: the same ref is resolved every few minutes."""
        if self._told.get(asked) == news:
            return
        if len(self._told) > MOST_RECENT:
            self._told.clear()
        self._told[asked] = news
        log.info("source changed: %s", news)

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
        self._open[folder] = mirror  # at the end: the dict is ordered from least to most recently used
        while len(self._open) > MOST_OPEN:
            self._open.pop(next(iter(self._open))).close()
        return folder, mirror

    def _asked(self, shown: str, request: str, seconds: float, is_good: bool) -> None:
        if self.observe is not None:
            self.observe(shown, request, seconds, is_good)

    def is_local(self, url: str) -> bool:
        """True if the repository is read from this machine; False if the URL is refused."""
        try:
            return self.settings.locate(parse_url(url)).scheme == "file"
        except SourceError:
            return False

    def footprint(self, url: str) -> Footprint | None:
        """Return a value that changes with the refs of a local repository. None: the refs must be listed."""
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
    """Return a folder name per URL and credential: one project must not read what another's credentials fetched."""
    scope = (credential.project, credential.secret) if credential else ("", "")
    words = repr((str(url), scope)).encode()  # case-sensitive: hosts may distinguish case
    return hashlib.sha256(words).hexdigest()[:32]

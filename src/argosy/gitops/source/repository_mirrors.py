"""Opens the mirrors of all repositories that an installation reads, and the caches of Helm repositories.

In: repoURL, ref. Out: Checkout(tree, revision), or a SourceError. Never: shares a mirror between projects.
"""

from __future__ import annotations

import hashlib
import logging
import operator
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from argosy.errors import SourceError
from argosy.gitops.application.repository_url_parser import RepositoryUrl, parse_url
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.source.charts.chart_cache import ChartCache
from argosy.gitops.source.charts.chart_host import ChartHost
from argosy.gitops.source.charts.chart_repository import ChartRepository
from argosy.gitops.source.credentials import HELM, HostTrust, RepositoryCredential, find_credential
from argosy.gitops.source.git.local_ref_files_fingerprint import RefFingerprint, refs_fingerprint
from argosy.gitops.source.git.mirror import Mirror
from argosy.gitops.source.git.mirror_remote import MirrorRemote, RequestObserver
from argosy.gitops.source.repository_access_settings import SourceSettings, parse_chart_repository_url
from argosy.gitops.source.signatures import SignatureRule
from argosy.http_client.request_threads import RequestThreads

log = logging.getLogger(__name__)
MAX_OPEN_MIRRORS = 64  # each open mirror keeps a git process
MAX_OPEN_CHART_REPOSITORIES = 200
CHARTS_FOLDER = "charts"
LOCATION_CACHE_SECONDS = 1.0  # a URL is resolved again after this time; many Applications ask at once
MAX_CACHED_LOCATIONS = 1_000


class Repositories:
    """Mirrors below one folder, opened on demand."""

    def __init__(
        self,
        folder: Path,
        settings: SourceSettings,
        credentials: Iterable[RepositoryCredential] = (),
        trust: HostTrust | None = None,
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.credentials = tuple(credentials)
        self.trust = trust or HostTrust()
        self.on_request: RequestObserver | None = None  # called after each request to a Git host
        self._open_mirrors: dict[Path, Mirror] = {}
        self._chart_repositories: dict[str, ChartRepository] = {}
        self._chart_threads = RequestThreads("chart-download")
        self._last_logged: dict[tuple[str, str, str], str] = {}
        self._location_cache: dict[tuple[str, str, str], tuple[float, tuple[Any, ...], Path, Mirror]] = {}

    async def checkout(
        self,
        url: str,
        ref: str,
        *,
        project: str = "",
        tag_prefix: str = "",
        max_age: float = 0.0,
        signatures: SignatureRule | None = None,
        parent_url: str = "",
    ) -> Checkout:
        """Resolve the ref and return its file tree. `max_age`: seconds that the cached list of refs may be old.

        With a signature rule, an unsigned revision raises SignatureError. `parent_url` is the repository that this is a
        submodule of: without credentials of its own, it uses those of its parent if both are on the same host.
        """
        try:
            mirror = self.mirror(url, project=project, parent_url=parent_url)
            checkout = await mirror.checkout(ref, tag_prefix=tag_prefix, max_age=max_age, signatures=signatures)
        except SourceError as error:
            self._log_change((url, ref, project), str(error))
            raise
        if ref != checkout.revision:
            self._log_change((url, ref, project), f"{parse_url(url)}: {ref} is {checkout.revision}")
        return checkout

    async def checkout_chart(
        self,
        url: str,
        chart: str,
        ref: str,
        *,
        project: str = "",
        max_age: float = 0.0,
        passes_credentials: bool = False,
        ignores_cache: bool = False,
    ) -> Checkout:
        """Return a chart of a Helm repository; the revision is its version.

        `max_age`: seconds that the cached index may be old. `ignores_cache` downloads the chart again.
        """
        request = (f"{url} {chart}", ref, project)
        try:
            repository = self.chart_repository(url, project=project)
            checkout = await repository.checkout(
                chart, ref, max_age=max_age, passes_credentials=passes_credentials, ignores_cache=ignores_cache
            )
        except SourceError as error:
            self._log_change(request, str(error))
            raise
        if ref != checkout.revision:
            self._log_change(request, f"{repository.host.display_url}: {chart} {ref} is {checkout.revision}")
        return checkout

    def find_chart_repository_url(self, name: str, *, project: str = "") -> str:
        """Return the URL of the Helm repository with this name that the project may use; empty if there is none."""
        named = [
            credential
            for credential in self.credentials
            if credential.type == HELM
            and not credential.is_template
            and credential.name == name
            and credential.project in ("", project)
        ]
        chosen = max(named, key=lambda credential: bool(credential.project), default=None)
        return str(chosen.url) if chosen is not None and name else ""

    def chart_host(self, url: str, *, project: str = "", credential: RepositoryCredential | None = None) -> ChartHost:
        """Return the host of a Helm repository, with the given credential or the configured one."""
        requested_url = parse_chart_repository_url(url)
        location = self.settings.locate_chart_repository(requested_url)
        credential = credential or find_credential(self.credentials, location, project, HELM)
        protocols, limits, threads = self.settings.protocols, self.settings.limits, self._chart_threads
        return ChartHost(location, str(requested_url), protocols, threads, credential, self.trust, limits)

    def chart_repository(self, url: str, *, project: str = "") -> ChartRepository:
        host = self.chart_host(url, project=project)
        name = _mirror_name(host.url, host.credential)
        repository = self._chart_repositories.pop(name, None)
        if repository is None or repository.host != host:
            repository = ChartRepository(host, ChartCache(self.folder / CHARTS_FOLDER), name)
        self._chart_repositories[name] = repository  # at the end: ordered from least to most recently used
        while len(self._chart_repositories) > MAX_OPEN_CHART_REPOSITORIES:
            del self._chart_repositories[next(iter(self._chart_repositories))]
        return repository

    def _log_change(self, request: tuple[str, str, str], message: str) -> None:
        """Log only changes: the same ref is resolved every few minutes."""
        if self._last_logged.get(request) == message:
            return
        if len(self._last_logged) > MAX_CACHED_LOCATIONS:
            self._last_logged.clear()
        self._last_logged[request] = message
        log.info("source changed: %s", message)

    def mirror(self, url: str, *, project: str = "", parent_url: str = "") -> Mirror:
        rules = (self.settings, self.credentials, self.trust)
        cached = self._location_cache.get((url, project, parent_url))
        if cached is not None and cached[0] > time.monotonic() and all(map(operator.is_, cached[1], rules)):
            folder, mirror = cached[2], cached[3]
            if self._open_mirrors.get(folder) is mirror:
                self._open_mirrors[folder] = self._open_mirrors.pop(folder)
                return mirror
        folder, mirror = self._open_mirror(url, project, parent_url)
        if len(self._location_cache) > MAX_CACHED_LOCATIONS:
            self._location_cache.clear()
        self._location_cache[url, project, parent_url] = (
            time.monotonic() + LOCATION_CACHE_SECONDS,
            rules,
            folder,
            mirror,
        )
        return mirror

    def open_plugin_access(
        self, url: str, folder: str, *, project: str = ""
    ) -> AbstractAsyncContextManager[Mapping[str, str]]:
        """Return Git access to the repository for a plug-in that shares the folder: variables, while it is open."""
        from argosy.gitops.source.git.plugin_git_access import open_plugin_access

        location = self.settings.locate(parse_url(url))
        credential = None if location.scheme == "file" else find_credential(self.credentials, location, project)
        return open_plugin_access(Path(folder), location, credential, self.trust)

    def _open_mirror(self, url: str, project: str, parent_url: str) -> tuple[Path, Mirror]:
        requested_url = parse_url(url)
        location = self.settings.locate(requested_url)
        credential = None if location.scheme == "file" else find_credential(self.credentials, location, project)
        if parent_url and (credential is None or not credential.has_credentials):
            parent = self.settings.locate(parse_url(parent_url))
            if parent.scheme != "file" and parent.is_same_login(location):
                credential = find_credential(self.credentials, parent, project) or credential
        folder = self.folder / f"{_mirror_name(location, credential)}.git"
        mirror = self._open_mirrors.pop(folder, None)
        remote = MirrorRemote(
            location, str(requested_url), credential, self.trust, self.settings.limits, self._report_request
        )
        if mirror is None or mirror.remote != remote:
            if mirror is not None:
                mirror.close()
            mirror = Mirror(folder, remote)
        self._open_mirrors[folder] = mirror  # at the end: the dict is ordered from least to most recently used
        while len(self._open_mirrors) > MAX_OPEN_MIRRORS:
            self._open_mirrors.pop(next(iter(self._open_mirrors))).close()
        return folder, mirror

    def _report_request(self, display_url: str, request: str, seconds: float, succeeded: bool) -> None:
        if self.on_request is not None:
            self.on_request(display_url, request, seconds, succeeded)

    def is_local(self, url: str) -> bool:
        """True if the repository is read from this machine; False if the URL is refused."""
        try:
            return self.settings.locate(parse_url(url)).scheme == "file"
        except SourceError:
            return False

    def refs_fingerprint(self, url: str) -> RefFingerprint | None:
        """Return a value that changes with the refs of a local repository. None: the refs must be listed."""
        try:
            location = self.settings.locate(parse_url(url))
        except SourceError:
            return None
        return refs_fingerprint(Path(location.path)) if location.scheme == "file" else None

    def close(self) -> None:
        for mirror in self._open_mirrors.values():
            mirror.close()
        self._open_mirrors.clear()
        self._location_cache.clear()


def _mirror_name(url: RepositoryUrl, credential: RepositoryCredential | None) -> str:
    """Return a folder name per URL and credential: one project must not read what another's credentials fetched."""
    scope = (credential.project, credential.secret) if credential else ("", "")
    identity = repr((str(url), scope)).encode()  # case-sensitive: hosts may distinguish case
    return hashlib.sha256(identity).hexdigest()[:32]

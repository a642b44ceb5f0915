"""Polls local repositories, which send no webhooks.

In: changes of Applications. Out: the Applications whose repository has new commits. Never: reads a remote repository.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.gitops.source.git.local_ref_files_fingerprint import RefFingerprint
from argosy.gitops.source.git.refs import Refs
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.controller import ChangeWatch, Clock
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

LOCAL_SOURCES_TTL_SECONDS: Final = 5.0  # seconds until each repository is asked again whether it is local
LOCAL_POLL_SECONDS: Final = 0.1  # seconds between polls of local repositories
# additional seconds per repository: 100 of them are polled about twice a second
LOCAL_POLL_SECONDS_PER_REPOSITORY: Final = 0.005


class LocalRepositoryPoller:
    def __init__(
        self,
        repositories: Repositories,
        clock: Clock,
        on_push: Callable[[Sequence[ResourceKey]], Awaitable[None]],
    ) -> None:
        self._repositories, self._clock, self._on_push = repositories, clock, on_push
        self._refs: dict[str, Refs] = {}
        self._fingerprints: dict[str, RefFingerprint | None] = {}
        self._apps_by_url: dict[str, dict[ResourceKey, None]] = {}  # of all sources; a dict keeps the order of arrival
        self._local_urls: tuple[str, ...] | None = None  # None: to be checked again
        self._valid_until = 0.0

    @property
    def watches(self) -> tuple[ChangeWatch, ...]:
        return (ChangeWatch((APPLICATION,), self._on_application_change),)

    def _on_application_change(self, before: Manifest | None, after: Manifest | None) -> None:
        """Keep the list of repositories, because reading all Applications for each poll takes long."""
        old_urls, new_urls = list_source_urls(before or {}), list_source_urls(after or {})
        if old_urls == new_urls:
            return
        key = key_of(after or before or {})
        for url in new_urls - old_urls:
            if url not in self._apps_by_url:
                self._apps_by_url[url], self._local_urls = {}, None
            self._apps_by_url[url][key] = None
        for url in old_urls - new_urls:
            apps = self._apps_by_url.get(url, {})
            apps.pop(key, None)
            if not apps and self._apps_by_url.pop(url, None) is not None:
                self._local_urls = None

    async def run(self) -> None:
        """Poll until cancelled; polling local repositories is cheap."""
        while True:
            await asyncio.sleep(LOCAL_POLL_SECONDS + LOCAL_POLL_SECONDS_PER_REPOSITORY * len(self._list_local_urls()))
            for url in self._list_local_urls():
                fingerprint = self._repositories.refs_fingerprint(url)
                if fingerprint is not None and fingerprint == self._fingerprints.get(url):
                    continue
                try:
                    refs = await self._repositories.mirror(url).list_refs()
                except ArgosyError:
                    continue  # Applications that need it report the error
                self._fingerprints[url] = fingerprint
                if refs != self._refs.get(url):
                    self._refs[url] = refs
                    # including new Applications: they may have resolved the ref just before the push
                    await self._on_push(tuple(self._apps_by_url.get(url, ())))

    def _list_local_urls(self) -> tuple[str, ...]:
        if self._local_urls is None or self._clock.monotonic() >= self._valid_until:
            self._local_urls = tuple(url for url in self._apps_by_url if self._repositories.is_local(url))
            self._valid_until = self._clock.monotonic() + LOCAL_SOURCES_TTL_SECONDS
        return self._local_urls


def list_raw_sources(app: Manifest) -> list[dict[str, Any]]:
    """List the sources of an Application manifest, unchecked."""
    spec = app.get("spec") or {}
    return [source for source in (spec.get("source"), *(spec.get("sources") or ())) if isinstance(source, dict)]


def list_source_urls(app: Manifest) -> frozenset[str]:
    """List the repository URLs of an Application manifest, unchecked."""
    return frozenset(url for source in list_raw_sources(app) if isinstance(url := source.get("repoURL"), str))

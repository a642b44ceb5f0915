"""Polls local repositories, which send no webhooks.

In: Applications in the cache. Out: the Applications whose repository has new commits. Never: reads a remote repository.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.gitops.source.git.local_ref_files_fingerprint import RefFingerprint
from argosy.gitops.source.git.refs import Refs
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.controller import ChangeWatch, Clock, InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

LOCAL_SOURCES_TTL_SECONDS: Final = 5.0  # seconds until the list of local repositories is rebuilt
LOCAL_POLL_SECONDS: Final = 0.1  # seconds between polls of local repositories
# additional seconds per repository: 100 of them are polled about twice a second
LOCAL_POLL_SECONDS_PER_REPOSITORY: Final = 0.005


class LocalRepositoryPoller:
    def __init__(
        self,
        cache: InformerCache,
        repositories: Repositories,
        clock: Clock,
        on_push: Callable[[Sequence[ResourceKey]], Awaitable[None]],
    ) -> None:
        self._cache, self._repositories, self._clock, self._on_push = cache, repositories, clock, on_push
        self._refs: dict[str, Refs] = {}
        self._fingerprints: dict[str, RefFingerprint | None] = {}
        self._apps_by_url: dict[str, list[ResourceKey]] | None = None  # None: to be rebuilt
        self._valid_until = 0.0

    @property
    def watches(self) -> tuple[ChangeWatch, ...]:
        return (ChangeWatch((APPLICATION,), self._on_application_change),)

    def _on_application_change(self, before: Manifest | None, after: Manifest | None) -> None:
        """Rebuild the list of local repositories if the sources of an Application may have changed."""
        if (before or {}).get("spec") != (after or {}).get("spec"):
            self._apps_by_url = None

    async def run(self) -> None:
        """Poll until cancelled; polling local repositories is cheap."""
        while True:
            await asyncio.sleep(LOCAL_POLL_SECONDS + LOCAL_POLL_SECONDS_PER_REPOSITORY * len(self._find_apps_by_url()))
            for url in tuple(self._find_apps_by_url()):
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
                    await self._on_push(self._find_apps_by_url().get(url, ()))

    def _find_apps_by_url(self) -> dict[str, list[ResourceKey]]:
        if self._apps_by_url is not None and self._clock.monotonic() < self._valid_until:
            return self._apps_by_url
        apps_by_url: dict[str, list[ResourceKey]] = {}
        is_local: dict[str, bool] = {}
        for manifest in self._cache.list(APPLICATION):
            for source in list_raw_sources(manifest):
                url = source.get("repoURL")
                if not isinstance(url, str):
                    continue
                if url not in is_local:
                    is_local[url] = self._repositories.is_local(url)
                if is_local[url]:
                    apps_by_url.setdefault(url, []).append(key_of(manifest))
        self._apps_by_url, self._valid_until = apps_by_url, self._clock.monotonic() + LOCAL_SOURCES_TTL_SECONDS
        return apps_by_url


def list_raw_sources(app: Manifest) -> list[dict[str, Any]]:
    """List the sources of an Application manifest, unchecked."""
    spec = app.get("spec") or {}
    return [source for source in (spec.get("source"), *(spec.get("sources") or ())) if isinstance(source, dict)]

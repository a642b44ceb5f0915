"""Commit metadata for templates that call GetCommitMetadata.

In: an Application, conditions and templates. Out: commit metadata by revision. Never: contacts a repository unless a
template needs it; raises if a repository is unavailable (the template then renders without metadata).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from argosy.annotations import SECRET_TYPE
from argosy.errors import ArgosyError
from argosy.features.notifications import names
from argosy.gitops.source.credentials import Trust, read_credentials
from argosy.gitops.source.repositories import Repositories
from argosy.gitops.source.settings import read_settings
from argosy.isolation.scratch_folders import scratch_folder
from argosy.kube.client import ClusterReader
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

log = logging.getLogger(__name__)
ASKED: Final = "GetCommitMetadata"
KNOWN_HOSTS, AUTHORITIES = "argocd-ssh-known-hosts-cm", "argocd-tls-certs-cm"
SECONDS: Final = 30.0
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Commits:
    """Reads commits from Git mirrors. `folder` holds the mirrors, which the GitOps engine may share."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._own: Path | None = None
        self._removal = ExitStack()  # of its own folder

    async def known(self, manifest: Manifest, texts: str, control: str, cluster: ClusterReader) -> dict[str, Any]:
        url = str(((manifest.get("spec") or {}).get("source") or {}).get("repoURL") or "")
        if ASKED not in texts or not url or not control:
            return {}
        found: dict[str, Any] = {}
        try:
            async with asyncio.timeout(SECONDS):
                repositories = await self._opened(control, cluster)
                try:
                    mirror = repositories.mirror(url, project=str(manifest["spec"].get("project") or ""))
                    for revision in dict.fromkeys(_revisions(manifest)):
                        each = await mirror.commit(revision)
                        at = each.at.isoformat().replace("+00:00", "Z")
                        found[revision] = {"Message": each.message, "Author": each.author, "Date": at, "Tags": []}
                finally:
                    repositories.close()
        except (ArgosyError, TimeoutError) as error:
            log.info("cannot read commit metadata: app=%s error=%s", manifest["metadata"]["name"], error)
        return found

    async def _opened(self, control: str, cluster: ClusterReader) -> Repositories:
        secrets = await cluster.list(names.SECRET, namespace=control, labels=SECRET_TYPE)
        own, hosts, authorities = [
            ((await cluster.get(ResourceKey(*names.CONFIG_MAP, control, name))) or {}).get("data") or {}
            for name in (names.OWN_SETTINGS, KNOWN_HOSTS, AUTHORITIES)
        ]
        trust = Trust(str(hosts.get("ssh_known_hosts") or ""), authorities)
        return Repositories(self.make_folder(), read_settings(own), read_credentials(secrets.items), trust)

    def make_folder(self) -> Path:
        """Return the folder of the mirrors, and create a temporary one if none is set."""
        if self.folder is not None:
            return self.folder / "mirrors"
        if self._own is None:
            with ExitStack() as undo:
                folder = undo.enter_context(scratch_folder("argosy-notifications-")) / "mirrors"
                folder.mkdir()
                self._removal.push(undo.pop_all())
            self._own = folder
        return self._own

    def close(self) -> None:
        self._removal.close()
        self._own = None


def _revisions(manifest: Manifest) -> Iterator[str]:
    status = manifest.get("status") or {}
    state = (status.get("operationState") or {}).get("syncResult") or {}
    for place in (status.get("sync") or {}, state, *(status.get("history") or ())[-1:]):
        revision = str(place.get("revision") or "")
        if _COMMIT.fullmatch(revision):
            yield revision

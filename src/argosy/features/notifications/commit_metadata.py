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
from argosy.features.notifications import constants
from argosy.gitops.source.credentials import HostTrust, read_credentials
from argosy.gitops.source.repository_access_settings import read_source_settings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.isolation.scratch_folders import create_scratch_folder
from argosy.kube.client import ClusterReader
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP, SECRET

log = logging.getLogger(__name__)
COMMIT_METADATA_FUNCTION: Final = "GetCommitMetadata"
KNOWN_HOSTS_CONFIG_MAP, TLS_CERTS_CONFIG_MAP = "argocd-ssh-known-hosts-cm", "argocd-tls-certs-cm"
FETCH_TIMEOUT_SECONDS: Final = 30.0
_COMMIT_PATTERN: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class CommitMetadataReader:
    """Reads commits from Git mirrors. `folder` holds the mirrors, which the GitOps engine may share."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._own_folder: Path | None = None
        self._cleanup = ExitStack()  # of its own folder

    async def fetch_commits_if_used(
        self, manifest: Manifest, texts: str, namespace: str, cluster: ClusterReader
    ) -> dict[str, Any]:
        source = (manifest.get("spec") or {}).get("source") or {}
        url = str(source.get("repoURL") or "")
        if COMMIT_METADATA_FUNCTION not in texts or not url or not namespace or source.get("chart"):
            return {}
        metadata_by_revision: dict[str, Any] = {}
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_SECONDS):
                repositories = await self._open_repositories(namespace, cluster)
                try:
                    mirror = repositories.mirror(url, project=str(manifest["spec"].get("project") or ""))
                    for revision in dict.fromkeys(_list_revisions(manifest)):
                        commit = await mirror.load_commit(revision)
                        date = commit.authored_at.isoformat().replace("+00:00", "Z")
                        metadata_by_revision[revision] = {
                            "Message": commit.message,
                            "Author": commit.author,
                            "Date": date,
                            "Tags": [],
                        }
                finally:
                    repositories.close()
        except (ArgosyError, TimeoutError) as error:
            log.info("cannot read commit metadata: app=%s error=%s", manifest["metadata"]["name"], error)
        return metadata_by_revision

    async def _open_repositories(self, namespace: str, cluster: ClusterReader) -> Repositories:
        secrets = await cluster.list(SECRET, namespace=namespace, labels=SECRET_TYPE)
        settings, known_hosts, authorities = [
            ((await cluster.get(ResourceKey(*CONFIG_MAP, namespace, name))) or {}).get("data") or {}
            for name in (constants.ARGOSY_CONFIG_MAP, KNOWN_HOSTS_CONFIG_MAP, TLS_CERTS_CONFIG_MAP)
        ]
        trust = HostTrust(str(known_hosts.get("ssh_known_hosts") or ""), authorities)
        return Repositories(
            self.get_mirror_folder(), read_source_settings(settings), read_credentials(secrets.items), trust
        )

    def get_mirror_folder(self) -> Path:
        """Return the folder of the mirrors, and create a temporary one if none is set."""
        if self.folder is not None:
            return self.folder / "mirrors"
        if self._own_folder is None:
            with ExitStack() as undo:
                folder = undo.enter_context(create_scratch_folder("argosy-notifications-")) / "mirrors"
                folder.mkdir()
                self._cleanup.push(undo.pop_all())
            self._own_folder = folder
        return self._own_folder

    def close(self) -> None:
        self._cleanup.close()
        self._own_folder = None


def _list_revisions(manifest: Manifest) -> Iterator[str]:
    status = manifest.get("status") or {}
    sync_result = (status.get("operationState") or {}).get("syncResult") or {}
    for entry in (status.get("sync") or {}, sync_result, *(status.get("history") or ())[-1:]):
        revision = str(entry.get("revision") or "")
        if _COMMIT_PATTERN.fullmatch(revision):
            yield revision

"""Checks out the repository of a notebook for one run.

In: URL and ref of a job; its Secret. Out: the commit, and a folder with its files. Never: uses the installation's own
credentials, which the job's author may not have; creates a link that leaves the folder.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from argosy.errors import LimitError, SourceError, UserError
from argosy.features.notebooks.job import Notebook
from argosy.features.notebooks.local_runs.settings import ARGOSY_CM, data_of
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.application.repository_url import parse_url
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.source.credentials import Credential, Trust
from argosy.gitops.source.repositories import Repositories
from argosy.gitops.source.settings import SourceSettings, read_settings
from argosy.kube.client import Cluster
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

KNOWN_HOSTS, AUTHORITIES = "argocd-ssh-known-hosts-cm", "argocd-tls-certs-cm"
MOST_FILES, MOST_BYTES, DEEPEST = 20_000, 512 << 20, 64
RECENT: Final = 1.0


class Sources:
    """Repositories of all jobs."""

    def __init__(self, folder: Path) -> None:
        self._repositories = Repositories(folder, SourceSettings())
        self._credentials: dict[tuple[str, str], Credential] = {}  # by namespace/Secret and URL

    async def checkout(self, wanted: Notebook, namespace: str, cluster: Cluster) -> Checkout:
        """Raises SourceError, or UserError for an unusable Secret."""
        repositories = self._repositories
        repositories.settings = read_settings(await data_of(ARGOSY_CM, cluster))
        hosts = (await data_of(KNOWN_HOSTS, cluster)).get("ssh_known_hosts", "")
        repositories.trust = Trust(hosts, await data_of(AUTHORITIES, cluster))
        scope = f"{namespace}/{wanted.secret}" if wanted.secret else ""
        if scope:
            secret = await cluster.get(ResourceKey("", "Secret", namespace, wanted.secret))
            self._credentials[scope, wanted.url] = credential_of(wanted, scope, secret)
            repositories.credentials = tuple(self._credentials.values())
        return await repositories.checkout(wanted.url, wanted.ref, project=scope, max_age=RECENT)

    def close(self) -> None:
        self._repositories.close()


def credential_of(wanted: Notebook, scope: str, secret: Manifest | None) -> Credential:
    """Read a Secret with `ssh-privatekey`, or `username` and `password` or `token`; only for the job's namespace."""
    where = f"Secret {scope}"
    if secret is None:
        raise UserError("not found; create it, or correct credentialsSecret", where=where)
    try:
        values = {key: base64.b64decode(text).decode() for key, text in (secret.get("data") or {}).items()}
    except (binascii.Error, UnicodeDecodeError):
        raise UserError("contains a value that is not text; correct it", where=where) from None
    url, key = parse_url(wanted.url), values.get("ssh-privatekey", "")
    password = (values.get("password") or values.get("token") or "").strip()
    if not key and not (values.get("username") and password):
        raise UserError("has neither ssh-privatekey nor username with password or token; add one of them", where=where)
    return Credential(
        url=url, secret=scope, project=scope, username=values.get("username", "").strip(), password=password,
        ssh_key=key,
    )  # fmt: skip


def export(tree: Tree, folder: Path) -> None:
    """Write all files of a tree. Raises LimitError if there are too many."""
    _Export(tree, folder).add("", 0)


class _Export:
    def __init__(self, tree: Tree, folder: Path) -> None:
        self._tree, self._folder, self._files, self._bytes = tree, folder, 0, 0

    def add(self, path: str, depth: int) -> None:
        if depth > DEEPEST:
            raise LimitError(f"folders are nested more than {DEEPEST} levels deep; flatten them", where=path)
        (self._folder / path).mkdir(exist_ok=True)
        for entry in self._tree.listing(path):
            inner = f"{path}/{entry.name}" if path else entry.name
            if entry.name in ("", ".", "..") or "/" in entry.name:
                raise SourceError("is not a valid file name", where=inner)
            if entry.kind == "folder":
                self.add(inner, depth + 1)
            elif entry.kind == "link":
                self._link(inner)
            else:
                self._write(inner)

    def _write(self, path: str) -> None:
        data = self._tree.read(path)
        self._files, self._bytes = self._files + 1, self._bytes + len(data)
        if self._files > MOST_FILES or self._bytes > MOST_BYTES:
            raise LimitError(f"the repository has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB", where=path)
        mode = 0o755 if data.startswith(b"#!") else 0o644  # a tree does not store the executable bit
        with open(os.open(self._folder / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)

    def _link(self, path: str) -> None:
        """Create the link unless it points outside of the tree; nothing would be there."""
        target = os.fsdecode(self._tree.read(path))
        parts = [part for part in target.split("/") if part not in ("", ".")]
        climbs = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
        if not target.startswith("/") and climbs <= path.count("/") and ".." not in parts[climbs:]:
            os.symlink(target, self._folder / path)


def file_in(folder: Path, path: str, named: str) -> Path:
    """Path of a file in an exported tree. Raises UserError if it does not exist."""
    parts = Path(path).parts
    found = folder / path
    if path.startswith("/") or ".." in parts or not found.is_file():
        raise UserError(f"file {path} not found at this revision; correct {named}", where=path)
    return found


def values_of(manifest: Mapping[str, object]) -> dict[str, bytes]:
    """Decoded data of a ConfigMap or Secret."""
    plain = manifest.get("data") if manifest.get("kind") != "Secret" else {}
    coded = manifest.get("data") if manifest.get("kind") == "Secret" else manifest.get("binaryData")
    found = {str(key): str(text).encode() for key, text in (plain or {}).items()}  # type: ignore[attr-defined]
    return found | {str(key): base64.b64decode(text) for key, text in (coded or {}).items()}  # type: ignore[attr-defined]

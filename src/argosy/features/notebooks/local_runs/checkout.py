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
from argosy.features.notebooks.local_runs.run_limits_config_map import ARGOSY_CM, load_config_map_data
from argosy.features.notebooks.notebook_validation_job_parser import NotebookLocation
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.application.repository_url_parser import parse_url
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.source.credentials import HostTrust, RepositoryCredential
from argosy.gitops.source.repository_access_settings import SourceSettings, read_source_settings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import SECRET

KNOWN_HOSTS, TLS_CERTIFICATES = "argocd-ssh-known-hosts-cm", "argocd-tls-certs-cm"
MAX_FILES, MAX_TOTAL_BYTES, MAX_FOLDER_DEPTH = 20_000, 512 << 20, 64
MAX_REF_AGE_SECONDS: Final = 1.0


class NotebookRepositories:
    """Repositories of all jobs."""

    def __init__(self, folder: Path) -> None:
        self._repositories = Repositories(folder, SourceSettings())
        self._credentials: dict[tuple[str, str], RepositoryCredential] = {}  # by namespace/Secret and URL

    async def checkout(self, location: NotebookLocation, namespace: str, cluster: Cluster) -> Checkout:
        """Raises SourceError, or UserError for an unusable Secret."""
        repositories = self._repositories
        repositories.settings = read_source_settings(await load_config_map_data(ARGOSY_CM, cluster))
        hosts = (await load_config_map_data(KNOWN_HOSTS, cluster)).get("ssh_known_hosts", "")
        repositories.trust = HostTrust(hosts, await load_config_map_data(TLS_CERTIFICATES, cluster))
        scope = f"{namespace}/{location.secret}" if location.secret else ""
        if scope:
            secret = await cluster.get(ResourceKey(*SECRET, namespace, location.secret))
            self._credentials[scope, location.url] = read_credential(location, scope, secret)
            repositories.credentials = tuple(self._credentials.values())
        return await repositories.checkout(location.url, location.ref, project=scope, max_age=MAX_REF_AGE_SECONDS)

    def close(self) -> None:
        self._repositories.close()


def read_credential(location: NotebookLocation, scope: str, secret: Manifest | None) -> RepositoryCredential:
    """Read a Secret with `ssh-privatekey`, or `username` and `password` or `token`; only for the job's namespace."""
    secret_text = f"Secret {scope}"
    if secret is None:
        raise UserError("not found; create it, or correct credentialsSecret", where=secret_text)
    try:
        values = {key: base64.b64decode(text).decode() for key, text in (secret.get("data") or {}).items()}
    except (binascii.Error, UnicodeDecodeError):
        raise UserError("contains a value that is not text; correct it", where=secret_text) from None
    url, key = parse_url(location.url), values.get("ssh-privatekey", "")
    password = (values.get("password") or values.get("token") or "").strip()
    if not key and not (values.get("username") and password):
        raise UserError(
            "has neither ssh-privatekey nor username with password or token; add one of them", where=secret_text
        )
    return RepositoryCredential(
        url=url, secret=scope, project=scope, username=values.get("username", "").strip(), password=password,
        ssh_key=key,
    )  # fmt: skip


def export_tree(tree: FileTree, folder: Path) -> None:
    """Write all files of a tree. Raises LimitError if there are too many."""
    _TreeExport(tree, folder).export_folder("", 0)


class _TreeExport:
    def __init__(self, tree: FileTree, folder: Path) -> None:
        self._tree, self._folder, self._files, self._bytes = tree, folder, 0, 0

    def export_folder(self, path: str, depth: int) -> None:
        if depth > MAX_FOLDER_DEPTH:
            raise LimitError(f"folders are nested more than {MAX_FOLDER_DEPTH} levels deep; flatten them", where=path)
        (self._folder / path).mkdir(exist_ok=True)
        for entry in self._tree.list_folder(path):
            inner = f"{path}/{entry.name}" if path else entry.name
            if entry.name in ("", ".", "..") or "/" in entry.name:
                raise SourceError("is not a valid file name", where=inner)
            if entry.kind == "folder":
                self.export_folder(inner, depth + 1)
            elif entry.kind == "link":
                self._create_link(inner)
            else:
                self._write(inner)

    def _write(self, path: str) -> None:
        data = self._tree.read_file(path)
        self._files, self._bytes = self._files + 1, self._bytes + len(data)
        if self._files > MAX_FILES or self._bytes > MAX_TOTAL_BYTES:
            raise LimitError(
                f"the repository has more than {MAX_FILES} files or {MAX_TOTAL_BYTES >> 20} MiB", where=path
            )
        mode = 0o755 if data.startswith(b"#!") else 0o644  # a tree does not store the executable bit
        with open(os.open(self._folder / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)

    def _create_link(self, path: str) -> None:
        """Create the link unless it points outside of the tree; nothing would be there."""
        target = os.fsdecode(self._tree.read_file(path))
        parts = [part for part in target.split("/") if part not in ("", ".")]
        parent_steps = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
        if not target.startswith("/") and parent_steps <= path.count("/") and ".." not in parts[parent_steps:]:
            os.symlink(target, self._folder / path)


def find_exported_file(folder: Path, path: str, field_name: str) -> Path:
    """Path of a file in an exported tree. Raises UserError if it does not exist."""
    parts = Path(path).parts
    file = folder / path
    if path.startswith("/") or ".." in parts or not file.is_file():
        raise UserError(f"file {path} not found at this revision; correct {field_name}", where=path)
    return file


def decode_data(manifest: Mapping[str, object]) -> dict[str, bytes]:
    """Decoded data of a ConfigMap or Secret."""
    plain_data = manifest.get("data") if manifest.get("kind") != "Secret" else {}
    encoded_data = manifest.get("data") if manifest.get("kind") == "Secret" else manifest.get("binaryData")
    values = {str(key): str(text).encode() for key, text in (plain_data or {}).items()}  # type: ignore[attr-defined]
    return values | {str(key): base64.b64decode(text) for key, text in (encoded_data or {}).items()}  # type: ignore[attr-defined]

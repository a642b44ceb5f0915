"""Passes a credential to git for one call.

In: a URL, a credential, trusted hosts and authorities. Out: settings and an environment for git. Never: uses an
argument, a shell, or a file that other users can read or that stays on disk.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from argosy.gitops.application.repository_url_parser import RepositoryUrl
from argosy.gitops.source.credentials import HostTrust, RepositoryCredential

DEFAULT_USERNAME = "x-access-token"  # argo: the username for a password without one
_FOLDER_PREFIX: Final = "access-"
_MIN_STALE_AGE_SECONDS: Final = 60


class GitAccess(NamedTuple):
    config: dict[str, str]
    env: dict[str, str]
    secret_values: tuple[str, ...]  # to redact from git's output


@contextlib.contextmanager
def prepare_access(
    folder: Path, url: RepositoryUrl, credential: RepositoryCredential | None, trust: HostTrust
) -> Iterator[GitAccess]:
    """Yield git's access settings. Keys and certificates are in a private temporary folder until the call ends."""
    with private_folder(folder) as files:
        env = {"GIT_ALLOW_PROTOCOL": url.scheme}
        config: dict[str, str] = {}
        secrets = credential.secret_values if credential else ()
        if url.scheme in ("https", "http"):
            header = _authorization_header(credential)
            config = _build_http_config(files, url, credential, trust, header)
            secrets += (header.rpartition(" ")[2],) if header else ()
            if credential and credential.no_proxy:
                env |= {"no_proxy": credential.no_proxy, "NO_PROXY": credential.no_proxy}
        elif url.scheme == "ssh":
            env |= {"GIT_SSH": str(_write_ssh_program(files, credential, trust)), "GIT_SSH_VARIANT": "ssh"}
        yield GitAccess(config, env, tuple(secret for secret in secrets if secret))


@contextlib.contextmanager
def private_folder(parent: Path) -> Iterator[Path]:
    _delete_stale_folders(parent)
    with tempfile.TemporaryDirectory(prefix=_FOLDER_PREFIX, dir=parent) as name:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(descriptor)


def _delete_stale_folders(parent: Path) -> None:
    """Delete folders that a killed process left behind: unlocked, and too old to be still in creation."""
    for folder in parent.glob(f"{_FOLDER_PREFIX}*"):
        with contextlib.suppress(OSError):
            if abs(time.time() - folder.lstat().st_mtime) < _MIN_STALE_AGE_SECONDS:
                continue
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def _authorization_header(credential: RepositoryCredential | None) -> str:
    if credential and credential.bearer_token and not credential.password:
        return f"Authorization: Bearer {credential.bearer_token}"
    if not credential or not (credential.username or credential.password):
        return ""
    pair = f"{credential.username or DEFAULT_USERNAME}:{credential.password}".encode()
    return f"Authorization: Basic {base64.b64encode(pair).decode()}"


def _build_http_config(
    files: Path, url: RepositoryUrl, credential: RepositoryCredential | None, trust: HostTrust, header: str
) -> dict[str, str]:
    config: dict[str, str] = {}
    if header:
        # For this host only: git matches the URL.
        config[f"http.{url.scheme}://{url.host}:{url.port}/.extraHeader"] = header
    authority = trust.authorities_by_host.get(url.host)
    if authority:
        config["http.sslCAInfo"] = str(write_private_file(files / "authority", authority))
    elif "SSL_CERT_FILE" in os.environ:
        config["http.sslCAInfo"] = os.environ["SSL_CERT_FILE"]
    if credential is None:
        return config
    if credential.client_certificate:
        config["http.sslCert"] = str(write_private_file(files / "certificate", credential.client_certificate))
        config["http.sslKey"] = str(write_private_file(files / "key", credential.client_key))
    if credential.proxy:
        config["http.proxy"] = credential.proxy
    if credential.skips_verification:
        config["http.sslVerify"] = "false"
    return config


def _write_ssh_program(files: Path, credential: RepositoryCredential | None, trust: HostTrust) -> Path:
    """Write a program that git calls as ssh: its #! line starts ssh with the same file as configuration.

    This needs no shell, ignores the user's ssh settings and agent, and puts only the host into the arguments.
    """
    key = (
        _quote_ssh_path(write_private_file(files / "key", credential.ssh_key))
        if credential and credential.ssh_key
        else "none"
    )
    known_hosts = _quote_ssh_path(write_private_file(files / "known_hosts", trust.known_hosts))
    lines = [
        f"#!{shutil.which('ssh') or '/usr/bin/ssh'} -F",
        "Host *",
        "User git",
        "BatchMode yes",
        "ConnectTimeout 10",
        "ServerAliveInterval 15",
        "IdentitiesOnly yes",
        "IdentityAgent none",
        f"IdentityFile {key}",
        f"UserKnownHostsFile {known_hosts}",
        f"StrictHostKeyChecking {'no' if credential and credential.skips_verification else 'yes'}",
        "UpdateHostKeys no",
        "PreferredAuthentications publickey",
        "ClearAllForwardings yes",
        "ForwardAgent no",
        "PermitLocalCommand no",
        "LogLevel ERROR",
    ]
    return write_private_file(files / "ssh", "\n".join(lines), mode=0o700)


def _quote_ssh_path(path: Path) -> str:
    return '"' + str(path).replace("%", "%%") + '"'


def write_private_file(path: Path, text: str, mode: int = 0o600) -> Path:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text if text.endswith("\n") else text + "\n")
    return path

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

from argosy.gitops.application.repository_url import RepositoryUrl
from argosy.gitops.source.credentials import Credential, Trust

USER_OF_TOKENS = "x-access-token"  # argo: the username for a password without one
_PREFIX: Final = "access-"
_MAKING_SECONDS: Final = 60


class Access(NamedTuple):
    config: dict[str, str]
    env: dict[str, str]
    secrets: tuple[str, ...]  # to redact from git's output


@contextlib.contextmanager
def access(folder: Path, url: RepositoryUrl, credential: Credential | None, trust: Trust) -> Iterator[Access]:
    """Yield git's access settings. Keys and certificates are in a private temporary folder until the call ends."""
    with _own_folder(folder) as files:
        env = {"GIT_ALLOW_PROTOCOL": url.scheme}
        config: dict[str, str] = {}
        secrets = credential.secrets if credential else ()
        if url.scheme in ("https", "http"):
            header = _authorization(credential)
            config = _http(files, url, credential, trust, header)
            secrets += (header.rpartition(" ")[2],) if header else ()
            if credential and credential.no_proxy:
                env |= {"no_proxy": credential.no_proxy, "NO_PROXY": credential.no_proxy}
        elif url.scheme == "ssh":
            env |= {"GIT_SSH": str(_ssh(files, credential, trust)), "GIT_SSH_VARIANT": "ssh"}
        yield Access(config, env, tuple(secret for secret in secrets if secret))


@contextlib.contextmanager
def _own_folder(above: Path) -> Iterator[Path]:
    _sweep(above)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=above) as name:
        held = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(held)


def _sweep(above: Path) -> None:
    """Delete folders that a killed process left behind: unlocked, and too old to be still in creation."""
    for each in above.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if abs(time.time() - each.lstat().st_mtime) < _MAKING_SECONDS:
                continue
            found = os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(each, ignore_errors=True)
            finally:
                os.close(found)


def _authorization(credential: Credential | None) -> str:
    if credential and credential.bearer_token and not credential.password:
        return f"Authorization: Bearer {credential.bearer_token}"
    if not credential or not (credential.username or credential.password):
        return ""
    pair = f"{credential.username or USER_OF_TOKENS}:{credential.password}".encode()
    return f"Authorization: Basic {base64.b64encode(pair).decode()}"


def _http(files: Path, url: RepositoryUrl, credential: Credential | None, trust: Trust, header: str) -> dict[str, str]:
    config: dict[str, str] = {}
    if header:
        # For this host only: git matches the URL.
        config[f"http.{url.scheme}://{url.host}:{url.port}/.extraHeader"] = header
    authority = trust.authorities.get(url.host)
    if authority:
        config["http.sslCAInfo"] = str(_write(files / "authority", authority))
    elif "SSL_CERT_FILE" in os.environ:
        config["http.sslCAInfo"] = os.environ["SSL_CERT_FILE"]
    if credential is None:
        return config
    if credential.client_certificate:
        config["http.sslCert"] = str(_write(files / "certificate", credential.client_certificate))
        config["http.sslKey"] = str(_write(files / "key", credential.client_key))
    if credential.proxy:
        config["http.proxy"] = credential.proxy
    if credential.skips_verification:
        config["http.sslVerify"] = "false"
    return config


def _ssh(files: Path, credential: Credential | None, trust: Trust) -> Path:
    """Write a program that git calls as ssh: its #! line starts ssh with the same file as configuration.

    This needs no shell, ignores the user's ssh settings and agent, and puts only the host into the arguments.
    """
    key = _quoted(_write(files / "key", credential.ssh_key)) if credential and credential.ssh_key else "none"
    known = _quoted(_write(files / "known_hosts", trust.known_hosts))
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
        f"UserKnownHostsFile {known}",
        f"StrictHostKeyChecking {'no' if credential and credential.skips_verification else 'yes'}",
        "UpdateHostKeys no",
        "PreferredAuthentications publickey",
        "ClearAllForwardings yes",
        "ForwardAgent no",
        "PermitLocalCommand no",
        "LogLevel ERROR",
    ]
    return _write(files / "ssh", "\n".join(lines), mode=0o700)


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("%", "%%") + '"'


def _write(path: Path, text: str, mode: int = 0o600) -> Path:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text if text.endswith("\n") else text + "\n")
    return path

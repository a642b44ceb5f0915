"""Git access for a plug-in's container, as Argo CD gives it: variables, and files in a folder that both see.

In: a URL's credential, trusted hosts. Out: variables that git and `argocd-git-ask-pass` understand. Never: a password
in a variable, except a bearer token; files after the block ends.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import AsyncIterator
from pathlib import Path

from argosy.gitops.application.repository_url_parser import RepositoryUrl
from argosy.gitops.source.credentials import HostTrust, RepositoryCredential
from argosy.gitops.source.git.ask_pass_server import AskPassCredential, serve_credential
from argosy.gitops.source.git.git_command_credentials import DEFAULT_USERNAME, private_folder, write_private_file


@contextlib.asynccontextmanager
async def open_plugin_access(
    folder: Path, url: RepositoryUrl, credential: RepositoryCredential | None, trust: HostTrust
) -> AsyncIterator[dict[str, str]]:
    """Yield the variables. `folder`: one that the plug-in's container mounts, too; a private one is created in it."""
    if credential is None or not credential.has_credentials:
        yield {}
        return
    with private_folder(folder) as files:
        if url.scheme == "ssh":
            yield _build_ssh_environment(files, credential, trust)
            return
        ask_pass = AskPassCredential(credential.username or DEFAULT_USERNAME, credential.password)
        socket = files / "ask-pass"
        async with serve_credential(socket, ask_pass):
            yield {
                **_build_http_environment(files, credential),
                "GIT_ASKPASS": "argocd",
                "ARGOCD_BINARY_NAME": "argocd-git-ask-pass",
                "ARGOCD_GIT_ASKPASS_NONCE": ask_pass.nonce,
                "ARGOCD_ASK_PASS_SOCK": str(socket),
                "GIT_TERMINAL_PROMPT": "0",
            }


def _build_http_environment(files: Path, credential: RepositoryCredential) -> dict[str, str]:
    environment = {}
    if credential.skips_verification:
        environment["GIT_SSL_NO_VERIFY"] = "true"
    if credential.client_certificate and credential.client_key:
        environment["GIT_SSL_CERT"] = str(write_private_file(files / "certificate", credential.client_certificate))
        environment["GIT_SSL_KEY"] = str(write_private_file(files / "key", credential.client_key))
    if credential.bearer_token and not credential.password:
        environment["ARGOCD_GIT_BEARER_AUTH_HEADER"] = f"Authorization: Bearer {credential.bearer_token}"
    return environment


def _build_ssh_environment(files: Path, credential: RepositoryCredential, trust: HostTrust) -> dict[str, str]:
    key = write_private_file(files / "key", credential.ssh_key)
    known_hosts, checking = "/dev/null", "no"
    if not credential.skips_verification:
        known_hosts, checking = str(write_private_file(files / "known_hosts", trust.known_hosts)), "yes"
    words = ["ssh", "-i", str(key), "-o", f"StrictHostKeyChecking={checking}"]
    return {"GIT_SSH_COMMAND": shlex.join([*words, "-o", f"UserKnownHostsFile={known_hosts}"])}

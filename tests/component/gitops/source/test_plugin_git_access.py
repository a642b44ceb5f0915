"""Git credentials for a plug-in in a sidecar: variables, files, and the service that tells the password."""

from __future__ import annotations

import asyncio
import shlex
import stat
import struct
import time
from pathlib import Path

import pytest

from argosy.gitops.application.repository_url_parser import parse_url
from argosy.gitops.source.credentials import HostTrust, RepositoryCredential
from argosy.gitops.source.git.ask_pass_server import METHOD
from argosy.gitops.source.git.plugin_git_access import open_plugin_access
from argosy.grpc_client.unix_socket_call import AnswerLimits, FailedCall, call_method
from argosy.kube.schema.protobuf_wire_format import encode_bytes_field, split_fields

HTTPS, SSH = parse_url("https://git.example.com/team/app.git"), parse_url("git@git.example.com:team/app.git")
TRUST = HostTrust("git.example.com ssh-ed25519 AAAA\n")


async def ask(socket: str, nonce: str, method: str = METHOD) -> tuple[str, ...]:
    limits = AnswerLimits(time.monotonic() + 60, 1 << 20)
    request = encode_bytes_field(1, nonce.encode())
    answer = await asyncio.to_thread(call_method, socket, method, [request], limits)
    return tuple(value.decode() for _, _, value in split_fields(answer) if isinstance(value, bytes))


async def test_service_gives_the_password_only_for_the_nonce(tmp_path: Path) -> None:
    credential = RepositoryCredential(HTTPS, "argocd/repo", username="ann", password="pa$s")
    async with open_plugin_access(tmp_path, HTTPS, credential, TRUST) as variables:
        assert "pa$s" not in repr(variables)
        assert (variables["GIT_ASKPASS"], variables["ARGOCD_BINARY_NAME"]) == ("argocd", "argocd-git-ask-pass")
        socket, nonce = variables["ARGOCD_ASK_PASS_SOCK"], variables["ARGOCD_GIT_ASKPASS_NONCE"]
        assert await ask(socket, nonce) == ("ann", "pa$s")
        for wrong in ("", "x", nonce[:-1]):
            with pytest.raises(FailedCall, match="unknown nonce"):
                await ask(socket, wrong)
        with pytest.raises(FailedCall, match="unknown method"):
            await ask(socket, nonce, "/askpass.AskPassService/Other")
    with pytest.raises(FailedCall):
        await ask(socket, nonce)
    assert not list(tmp_path.iterdir())


async def test_key_of_ssh_is_in_a_private_file_while_the_plugin_runs(tmp_path: Path) -> None:
    credential = RepositoryCredential(SSH, "argocd/repo", ssh_key="PRIVATE")
    async with open_plugin_access(tmp_path, SSH, credential, TRUST) as variables:
        words = shlex.split(variables["GIT_SSH_COMMAND"])
        key = Path(words[words.index("-i") + 1])
        assert (key.read_text(), stat.S_IMODE(key.stat().st_mode)) == ("PRIVATE\n", 0o600)
        assert "StrictHostKeyChecking=yes" in words
        known_hosts = next(word for word in words if word.startswith("UserKnownHostsFile="))
        assert Path(known_hosts.partition("=")[2]).read_text() == TRUST.known_hosts
    assert not list(tmp_path.iterdir())


async def test_repository_without_credentials_gives_no_variables(tmp_path: Path) -> None:
    for credential in (None, RepositoryCredential(HTTPS, "argocd/repo")):
        async with open_plugin_access(tmp_path, HTTPS, credential, TRUST) as variables:
            assert variables == {}


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100_000, struct.pack(">I", 7) * 50])
async def test_invalid_bytes_close_the_connection(tmp_path: Path, data: bytes) -> None:
    credential = RepositoryCredential(HTTPS, "argocd/repo", password="secret")
    async with open_plugin_access(tmp_path, HTTPS, credential, TRUST) as variables:
        reader, writer = await asyncio.open_unix_connection(variables["ARGOCD_ASK_PASS_SOCK"])
        writer.write(data)
        assert b"secret" not in await reader.read()
        writer.close()

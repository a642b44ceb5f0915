"""Repositories over SSH: a fake ssh program records its arguments and serves a local repository."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.gitops.source.credentials import HostTrust, read_credentials
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories

pytestmark = pytest.mark.anyio
Opened = Callable[..., Repositories]
SSH = """#!/bin/sh
printf '%s\\n' "$@" > {seen}/argv
cat "$2" "$(dirname "$2")/key" "$(dirname "$2")/known_hosts" > {seen}/settings
for command; do :; done
exec sh -c "$command"
"""


async def test_ssh_gets_key_and_known_hosts_by_file_and_not_by_argument(
    repository, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit({"a": "1"})
    (tmp_path / "ssh").write_text(SSH.format(seen=tmp_path))
    (tmp_path / "ssh").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    url = f"ssh://deploy@git.example:2222{repository.path}"
    labels = {"argocd.argoproj.io/secret-type": "repo-creds"}
    data = {"url": "ssh://deploy@git.example:2222/", "sshPrivateKey": "THE-KEY"}
    credentials = read_credentials([{"metadata": {"name": "s", "labels": labels}, "stringData": data}])
    trust = HostTrust(known_hosts="git.example ssh-ed25519 AAAA")
    repositories = opened(SourceSettings(), credentials=credentials, trust=trust)
    assert (await repositories.checkout(url, "main")).revision == commit
    argv, settings = (tmp_path / "argv").read_text().splitlines(), (tmp_path / "settings").read_text()
    assert argv[0] == "-F" and "deploy@git.example" in argv and "2222" in " ".join(argv)
    assert "THE-KEY" not in " ".join(argv)
    assert "THE-KEY" in settings and "git.example ssh-ed25519 AAAA" in settings
    assert "StrictHostKeyChecking yes" in settings

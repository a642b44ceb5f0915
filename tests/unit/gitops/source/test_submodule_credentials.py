"""Whose credentials a submodule is fetched with."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.gitops.source.credentials import read_credentials
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories

PARENT = "https://git.example/org/app"
SSH_PARENT = "git@git.example:org/app"


def open_repositories(folder: Path) -> Repositories:
    secrets = [
        {
            "metadata": {"name": name, "labels": {"argocd.argoproj.io/secret-type": "repository"}},
            "stringData": {"url": url, "project": project, **fields},
        }
        for name, url, project, fields in (
            ("parent", PARENT, "", {"password": "p"}),
            ("own", "https://git.example/org/own", "", {"password": "o"}),
            ("without", "https://git.example/org/without", "", {"insecure": "true"}),
            ("other-project", "https://git.example/org/theirs", "others", {"password": "t"}),
            ("ssh", SSH_PARENT, "", {"sshPrivateKey": "key"}),
        )
    ]
    settings = SourceSettings(protocols=frozenset({"http", "https", "ssh"}))
    return Repositories(folder, settings, read_credentials(secrets))


@pytest.mark.parametrize(
    ("url", "parent", "secret"),
    [
        ("https://git.example/org/own", PARENT, "own"),
        ("https://git.example/org/lib", PARENT, "parent"),
        ("https://git.example/org/without", PARENT, "parent"),
        ("https://git.example/org/theirs", PARENT, "parent"),
        ("https://GIT.example:443/org/lib", PARENT, "parent"),
        ("https://git.example:8443/org/lib", PARENT, ""),
        ("http://git.example/org/lib", PARENT, ""),
        ("https://evil.example/org/lib", PARENT, ""),
        ("https://git.example.evil.example/org/lib", PARENT, ""),
        ("https://git.example/org/lib", "https://git.example/org/theirs", ""),
        ("ssh://git@git.example/org/lib", SSH_PARENT, "ssh"),
        ("ssh://root@git.example/org/lib", SSH_PARENT, ""),
        ("https://git.example/org/lib", SSH_PARENT, ""),
        ("https://git.example/org/lib", "", ""),
    ],
)
def test_credentials_of_the_parent_are_used_on_its_own_host_only(
    tmp_path: Path, url: str, parent: str, secret: str
) -> None:
    credential = open_repositories(tmp_path).mirror(url, project="team", parent_url=parent).remote.credential
    assert (credential.secret if credential else "") == secret


def test_repository_does_not_reuse_what_was_fetched_with_credentials_of_a_parent(tmp_path: Path) -> None:
    repositories = open_repositories(tmp_path)
    url = "https://git.example/org/lib"
    as_submodule = repositories.mirror(url, project="team", parent_url=PARENT)
    assert repositories.mirror(url, project="team").folder != as_submodule.folder

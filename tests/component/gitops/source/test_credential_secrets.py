"""Credentials from Argo CD repository Secrets: matching by URL and project, redaction and access files."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import SourceRefused
from argosy.gitops.application.repository_url_parser import parse_url
from argosy.gitops.source.credentials import HostTrust, find_credential, read_credentials
from argosy.gitops.source.git.git_command_credentials import prepare_access

PASSWORD = "hunter22-very-secret"


def secret(name: str, kind: str = "repository", **fields: str) -> dict[str, Any]:
    labels = {"argocd.argoproj.io/secret-type": kind}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in fields.items()}
    return {"kind": "Secret", "metadata": {"name": name, "namespace": "argocd", "labels": labels}, "data": data}


SECRETS = [
    secret("org", "repo-creds", url="https://github.com/org", username="org", password=PASSWORD),
    secret("team", "repo-creds", url="https://github.com/org/team", username="team", password=PASSWORD),
    secret("own", url="https://github.com/org/own.git", username="own", password=PASSWORD),
    secret("bare", url="https://github.com/org/bare"),
    secret("project", url="https://github.com/org/own", project="ml", username="ml", password=PASSWORD),
    secret("ssh", "repo-creds", url="git@github.com:org", sshPrivateKey="key"),
    secret("helm", url="https://github.com/org/chart", type="helm", username="helm", password=PASSWORD),
    secret("cluster", "cluster", url="https://github.com/org/own", username="no", password=PASSWORD),
    secret("elsewhere", "repo-creds", url="https://git.example.com", username="elsewhere", password=PASSWORD),
]

MATCHES = [
    ("https://github.com/org/any", "", "org"),
    ("https://github.com/ORG/any.git", "", "org"),
    ("https://github.com/organisation/any", "", None),
    ("https://github.com/org/team/any", "", "team"),
    ("https://github.com/org/teams", "", "org"),
    ("https://github.com/org/own", "", "own"),
    ("https://github.com/org/own", "other", "own"),
    ("https://github.com/org/own", "ml", "project"),
    ("https://github.com/org/bare", "", "org"),
    ("https://github.com/org/chart", "", "org"),
    ("https://github.com.evil.example/org/own", "", None),
    ("http://github.com/org/own", "", None),
    ("https://github.com:8443/org/own", "", None),
    ("ssh://git@github.com/org/any", "", "ssh"),
    ("git@github.com:org/any", "", "ssh"),
    ("git@github.com:organisation/any", "", None),
    ("https://git.example.com/deep/er/repo", "", "elsewhere"),
]


@pytest.mark.parametrize(("url", "project", "name"), MATCHES)
def test_find_credential_prefers_the_most_specific_secret(url: str, project: str, name: str | None) -> None:
    credential = find_credential(read_credentials(SECRETS), parse_url(url), project)
    assert (credential.secret if credential else None) == (f"argocd/{name}" if name else None)


BROKEN = [
    ({"password": "%%%" + PASSWORD}, "field password is not base64"),
    ({"password": None}, None),
    ({"password": 7}, "field password is not base64"),
    ({"password": base64.b64encode(b"\xff\xfe").decode()}, "field password is not base64"),
    (
        {"password": base64.b64encode(b"a\nHost: evil" + PASSWORD.encode()).decode()},
        "field password contains a line break",
    ),
    ({"githubAppPrivateKey": base64.b64encode(PASSWORD.encode()).decode()}, "a GitHub App is not supported yet"),
]


@pytest.mark.parametrize(("data", "said"), BROKEN)
def test_invalid_secret_raises_an_error_that_names_it(data: dict[str, Any], said: str | None) -> None:
    broken = secret("own", url="https://github.com/org/own")
    broken["data"] |= data
    credentials = read_credentials([broken, SECRETS[0]])
    url = parse_url("https://github.com/org/own")
    if said is None:
        assert find_credential(credentials, url).secret == "argocd/org"  # type: ignore[union-attr]
        return
    with pytest.raises(SourceRefused, match=said) as caught:
        find_credential(credentials, url)
    assert "Secret argocd/own" in str(caught.value)
    assert PASSWORD not in str(caught.value)


def test_credential_repr_contains_no_secret_values() -> None:
    fields = ("password", "bearerToken", "sshPrivateKey", "tlsClientCertKey", "tlsClientCertData", "proxy")
    credentials = read_credentials([secret("x", url="https://h/x", **dict.fromkeys(fields, PASSWORD))])
    assert PASSWORD not in repr(credentials) + str(credentials)


def test_access_files_are_private_and_removed_after_use(tmp_path: Path) -> None:
    credential = read_credentials([secret("x", url="ssh://host/x", sshPrivateKey="KEY")])[0]
    with prepare_access(
        tmp_path, parse_url("ssh://host/x"), credential, HostTrust(known_hosts="host ssh-ed25519 AAAA")
    ) as access:
        folder = Path(access.env["GIT_SSH"]).parent
        assert folder.stat().st_mode & 0o077 == 0
        assert (folder / "key").read_text() == "KEY\n"
        assert (folder / "key").stat().st_mode & 0o177 == 0
    assert list(tmp_path.iterdir()) == []


def test_next_access_removes_stale_folders_and_keeps_those_in_use(tmp_path: Path) -> None:
    url, long_ago = parse_url("ssh://host/x"), 1_000_000_000
    left = tmp_path / "access-left"
    left.mkdir()
    (left / "key").write_text("KEY")
    with prepare_access(tmp_path, url, None, HostTrust()) as access:
        assert left.exists()  # another process may still be creating it
        used = Path(access.env["GIT_SSH"]).parent
        for folder in (left, used):
            os.utime(folder, (long_ago, long_ago))
        with prepare_access(tmp_path, url, None, HostTrust()):
            assert used.exists() and not left.exists()


@pytest.mark.skipif(not Path("/usr/bin/ssh").exists(), reason="ssh is not installed")
def test_ssh_runs_with_argosy_settings_only(tmp_path: Path) -> None:
    """GIT_SSH is a `#!ssh -F` script that is its own ssh config file; `ssh -G` prints the resulting settings."""
    odd = tmp_path / "with space %h"
    odd.mkdir()
    credential = read_credentials([secret("x", url="ssh://host/x", sshPrivateKey="KEY")])[0]
    with prepare_access(
        odd, parse_url("ssh://host/x"), credential, HostTrust(known_hosts="host ssh-ed25519 AAAA")
    ) as access:
        program = access.env["GIT_SSH"]
        printed = subprocess.run([program, "-G", "host"], capture_output=True, text=True, check=True).stdout
        settings = dict(line.split(" ", 1) for line in printed.splitlines())
        assert settings["identityfile"].replace("%%", "%").strip('"') == str(Path(program).parent / "key")
    assert settings["user"] == "git"
    assert settings["batchmode"] == "yes" and settings["stricthostkeychecking"] in ("true", "yes")
    assert settings["identitiesonly"] == "yes" and settings["identityagent"] == "none"


def test_insecure_disables_tls_verification_only_for_its_secret(tmp_path: Path) -> None:
    url = parse_url("https://host/x")
    trusting = read_credentials([secret("x", url="https://host/x", insecure="true")])[0]
    strict = read_credentials([secret("x", url="https://host/x", username="u", password="p")])[0]
    with prepare_access(tmp_path, url, trusting, HostTrust()) as access:
        assert access.config["http.sslVerify"] == "false"
    with prepare_access(tmp_path, url, strict, HostTrust(authorities_by_host={"host": "PEM"})) as access:
        assert "http.sslVerify" not in access.config
        assert Path(access.config["http.sslCAInfo"]).read_text() == "PEM\n"
        assert [key for key in access.config if key.endswith("extraHeader")] == ["http.https://host:443/.extraHeader"]

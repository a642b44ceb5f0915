"""Repository and cluster Secrets: redaction, kept credentials and validation; certificates and GPG keys."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.features.clusters import service
from argosy.features.repositories import service as repositories
from argosy.features.repositories.certificates import CertificateFilter, RepositoryCertificate, read_certificates
from argosy.features.repositories.connection_test import ConnectionState
from argosy.features.repositories.openpgp import read_keys
from argosy.features.repositories.service import CREDENTIALS, REPOSITORIES
from argosy.gitops.application.repository_url_parser import is_same_repository
from argosy.gitops.application_client.argocd_secrets_and_config_maps import (
    DeclaredSecret,
    build_secret_name,
    decode_live_secret,
)
from argosy.gitops.source.credentials import read_credentials
from support.sample_keys import AUTHORITY, HOST_KEY, KEY

URL = "https://git.example.com/team/app"


def secret(kind: str, **values: str) -> dict[str, Any]:
    data = {key: base64.b64encode(text.encode()).decode() for key, text in values.items()}
    labels = {"argocd.argoproj.io/secret-type": kind, "env": "dev"}
    return {"metadata": {"name": "one", "namespace": "argocd", "labels": labels}, "data": data}


def declared(kind: str = "repository", **values: str) -> DeclaredSecret:
    return decode_live_secret(secret(kind, **values))


def test_secret_names_equal_those_of_argo_cd() -> None:
    # 32-bit FNV-1a; the value for "hello" is from its reference
    assert build_secret_name("repo", "hello") == "repo-1335831723"
    assert build_secret_name("repo", "he", "llo") == "repo-1335831723"


@pytest.mark.parametrize("shelf", [REPOSITORIES, CREDENTIALS])
def test_repository_response_contains_no_secret_values(shelf: repositories.RepositorySecretType) -> None:
    secrets = {key: f"canary-{key}" for key in repositories.SECRET_KEYS}
    wire = repositories.repository_to_wire(
        declared(url=URL, username="ann", proxy="http://u:canary-p@proxy:80", **secrets), shelf
    )
    assert "canary" not in json.dumps(wire)
    assert wire[shelf.address_field] == URL and wire["username"] == "ann" and wire["proxy"] == "http://proxy:80"


def test_credential_fields_of_repositories_are_marked_as_secret() -> None:
    hidden = {field.wire_name for shelf in (REPOSITORIES, CREDENTIALS) for field in shelf.fields if field.is_secret}
    assert hidden >= {"password", "bearerToken", "sshPrivateKey", "tlsClientCertKey", "githubAppPrivateKey"}


def test_credentials_are_kept_if_no_new_ones_are_given() -> None:
    before = declared(url=URL, username="ann", password="canary")
    assert repositories.keep_secrets(before, {"url": URL, "username": "ann", "name": "x"})["password"] == "canary"


@pytest.mark.parametrize(
    "change", [{"proxy": "http://elsewhere:80"}, {"insecure": "true"}, {"type": "helm"}, {"url": URL + "-other"}]
)
def test_credentials_are_dropped_if_url_type_proxy_or_insecure_changes(change: dict[str, str]) -> None:
    before = declared(url=URL, type="git", username="ann", password="canary")
    after = repositories.keep_secrets(before, {"url": URL, "type": "git", "username": "ann", **change})
    assert "password" not in after


def test_password_is_dropped_with_its_user() -> None:
    before = declared(url=URL, username="ann", password="canary")
    assert repositories.keep_secrets(before, {"url": URL}) == {"url": URL}


@pytest.mark.parametrize(
    ("own", "is_inherited"), [({}, True), ({"username": "ann", "password": "x"}, False), ({"insecure": "true"}, True)]
)
def test_repository_without_credentials_inherits_those_of_a_template(own: dict[str, str], is_inherited: bool) -> None:
    template = secret("repo-creds", url="https://git.example.com/team", githubAppPrivateKey="key")
    unrelated = secret("repo-creds", url="https://git.example.com/other", password="x")
    secrets = [secret("repository", url=URL, **own), template]
    repository = declared(url=URL, **own)
    assert repositories.has_inherited_credentials(repository, read_credentials(secrets)) is is_inherited
    assert not repositories.has_inherited_credentials(repository, read_credentials([*secrets[:1], unrelated]))


def test_new_credentials_replace_all_old_ones() -> None:
    before = declared(url=URL, username="ann", password="old", tlsClientCertKey="old")
    assert repositories.keep_secrets(before, {"url": URL, "password": "new"}) == {"url": URL, "password": "new"}


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({}, "repo is required"),
        ({"repo": 5}, "must be a string"),
        ({"repo": URL, "insecure": "yes"}, "true or false"),
        ({"repo": URL, "type": "svn"}, "git, helm or oci"),
        ({"repo": "https://ann:canary@git.example.com/x"}, "password"),
        ({"repo": "file://host/x"}, "host"),
        ({"repo": "a b", "enableOCI": True}, "registry"),
    ],
)
def test_invalid_repository_values_are_rejected(values: dict[str, Any], word: str) -> None:
    with pytest.raises(UserError, match=word) as error:
        repositories.read_values(values, REPOSITORIES)
    assert "canary" not in str(error.value)


def test_repository_urls_are_equal_regardless_of_case_and_git_suffix() -> None:
    assert is_same_repository(URL, URL + ".git") and is_same_repository(URL, URL.upper().replace("HTTPS", "https"))
    assert not is_same_repository(URL, URL + "-other")


# -- clusters ----------------------------------------------------------------------------------------------------

CONFIG = {
    "bearerToken": "canary-token",
    "password": "canary-password",
    "username": "ann",
    "tlsClientConfig": {"insecure": False, "keyData": "canary-key", "certData": "canary-cert", "caData": "canary-ca"},
    "execProviderConfig": {"command": "aws", "args": ["canary-arg"], "env": {"A": "canary-env"}},
    "awsAuthConfig": {"clusterName": "prod", "profile": "canary-profile"},
}


def cluster_secret(**values: str) -> DeclaredSecret:
    fields = {"server": "https://prod:6443", "name": "prod", "config": json.dumps(CONFIG), **values}
    return declared("cluster", **fields)


def test_cluster_response_contains_no_credentials() -> None:
    wire = service.cluster_to_wire(cluster_secret(project="team"), ConnectionState("Unknown"), "", (), 3)
    assert "canary" not in json.dumps(wire)
    assert wire["config"]["execProviderConfig"] == {"command": "aws"} and wire["config"]["username"] == "ann"
    assert wire["info"]["applicationsCount"] == 3 and wire["labels"] == {"env": "dev"}


@pytest.mark.parametrize("config", ["no json", "[]", '{"tlsClientConfig": 5, "execProviderConfig": []}', ""])
def test_cluster_response_accepts_a_malformed_config(config: str) -> None:
    wire = service.cluster_to_wire(cluster_secret(config=config), ConnectionState("Unknown"), "", (), 0)
    assert wire["config"]["tlsClientConfig"] == {"insecure": False}


def test_cluster_update_without_credentials_keeps_the_old_ones() -> None:
    merged_config = json.loads(service._merge_credentials(cluster_secret(), '{"tlsClientConfig": {"insecure": false}}'))
    assert (
        merged_config["bearerToken"] == "canary-token" and merged_config["tlsClientConfig"]["keyData"] == "canary-key"
    )


@pytest.mark.parametrize("tls", [{"insecure": True}, {"serverName": "other"}, {"caData": "other"}])
def test_cluster_update_with_other_tls_verification_drops_credentials(tls: dict[str, Any]) -> None:
    merged_config = service._merge_credentials(cluster_secret(), json.dumps({"tlsClientConfig": tls}))
    assert "canary-token" not in merged_config and "canary-key" not in merged_config


@pytest.mark.parametrize(
    "server", ["", "prod", "https://ann:canary@prod", "ftp://prod", "https://prod?x=1", "https://[::1"]
)
def test_invalid_cluster_server_is_rejected(server: str) -> None:
    with pytest.raises(UserError, match="server") as error:
        service.read_values({"server": server})
    assert "canary" not in str(error.value)


# -- certificates and keys ---------------------------------------------------------------------------------------


def sent(kind: str, data: str, host: str = "git.example.com", subtype: str = "ssh-ed25519") -> dict[str, Any]:
    encoded = base64.b64encode(data.encode()).decode()
    return {"items": [{"serverName": host, "certType": kind, "certSubType": subtype, "certData": encoded}]}


def test_ssh_host_key_has_a_sha256_fingerprint() -> None:
    (certificate,) = read_certificates(sent("ssh", HOST_KEY))
    assert certificate.info.startswith("SHA256:") and len(certificate.info) == 50


def test_https_certificate_has_its_algorithm_and_subject() -> None:
    (certificate,) = read_certificates(sent("https", AUTHORITY))
    assert (certificate.subtype, certificate.info) == ("ecdsa", "CN=git.example.com")


@pytest.mark.parametrize(
    "document",
    [
        None,
        {"items": []},
        {"items": [5]},
        {"items": [{"serverName": 5}]},
        sent("ssh", "not base64!"),
        sent("ssh", HOST_KEY, subtype="nonsense"),
        sent("ssh", HOST_KEY, host="two hosts"),
        sent("ssh", HOST_KEY + "\nevil ssh-rsa AAAA"),
        sent("https", "no pem"),
        sent("https", AUTHORITY.replace("MIIB", "AAAA")),
        sent("https", AUTHORITY, host="../../etc"),
        sent("gpg", HOST_KEY),
        {"items": [{"serverName": "a", "certType": "ssh", "certSubType": "ssh-rsa", "certData": "%%%"}]},
    ],
)
def test_invalid_certificates_are_rejected(document: Any) -> None:
    with pytest.raises(UserError):
        read_certificates(document)


def test_certificate_filter_matches_host_globs_and_types() -> None:
    one = RepositoryCertificate("git.example.com", "ssh", "ssh-rsa", "x")
    assert CertificateFilter("*.example.com").matches_certificate(one) and CertificateFilter(
        type="ssh"
    ).matches_certificate(one)
    assert not CertificateFilter("other").matches_certificate(one) and not CertificateFilter(
        type="https"
    ).matches_certificate(one)


def test_public_key_has_fingerprint_owner_and_algorithm() -> None:
    (public_key,) = read_keys(KEY)
    assert public_key.fingerprint == "7A67FD9E71A1D1BB7260DBBC18381E5CA4728E1E" and public_key.id == "18381E5CA4728E1E"
    assert (public_key.owner, public_key.algorithm) == ("Ann Example <ann@example.com>", "eddsa")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        KEY.replace("PUBLIC", "PRIVATE"),
        KEY.replace("mDME", "AAAA"),
        "\n".join(KEY.splitlines()[:4] + KEY.splitlines()[-1:]),
        KEY.replace("mDME", "////"),
        "x" * 300_000,
    ],
)
def test_invalid_public_keys_are_rejected(text: str) -> None:
    with pytest.raises(UserError):
        read_keys(text)

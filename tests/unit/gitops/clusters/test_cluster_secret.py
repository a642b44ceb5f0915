"""Argo CD cluster Secrets: server, credentials, TLS, exec plug-ins and proxies of the connection built from them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.gitops.clusters.cluster_secret import build_connection, read_secret_values
from argosy.kube.client.connection_settings import Connection

PEM = base64.b64encode(b"-----BEGIN-----").decode()


def read(server: str = "https://far.example/", **config: Any) -> Connection:
    return build_connection({"server": server, "name": "far", "config": json.dumps(config)})


def test_cluster_secret_with_bearer_token_ca_and_server_name() -> None:
    connection = read(bearerToken="t", tlsClientConfig={"caData": PEM, "serverName": "inner"}, proxyUrl="http://p:1")
    assert (connection.server, connection.name, connection.token) == ("https://far.example", "far", "t")
    assert (connection.ca_data, connection.tls_server_name, connection.proxy_url) == (
        b"-----BEGIN-----",
        "inner",
        "http://p:1",
    )
    assert not connection.insecure and connection.compressed


def test_cluster_secret_with_client_certificate_password_and_insecure_tls() -> None:
    connection = read(
        username="u", password="p", disableCompression=True,
        tlsClientConfig={"insecure": True, "certData": PEM, "keyData": PEM},
    )  # fmt: skip
    assert (connection.username, connection.password, connection.cert_data, connection.key_data) == (
        "u",
        "p",
        *[b"-----BEGIN-----"] * 2,
    )
    assert connection.insecure and not connection.compressed


def test_exec_plugin_is_read_if_its_command_is_allowed() -> None:
    program = {"command": "aws", "args": ["eks", "get-token"], "env": {"AWS_PROFILE": "x"}, "installHint": "get it"}
    plugin = read(execProviderConfig=program).exec_plugin
    assert plugin is not None and plugin.interactive_mode == "Never" and plugin.install_hint == "get it"
    assert (plugin.command, plugin.args, dict(plugin.env)) == ("aws", ("eks", "get-token"), {"AWS_PROFILE": "x"})
    assert plugin.api_version == "client.authentication.k8s.io/v1beta1"
    own = {"server": "https://far.example", "config": json.dumps({"execProviderConfig": {"command": "own"}})}
    assert build_connection(own, {"own"}).exec_plugin is not None


def test_aws_auth_config_uses_argocd_k8s_auth() -> None:
    plugin = read(awsAuthConfig={"clusterName": "c", "roleARN": "r", "profile": "p"}, bearerToken="t").exec_plugin
    assert plugin is not None and plugin.command == "argocd-k8s-auth"
    assert plugin.args == ("aws", "--cluster-name", "c", "--role-arn", "r", "--profile", "p")


def test_credentials_are_dropped_for_plain_http() -> None:
    connection = read("http://far.example", bearerToken="t", tlsClientConfig={"certData": PEM})
    assert (connection.token, connection.cert_data) == ("", b"")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"execProviderConfig": {"command": "/tmp/x"}}, "'/tmp/x' is not allowed; allowed are argocd-k8s-auth"),
        ({"execProviderConfig": {"command": "aws", "env": {"LD_PRELOAD": "/x"}}}, "env sets LD_PRELOAD"),
        ({"execProviderConfig": {"command": "aws", "env": {"PATH": "/x"}}}, "env sets PATH"),
        ({"execProviderConfig": {"command": "aws", "apiVersion": "v9"}}, "apiVersion 'v9' is not supported"),
        ({"tlsClientConfig": {"caData": "%%"}}, "tlsClientConfig.caData is not base64"),
        ({"tlsClientConfig": {"caData": PEM, "insecure": True}}, "with the insecure flag is not allowed"),
        ({"tlsClientConfig": []}, "config.tlsClientConfig must be a map"),
        ({"tlsClientConfig": {"insecure": "yes"}}, "config.tlsClientConfig.insecure must be true or false"),
        ({"execProviderConfig": {"command": "aws", "args": 5}}, "config.execProviderConfig.args must be a list"),
        ({"execProviderConfig": {"command": "aws", "args": [5]}}, "args must be a list of strings"),
        ({"execProviderConfig": {"command": "aws", "env": []}}, "config.execProviderConfig.env must be a map"),
        ({"execProviderConfig": "aws"}, "config.execProviderConfig must be a map"),
        ({"awsAuthConfig": {"clusterName": 1}}, "config.awsAuthConfig.clusterName must be a string, not a number"),
        ({"password": 1234}, "config.password must be a string, not a number"),
        ({"username": "hidden\n"}, "config.username contains a line break"),
        ({"proxyUrl": "http://hidden:hidden@[bad"}, "config.proxyUrl is not a valid address"),
    ],
)
def test_invalid_config_is_an_error_with_the_cluster_and_without_secrets(config: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as error_info:
        read(bearerToken="hidden", **config)
    assert (
        words in str(error_info.value)
        and "cluster far" in str(error_info.value)
        and "hidden" not in str(error_info.value)
    )


@pytest.mark.parametrize("config", ["{", "[]", "1"])
def test_config_that_is_not_a_json_object_is_an_error(config: str) -> None:
    with pytest.raises(UserError, match="write it as Argo CD does"):
        build_connection({"server": "https://x", "config": config})


@pytest.mark.parametrize("server", ["", "far", "https://[bad", "https://far:port", "ftp://far", "https://u:p@far"])
def test_invalid_server_url_is_an_error(server: str) -> None:
    with pytest.raises(UserError, match=r"^cluster far: server ") as error_info:
        read(server)
    assert "u:p" not in str(error_info.value)


def test_secret_values_that_are_not_text_are_errors_and_other_keys_are_ignored() -> None:
    name, other = base64.b64encode(b" far ").decode(), base64.b64encode(b"\xff").decode()
    values = read_secret_values({"data": {"name": name, "server": None, "logo": other}})
    assert values == {"name": "far", "server": "", "config": ""}
    for wrong in ("\u20ac", other):
        with pytest.raises(UserError, match=r"^cluster far: config is not base64-encoded text"):
            read_secret_values({"data": {"name": name, "config": wrong}})

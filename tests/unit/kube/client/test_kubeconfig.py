"""Kubeconfig files: merged into one connection as by kubectl, and their errors."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from argosy.errors import UserError
from argosy.kube.client import User, connection_settings
from argosy.kube.client.connection_settings import load_in_cluster_connection
from argosy.kube.client.kubeconfig import list_contexts, load_kubeconfig

ONE = """
apiVersion: v1
kind: Config
current-context: dev
contexts:
- {name: dev, context: {cluster: dev, user: jane, namespace: ml}}
- {name: lost, context: {cluster: nowhere, user: jane}}
clusters:
- {name: dev, cluster: {server: "https://dev.example:6443/", certificate-authority: pki/ca.crt}}
users:
- {name: jane, user: {token: from-one, client-certificate: jane.crt, client-key: /abs/jane.key}}
"""
TWO = """
current-context: prod
contexts:
- {name: prod, context: {cluster: prod, user: robot}}
clusters:
- {name: dev, cluster: {server: "https://other.example"}}
- name: prod
  cluster: {server: "https://prod.example", insecure-skip-tls-verify: true, tls-server-name: api.prod,
            proxy-url: "http://proxy.example:3128", disable-compression: true}
users:
- {name: jane, user: {token: from-two}}
- name: robot
  user: {tokenFile: token, as: boss, as-groups: [admins], as-uid: "7", as-user-extra: {why: [because]}}
"""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "one" / "config", tmp_path / "two" / "config"]
    for path, text in zip(paths, (ONE, TWO)):
        path.parent.mkdir()
        path.write_text(text)
    return paths


def test_first_file_wins_current_context_and_entries(files: list[Path]) -> None:
    connection = load_kubeconfig(files)
    assert (connection.name, connection.namespace, connection.server) == ("dev", "ml", "https://dev.example:6443")
    assert connection.token == "from-one"
    assert list_contexts(files) == (["dev", "lost", "prod"], "dev")


def test_relative_paths_are_resolved_from_their_kubeconfig_file(files: list[Path]) -> None:
    connection = load_kubeconfig(files)
    assert connection.ca_file == str(files[0].parent / "pki/ca.crt")
    assert (connection.cert_file, connection.key_file) == (str(files[0].parent / "jane.crt"), "/abs/jane.key")
    assert load_kubeconfig(files, "prod").token_file == str(files[1].parent / "token")


def test_context_by_name_sets_tls_proxy_and_impersonation(files: list[Path]) -> None:
    connection = load_kubeconfig(files, "prod")
    assert connection.insecure and not connection.compressed
    assert (connection.tls_server_name, connection.proxy_url) == ("api.prod", "http://proxy.example:3128")
    assert connection.acting_as == User("boss", ("admins",), "7", {"why": ("because",)})
    assert connection.namespace == "default"


@pytest.mark.parametrize(
    ("context", "says"),
    [
        ("nope", 'context "nope" does not exist; choose one of: dev, lost, prod'),
        ("lost", 'context "lost" names cluster "nowhere", which does not exist'),
    ],
)
def test_missing_context_or_cluster_is_an_error_that_names_it(files: list[Path], context: str, says: str) -> None:
    with pytest.raises(UserError, match="kubeconfig") as caught:
        load_kubeconfig(files, context)
    assert caught.value.message == says


def test_kubeconfig_variable_lists_files_and_some_may_be_missing(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{files[1]}:{files[0]}")
    assert load_kubeconfig().name == "prod"
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(UserError, match="no kubeconfig at"):
        load_kubeconfig()


def test_explicit_kubeconfig_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        load_kubeconfig([tmp_path / "none"])


def one_user(tmp_path: Path, user: str, cluster: str = 'server: "https://a.example"') -> Path:
    path = tmp_path / "config"
    path.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
        f"clusters: [{{name: k, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
    )
    return path


def test_inline_data_is_decoded_and_not_in_the_repr(tmp_path: Path) -> None:
    data = base64.b64encode(b"PEM").decode()
    user = f"client-certificate-data: {data}, client-key-data: {data}, token: s3cret, password: p4ss"
    path = one_user(tmp_path, user)
    connection = load_kubeconfig([path])
    assert (connection.cert_data, connection.key_data) == (b"PEM", b"PEM")
    assert "s3cret" not in repr(connection) and "p4ss" not in repr(connection) and "PEM" not in repr(connection)


def test_credentials_are_not_sent_without_tls(tmp_path: Path) -> None:
    connection = load_kubeconfig([one_user(tmp_path, "token: secret", 'server: "http://a.example"')])
    assert connection.token == "" and not connection.is_secure


@pytest.mark.parametrize(
    ("user", "cluster", "says"),
    [
        ("client-key-data: '***'", 'server: "https://a"', "client-key-data is not base64"),
        ("auth-provider: {name: gcp}", 'server: "https://a"', "auth-provider is no longer supported"),
        (
            "exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}",
            'server: "https://a"',
            "is not one of",
        ),
        ("exec: {apiVersion: client.authentication.k8s.io/v1}", 'server: "https://a"', "command is not set"),
        ("token: t", "server: ''", "the cluster has no valid server"),
        (
            "token: t",
            'server: "https://a", insecure-skip-tls-verify: true, certificate-authority: x',
            "exclude each other",
        ),
    ],
)
def test_unsupported_or_contradictory_setting_is_an_error(tmp_path: Path, user: str, cluster: str, says: str) -> None:
    with pytest.raises(UserError, match=says.replace("(", r"\(")):
        load_kubeconfig([one_user(tmp_path, user, cluster)])


def test_file_that_is_not_a_kubeconfig_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "config"
    for text in ("- a list", "{broken", "contexts: [{context: {}}]"):
        path.write_text(text)
        with pytest.raises(UserError) as caught:
            load_kubeconfig([path])
        assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("current-context: [c]", "current-context is not a string"),
        ("contexts: 5", "contexts is not a list"),
        ("contexts: {name: c}", "contexts is not a list"),
        ("contexts: [5]", "an entry of contexts has no name"),
        ("contexts: [{name: [c], context: {}}]", "contexts: the name of an entry is not a string"),
        ("users: [{name: 5, user: {}}]", "users: the name of an entry is not a string"),
        ("contexts: [{name: c, context: foo}]", 'contexts "c": context is not a mapping'),
        ("contexts: [{name: c, context: {cluster: [k]}}]", 'contexts "c": cluster is not a string'),
        ("contexts: [{name: c, context: {user: {name: u}}}]", 'contexts "c": user is not a string'),
        ("contexts: [{name: c, context: {namespace: 5}}]", 'contexts "c": namespace is not a string'),
        ("clusters: [{name: k, cluster: [foo]}]", 'clusters "k": cluster is not a mapping'),
        ("clusters: [{name: k, cluster: {server: 5}}]", 'clusters "k": server is not a string'),
        (
            "clusters: [{name: k, cluster: {certificate-authority: 5}}]",
            'clusters "k": certificate-authority is not a string',
        ),
        (
            "clusters: [{name: k, cluster: {insecure-skip-tls-verify: 'false'}}]",
            'clusters "k": insecure-skip-tls-verify is not true or false',
        ),
        ("clusters: [{name: k, cluster: {extensions: [foo]}}]", 'clusters "k": extensions is not a list of mappings'),
        ("users: [{name: u, user: foo}]", 'users "u": user is not a mapping'),
        ("users: [{name: u, user: {token: 5}}]", 'users "u": token is not a string'),
        ("users: [{name: u, user: {client-key: [a]}}]", 'users "u": client-key is not a string'),
        ("users: [{name: u, user: {as-groups: admins}}]", 'users "u": as-groups is not a list of strings'),
        (
            "users: [{name: u, user: {as-user-extra: {why: 5}}}]",
            'users "u": as-user-extra why is not a list of strings',
        ),
        ("users: [{name: u, user: {exec: foo}}]", 'users "u": exec is not a mapping'),
        ("users: [{name: u, user: {exec: {command: [a]}}}]", 'users "u": exec command is not a string'),
        ("users: [{name: u, user: {exec: {args: foo}}}]", 'users "u": exec args is not a list of strings'),
        ("users: [{name: u, user: {exec: {env: [foo]}}}]", 'users "u": exec env is not a list of mappings'),
        ("users: [{name: u, user: {exec: {env: [{value: foo}]}}}]", 'users "u": exec env has an entry without a name'),
    ],
)
def test_value_of_a_wrong_type_is_an_error_with_file_and_section(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        list_contexts([path])
    assert (caught.value.where, caught.value.message) == (str(path), says)


def test_null_field_is_treated_as_missing(tmp_path: Path) -> None:
    """kubectl and other tools write such fields."""
    user = "token: t, exec: null, as-groups: null, as-user-extra: null, client-key: null"
    cluster = 'server: "https://a.example", extensions: null, insecure-skip-tls-verify: null'
    assert load_kubeconfig([one_user(tmp_path, user, cluster)]).token == "t"
    path = tmp_path / "empty"
    path.write_text("current-context: null\ncontexts: null\nclusters: []\nusers: [{name: u, user: null}]\n")
    assert list_contexts([path]) == ([], "")


def test_in_cluster_connection_uses_the_service_account_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_settings, "SERVICE_ACCOUNT_DIR", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(UserError, match="does not run in a Pod"):
        load_in_cluster_connection()
    for name, text in (("token", "t"), ("ca.crt", "c"), ("namespace", "argocd\n")):
        (tmp_path / name).write_text(text)
    connection = load_in_cluster_connection()
    assert (connection.server, connection.namespace) == ("https://[fd00::1]:443", "argocd")
    assert (connection.token_file, connection.ca_file) == (str(tmp_path / "token"), str(tmp_path / "ca.crt"))


def test_unreadable_kubeconfig_is_an_error_that_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a file in a folder without access; here, the file name is too long for any file system."""
    unusable = tmp_path / ("x" * 300)
    monkeypatch.setenv("KUBECONFIG", str(unusable))
    with pytest.raises(UserError, match="cannot be read") as raised:
        load_kubeconfig()
    assert raised.value.where == str(unusable)

"""Kubeconfig files become one connection, as kubectl reads them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from argosy.cluster import User, connection
from argosy.cluster.connection import in_cluster
from argosy.cluster.kubeconfig import contexts, load_kubeconfig
from argosy.model.errors import UserError

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


def test_the_first_file_wins_the_current_context_and_every_entry_it_names(files: list[Path]) -> None:
    found = load_kubeconfig(files)
    assert (found.name, found.namespace, found.server) == ("dev", "ml", "https://dev.example:6443")
    assert found.token == "from-one"
    assert contexts(files) == (["dev", "lost", "prod"], "dev")


def test_relative_paths_belong_to_the_file_that_holds_them(files: list[Path]) -> None:
    found = load_kubeconfig(files)
    assert found.ca_file == str(files[0].parent / "pki/ca.crt")
    assert (found.cert_file, found.key_file) == (str(files[0].parent / "jane.crt"), "/abs/jane.key")
    assert load_kubeconfig(files, "prod").token_file == str(files[1].parent / "token")


def test_a_context_is_chosen_by_name_with_all_that_its_cluster_and_user_say(files: list[Path]) -> None:
    found = load_kubeconfig(files, "prod")
    assert found.insecure and not found.compressed
    assert (found.tls_server_name, found.proxy_url) == ("api.prod", "http://proxy.example:3128")
    assert found.acting_as == User("boss", ("admins",), "7", {"why": ("because",)})
    assert found.namespace == "default"


@pytest.mark.parametrize(("context", "says"), [
    ("nope", 'context "nope" does not exist; choose one of: dev, lost, prod'),
    ("lost", 'context "lost" names cluster "nowhere", which does not exist'),
])
def test_what_is_missing_is_named(files: list[Path], context: str, says: str) -> None:
    with pytest.raises(UserError, match="kubeconfig") as caught:
        load_kubeconfig(files, context)
    assert caught.value.message == says


def test_the_environment_names_several_files_and_some_may_be_missing(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{files[1]}:{files[0]}")
    assert load_kubeconfig().name == "prod"
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(UserError, match="no kubeconfig at"):
        load_kubeconfig()


def test_a_file_that_was_asked_for_by_name_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        load_kubeconfig([tmp_path / "none"])


def one_user(tmp_path: Path, user: str, cluster: str = 'server: "https://a.example"') -> Path:
    path = tmp_path / "config"
    path.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
        f"clusters: [{{name: k, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
    )
    return path


def test_data_is_decoded_and_never_shown(tmp_path: Path) -> None:
    data = base64.b64encode(b"PEM").decode()
    user = f"client-certificate-data: {data}, client-key-data: {data}, token: s3cret, password: p4ss"
    path = one_user(tmp_path, user)
    found = load_kubeconfig([path])
    assert (found.cert_data, found.key_data) == (b"PEM", b"PEM")
    assert "s3cret" not in repr(found) and "p4ss" not in repr(found) and "PEM" not in repr(found)


def test_credentials_are_not_sent_without_tls(tmp_path: Path) -> None:
    found = load_kubeconfig([one_user(tmp_path, "token: secret", 'server: "http://a.example"')])
    assert found.token == "" and not found.secure


@pytest.mark.parametrize(("user", "cluster", "says"), [
    ("client-key-data: '***'", 'server: "https://a"', "client-key-data is not base64"),
    ("auth-provider: {name: gcp}", 'server: "https://a"', "auth-provider is no longer supported"),
    ("exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}", 'server: "https://a"', "is not one of"),
    ("exec: {apiVersion: client.authentication.k8s.io/v1}", 'server: "https://a"', "command is not set"),
    ("token: t", "server: ''", "its cluster has no server"),
    ("token: t", 'server: "https://a", insecure-skip-tls-verify: true, certificate-authority: x', "exclude each other"),
])
def test_a_setting_that_cannot_work_is_refused_at_once(tmp_path: Path, user: str, cluster: str, says: str) -> None:
    with pytest.raises(UserError, match=says.replace("(", r"\(")):
        load_kubeconfig([one_user(tmp_path, user, cluster)])


def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config"
    for text in ("- a list", "{broken", "contexts: [{context: {}}]"):
        path.write_text(text)
        with pytest.raises(UserError) as caught:
            load_kubeconfig([path])
        assert str(path) in str(caught.value)


def test_a_pod_connects_with_the_account_that_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ACCOUNT_DIR", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(UserError, match="not in a Pod"):
        in_cluster()
    for name, text in (("token", "t"), ("ca.crt", "c"), ("namespace", "argocd\n")):
        (tmp_path / name).write_text(text)
    found = in_cluster()
    assert (found.server, found.namespace) == ("https://[fd00::1]:443", "argocd")
    assert (found.token_file, found.ca_file) == (str(tmp_path / "token"), str(tmp_path / "ca.crt"))


def test_a_file_that_cannot_be_looked_at_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one in a folder that is closed to this user; here, no file system takes its name."""
    unusable = tmp_path / ("x" * 300)
    monkeypatch.setenv("KUBECONFIG", str(unusable))
    with pytest.raises(UserError, match="cannot be read") as raised:
        load_kubeconfig()
    assert raised.value.where == str(unusable)

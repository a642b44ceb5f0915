"""`argosy cluster` with a second sandbox: add, list, get, set, rotate and rm."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from argosy.kube.schema.bundled_crds import load_definition
from support import clusters
from support.deadlines import HANG_SECONDS, wait_until

MANAGER = "argocd-manager"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SYSTEM = "/api/v1/namespaces/kube-system"
PLACES = (f"{SYSTEM}/serviceaccounts", f"{SYSTEM}/secrets", f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings")
SECRETS = "/api/v1/namespaces/argocd/secrets"


class Both(NamedTuple):
    near: clusters.Sandbox
    far: clusters.Sandbox
    home: Path

    def argosy(self, *words: str) -> clusters.Finished:
        where = ("--data-dir", str(self.near.folder))
        return clusters.argosy("cluster", *words, *where, home=self.home, timeout=HANG_SECONDS)

    def add(self, *flags: str) -> clusters.Finished:
        return self.argosy("add", "argosy-far", "--context-kubeconfig", str(self.far.kubeconfig), *flags)

    def secret(self) -> dict[str, Any]:
        listing = self.near.request("GET", f"{SECRETS}?labelSelector=argocd.argoproj.io/secret-type=cluster").json()
        (secret,) = listing["items"]
        return {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}

    def token(self) -> str:
        return str(json.loads(self.secret()["config"])["bearerToken"])

    def made(self) -> list[str]:
        """Return the paths of the argocd-manager objects on the far cluster."""
        names = [(path, manifest["metadata"]["name"]) for path in PLACES for manifest in self._far(path)]
        return [f"{path}/{name}" for path, name in names if name.startswith(MANAGER)]

    def _far(self, path: str) -> list[dict[str, Any]]:
        return list(self.far.request("GET", path).json()["items"])

    def clear(self) -> None:
        for path in self.made():
            self.far.request("DELETE", path)

    def until_made(self, count: int) -> None:
        """Wait for that many objects; garbage collection takes a moment."""
        wait_until(lambda: len(self.made()) == count, f"{count} objects")

    def is_let_in(self, token: str) -> bool:
        connection = self.far.endpoint.connection()
        try:
            answer = clusters.ask(connection, "GET", "/api/v1/namespaces", token=token)
        finally:
            connection.close()
        assert answer.code in (200, 401, 403), answer
        return answer.code == 200


@pytest.fixture(scope="module")
def sandboxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    home = tmp_path_factory.mktemp("clusters")
    (home / "user").mkdir()
    with clusters.sandbox(home / "near") as near, clusters.sandbox(home / "far", "--rbac") as far:
        near.request("POST", "/api/v1/namespaces", {"metadata": {"name": "argocd"}})
        far.request("POST", "/api/v1/namespaces", {"metadata": {"name": "ml"}})
        yield Both(near, far, home / "user")


@pytest.fixture
def both(sandboxes: Both) -> Iterator[Both]:
    yield sandboxes
    sandboxes.argosy("rm", "prod", "-y")


def test_cluster_is_added_listed_shown_and_removed(both: Both) -> None:
    result = both.add("--name", "prod", "-y")
    assert result.code == 0 and result.out == f"Cluster '{both.far.address}' added\n"
    for line in ('ServiceAccount "argocd-manager" created', 'ClusterRole "argocd-manager-role" created'):
        assert line in result.err
    secret = both.secret()
    assert (secret["name"], secret["server"]) == ("prod", both.far.address)
    assert both.token() not in result.out + result.err and both.is_let_in(both.token())
    listed = both.argosy("list")
    rows = [line.split() for line in listed.out.splitlines()]
    assert rows[0] == ["SERVER", "NAME", "VERSION", "STATUS", "MESSAGE", "PROJECT"]
    assert [both.far.address, "prod", "1.32", "Successful"] in rows
    assert ["https://kubernetes.default.svc", "in-cluster", "1.32", "Successful"] in rows
    details = both.argosy("get", "prod", "-o", "wide")
    assert f"Server URL:              {both.far.address}" in details.out
    assert "oAuth authentication:    true" in details.out and "Cert validation:         true" in details.out
    assert f"server: {both.far.address}\n" in both.argosy("get", "prod").out  # argo: YAML is the default output
    document = json.loads(both.argosy("get", both.far.address, "-o", "json").out)
    assert document["connectionState"]["status"] == "Successful" and both.token() not in json.dumps(document)
    several = json.loads(both.argosy("get", "prod", "in-cluster", "-o", "json").out)
    assert [cluster["name"] for cluster in several] == ["prod", "in-cluster"]
    assert both.argosy("get", "prod", "in-cluster", "-o", "wide").out.count("Cluster information") == 2
    for other in ("nowhere", "in-cluster"):  # all names are checked before the first cluster is removed
        assert both.argosy("rm", "prod", other, "-y").code == 2 and both.secret()["name"] == "prod"
    removed = both.argosy("rm", "prod", "-y")
    assert removed.code == 0 and removed.out == "Cluster 'prod' removed\n"
    assert "prod" not in both.argosy("list").out


@pytest.mark.tier("all")
def test_rotate_issues_a_new_token_and_revokes_the_old_one(both: Both) -> None:
    assert both.add("--name", "prod", "-y").code == 0
    old = both.token()
    result = both.argosy("rotate", "prod")
    assert result.code == 0 and result.out == "Cluster 'prod' rotated auth\n", result
    new = both.token()
    assert new != old and new not in result.out + result.err
    assert both.is_let_in(new) and not both.is_let_in(old)


@pytest.mark.tier("all")
def test_upsert_rotate_and_rm_revoke_the_previous_token(both: Both) -> None:
    both.clear()
    assert both.add("--name", "prod", "-y").code == 0 and len(both.made()) == 4
    first = both.token()
    again = both.add("--name", "prod", "-y", "--upsert")
    assert again.code == 0 and "the old token is revoked" in again.err and not both.is_let_in(first)
    assert both.argosy("rotate", "prod").code == 0
    assert len(both.made()) == 4 and both.is_let_in(last := both.token())
    removed = both.argosy("rm", "prod", "-y")
    assert removed.code == 0 and "deleted on that cluster: ClusterRole argocd-manager-role, " in removed.err
    assert both.add("--name", "prod", "-y").code == 0  # waits for garbage collection
    assert not both.is_let_in(last) and both.is_let_in(both.token())
    both.until_made(4)


@pytest.mark.tier("all")
def test_rm_keeps_an_account_that_is_in_use_or_not_created_by_argosy(both: Both) -> None:
    both.clear()
    both.add("--name", "prod", "-y")
    marks = {"kubernetes.io/service-account.name": MANAGER}
    other = {"metadata": {"name": "theirs", "annotations": marks}, "type": "kubernetes.io/service-account-token"}
    both.far.request("POST", f"{SYSTEM}/secrets", other)
    token = both.token()
    removed = both.argosy("rm", "prod", "-y")
    assert "argocd-manager has other tokens: theirs" in removed.err and not both.is_let_in(token)
    assert "kubectl delete clusterrolebinding/argocd-manager-role-binding" in removed.err and len(both.made()) == 3
    both.far.request("DELETE", f"{SYSTEM}/secrets/theirs")
    patch = {"metadata": {"labels": None}}
    both.far.request("PATCH", f"{SYSTEM}/serviceaccounts/{MANAGER}", patch, "application/merge-patch+json")
    both.add("--name", "prod", "-y")
    removed = both.argosy("rm", "prod", "-y")
    assert "not created by argosy: ServiceAccount argocd-manager" in removed.err and len(both.made()) == 3


@pytest.mark.tier("all")
def test_rm_of_an_unreachable_cluster_prints_the_cleanup_commands(both: Both) -> None:
    claims = {"sub": f"system:serviceaccount:kube-system:{MANAGER}", "kubernetes.io": {"secret": {"name": "old"}}}
    config = {"bearerToken": f"a.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()}.c"}
    metadata = {"name": "cluster-away", "labels": {"argocd.argoproj.io/secret-type": "cluster"}}
    values = {"name": "away", "server": "https://127.0.0.1:1", "config": json.dumps(config)}
    both.near.request("POST", SECRETS, {"metadata": metadata, "stringData": values})
    removed = both.argosy("rm", "away", "-y")
    assert removed.code == 0 and removed.out == "Cluster 'away' removed\n"
    assert "  kubectl delete -n kube-system secret/old serviceaccount/argocd-manager\n" in removed.err
    assert "away" not in both.argosy("list").out


@pytest.mark.tier("all")
def test_add_with_namespace_restricts_the_account_to_that_namespace(both: Both) -> None:
    both.clear()
    assert both.add("--name", "prod", "-y").code == 0 and both.is_let_in(both.token())
    result = both.add("--name", "prod", "--namespace", "ml", "--project", "team", "-y", "--upsert")
    assert result.code == 0 and 'Role "argocd-manager-role" created in namespace "ml"' in result.err
    assert 'ClusterRoleBinding "argocd-manager-role-binding" deleted\n' in result.err
    secret = both.secret()
    assert (secret["namespaces"], secret["clusterResources"], secret["project"]) == ("ml", "false", "team")
    assert not both.is_let_in(both.token())
    assert f"{both.far.address} (1 namespaces)" in both.argosy("list").out
    removed = both.argosy("rm", "prod", "-y")  # the account may not delete its own objects either
    assert removed.code == 0 and "kubectl delete -n ml rolebinding/argocd-manager-role-binding" in removed.err


@pytest.mark.tier("all")
def test_add_replaces_a_different_cluster_only_with_upsert(both: Both) -> None:
    assert both.add("--name", "prod", "-y").code == 0
    token = both.token()
    same = both.add("--name", "prod", "-y")
    assert same.code == 0 and same.out == f"Cluster '{both.far.address}' unchanged\n" and both.token() == token
    again = both.add("--name", "other", "--namespace", "ml", "--label", "a=b", "-y")
    assert again.code == 2 and "existing cluster spec is different\nnext: use upsert flag" in again.err
    assert 'difference in keys "labels,name,namespaces"' in again.err
    assert both.add("--name", "other", "-y", "--upsert").code == 0 and both.secret()["name"] == "other"
    assert both.argosy("rm", "other", "-y").code == 0


@pytest.mark.tier("all")
def test_add_reports_an_existing_cluster_that_rejects_its_token(both: Both) -> None:
    both.add("--name", "prod", "-y")
    for secret in both.far.request("GET", "/api/v1/namespaces/kube-system/secrets").json()["items"]:
        if secret["metadata"]["name"].startswith("argocd-manager-token-"):
            both.far.request("DELETE", f"/api/v1/namespaces/kube-system/secrets/{secret['metadata']['name']}")
    again = both.add("--name", "prod", "-y")
    assert again.code == 2 and "rejected its token" in again.err and "renew the token with --upsert" in again.err
    assert both.add("--name", "prod", "-y", "--upsert").code == 0 and both.is_let_in(both.token())


def test_add_without_confirmation_adds_no_cluster(both: Both) -> None:
    result = both.add("--name", "prod")
    assert result.code == 2 and "pass -y" in result.err
    assert both.argosy("get", "prod").code == 2


@pytest.mark.parametrize(("flags", "says"), [
    (("--proxy-url", "http://"), "config.proxyUrl is not a valid address"),
    pytest.param(("--proxy-url", "socks5://a:1"), "proxyUrl is not a valid address", marks=pytest.mark.tier("all")),
    pytest.param(("--label", "env=prod eu"), "a valid label must be", marks=pytest.mark.tier("all")),
    pytest.param(("--namespace", "nowhere"), "nowhere", marks=pytest.mark.tier("all")),
])  # fmt: skip
def test_add_with_invalid_flags_creates_nothing_remotely(both: Both, flags: tuple[str, ...], says: str) -> None:
    both.clear()
    result = both.add("--name", "prod", "-y", *flags)
    assert result.code != 0 and says in result.err and "created" not in result.err
    assert both.made() == []


@pytest.mark.tier("all")
def test_exec_credentials_store_no_token_and_cannot_be_rotated(both: Both) -> None:
    flags = ("--exec-command", "aws", "--exec-command-args", "eks", "--exec-command-env", "AWS_PROFILE=x")
    assert both.add("--name", "prod", *flags).code == 0
    config = json.loads(both.secret()["config"])
    assert config["execProviderConfig"]["command"] == "aws" and "bearerToken" not in config
    refused = both.argosy("rotate", "prod")
    assert refused.code == 2 and "nothing to rotate" in refused.err


@pytest.mark.tier("all")
def test_rm_lists_the_applications_of_the_cluster_before_it_asks_for_confirmation(both: Both) -> None:
    both.add("--name", "prod", "-y")
    for name in ("applications.argoproj.io", "appprojects.argoproj.io"):
        both.near.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", load_definition(name))
    for name, destination in (("web", {"name": "prod"}), ("ml", {"server": both.far.address}), ("own", {"name": "x"})):
        spec = {"project": "default", "source": {"repoURL": "https://git.example/a"}, "destination": destination}
        app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name}, "spec": spec}
        both.near.request("POST", "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications", app)
    result = both.argosy("rm", "prod")
    assert result.code == 2 and "pass -y" in result.err and both.secret()["name"] == "prod"
    assert "argosy: Applications with destination 'prod': ml, web\n" in result.err
    assert both.argosy("rm", "prod", "-y").code == 0


@pytest.mark.tier("all")
def test_cluster_secret_without_server_is_listed_as_failed(both: Both) -> None:
    metadata = {"name": "cluster-lost", "labels": {"argocd.argoproj.io/secret-type": "cluster"}}
    both.near.request("POST", SECRETS, {"metadata": metadata, "stringData": {"name": "lost", "server": ""}})
    (row,) = [line.split() for line in both.argosy("list").out.splitlines() if "lost" in line]
    both.near.request("DELETE", f"{SECRETS}/cluster-lost")
    assert row[:3] == ["-", "lost", "Failed"]
    assert " ".join(row[3:]).startswith("Secret cluster-lost has no valid server")


@pytest.mark.tier("all")
def test_duplicate_cluster_names_are_refused_and_ambiguous_names_change_nothing(both: Both) -> None:
    kind = {"argocd.argoproj.io/secret-type": "cluster"}
    for name in ("one", "two"):
        values = {"name": "same", "server": f"https://{name}.example"}
        metadata = {"name": f"cluster-{name}", "labels": kind}
        both.near.request("POST", SECRETS, {"metadata": metadata, "stringData": values})
    for verb, *flags in (("rm", "-y"), ("set", "--label", "a=b"), ("rotate",)):
        result = both.argosy(verb, "same", *flags)
        assert result.code == 2 and "2 clusters are named 'same'" in result.err, result
        assert "use the address: https://one.example, https://two.example" in result.err
    for words in (("set", "https://one.example", "--name", "in-cluster"), ("set", "in-cluster", "--name", "same")):
        result = both.argosy(*words)
        assert result.code == 2 and "another cluster is named" in result.err and "--name" in result.err, result
    result = both.add("--name", "same", "-y")
    assert result.code == 2 and "another cluster is named 'same' (https://one.example, https://two.ex" in result.err
    assert both.argosy("set", "https://one.example", "--name", "one").code == 0
    removed = both.argosy("rm", "same", "one", "https://one.example", "-y")
    assert removed.code == 0 and removed.out == "Cluster 'same' removed\nCluster 'one' removed\n", removed


@pytest.mark.tier("all")
def test_set_changes_name_namespaces_labels_and_annotations_only(both: Both) -> None:
    both.add("--name", "first", "--namespace", "ml", "--shard", "3", "--label", "env=dev", "-y")
    before = both.secret()
    assert (before["shard"], before["namespaces"]) == ("3", "ml")
    marks = ("--label", "env=prod", "--annotation", "team=ml")
    result = both.argosy("set", "first", "--name", "prod", "--namespace", "ml", "--namespace", "web", *marks)
    assert result.code == 0 and result.out == "Cluster 'first' updated.\n"
    assert both.secret() == {**before, "name": "prod", "namespaces": "ml,web"}
    document = json.loads(both.argosy("get", "prod", "-o", "json").out)
    assert (document["labels"], document["annotations"]) == ({"env": "prod"}, {"team": "ml"})
    assert both.argosy("set", "prod", "--namespace", "*").code == 0
    assert both.secret() == {name: text for name, text in before.items() if name != "namespaces"} | {"name": "prod"}
    command_result = both.argosy("set", "prod")
    assert command_result.code == 2 and "pass --name" in command_result.err
    assert both.argosy("set", "in-cluster", "--name", "here").code == 0  # argo: a change gives it a Secret
    assert json.loads(both.argosy("get", "here", "-o", "json").out)["server"] == "https://kubernetes.default.svc"
    assert both.argosy("rm", "here", "-y").code == 0


@pytest.mark.tier("all")
def test_kube_public_endpoint_uses_the_address_from_cluster_info(both: Both) -> None:
    result = both.add("--name", "prod", "--cluster-endpoint", "kube-public", "-y")
    assert result.code == 0 and "no usable address in kube-public/cluster-info" in result.err
    assert both.secret()["server"] == both.far.address
    cluster = {"server": "https://far.example:6443/", "certificate-authority-data": "QUJD"}
    kubeconfig = json.dumps({"clusters": [{"cluster": cluster}]})
    cluster_info = {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": kubeconfig}}
    both.far.request("POST", "/api/v1/namespaces/kube-public/configmaps", cluster_info)
    both.argosy("rm", "prod", "-y")
    add_result = both.add("--name", "prod", "--cluster-endpoint", "kube-public", "-y")
    assert add_result.code == 0 and add_result.out == "Cluster 'https://far.example:6443' added\n"
    assert json.loads(both.secret()["config"])["tlsClientConfig"]["caData"] == "QUJD"
    assert both.is_let_in(both.token())
    refused = both.add("--in-cluster", "--cluster-endpoint", "internal")
    assert refused.code == 2 and "only use one of --in-cluster or --cluster-endpoint" in refused.err


@pytest.mark.tier("all")
def test_unknown_cluster_or_context_gives_an_error_with_the_next_step(both: Both) -> None:
    advice = f"argosy --data-dir {both.near.folder} cluster list"
    for verb, *flags in (("get",), ("set", "--name", "x"), ("rm", "-y"), ("rotate",)):
        result = both.argosy(verb, "nowhere", *flags)
        assert result.code == 2 and "cluster 'nowhere' not found" in result.err and advice in result.err
    result = both.argosy("add", "nowhere", "--context-kubeconfig", str(both.far.kubeconfig), "-y")
    assert result.code == 2 and 'context "nowhere" does not exist' in result.err
    user = both.home / ".kube"
    user.mkdir()
    (user / "config").write_bytes(both.far.kubeconfig.read_bytes())
    result = both.argosy("add", "nowhere", "-y")
    (user / "config").unlink()
    assert "choose one of: argosy-far; or pass the kubeconfig that contains it: --context-kubeconfig FILE" in result.err

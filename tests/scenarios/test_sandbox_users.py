"""Users of a sandbox: authentication, authorization with and without --rbac, and impersonation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.clusters import Endpoint, Sandbox, argosy, configmap, kubectl, sandbox
from support.tiers import in_test_all

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "reader"},
    "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}],
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox with RBAC, shared by all tests here; each test has its own users."""
    with sandbox(tmp_path_factory.mktemp("guarded") / "data", "--port", "0", "--rbac") as started:
        yield started


def add(where: Sandbox, name: str, *groups: str) -> str:
    flags = [word for group in groups for word in ("--group", group)]
    done = argosy("sandbox", "user", "add", name, *flags, "--data-dir", where.folder, home=where.folder.parent)
    assert done.code == 0 and done.err.startswith(f"target: the sandbox in {where.folder} (https://"), done.err
    assert done.err.count("\n") == 1, done.err
    return done.out


def bind(where: Sandbox, name: str, subject: dict[str, str]) -> None:
    group = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    assert where.request("POST", f"{group}/roles", ROLE).code in (201, 409)
    binding: dict[str, Any] = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", **subject}],
    }
    assert where.request("POST", f"{group}/rolebindings", binding).code == 201


def test_new_user_can_write_without_rbac(shared: Sandbox) -> None:
    alice = Endpoint.of_kubeconfig(add(shared, "alice"))
    assert alice.request("POST", CONFIGMAPS, configmap("of-alice")).code == 201


def test_new_user_is_forbidden_until_a_role_binding_exists(guarded: Sandbox) -> None:
    alice = Endpoint.of_kubeconfig(add(guarded, "alice"))
    refused = alice.request("GET", CONFIGMAPS)
    assert refused.code == 403
    assert refused.json()["message"] == (
        'configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group "" '
        'in the namespace "default"'
    )
    bind(guarded, "for-alice", {"kind": "User", "name": "alice"})
    assert alice.request("GET", CONFIGMAPS).code == 200
    assert alice.request("POST", CONFIGMAPS, configmap("hers")).code == 403
    assert alice.request("GET", "/api/v1/namespaces/kube-system/configmaps").code == 403


@pytest.mark.tier("all")
def test_role_binding_of_a_group_grants_access_to_its_users(guarded: Sandbox) -> None:
    bind(guarded, "for-devs", {"kind": "Group", "name": "devs"})
    bob = Endpoint.of_kubeconfig(add(guarded, "bob", "devs", "others"))
    carol = Endpoint.of_kubeconfig(add(guarded, "carol", "others"))
    assert bob.request("GET", CONFIGMAPS).code == 200
    assert carol.request("GET", CONFIGMAPS).code == 403


@pytest.mark.tier("all")
def test_adding_a_user_again_revokes_the_old_token(shared: Sandbox) -> None:
    old = Endpoint.of_kubeconfig(add(shared, "dave"))
    assert old.request("GET", CONFIGMAPS).code == 200
    new = Endpoint.of_kubeconfig(add(shared, "dave"))
    assert old.request("GET", CONFIGMAPS).code == 401
    assert new.request("GET", CONFIGMAPS).code == 200


@pytest.mark.tier("all")
def test_users_and_tokens_survive_a_restart(home: Path) -> None:
    with sandbox(home / "data", "--port", "0", "--rbac") as first:
        erin = Endpoint.of_kubeconfig(add(first, "erin"))
        assert erin.request("GET", CONFIGMAPS).code == 403
        first.end()
    with sandbox(home / "data", "--rbac"):
        assert erin.request("GET", CONFIGMAPS).code == 403
        assert erin.request("GET", "/version").code == 200


def test_user_token_is_not_stored_in_the_data_folder(shared: Sandbox) -> None:
    frank = Endpoint.of_kubeconfig(add(shared, "frank"))
    assert frank.request("GET", CONFIGMAPS).code == 200
    holding = [
        file.name for file in shared.folder.rglob("*") if file.is_file() and frank.token.encode() in file.read_bytes()
    ]
    assert holding == []


@pytest.mark.parametrize(
    "name", ["system:masters", "a,b", *map(in_test_all, ("system:serviceaccount:a:b", "argosy:x", "admin", "", "\n"))]
)
def test_reserved_or_invalid_user_names_are_refused(shared: Sandbox, name: str) -> None:
    done = argosy("sandbox", "user", "add", name, "--data-dir", shared.folder, home=shared.folder.parent)
    assert done.code == 2 and done.out == "" and "Traceback" not in done.err


@pytest.mark.tier("all")
def test_user_add_needs_a_running_sandbox(home: Path) -> None:
    done = argosy("sandbox", "user", "add", "alice", home=home)
    assert done.code == 2 and done.out == "" and "argosy sandbox start" in done.err


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic YTpi", "bearer a.b.c", "Bearer " + "x" * 5000,
               "Bearer \xff", "Bearer eyJhbGciOiJub25lIn0.e30.", "Bearer ..", "Bearer eyJhbGciOjV9.e30.AA"],
)  # fmt: skip
def test_request_without_a_valid_token_gets_401(shared: Sandbox, header: str) -> None:
    connection = shared.endpoint.connection()
    connection.putrequest("GET", CONFIGMAPS)
    if header:
        connection.putheader("Authorization", header.encode("latin-1"))
    connection.endheaders()
    answer = connection.getresponse()
    status = json.loads(answer.read())
    connection.close()
    assert answer.status == 401
    assert (status["kind"], status["reason"], status["message"]) == ("Status", "Unauthorized", "Unauthorized")


def test_only_health_and_version_paths_are_anonymous(shared: Sandbox) -> None:
    stranger = Endpoint(shared.address, (shared.folder / "tls/ca.crt").read_text(), "")
    paths = ["/", "/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v3", "/openid/v1/jwks",
             "/readyz", "/version", "/.well-known/openid-configuration", "/nope", "/healthz/ping"]  # fmt: skip
    assert [path for path in paths if stranger.request("GET", path).code != 401] == [
        "/healthz", "/livez", "/readyz", "/version",
    ]  # fmt: skip


# -- impersonation -----------------------------------------------------------------------------------------------


def test_admin_can_impersonate_a_user(guarded: Sandbox) -> None:
    bind(guarded, "for-heidi", {"kind": "User", "name": "heidi"})
    assert guarded.request("GET", CONFIGMAPS, Impersonate_User="heidi").code == 200
    refused = guarded.request("POST", CONFIGMAPS, configmap("hers"), Impersonate_User="heidi")
    assert refused.code == 403 and 'User "heidi"' in refused.json()["message"]
    assert guarded.request("GET", CONFIGMAPS, Impersonate_User="nobody").code == 403
    assert guarded.request("GET", CONFIGMAPS, Impersonate_Group="system:masters").code in (400, 500)


def test_user_without_permission_cannot_impersonate(guarded: Sandbox) -> None:
    ivan = Endpoint.of_kubeconfig(add(guarded, "ivan"))
    for headers in (
        {"Impersonate_User": "admin"},
        {"Impersonate_User": "ivan", "Impersonate_Group": "system:masters"},
        {"Impersonate_User": "system:serviceaccount:default:default"},
        {"Impersonate_User": "ivan", "Impersonate_Uid": "admin"},
    ):
        refused = ivan.request("GET", CONFIGMAPS, **headers)
        assert refused.code == 403 and "cannot impersonate" in refused.json()["message"], headers


def test_user_cannot_grant_permissions_it_does_not_have(guarded: Sandbox) -> None:
    judy = Endpoint.of_kubeconfig(add(guarded, "judy", "role-writers"))
    group = "/apis/rbac.authorization.k8s.io/v1"
    role = {
        "metadata": {"name": "role-writer"},
        "rules": [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["*"]}],
    }
    role["rules"][0]["verbs"] = ["create", "update", "get"]  # type: ignore[index]
    assert guarded.request("POST", f"{group}/clusterroles", role).code == 201
    binding = {
        "metadata": {"name": "role-writers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "role-writer"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "role-writers"}],
    }
    assert guarded.request("POST", f"{group}/clusterrolebindings", binding).code == 201
    everything = {"metadata": {"name": "mine"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    refused = judy.request("POST", f"{group}/clusterroles", everything)
    assert refused.code == 403
    assert "attempting to grant RBAC permissions not currently held" in refused.json()["message"]


# -- with kubectl ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("needs_kubectl")
def test_printed_kubeconfig_works_with_kubectl(guarded: Sandbox, tmp_path: Path) -> None:
    file = tmp_path / "mallory.kubeconfig"
    file.write_text(add(guarded, "mallory", "crew"))
    whoami = kubectl(file, "auth", "whoami", "-o", "json")
    assert whoami.code == 0, whoami.err
    info = json.loads(whoami.out)["status"]["userInfo"]
    assert info["username"] == "mallory" and info["groups"] == ["crew", "system:authenticated"]
    assert kubectl(file, "auth", "can-i", "list", "configmaps").out == "no\n"
    refused = kubectl(file, "get", "configmaps")
    assert refused.code == 1 and refused.err.startswith("Error from server (Forbidden): configmaps is forbidden")
    bind(guarded, "for-mallory", {"kind": "Group", "name": "crew"})
    can = kubectl(file, "auth", "can-i", "list", "configmaps")
    assert (can.code, can.out) == (0, "yes\n")
    assert kubectl(file, "get", "configmaps").code == 0
    assert "cannot impersonate" in kubectl(file, "get", "configmaps", "--as", "admin").err


@pytest.mark.tier("all")
@pytest.mark.usefixtures("needs_kubectl")
def test_kubectl_as_uses_the_rights_of_the_impersonated_user(guarded: Sandbox) -> None:
    bind(guarded, "for-niaj", {"kind": "User", "name": "niaj"})
    assert kubectl(guarded.kubeconfig, "auth", "can-i", "list", "configmaps", "--as", "niaj").out == "yes\n"
    assert kubectl(guarded.kubeconfig, "auth", "can-i", "list", "secrets", "--as", "niaj").out == "no\n"
    listed = kubectl(guarded.kubeconfig, "auth", "can-i", "--list", "--as", "niaj")
    assert listed.code == 0 and "configmaps" in listed.out

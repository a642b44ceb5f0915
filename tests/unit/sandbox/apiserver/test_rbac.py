"""RBAC: rule evaluation (compared with a second implementation), bindings, escalation checks and access reviews."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import ClusterError, Forbidden
from argosy.kube.client import User
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.authentication import hash_token
from argosy.sandbox.apiserver.authorization import Attributes
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.apiserver.rbac import rule_allows
from support.api_client import CONFIGS, MERGE, Api, config, deployment, named, pod
from support.examples import examples

anyio = pytest.mark.anyio
RBAC = "rbac.authorization.k8s.io"
ALICE = User("alice", ("devs", "system:authenticated"))


@pytest.fixture
def api(guarded: ControlPlane) -> Api:
    return Api(guarded)


def rule(verbs: Sequence[str], resources: Sequence[str], group: str = "", **more: Any) -> Manifest:
    return {"verbs": list(verbs), "apiGroups": [group], "resources": list(resources), **more}


def role(name: str, *rules: Manifest, kind: str = "Role", **metadata: Any) -> Manifest:
    about = {"name": name, **({"namespace": "default"} if kind == "Role" else {}), **metadata}
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": about, "rules": list(rules)}


def binding(name: str, to: str, *, role_kind: str = "Role", cluster: bool = False, who: Any = None) -> Manifest:
    kind = "ClusterRoleBinding" if cluster else "RoleBinding"
    about = {"name": name, **({} if cluster else {"namespace": "default"})}
    subject = who or {"kind": "User", "name": "alice", "apiGroup": RBAC}
    reference = {"apiGroup": RBAC, "kind": role_kind, "name": to}
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": about, "roleRef": reference, "subjects": [subject]}


async def allow(plane: ControlPlane, *rules: Manifest, cluster: bool = False) -> EmbeddedCluster:
    """Grant alice these rules in the namespace `default` or cluster-wide; return her client."""
    admin = EmbeddedCluster(plane)
    kind = "ClusterRole" if cluster else "Role"
    await admin.create(role("given", *rules, kind=kind))
    await admin.create(binding("given", "given", role_kind=kind, cluster=cluster))
    return admin.acting_as(ALICE)


def is_allowed(plane: ControlPlane, verb: str, resource: str = "", part: str = "", **more: str) -> bool:
    group = more.pop("group", "")
    return plane.registry.access.allows(ALICE, Attributes(verb, group, resource, part, **more))


# -- the evaluator ----------------------------------------------------------------------------------------------


def slow_permits(policy_rule: Manifest, want: Attributes) -> bool:
    """A second, naive implementation of RBAC rule matching."""
    verbs = policy_rule.get("verbs") or []
    if "*" not in verbs and want.verb not in verbs:
        return False
    if want.path:
        for pattern in policy_rule.get("nonResourceURLs") or []:
            if pattern == "*" or pattern == want.path:
                return True
            if pattern[-1:] == "*" and want.path[: len(pattern) - 1] == pattern[:-1]:
                return True
        return False
    groups = policy_rule.get("apiGroups") or []
    if "*" not in groups and want.group not in groups:
        return False
    full = want.resource + ("/" + want.subresource if want.subresource else "")
    fitting = ["*", full] + (["*/" + want.subresource] if want.subresource else [])
    if not [resource for resource in policy_rule.get("resources") or [] if resource in fitting]:
        return False
    only = policy_rule.get("resourceNames") or []
    return not only or want.name in only


words = st.sampled_from(["a", "b", "*"])
some = st.lists(words, max_size=2)
paths = st.sampled_from(["/x", "/x/y", "/", "/xy"])
rules = st.fixed_dictionaries(
    {"verbs": some},
    optional={
        "apiGroups": some,
        "resources": st.lists(st.sampled_from(["a", "b", "a/s", "*/s", "*", "a/*"]), max_size=2),
        "resourceNames": st.lists(st.sampled_from(["n", "m", ""]), max_size=2),
        "nonResourceURLs": st.lists(st.sampled_from(["*", "/x", "/x*", "/x/*", "/"]), max_size=2),
    },
)
questions = st.one_of(
    st.builds(Attributes, words, words, st.sampled_from(["a", "b"]), st.sampled_from(["", "s"]), st.just("ns"),
              st.sampled_from(["", "n", "m"])),
    st.builds(Attributes, words, path=paths),
)  # fmt: skip


@settings(max_examples=examples())
@given(rules, questions)
def test_rule_allows_matches_the_naive_implementation(policy_rule: Manifest, want: Attributes) -> None:
    assert rule_allows(policy_rule, want) == slow_permits(policy_rule, want)


# -- in a cluster -----------------------------------------------------------------------------------------------


@anyio
async def test_user_without_rules_may_only_use_self_reviews_and_discovery(guarded: ControlPlane) -> None:
    assert not is_allowed(guarded, "get", "configmaps", namespace="default")
    assert is_allowed(guarded, "create", "selfsubjectaccessreviews", group="authorization.k8s.io")
    assert is_allowed(guarded, "get", path="/apis/apps/v1") and not is_allowed(guarded, "get", path="/metrics")


@anyio
async def test_role_grants_only_its_verbs_in_its_namespace(guarded: ControlPlane) -> None:
    await allow(guarded, rule(["get"], ["configmaps"]))
    assert is_allowed(guarded, "get", "configmaps", namespace="default", name="a")
    assert not is_allowed(guarded, "get", "configmaps", namespace="kube-system", name="a")
    assert not is_allowed(guarded, "get", "configmaps")
    assert not is_allowed(guarded, "list", "configmaps", namespace="default")


@anyio
async def test_role_binding_to_a_cluster_role_grants_only_its_namespace(guarded: ControlPlane) -> None:
    admin = EmbeddedCluster(guarded)
    await admin.create(binding("b", "view", role_kind="ClusterRole"))
    assert is_allowed(guarded, "list", "pods", namespace="default")
    assert not is_allowed(guarded, "list", "pods", namespace="kube-public") and not is_allowed(guarded, "list", "pods")


@anyio
async def test_aggregated_cluster_role_includes_rules_of_labelled_roles(guarded: ControlPlane) -> None:
    admin = EmbeddedCluster(guarded)
    await admin.create(binding("b", "view", role_kind="ClusterRole", cluster=True))
    assert not is_allowed(guarded, "get", "widgets", group="argosy.dev")
    labels = {f"{RBAC}/aggregate-to-view": "true"}
    await admin.create(role("more", rule(["get"], ["widgets"], "argosy.dev"), kind="ClusterRole", labels=labels))
    assert is_allowed(guarded, "get", "widgets", group="argosy.dev")


SUBJECTS = [
    ({"kind": "User", "name": "alice", "apiGroup": RBAC}, True),
    ({"kind": "User", "name": "bob", "apiGroup": RBAC}, False),
    ({"kind": "Group", "name": "devs", "apiGroup": RBAC}, True),
    ({"kind": "Group", "name": "alice", "apiGroup": RBAC}, False),
    ({"kind": "ServiceAccount", "name": "alice", "namespace": "default"}, False),
]


@anyio
@pytest.mark.parametrize(("who", "may"), SUBJECTS)
async def test_binding_grants_access_only_to_its_subjects(guarded: ControlPlane, who: Manifest, may: bool) -> None:
    admin = EmbeddedCluster(guarded)
    await admin.create(role("r", rule(["get"], ["pods"])))
    await admin.create(binding("b", "r", who=who))
    assert is_allowed(guarded, "get", "pods", namespace="default") is may


@anyio
async def test_deleting_a_role_binding_revokes_access_immediately(guarded: ControlPlane) -> None:
    alice = await allow(guarded, rule(["get", "list"], ["configmaps"]))
    admin = EmbeddedCluster(guarded)
    assert await alice.get(ResourceKey("", "ConfigMap", "default", "none")) is None
    await admin.delete(ResourceKey(RBAC, "RoleBinding", "default", "given"))
    with pytest.raises(Forbidden):
        await alice.get(ResourceKey("", "ConfigMap", "default", "none"))


# -- the wire ---------------------------------------------------------------------------------------------------


async def as_alice(api: Api, *rules: Manifest) -> Api:
    """An API client that authenticates as alice with her own token."""
    notes = {"sandbox.argosy.dev/user": "alice", "sandbox.argosy.dev/token-digest": hash_token("alices-token")}
    secret = {"metadata": {"name": "user-alice", "annotations": notes}, "type": "sandbox.argosy.dev/user"}
    await api.made("/api/v1/namespaces/kube-system/secrets", secret)
    if rules:
        await allow(api.plane, *rules)
    return api.of("alices-token")


DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SCALE = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "d"}, "spec": {"replicas": 3}}
EVICTION = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "p"}}
BINDING = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "p"}, "target": {"name": "n"}}
NAMESPACE = named("v1", "Namespace", "default")
PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"

# the request, and the rule that allows it
GUARDED = [
    ("GET", f"{CONFIGS}/a", None, rule(["get"], ["configmaps"])),
    ("GET", CONFIGS, None, rule(["list"], ["configmaps"])),
    ("POST", CONFIGS, config("b"), rule(["create"], ["configmaps"])),
    ("PUT", f"{CONFIGS}/a", config("a"), rule(["update"], ["configmaps"])),
    ("PATCH", f"{CONFIGS}/a", {}, rule(["patch"], ["configmaps"])),
    ("DELETE", f"{CONFIGS}/a", None, rule(["delete"], ["configmaps"])),
    ("DELETE", CONFIGS, None, rule(["deletecollection"], ["configmaps"])),
    ("GET", f"{DEPLOYMENTS}/d/scale", None, rule(["get"], ["deployments/scale"], "apps")),
    ("PUT", f"{DEPLOYMENTS}/d/scale", SCALE, rule(["update"], ["deployments/scale"], "apps")),
    ("PATCH", f"{DEPLOYMENTS}/d/scale", {}, rule(["patch"], ["deployments/scale"], "apps")),
    ("PATCH", f"{DEPLOYMENTS}/d/status", {}, rule(["patch"], ["deployments/status"], "apps")),
    ("POST", f"{PODS}/p/eviction", EVICTION, rule(["create"], ["pods/eviction"])),
    ("POST", f"{PODS}/p/binding", BINDING, rule(["create"], ["pods/binding"])),
    ("POST", "/api/v1/namespaces/default/bindings", BINDING, rule(["create"], ["bindings"])),
    ("POST", f"{ACCOUNTS}/default/token", {}, rule(["create"], ["serviceaccounts/token"])),
    ("PUT", "/api/v1/namespaces/default/finalize", NAMESPACE, rule(["update"], ["namespaces/finalize"])),
    ("GET", f"{CONFIGS}?fieldSelector=metadata.name%3Da", None, rule(["list"], ["configmaps"], resourceNames=["a"])),
]


@anyio
@pytest.mark.parametrize(("method", "path", "body", "needed"), GUARDED)
async def test_each_endpoint_requires_exactly_its_own_permission(
    api: Api, method: str, path: str, body: Any, needed: Manifest
) -> None:
    await api.made(CONFIGS, config("a"))
    await api.made(DEPLOYMENTS, deployment("d"))
    await api.made(PODS, pod("p"))
    alice = await as_alice(api)
    media = MERGE if method == "PATCH" else "application/json"
    refused = await alice.ask(method, path, body, media)
    assert (refused.code, refused.json["reason"]) == (403, "Forbidden")
    everything_else = rule(["get", "list", "watch", "create", "update", "patch", "delete"], ["secrets", "nodes"])
    cluster = "namespaces/" in path and "finalize" in path
    await allow(api.plane, needed, everything_else, cluster=cluster)
    assert (await alice.ask(method, path, body, media)).code in (200, 201)


@anyio
async def test_watch_without_the_watch_verb_is_forbidden(api: Api) -> None:
    alice = await as_alice(api, rule(["list"], ["configmaps"]))
    assert (await alice.get(CONFIGS)).code == 200
    for path in (f"{CONFIGS}?watch=true", "/api/v1/watch/namespaces/default/configmaps", "/api/v1/configmaps?watch=1"):
        assert (await alice.get(path)).code == 403
    assert (await alice.get("/api/v1/configmaps")).code == 403


@anyio
async def test_apply_that_creates_an_object_also_requires_create(api: Api) -> None:
    alice = await as_alice(api, rule(["patch"], ["configmaps"]))
    assert (await alice.apply(f"{CONFIGS}/new", config("new"))).code == 403
    await api.made(CONFIGS, config("old"))
    assert (await alice.apply(f"{CONFIGS}/old", config("old"))).code == 200


@anyio
async def test_forbidden_message_names_user_verb_resource_and_scope(api: Api) -> None:
    alice = await as_alice(api)
    words = {
        f"{DEPLOYMENTS}/d": 'deployments.apps "d" is forbidden: User "alice" cannot get resource "deployments" in API '
        'group "apps" in the namespace "default"',
        "/api/v1/nodes": 'nodes is forbidden: User "alice" cannot list resource "nodes" in API group "" '
        "at the cluster scope",
        "/metrics": 'forbidden: User "alice" cannot get path "/metrics"',
    }
    for path, message in words.items():
        assert (await alice.get(path)).message == message


# -- escalation -------------------------------------------------------------------------------------------------

ROLE_KINDS = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"]
MAY_ROLE = rule(["create", "update", "patch", "get"], ROLE_KINDS, RBAC)
OWN = rule(["get", "list"], ["configmaps"])


@anyio
async def test_creating_a_role_with_rights_the_user_lacks_is_forbidden(guarded: ControlPlane) -> None:
    alice = await allow(guarded, MAY_ROLE, OWN)
    await alice.create(role("less", rule(["get"], ["configmaps"])))
    for more in (
        rule(["delete"], ["configmaps"]),
        rule(["*"], ["configmaps"]),
        rule(["get"], ["*"]),
        rule(["get"], ["configmaps"], "*"),
        rule(["get"], ["configmaps/status"]),
    ):
        with pytest.raises(Forbidden, match="attempting to grant RBAC permissions not currently held"):
            await alice.create(role("more", more))


@anyio
async def test_binding_a_role_with_rights_the_user_lacks_is_forbidden(guarded: ControlPlane) -> None:
    alice = await allow(guarded, MAY_ROLE, OWN)
    admin = EmbeddedCluster(guarded)
    await admin.create(role("strong", rule(["delete"], ["secrets"])))
    await admin.create(role("weak", OWN))
    await alice.create(binding("ok", "weak"))
    for role_binding in (binding("no", "strong"), binding("no", "cluster-admin", role_kind="ClusterRole")):
        with pytest.raises(Forbidden):
            await alice.create(role_binding)


@anyio
async def test_binding_a_missing_role_returns_not_found(guarded: ControlPlane) -> None:
    alice = await allow(guarded, MAY_ROLE, OWN)
    with pytest.raises(ClusterError, match=r'rolebindings\.rbac\.authorization\.k8s\.io "later" not found'):
        await alice.create(binding("b", "later"))


@anyio
async def test_creating_an_aggregated_role_requires_cluster_admin(guarded: ControlPlane) -> None:
    alice = await allow(guarded, MAY_ROLE, OWN, cluster=True)
    gathering = role("g", kind="ClusterRole") | {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {}}]}}
    with pytest.raises(Forbidden, match="must have cluster-admin privileges to use the aggregationRule"):
        await alice.create(gathering)


@anyio
@pytest.mark.parametrize(("verb", "kind"), [("escalate", "role"), ("bind", "binding")])
async def test_escalate_and_bind_verbs_allow_granting_more_rights(guarded: ControlPlane, verb: str, kind: str) -> None:
    alice = await allow(guarded, MAY_ROLE, rule([verb], ["roles"], RBAC))
    admin = EmbeddedCluster(guarded)
    await admin.create(role("strong", rule(["delete"], ["secrets"])))
    await alice.create(role("mine", rule(["delete"], ["secrets"])) if kind == "role" else binding("b", "strong"))


@anyio
async def test_empty_resource_name_does_not_grant_all_names(guarded: ControlPlane) -> None:
    """k8s: resourceNames [""] matches a request without a name, but does not cover a rule for all names."""
    alice = await allow(guarded, MAY_ROLE, rule(["get"], ["secrets"], resourceNames=[""]))
    assert is_allowed(guarded, "get", "secrets", namespace="default")
    assert not is_allowed(guarded, "get", "secrets", namespace="default", name="a")
    await alice.create(role("same", rule(["get"], ["secrets"], resourceNames=[""])))
    for more in (rule(["get"], ["secrets"]), rule(["get"], ["secrets"], resourceNames=["a"])):
        with pytest.raises(Forbidden, match="not currently held"):
            await alice.create(role("more", more))


def paths_rule(*paths: str) -> Manifest:
    return {"nonResourceURLs": list(paths), "verbs": ["get"]}


@anyio
async def test_granting_non_resource_urls_the_user_lacks_is_forbidden(guarded: ControlPlane) -> None:
    alice = await allow(guarded, MAY_ROLE, paths_rule("/debug/*", "/metrics"), cluster=True)
    for fine in ("/debug/a", "/debug/*", "/debug/a/*", "/metrics"):
        await alice.create(role(fine.replace("/", "-").replace("*", "all"), paths_rule(fine), kind="ClusterRole"))
    for more in ("/debug", "/debug*", "/metrics/*", "/*", "*", "/logs"):
        with pytest.raises(Forbidden, match="not currently held"):
            await alice.create(role("more", paths_rule(more), kind="ClusterRole"))


@anyio
async def test_updating_an_aggregated_role_requires_escalate_or_cluster_admin(guarded: ControlPlane) -> None:
    everything = rule(["*"], ["*"], "*")
    alice = await allow(guarded, everything, cluster=True)
    await EmbeddedCluster(guarded).create(
        role("gathering", kind="ClusterRole") | {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {}}]}}
    )
    key = ResourceKey(RBAC, "ClusterRole", "", "gathering")
    assert is_allowed(guarded, "escalate", "clusterroles", group=RBAC)
    bob = await only_update_roles(guarded)
    with pytest.raises(Forbidden, match="must have cluster-admin privileges to use the aggregationRule"):
        await bob.patch(key, {"aggregationRule": None, "metadata": {"labels": {"a": "b"}}})
    await alice.patch(key, {"metadata": {"labels": {"a": "b"}}})


BOB = User("bob", ("system:authenticated",))


async def only_update_roles(plane: ControlPlane) -> EmbeddedCluster:
    """Bob may read and write all resources, but has neither escalate nor bind nor any non-resource URL."""
    admin = EmbeddedCluster(plane)
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    await admin.create(role("bobs", rule(verbs, ["*"], "*"), kind="ClusterRole"))
    who = {"kind": "User", "name": "bob", "apiGroup": RBAC}
    await admin.create(binding("bobs", "bobs", role_kind="ClusterRole", cluster=True, who=who))
    return admin.acting_as(BOB)


@anyio
async def test_escalate_on_a_named_role_does_not_allow_creating_it(guarded: ControlPlane) -> None:
    """k8s: the object name of a POST is not known to the authorizer."""
    alice = await allow(guarded, MAY_ROLE, rule(["escalate"], ["roles"], RBAC, resourceNames=["mine"]))
    with pytest.raises(Forbidden, match="not currently held"):
        await alice.create(role("mine", rule(["delete"], ["secrets"])))
    await alice.create(role("mine"))
    key = ResourceKey(RBAC, "Role", "default", "mine")
    changed = await alice.patch(key, {"rules": [rule(["delete"], ["secrets"])]})
    assert changed["rules"][0]["verbs"] == ["delete"]


@anyio
async def test_removing_role_finalizers_does_not_require_its_rights(guarded: ControlPlane) -> None:
    alice = await allow(guarded, MAY_ROLE)
    await EmbeddedCluster(guarded).create(role("strong", rule(["delete"], ["secrets"]), finalizers=["argosy.dev/x"]))
    key = ResourceKey(RBAC, "Role", "default", "strong")
    with pytest.raises(Forbidden, match="not currently held"):
        await alice.patch(key, {"metadata": {"finalizers": None, "labels": {"a": "b"}}})
    changed = await alice.patch(key, {"metadata": {"finalizers": None}})
    assert "finalizers" not in changed["metadata"]


@anyio
async def test_nested_aggregated_roles_include_transitive_rules(guarded: ControlPlane) -> None:
    admin = EmbeddedCluster(guarded)

    def gathering(name: str, label: str, **metadata: Any) -> Manifest:
        selector = {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]}
        return role(name, kind="ClusterRole", **metadata) | {"aggregationRule": selector}

    await admin.create(gathering("outer", "to-outer", labels={"to-inner": "true"}))
    await admin.create(gathering("inner", "to-inner", labels={"to-outer": "true"}))
    leaf = rule(["delete"], ["secrets"])
    await admin.create(role("leaf", leaf, kind="ClusterRole", labels={"to-inner": "true"}))
    await admin.create(binding("b", "outer", role_kind="ClusterRole", cluster=True))
    assert is_allowed(guarded, "delete", "secrets")


# -- access reviews ---------------------------------------------------------------------------------------------


@anyio
async def test_self_subject_rules_review_lists_the_users_rules(api: Api) -> None:
    alice = await as_alice(api, OWN)
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    answer = await alice.post(path, {"spec": {"namespace": "default"}})
    assert answer.code == 201 and answer.json["spec"] == {}
    own = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}
    assert own in answer.json["status"]["resourceRules"]
    assert (await alice.post(path, {"spec": {}})).message == "no namespace on request"


REVIEWS = [
    ({"resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "default"}}, True),
    ({"resourceAttributes": {"verb": "delete", "resource": "configmaps", "namespace": "default"}}, False),
    ({"resourceAttributes": {"verb": "get", "resource": "configmaps"}}, False),
    ({"nonResourceAttributes": {"verb": "get", "path": "/api"}}, True),
    ({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}, False),
]


@anyio
@pytest.mark.parametrize(("spec", "allowed"), REVIEWS)
async def test_access_reviews_return_what_authorization_decides(api: Api, spec: Manifest, allowed: bool) -> None:
    alice = await as_alice(api, OWN)
    group = "/apis/authorization.k8s.io/v1"
    own = await alice.post(f"{group}/selfsubjectaccessreviews", {"spec": spec})
    assert (own.code, own.json["status"], own.json["spec"]) == (201, {"allowed": allowed}, spec)
    other = {**spec, "user": "alice", "groups": ["system:authenticated"]}
    assert (await api.post(f"{group}/subjectaccessreviews", {"spec": other})).json["status"] == {"allowed": allowed}
    assert (await alice.post(f"{group}/subjectaccessreviews", {"spec": other})).code == 403


@anyio
async def test_access_review_rejects_no_attributes_or_both_kinds(api: Api) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    both = {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/"}}
    for spec in ({}, both):
        assert (await api.post(path, {"spec": spec})).code in (400, 422)


@anyio
async def test_role_can_grant_get_on_its_own_namespace(guarded: ControlPlane) -> None:
    cluster = EmbeddedCluster(guarded)
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}]
    metadata = {"name": "r", "namespace": "default"}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    subject = {"apiGroup": RBAC, "kind": "User", "name": "alice"}
    reference = {"apiGroup": RBAC, "kind": "Role", "name": "r"}
    binding = {**role, "kind": "RoleBinding", "subjects": [subject], "roleRef": reference}
    del binding["rules"]
    await cluster.create(role)
    await cluster.create(binding)
    alice = cluster.acting_as(ALICE)
    assert await alice.get(ResourceKey("", "Namespace", "", "default"))
    with pytest.raises(Forbidden, match='in the namespace "kube-system"'):
        await alice.get(ResourceKey("", "Namespace", "", "kube-system"))

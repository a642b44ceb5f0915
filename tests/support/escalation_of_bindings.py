"""Escalation cases: bindings, aggregated ClusterRoles, and rules that allow impersonation.

In: nothing. Out: tables of cases. Never: the responses of a server; see tests/data/rbac/escalation.json.
"""

from __future__ import annotations

from support.escalation import (
    EVERYTHING,
    GET_PODS,
    OTHER_LABEL,
    RBAC,
    STRONG,
    Case,
    aggregating,
    bind,
    binding,
    cluster_role,
    escalate,
    own,
    paths,
    role,
    rule,
)

BINDINGS = [
    Case("a Role that is held", binding("Role", "target"), own=[GET_PODS], existing=[role(GET_PODS)]),
    Case("a Role that is not held", binding("Role", "target"), own=[GET_PODS], existing=[role(GET_PODS, STRONG)]),
    Case("a Role without rules", binding("Role", "target"), existing=[role()]),
    Case("a Role that is not there", binding("Role", "target")),
    Case("a ClusterRole that is not there", binding("ClusterRole", "$NS-target")),
    Case("a ClusterRole that is not there, everywhere", binding("ClusterRole", "$NS-target", everywhere=True)),
    Case("a Role that is not there, with bind", binding("Role", "target"), own=[bind("roles")]),
    Case("a Role that is not there, with bind by name", binding("Role", "target"), own=[bind("roles", "target")]),
    Case(
        "a ClusterRole in a namespace where it is held",
        binding("ClusterRole", "$NS-target"),
        own=[GET_PODS],
        existing=[cluster_role(GET_PODS)],
    ),
    Case(
        "a ClusterRole in a namespace where it is not held",
        binding("ClusterRole", "$NS-target"),
        own=[GET_PODS],
        existing=[cluster_role(STRONG)],
    ),
    Case(
        "a ClusterRole everywhere that is held in a namespace",
        binding("ClusterRole", "$NS-target", everywhere=True),
        own=[GET_PODS],
        existing=[cluster_role(GET_PODS)],
    ),
    Case(
        "a ClusterRole everywhere that is held everywhere",
        binding("ClusterRole", "$NS-target", everywhere=True),
        everywhere=[GET_PODS],
        existing=[cluster_role(GET_PODS)],
    ),
    Case(
        "a ClusterRole with paths in a namespace",
        binding("ClusterRole", "$NS-target"),
        own=[GET_PODS],
        existing=[cluster_role(GET_PODS, paths("/a"))],
    ),
    Case(
        "cluster-admin in a namespace by who has everything there",
        binding("ClusterRole", "cluster-admin"),
        own=[rule("*", "*", "*")],
    ),
    Case(
        "cluster-admin everywhere", binding("ClusterRole", "cluster-admin", everywhere=True), own=[rule("*", "*", "*")]
    ),
    Case(
        "cluster-admin everywhere by who has everything",
        binding("ClusterRole", "cluster-admin", everywhere=True),
        everywhere=EVERYTHING,
    ),
    Case("bind of Roles", binding("Role", "target"), own=[bind("roles")], existing=[role(STRONG)]),
    Case("bind of a Role by name", binding("Role", "target"), own=[bind("roles", "target")], existing=[role(STRONG)]),
    Case(
        "bind of another Role by name", binding("Role", "target"), own=[bind("roles", "other")], existing=[role(STRONG)]
    ),
    Case("bind of the empty name", binding("Role", "target"), own=[bind("roles", "")], existing=[role(STRONG)]),
    Case(
        "bind of ClusterRoles for a Role",
        binding("Role", "target"),
        own=[bind("clusterroles")],
        existing=[role(STRONG)],
    ),
    Case(
        "bind of a ClusterRole by name in a namespace",
        binding("ClusterRole", "$NS-target"),
        own=[bind("clusterroles", "$NS-target")],
        existing=[cluster_role(STRONG)],
    ),
    Case(
        "bind of Roles for a ClusterRole",
        binding("ClusterRole", "$NS-target"),
        own=[bind("roles")],
        existing=[cluster_role(STRONG)],
    ),
    Case(
        "bind in a namespace for a ClusterRoleBinding",
        binding("ClusterRole", "$NS-target", everywhere=True),
        own=[bind("clusterroles")],
        existing=[cluster_role(STRONG)],
    ),
    Case(
        "bind of ClusterRoles everywhere",
        binding("ClusterRole", "$NS-target", everywhere=True),
        everywhere=[bind("clusterroles")],
        existing=[cluster_role(STRONG)],
    ),
    Case("escalate is not bind", binding("Role", "target"), own=[escalate("roles")], existing=[role(STRONG)]),
    Case(
        "bind of rolebindings",
        binding("Role", "target"),
        own=[rule("bind", "rolebindings", RBAC)],
        existing=[role(STRONG)],
    ),
    Case(
        "one more subject of a strong role",
        binding("Role", "target"),
        existing=[role(STRONG), binding("Role", "target")],
        verb="patch",
        patch={"subjects": []},
    ),
    Case(
        "a label of a binding of a strong role",
        binding("Role", "target"),
        existing=[role(STRONG), binding("Role", "target")],
        verb="patch",
        patch=OTHER_LABEL,
    ),
    Case(
        "a label of a binding of a strong role with bind by name",
        binding("Role", "target"),
        own=[bind("roles", "target")],
        existing=[role(STRONG), binding("Role", "target")],
        verb="patch",
        patch=OTHER_LABEL,
    ),
    Case(
        "nothing of a binding of a strong role",
        binding("Role", "target"),
        existing=[role(STRONG), binding("Role", "target")],
        verb="patch",
        patch={},
    ),
    Case(
        "the finalizers of a binding of a strong role",
        binding("Role", "target"),
        existing=[role(STRONG), binding("Role", "target", finalizers=["example.com/x"])],
        verb="patch",
        patch={"metadata": {"finalizers": None}},
    ),
    Case(
        "another role of a binding, not held",
        binding("Role", "target"),
        existing=[role(STRONG), role(name="weak"), binding("Role", "weak")],
        verb="patch",
        patch={"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "target"}},
    ),
    Case(
        "a ClusterRoleBinding of a Role",
        binding("Role", "target", everywhere=True),
        everywhere=EVERYTHING,
        existing=[role()],
    ),
    Case(
        "a ClusterRoleBinding of a Role, limited", binding("Role", "target", everywhere=True), existing=[role(STRONG)]
    ),
    Case("a roleRef of an unknown kind", binding("Pod", "target")),
    Case(
        "a roleRef of another group",
        binding("Role", "target") | {"roleRef": {"apiGroup": "example.com", "kind": "Role", "name": "target"}},
        existing=[role(STRONG)],
    ),
    Case(
        "a roleRef of another group, held",
        binding("Role", "target") | {"roleRef": {"apiGroup": "example.com", "kind": "Role", "name": "target"}},
        own=[STRONG],
        existing=[role(STRONG)],
    ),
    Case(
        "a roleRef without a group",
        binding("Role", "target") | {"roleRef": {"kind": "Role", "name": "target"}},
        existing=[role(STRONG)],
    ),
    Case("a roleRef without a name", binding("Role", "")),
    Case("no roleRef", {**binding("Role", ""), "roleRef": {}}),
    Case("a roleRef without a name, with bind", binding("Role", ""), own=[bind("roles")]),
    Case("no subjects", binding("Role", "target") | {"subjects": None}, own=[GET_PODS], existing=[role(GET_PODS)]),
    Case(
        "wrong subjects of a strong role",
        binding("Role", "target") | {"subjects": [{"kind": "User"}]},
        existing=[role(STRONG)],
    ),
    Case(
        "a strong role, by a user who is bound to one that is not there",
        binding("Role", "target"),
        existing=[role(STRONG), binding("ClusterRole", "$NS-none", everywhere=True, to="$USER")],
    ),
    Case("apply of a new binding of a strong role", binding("Role", "target"), existing=[role(STRONG)], verb="apply"),
]
AGGREGATION = [
    Case("an aggregating role", aggregating(), own=[GET_PODS]),
    Case("an aggregating role without selectors", cluster_role() | {"aggregationRule": {}}),
    Case("an aggregating role with null", cluster_role() | {"aggregationRule": None}),
    Case("an aggregating role with rules that are not held", aggregating(STRONG)),
    Case("an aggregating role by who has everything but paths", aggregating(), everywhere=[rule("*", "*", "*")]),
    Case(
        "an aggregating role by who has all verbs but escalate",
        aggregating(),
        everywhere=[rule("get list watch create update patch delete", "*", "*"), paths("*", verbs="*")],
    ),
    Case("an aggregating role by who has everything", aggregating(), everywhere=EVERYTHING),
    Case("an aggregating role with escalate", aggregating(), everywhere=[escalate("clusterroles")]),
    Case(
        "an aggregating role with escalate by name", aggregating(), everywhere=[escalate("clusterroles", "$NS-target")]
    ),
    Case(
        "a role that begins to aggregate",
        cluster_role(),
        existing=[cluster_role()],
        verb="patch",
        patch={"aggregationRule": aggregating()["aggregationRule"]},
    ),
    Case(
        "a role that no longer aggregates",
        cluster_role(),
        existing=[aggregating()],
        verb="patch",
        patch={"aggregationRule": None},
    ),
    Case("a label of an aggregating role", cluster_role(), existing=[aggregating()], verb="patch", patch=OTHER_LABEL),
    Case(
        "the finalizers of an aggregating role",
        cluster_role(),
        existing=[aggregating(finalizers=["example.com/x"])],
        verb="patch",
        patch={"metadata": {"finalizers": None}},
    ),
    Case(
        "a label of an aggregating role with escalate by name",
        cluster_role(),
        everywhere=[escalate("clusterroles", "$NS-target")],
        existing=[aggregating()],
        verb="patch",
        patch=OTHER_LABEL,
    ),
    Case(
        "a role that is aggregated, held",
        cluster_role(GET_PODS, labels={"for": "$NS"}),
        everywhere=[GET_PODS],
        existing=[aggregating(name="$NS-aggregating")],
    ),
    Case(
        "a role that is aggregated, not held",
        cluster_role(STRONG, labels={"for": "$NS"}),
        everywhere=[GET_PODS],
        existing=[aggregating(name="$NS-aggregating")],
    ),
]
IMPERSONATION = [
    Case(
        "impersonation of the same user",
        cluster_role(rule("impersonate", "users", names=["bob"])),
        everywhere=[rule("impersonate", "users", names=["bob"])],
    ),
    Case(
        "impersonation of another user",
        cluster_role(rule("impersonate", "users", names=["ann"])),
        everywhere=[rule("impersonate", "users", names=["bob"])],
    ),
    Case(
        "impersonation of a group from that of a user",
        cluster_role(rule("impersonate", "groups")),
        everywhere=[rule("impersonate", "users")],
    ),
    Case(
        "impersonation of all users from that of one",
        cluster_role(rule("impersonate", "users")),
        everywhere=[rule("impersonate", "users", names=["bob"])],
    ),
    Case(
        "impersonation of extras",
        cluster_role(rule("impersonate", "userextras/scopes", "authentication.k8s.io")),
        everywhere=[rule("impersonate", "userextras", "authentication.k8s.io")],
    ),
    Case(
        "impersonation from rights in a namespace",
        cluster_role(rule("impersonate", "serviceaccounts")),
        own=[rule("impersonate", "serviceaccounts")],
    ),
    own(
        "impersonation of accounts of the namespace",
        [rule("impersonate", "serviceaccounts")],
        rule("impersonate", "serviceaccounts", names=["default"]),
    ),
]

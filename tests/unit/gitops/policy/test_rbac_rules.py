"""Argo CD's RBAC rules: requests and their expected decisions."""

from __future__ import annotations

import pytest

from argosy.gitops.application.project_spec import Project, ProjectRole
from argosy.gitops.policy.rbac import RbacEnforcer, RbacPermissions, RbacRequester
from argosy.gitops.policy.rbac_config import read_access_policy
from argosy.gitops.policy.rbac_matcher import PatternMatcher

POLICY = """
p, alice, applications, get, ml/*, allow
p, alice, applications, sync, */*, allow
p, alice, applications, sync, ml/prod-*, deny
p, role:dev, applications, *, dev/*, allow
p, role:dev, applications, delete, dev/kept, deny
p, role:dev, exec, create, dev/*, allow
p, role:pods, applications, delete/*/Pod/*/*, ml/*, allow
p, role:pods, applications, update//ConfigMap/*, ml/*, allow
p, role:restart, applications, action/apps/Deployment/restart, ml/*, allow
p, role:logs, logs, get, ml/team/*, allow
p, role:clusters, clusters, get, "https://{a,b}.example:6443", allow
p, direct-group, projects, update, *, allow
p, bob, extensions, invoke, httpbin, allow
p, proj:ml:ci, clusters, get, *, allow
g, bob, role:dev
g, team, role:pods
g, team, role:restart
g, deep, role:a
g, role:a, role:b
g, role:b, role:logs
g, denied, role:dev
g, denied, role:no
p, role:no, applications, *, */*, deny
g, clusterers, role:clusters
g, loop, role:loop
g, role:loop, loop
"""
OPS_LOGS = "p,proj:ml:ops,logs,get,ml/*,allow"
FOREIGN = "p, proj:ml:ops, applications, get, other/*, allow"
ML = Project(
    name="ml",
    roles=(
        ProjectRole("ci", ("p, proj:ml:ci, applications, sync, ml/*, allow",), ()),
        ProjectRole("ops", ("p, proj:ml:ops, applications, *, ml/*, allow", OPS_LOGS), ("ops-group",)),
        ProjectRole("wide", ("p, proj:ml:wide, applications, get, *, allow",), ("wide-group",)),
        ProjectRole("thief", ("p, alice, applications, delete, ml/*, allow",), ("thieves",)),
        ProjectRole("climber", ("g, carol, role:admin",), ("climbers",)),
        ProjectRole("reacher", ("p, proj:ml:reacher, projects, update, ml, allow",), ("reachers",)),
        ProjectRole("half", ("p, proj:ml:half, applications, get, ml/*, allow", "p, proj:ml:half, deny"), ("halves",)),
    ),
)
OTHER = Project(name="other", roles=(ProjectRole("ops", (FOREIGN,), ("ops-group",)),))


def may(who: str, question: str, policy: str = POLICY, **settings: str) -> bool:
    name, _, groups = who.partition("+")
    data = {"policy.csv": policy} | {key.replace("_", "."): value for key, value in settings.items()}
    asking = RbacRequester(name, tuple(groups.split("+")) if groups else (), name.startswith("proj:"))
    resource, action, thing = question.split(" ")
    return RbacEnforcer(read_access_policy(data), (ML, OTHER)).get_permissions(asking).may(resource, action, thing)


@pytest.mark.parametrize(
    ("who", "question", "expected"),
    [
        ("alice", "applications get ml/app", True),
        ("alice", "applications get ml/team/app", True),  # * matches slashes
        ("alice", "applications get mlx/app", False),
        ("alice", "applications update ml/app", False),
        ("alice", "applications sync dev/app", True),
        ("alice", "applications sync ml/prod-a", False),  # deny wins over allow
        ("alice", "applications delete ml/app", False),  # policies of a project apply only to its own roles
        ("Alice", "applications get ml/app", False),
        ("bob", "applications override dev/a", True),
        ("bob", "applications action/apps/Deployment/restart dev/a", True),
        ("bob", "applications delete dev/kept", False),
        ("bob", "applications delete/apps/ReplicaSet/x/y dev/kept", True),  # only the Application is denied
        ("bob", "exec create dev/a", True),
        ("bob", "extensions invoke httpbin", True),
        ("x+team", "applications delete//Pod/ns/p ml/a", True),
        ("x+team", "applications delete/apps/Deployment/ns/p ml/a", False),
        ("x+team", "applications delete ml/a", False),
        ("x+team", "applications update//ConfigMap/ns/c ml/a", True),
        ("x+team", "applications update ml/a", False),
        ("x+team", "applications action/apps/Deployment/restart ml/a", True),
        ("x+team", "applications action/apps/Deployment/pause ml/a", False),
        ("deep", "logs get ml/team/a", True),
        ("deep", "logs get ml/a", False),
        ("x+direct-group", "projects update p", False),  # argo: a group has permissions only through a role
        ("direct-group", "projects update p", True),
        ("denied", "applications get dev/a", False),
        ("x+denied+team", "applications delete//Pod/ns/p ml/a", True),  # argo: groups are evaluated one by one
        ("x+clusterers", "clusters get https://a.example:6443", True),
        ("x+clusterers", "clusters get https://c.example:6443", False),
        ("loop", "applications get ml/a", False),
        ("admin", "applications delete ml/a", True),
        ("admin", "applications update/apps/Deployment/x/y ml/a", True),
        ("admin", "applications get dev/ns/a", True),
        ("admin", "exec create ml/a", True),
        ("admin", "accounts update alice", True),
        ("admin", "accounts get alice", True),
        ("admin", "extensions invoke httpbin", False),  # argo: role:admin does not include it
        ("x", "applications get ml/a", False),
        ("", "applications get ml/a", False),
        ("role:admin", "applications get ml/a", False),  # a user named like a role does not get its permissions
        ("x+role:admin", "applications get ml/a", False),
        ("x+proj:ml:ops", "applications get ml/a", False),
        # project roles
        ("proj:ml:ci", "applications sync ml/a", True),
        ("proj:ml:ci", "applications get ml/a", False),
        ("proj:ml:ci", "applications sync other/a", False),
        ("proj:ml:ci", "projects get ml", True),
        ("proj:ml:ci", "projects get other", False),
        ("proj:ml:ci", "clusters get https://c", True),  # policy.csv can grant to a project role, too
        ("proj:gone:ci", "applications sync ml/a", False),
        ("x+ops-group", "applications delete ml/a", True),
        ("x+ops-group", "logs get ml/a", True),
        ("x+ops-group", "applications get other/a", False),
        ("x+ops-group", "applications get dev/a", False),
        ("x+ops-group", "projects get ml", True),
        ("x+ops-group", "projects update ml", False),
        ("ops-group", "applications delete ml/a", True),  # argo: the groups of a role may contain user names
        ("x+wide-group", "applications get ml/a", True),
        ("x+wide-group", "applications get other/a", False),
        ("x+thieves", "applications delete ml/a", False),
        ("carol", "applications delete ml/a", False),
        ("x+climbers", "applications get ml/a", False),
        ("x+reachers", "projects update ml", False),
        ("x+halves", "applications get ml/a", False),  # an unreadable line may be a denial
    ],
)  # fmt: skip
def test_rbac_decides_like_argocd(who: str, question: str, expected: bool) -> None:
    assert may(who, question) is expected


ALL = "p, a, applications, get, .*, allow"


@pytest.mark.parametrize(
    ("line", "who", "question", "expected"),
    [
        ("p, a, applications, get, ml/.*, allow", "a", "applications get ml/x", True),
        ("p, a, applications, get, ml/.*, allow", "a", "applications get xml/x", True),  # argo: not anchored
        ("p, a, applications, get, ^ml/.*, allow", "a", "applications get xml/x", False),
        ("p, a, applications, (get|sync), ^ml/[a-c]+$, allow", "a", "applications sync ml/abc", True),
        ("p, a, applications, (get|sync), ^ml/[a-c]+$, allow", "a", "applications sync ml/abd", False),
        (f"{ALL}\np, a, applications, get, */*, allow", "a", "applications get ml/x", False),
        (f"{ALL}\np, a, logs, get, */*, allow", "a", "applications get ml/x", True),
        (f"{ALL}\np, a, applications, get, (?=x), deny", "a", "applications get m/x", False),
        ("g, a, role:admin", "a", "applications delete ml/x", True),
        ("g, a, role:readonly", "a", "applications delete ml/x", False),
        ("g, a, role:readonly", "a", "applications get ml/x", True),
    ],
)
def test_regex_patterns_are_unanchored_and_an_invalid_one_denies(
    line: str, who: str, question: str, expected: bool
) -> None:
    assert may(who, question, line, policy_matchMode="regex") is expected


def test_action_that_is_too_long_for_a_regex_is_denied() -> None:
    policy = "p, a, applications, .*, .*, allow\np, a, applications, (a|b){1000}$, .*, deny"
    assert not may("a", f"applications {'a' * 5_000_000} ml/x", policy, policy_matchMode="regex")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("p, a, applications, get, */*, allow", True),
        ("p, a, applications, get, */*, allow\np, a, applications", False),
        ("p, b, applications\np, a, applications, get, */*, allow", False),  # argo: a malformed line affects all
        ("p, a, applications, get, */*, allow\nwhat", False),
        ("p, a, applications, get, */*, allow\np, a, applications, get, */*, maybe", True),
        ("p, a, applications, get, */*, allow\np, a, applications, get, [ml, deny", False),
        ("p, a, applications, get, [ml, allow", False),
    ],
)
def test_malformed_policy_line_grants_nothing(policy: str, expected: bool) -> None:
    assert may("a", "applications get [ml/x", policy) is expected


def test_default_role_applies_to_everyone_despite_denials() -> None:
    policy = "p, a, applications, get, */*, deny"
    assert may("a", "applications get ml/x", policy, policy_default="role:readonly")
    assert may("", "applications get ml/x", policy, policy_default="role:readonly")
    assert may("proj:ml:ci", "applications get dev/x", policy, policy_default="role:readonly")
    assert not may("a", "applications sync ml/x", policy, policy_default="role:readonly")


def test_role_inheritance_is_followed_for_at_most_ten_memberships() -> None:
    chain = "\n".join(f"g, role:{step}, role:{step + 1}" for step in range(12))
    line = "\np, role:{}, applications, get, */*, allow"
    assert may("a", "applications get ml/x", f"g, a, role:0\n{chain}" + line.format(9))
    assert not may("a", "applications get ml/x", f"g, a, role:0\n{chain}" + line.format(10))


def permissions(who: str, policy: str = POLICY, projects: tuple[Project, ...] = (ML, OTHER)) -> RbacPermissions:
    name, _, groups = who.partition("+")
    asking = RbacRequester(name, tuple(groups.split("+")) if groups else (), name.startswith("proj:"))
    return RbacEnforcer(read_access_policy({"policy.csv": policy}), projects).get_permissions(asking)


def test_equal_permissions_have_equal_digests_and_others_differ() -> None:
    policy = f"{POLICY}\ng, ann, role:readonly\ng, eve, role:readonly\ng, viewers, role:readonly"
    same = {permissions(who, policy).digest for who in ("ann", "eve", "x+viewers")}
    assert len(same) == 1
    others = ["x", "alice", "bob", "admin", "x+team", "x+ops-group", "ann+ops-group", "proj:ml:ci", "proj:ml:ops"]
    assert len({permissions(who, policy).digest for who in others} | same) == len(others) + 1


def test_project_change_alters_the_digest_of_affected_requesters_only() -> None:
    changed = Project(name="ml", roles=(ProjectRole("ops", (), ("ops-group",)),))
    assert permissions("x+ops-group").digest != permissions("x+ops-group", projects=(changed, OTHER)).digest
    assert permissions("bob").digest == permissions("bob", projects=(changed, OTHER)).digest


def test_requesters_with_equal_permissions_share_one_object() -> None:
    policy = read_access_policy({"policy.csv": "g, ann, role:readonly\ng, eve, role:readonly\ng, kim, role:admin"})
    enforcer = RbacEnforcer(policy, (ML, OTHER))
    ann, eve, kim = (enforcer.get_permissions(RbacRequester(name)) for name in ("ann", "eve", "kim"))
    assert ann is eve
    assert ann is not kim
    assert enforcer.get_permissions(RbacRequester("proj:ml:ci", (), True)) is not enforcer.get_permissions(
        RbacRequester("proj:ml:ops", (), True)
    )


@pytest.mark.parametrize(
    ("wide", "narrow", "is_covered"),
    [
        ("*", "team/[ab]*", True),
        ("*/*", "team/*", True),
        ("team/*", "team/models", True),
        ("team/*", "team/*-prod", True),
        ("team/*", "*/*", False),
        ("team/?", "team/*", False),  # ? matches the character *, but not everything that * matches
        ("*b*", "[ab]c", False),
        ("team/models", "team/*", False),
        ("{a,b}", "a", False),  # true, but not proven
    ],
)
def test_glob_covers_another_only_if_that_is_proven(wide: str, narrow: str, is_covered: bool) -> None:
    assert PatternMatcher(is_regex=False).pattern_covers(wide, narrow) is is_covered
    assert not PatternMatcher(is_regex=True).pattern_covers("a.*", "ab")

"""Parsing of argocd-rbac-cm into an AccessPolicy."""

from __future__ import annotations

import pytest

from argosy.gitops.policy.rbac_config import AccessPolicy, RbacGrant, RoleMember, read_access_policy

POLICY = """
# developers may sync
p, role:developer, applications, sync, ml/*, allow
p, role:developer, applications, action/apps/Deployment/*, "ml/*", deny

g, ann@example.com, role:developer
"""


def test_policy_files_are_read_in_order_of_their_names() -> None:
    policy = read_access_policy(
        {
            "policy.csv": POLICY,
            "policy.b.csv": "g, team, role:b",
            "policy.a.csv": "g, team, role:a",
            "policy.default": "role:readonly",
            "policy.matchMode": "regex",
            "scopes": "[groups, email]",
        }
    )
    assert policy == AccessPolicy(
        grants=(
            RbacGrant("role:developer", "applications", "sync", "ml/*", "allow"),
            RbacGrant("role:developer", "applications", "action/apps/Deployment/*", "ml/*", "deny"),
        ),
        members=(
            RoleMember("ann@example.com", "role:developer"),
            RoleMember("team", "role:a"),
            RoleMember("team", "role:b"),
        ),
        default_role="role:readonly",
        scopes=("groups", "email"),
        is_regex=True,
    )


def test_empty_config_map_gives_an_empty_policy() -> None:
    assert read_access_policy({}) == AccessPolicy()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"policy.csv": "\np, role:x, applications, sync, allow"}, "policy.csv line 2: 'p, role:x"),
        ({"policy.csv": "p, role:x, applications, sync, */*, maybe"}, "policy.csv line 1"),
        ({"policy.more.csv": "g, ann"}, "policy.more.csv line 1: 'g, ann' is not a rule; write 'p, subject"),
        ({"policy.csv": "role:x may do everything"}, "is not a rule"),
        ({"policy.matchMode": "exact"}, "policy.matchMode: 'exact' is not valid; write glob or regex"),
        ({"scopes": "groups"}, "scopes: 'groups' is not a list of names"),
        ({"scopes": "[groups"}, "scopes"),
    ],
)
def test_invalid_rbac_entry_is_reported_as_one_fault(data: dict[str, str], words: str) -> None:
    faults = read_access_policy(data).faults
    assert len(faults) == 1 and faults[0].startswith("argocd-rbac-cm: ") and words in faults[0]

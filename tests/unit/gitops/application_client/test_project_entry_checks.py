"""Entries of an AppProject that Argo CD's API refuses, with its messages."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.gitops.application_client.project_entry_checks import check_project

SERVER = "https://prod.example"
POLICY = "p, proj:ml:ci, applications, sync, ml/*, allow"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"destinations": [{"name": "!*", "namespace": "a"}]}, "name has an invalid format, '!*'"),
        ({"destinations": [{"server": SERVER, "namespace": "!*"}]}, "namespace has an invalid format, '!*'"),
        ({"destinations": [{"server": SERVER, "namespace": "a"}] * 2}, f"destination '{SERVER}/a' already added"),
        ({"destinations": [{"name": "prod", "namespace": "a"}] * 2}, "destination 'prod/a' already added"),
        ({"sourceNamespaces": ["a", "b", "a"]}, "source namespace 'a' already added"),
        ({"sourceRepos": ["!*"]}, "source repository has an invalid format, '!*'"),
        ({"sourceRepos": ["*", "*"]}, "source repository '*' already added"),
        ({"roles": [{"name": "ci", "policies": [POLICY, POLICY]}]}, "already exists for role 'ci'"),
        ({"roles": [{"name": "ci", "groups": ["a", "a"]}]}, "group 'a' already exists for role 'ci'"),
        ({"destinationServiceAccounts": [("!abc", "a", "b")]}, "server has an invalid format, '!abc'"),
        ({"destinationServiceAccounts": [("[[ech*", "a", "b")]}, "server has an invalid format, '[[ech*'"),
        ({"destinationServiceAccounts": [(SERVER, "!*", "b")]}, "namespace has an invalid format, '!*'"),
        ({"destinationServiceAccounts": [(SERVER, "a", " ")]}, "defaultServiceAccount has an invalid format, ' '"),
        ({"destinationServiceAccounts": [(SERVER, "a", "b*")]}, "defaultServiceAccount has an invalid format, 'b*'"),
        ({"destinationServiceAccounts": [(SERVER, "a", "b"), (SERVER, "a", "c")]}, f"'{SERVER}/a' already added"),
    ],
)
def test_invalid_or_duplicate_entry_is_refused(spec: dict[str, Any], message: str) -> None:
    fields = ("server", "namespace", "defaultServiceAccount")
    if accounts := spec.get("destinationServiceAccounts"):
        spec = {"destinationServiceAccounts": [dict(zip(fields, account, strict=True)) for account in accounts]}
    with pytest.raises(UserError) as caught:
        check_project("ml", spec)
    assert message in caught.value.message


def test_excluding_and_distinct_entries_are_accepted() -> None:
    check_project("ml", {
        "destinations": [{"server": SERVER, "namespace": "!kube-*"}, {"server": SERVER, "namespace": "*"}],
        "sourceRepos": ["!https://git.example/*", "*"],
        "destinationServiceAccounts": [{"server": "*", "namespace": "", "defaultServiceAccount": "ns:deployer"}],
        "roles": [{"name": "ci", "policies": [POLICY]}, {"name": "cd", "groups": ["ml"]}],
    })  # fmt: skip

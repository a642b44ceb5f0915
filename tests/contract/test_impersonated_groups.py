"""Impersonated users are in the groups that Kubernetes adds, and keep the requested uid and extra."""

from __future__ import annotations

import pytest

from argosy.kube.client import Cluster, User

pytestmark = pytest.mark.anyio

ACCOUNT = "system:serviceaccount:ns:app"
ALL = "system:authenticated"
NONE = "system:unauthenticated"
IMPERSONATED = [
    ("jane", (), [ALL]),
    ("jane", ("devs",), ["devs", ALL]),
    ("jane", (ALL, "devs"), [ALL, "devs"]),
    ("jane", ("system:masters", NONE), ["system:masters", NONE]),
    (ACCOUNT, (), ["system:serviceaccounts", "system:serviceaccounts:ns", ALL]),
    (ACCOUNT, ("devs",), ["devs", ALL]),
    ("system:anonymous", ("system:masters",), ["system:masters", NONE]),
    ("system:anonymous", ("system:masters", NONE), ["system:masters", NONE]),
    ("system:anonymous", ("system:masters", ALL), ["system:masters", ALL, NONE]),
]


@pytest.mark.parametrize(("name", "groups", "expected"), IMPERSONATED)
async def test_impersonated_user_has_requested_and_default_groups(
    cluster: Cluster, name: str, groups: tuple[str, ...], expected: list[str]
) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    result = await cluster.acting_as(User(name, groups)).create(review)
    assert result["status"]["userInfo"] == {"username": name, "groups": expected}


async def test_impersonated_user_has_requested_uid_and_extra(cluster: Cluster) -> None:
    extra = {"scopes": ["read", "write"], "example.com/team": ["ml"]}
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    result = await cluster.acting_as(User("jane", ("devs",), "u-1", extra)).create(review)
    assert result["status"]["userInfo"] == {"username": "jane", "uid": "u-1", "groups": ["devs", ALL], "extra": extra}

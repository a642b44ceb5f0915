"""Checks permissions of an account. In: a name and a request. Out: allowed or not. Never: changes anything."""

from __future__ import annotations

from argosy.gitops.application.project import read_project
from argosy.gitops.policy.rbac import Enforcer, Subjects
from argosy.gitops.policy.rbac_config import RBAC_CM, read_access
from argosy.gitops.policy.roles import role_of
from argosy.kube.client import ClusterReader
from argosy.kube.names import GroupKind, ResourceKey
from argosy.web.auth.accounts import map_data


async def may(
    cluster: ClusterReader, namespace: str, who: str, resource: str, action: str, thing: str
) -> tuple[bool, tuple[str, ...]]:
    """Return whether the request is allowed, and policy errors. `subject`: an account, or a project role name."""
    policy = read_access(map_data(await cluster.get(ResourceKey("", "ConfigMap", namespace, RBAC_CM))))
    found = await cluster.list(GroupKind("argoproj.io", "AppProject"), namespace=namespace)
    enforcer = Enforcer(policy, [read_project(each) for each in found.items])
    asking = Subjects(who, is_project_role=role_of(who) is not None)
    return enforcer.permissions(asking).may(resource, action, thing), policy.faults

"""Checks permissions of an account. In: a name and a request. Out: allowed or not. Never: changes anything."""

from __future__ import annotations

from argosy.gitops.application.project_spec import read_project
from argosy.gitops.policy.builtin_and_project_roles import parse_role_subject
from argosy.gitops.policy.rbac import RbacEnforcer, RbacRequester
from argosy.gitops.policy.rbac_config import RBAC_CM, read_access_policy
from argosy.kube.client import ClusterReader
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APP_PROJECT, CONFIG_MAP
from argosy.web.auth.accounts import read_config_map_data


async def check_permission(
    cluster: ClusterReader, namespace: str, subject: str, resource: str, action: str, rbac_object: str
) -> tuple[bool, tuple[str, ...]]:
    """Return whether the request is allowed, and policy errors. `subject`: an account, or a project role name."""
    policy = read_access_policy(read_config_map_data(await cluster.get(ResourceKey(*CONFIG_MAP, namespace, RBAC_CM))))
    projects = await cluster.list(APP_PROJECT, namespace=namespace)
    enforcer = RbacEnforcer(policy, [read_project(project) for project in projects.items])
    requester = RbacRequester(subject, is_project_role=parse_role_subject(subject) is not None)
    return enforcer.get_permissions(requester).may(resource, action, rbac_object), policy.faults

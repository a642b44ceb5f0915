"""Built-in RBAC roles, and those of projects.

In: AppProjects as values. Out: grants and memberships. Never: raises; lets a project grant anything outside itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from argosy.gitops.application.project_spec import Project, ProjectRole
from argosy.gitops.policy.rbac_config import RbacGrant, RoleMember, split_policy_line

ADMIN_ROLE: Final = "role:admin"
READER_ROLE: Final = "role:readonly"
RESERVED_PREFIXES: Final = ("role:", "proj:")  # prefixes of roles; no user may have such a name
PROJECT_RESOURCES: Final = frozenset({"applications", "applicationsets", "clusters", "exec", "logs", "repositories"})

_ANY_PROJECT_OBJECT, _ANY_OBJECT = "*/*", "*"
# argo: rights of the two built-in roles; an admin also has those of a reader
_READER_OBJECTS: Final = {
    "applications": _ANY_PROJECT_OBJECT,
    "applicationsets": _ANY_PROJECT_OBJECT,
    "logs": _ANY_PROJECT_OBJECT,
    "accounts": _ANY_OBJECT,
    "certificates": _ANY_OBJECT,
    "clusters": _ANY_OBJECT,
    "gpgkeys": _ANY_OBJECT,
    "projects": _ANY_OBJECT,
    "repositories": _ANY_OBJECT,
    "write-repositories": _ANY_OBJECT,
}
_ADMIN_ACTIONS: Final = {
    "applications": "create update update/* delete delete/* sync rollback override action/*",
    "applicationsets": "get create update delete",
    "exec": "create debug",
    "accounts": "update",
    "certificates": "create update delete",
    "clusters": "create update delete",
    "gpgkeys": "create delete",
    "projects": "create update delete",
    "repositories": "create update delete",
    "write-repositories": "create update delete",
}


class RbacRule(NamedTuple):
    """One rule of a subject."""

    resource: str
    action: str
    name: str
    is_allowed: bool


@dataclass(frozen=True, slots=True)
class RbacTable:
    """Rules by subject, and roles by member."""

    rules: dict[str, list[RbacRule]]
    roles: dict[str, list[str]]


def build_rbac_table(grants: Iterable[RbacGrant], members: Iterable[RoleMember]) -> RbacTable:
    table = RbacTable({}, {})
    for grant in grants:
        rule = RbacRule(grant.resource, grant.action, grant.name, grant.effect == "allow")
        table.rules.setdefault(grant.subject, []).append(rule)
    for member in members:
        table.roles.setdefault(member.subject, []).append(member.role)
    return table


def list_builtin_grants(is_regex: bool) -> Iterator[RbacGrant]:
    """Yield the built-in grants. Unlike in Argo CD, they have the same meaning in regex mode."""
    to_pattern = _glob_to_expression if is_regex else str
    for resource, name in _READER_OBJECTS.items():
        yield RbacGrant(READER_ROLE, to_pattern(resource), to_pattern("get"), to_pattern(name), "allow")
    for resource, actions in _ADMIN_ACTIONS.items():
        name = _READER_OBJECTS.get(resource, _ANY_PROJECT_OBJECT)
        for action in actions.split():
            yield RbacGrant(ADMIN_ROLE, to_pattern(resource), to_pattern(action), to_pattern(name), "allow")


def list_builtin_members() -> Iterator[RoleMember]:
    yield RoleMember(ADMIN_ROLE, READER_ROLE)
    yield RoleMember("admin", ADMIN_ROLE)


def format_role_subject(project: str, role: str) -> str:
    """argo: the subject name of a project role in rules."""
    return f"proj:{project}:{role}"


def parse_role_subject(subject: str) -> tuple[str, str] | None:
    """Return project and role of a subject, or None if it is not a project role."""
    match subject.split(":"):
        case ["proj", project, role]:
            return project, role
    return None


def is_reserved(subject: str) -> bool:
    return subject.startswith(RESERVED_PREFIXES)


def list_project_grants(project: Project) -> Iterator[RbacGrant]:
    for role in project.roles:
        subject = format_role_subject(project.name, role.name)
        # argo: a role includes the right to see its project
        yield RbacGrant(subject, "projects", "get", project.name, "allow")
        yield from _list_role_grants(subject, role)


def list_project_members(project: Project) -> Iterator[RoleMember]:
    for role in project.roles:
        for group in role.groups:
            yield RoleMember(group, format_role_subject(project.name, role.name))


def _glob_to_expression(glob: str) -> str:
    return f"^{re.escape(glob).replace(re.escape('*'), '.*')}$"


def _list_role_grants(subject: str, role: ProjectRole) -> list[RbacGrant]:
    """Return no grants if one line is invalid for a project: an unreadable denial must not be ignored."""
    grants: list[RbacGrant] = []
    for policy in role.policies:
        for line in policy.splitlines():
            match split_policy_line(line):
                case []:
                    continue
                case ["p", who, resource, action, name, ("allow" | "deny") as effect] if (
                    who == subject and resource in PROJECT_RESOURCES | {"*"}
                ):
                    grants.append(RbacGrant(subject, resource, action, name, effect))
                case _:
                    return []
    return grants

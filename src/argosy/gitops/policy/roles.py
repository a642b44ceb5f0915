"""Built-in RBAC roles, and those of projects.

In: AppProjects as values. Out: grants and memberships. Never: raises; lets a project grant anything outside itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from argosy.gitops.application.project import Project, Role
from argosy.gitops.policy.rbac_config import Grant, Member, words_of

ADMIN_ROLE: Final = "role:admin"
READER_ROLE: Final = "role:readonly"
RESERVED: Final = ("role:", "proj:")  # prefixes of roles; no user may have such a name
OF_PROJECTS: Final = frozenset({"applications", "applicationsets", "clusters", "exec", "logs", "repositories"})

_WITHIN, _ALONE = "*/*", "*"
# argo: rights of the two built-in roles; an admin also has those of a reader
_READ: Final = {
    "applications": _WITHIN,
    "applicationsets": _WITHIN,
    "logs": _WITHIN,
    "accounts": _ALONE,
    "certificates": _ALONE,
    "clusters": _ALONE,
    "gpgkeys": _ALONE,
    "projects": _ALONE,
    "repositories": _ALONE,
    "write-repositories": _ALONE,
}
_RULED: Final = {
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


class Rule(NamedTuple):
    """One rule of a subject."""

    resource: str
    action: str
    name: str
    is_allowed: bool


@dataclass(frozen=True, slots=True)
class Book:
    """Rules by subject, and roles by member."""

    rules: dict[str, list[Rule]]
    roles: dict[str, list[str]]


def book(grants: Iterable[Grant], members: Iterable[Member]) -> Book:
    made = Book({}, {})
    for grant in grants:
        rule = Rule(grant.resource, grant.action, grant.name, grant.effect == "allow")
        made.rules.setdefault(grant.subject, []).append(rule)
    for member in members:
        made.roles.setdefault(member.subject, []).append(member.role)
    return made


def built_in_grants(is_regex: bool) -> Iterator[Grant]:
    """Yield the built-in grants. Unlike in Argo CD, they have the same meaning in regex mode."""
    written = _as_expression if is_regex else str
    for resource, name in _READ.items():
        yield Grant(READER_ROLE, written(resource), written("get"), written(name), "allow")
    for resource, actions in _RULED.items():
        name = _READ.get(resource, _WITHIN)
        for action in actions.split():
            yield Grant(ADMIN_ROLE, written(resource), written(action), written(name), "allow")


def built_in_members() -> Iterator[Member]:
    yield Member(ADMIN_ROLE, READER_ROLE)
    yield Member("admin", ADMIN_ROLE)


def role_subject(project: str, role: str) -> str:
    """argo: the subject name of a project role in rules."""
    return f"proj:{project}:{role}"


def role_of(subject: str) -> tuple[str, str] | None:
    """Return project and role of a subject, or None if it is not a project role."""
    match subject.split(":"):
        case ["proj", project, role]:
            return project, role
    return None


def is_reserved(subject: str) -> bool:
    return subject.startswith(RESERVED)


def project_grants(project: Project) -> Iterator[Grant]:
    for role in project.roles:
        subject = role_subject(project.name, role.name)
        # argo: a role includes the right to see its project
        yield Grant(subject, "projects", "get", project.name, "allow")
        yield from _role_grants(subject, role)


def project_members(project: Project) -> Iterator[Member]:
    for role in project.roles:
        for group in role.groups:
            yield Member(group, role_subject(project.name, role.name))


def _as_expression(glob: str) -> str:
    return f"^{re.escape(glob).replace(re.escape('*'), '.*')}$"


def _role_grants(subject: str, role: Role) -> list[Grant]:
    """Return no grants if one line is invalid for a project: an unreadable denial must not be ignored."""
    found: list[Grant] = []
    for policy in role.policies:
        for line in policy.splitlines():
            match words_of(line):
                case []:
                    continue
                case ["p", who, resource, action, name, ("allow" | "deny") as effect] if (
                    who == subject and resource in OF_PROJECTS | {"*"}
                ):
                    found.append(Grant(subject, resource, action, name, effect))
                case _:
                    return []
    return found

"""Checks the entries of an AppProject before it is written, as Argo CD's API does.

In: the name and spec of a project. Out: UserError for the first invalid or duplicate entry. Never: looks at
Applications or at another version of the project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn

from argosy.errors import UserError
from argosy.gitops.application.project_spec import Project, ProjectRole, read_project
from argosy.languages.globs import escape_ipv6, is_glob

DENY_ALL: Final = "!*"
DENY_ADVICE: Final = "it permits nothing; remove the entry"
DUPLICATE_ADVICE: Final = "remove one of the two"
_ACCOUNT_CHARACTERS_DENIED: Final = frozenset("!*[]{}\\/")  # argo


def check_project(name: str, spec: Mapping[str, Any]) -> None:
    """argo: AppProject.ValidateProject, and its messages."""
    project = read_project({"metadata": {"name": name}, "spec": spec}, f"AppProject {name}")
    check_entries(project)
    _check_roles(name, project.roles)


def check_entries(project: Project) -> None:
    for destination in project.destinations:
        for field in ("name", "server", "namespace"):
            if getattr(destination, field) == DENY_ALL:
                _reject(f"{field} has an invalid format, '{DENY_ALL}'", DENY_ADVICE)
    destinations = (f"{entry.server or entry.name}/{entry.namespace}" for entry in project.destinations)
    _check_unique(destinations, "destination '{}' already added")
    _check_unique(project.source_namespaces, "source namespace '{}' already added")
    if DENY_ALL in project.source_repos:
        _reject(f"source repository has an invalid format, '{DENY_ALL}'", DENY_ADVICE)
    _check_unique(project.source_repos, "source repository '{}' already added")
    _check_service_accounts(project)


def _check_service_accounts(project: Project) -> None:
    for entry in project.service_accounts:
        for field in ("server", "namespace"):
            pattern = getattr(entry, field)
            if "!" in pattern or not is_glob(escape_ipv6(pattern)):
                _reject(f"{field} has an invalid format, '{pattern}'", "write a glob without an exclamation mark")
        if not entry.account.strip() or _ACCOUNT_CHARACTERS_DENIED & set(entry.account):
            message = f"defaultServiceAccount has an invalid format, '{entry.account}'"
            _reject(message, "write the name of a service account, or NAMESPACE:NAME")
    accounts = (f"{entry.server}/{entry.namespace}" for entry in project.service_accounts)
    _check_unique(accounts, "destinationServiceAccount '{}' already added")


def _check_roles(name: str, roles: Iterable[ProjectRole]) -> None:
    """argo: policies of a role concern its own project only; role names are unique and plain."""
    names: set[str] = set()
    for role in roles:
        if not role.name or role.name in names or not all(char.isalnum() or char in "-_." for char in role.name):
            raise UserError(f"role {role.name[:60]!r}: invalid or duplicate role name; use letters, digits and -_.")
        names.add(role.name)
        _check_unique(role.policies, f"policy '{{}}' already exists for role '{role.name}'")
        _check_unique(role.groups, f"group '{{}}' already exists for role '{role.name}'")
        for policy in role.policies:
            words = [word.strip() for word in policy.split(",")]
            is_own = len(words) == 6 and words[:2] == ["p", f"proj:{name}:{role.name}"]
            if not is_own or not words[4].startswith(f"{name}/") or words[5] not in ("allow", "deny"):
                example = f"p, proj:{name}:{role.name}, applications, get, {name}/*, allow"
                raise UserError(f"role {role.name}: {policy[:120]!r} is not a valid policy; expected: {example}")


def _check_unique(entries: Iterable[str], message: str) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry in seen:
            _reject(message.format(entry), DUPLICATE_ADVICE)
        seen.add(entry)


def _reject(message: str, advice: str) -> NoReturn:
    raise UserError(f"{message}; {advice}")

"""Evaluates Argo CD's RBAC for users.

In: argocd-rbac-cm, the projects, and a subject. Out: `may` answers one request; `digest` is equal for subjects with
equal rights. Never: raises; asks a cluster; caches anything but answers.

A user has several subjects: the default role, the user name, each group. A subject may do what one of its rules allows
and none denies; a user may do what one of the subjects may do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from argosy.gitops.application.project_spec import Project
from argosy.gitops.policy.builtin_and_project_roles import (
    PROJECT_RESOURCES,
    RbacRule,
    RbacTable,
    build_rbac_table,
    is_reserved,
    list_builtin_grants,
    list_builtin_members,
    list_project_grants,
    list_project_members,
    parse_role_subject,
)
from argosy.gitops.policy.rbac_config import AccessPolicy
from argosy.gitops.policy.rbac_matcher import (
    NameMatcher,
    PatternMatcher,
    RbacRuleSet,
    build_access_matcher,
    is_address_allowed,
)
from argosy.gitops.policy.rbac_object_url_spellings import ADDRESS_RESOURCES, list_object_spellings

_MAX_ROLE_DEPTH: Final = 10  # argo: maximum depth of role memberships
_MAX_CACHED_ANSWERS: Final = 20_000  # per requester: some megabytes
_MAX_CACHED_SUBJECTS: Final = 5_000
_EMPTY_TABLE: Final = RbacTable({}, {})


@dataclass(frozen=True, slots=True)
class RbacRequester:
    """The requester: an account or user with groups, a project role, or, without a name, an anonymous user."""

    name: str = ""
    groups: tuple[str, ...] = ()
    is_project_role: bool = False


class RbacEnforcer:
    """All RBAC rules of an installation at one time."""

    def __init__(self, policy: AccessPolicy, projects: Iterable[Project] = ()) -> None:
        self._policy = policy
        self.matcher = PatternMatcher(policy.is_regex)
        grants = chain(list_builtin_grants(policy.is_regex), policy.grants)
        self._global_table = build_rbac_table(grants, chain(list_builtin_members(), policy.members))
        self._project_tables = {
            project.name: build_rbac_table(list_project_grants(project), list_project_members(project))
            for project in projects
        }
        self._projects_by_subject = self._index_projects()
        self._rule_sets: dict[frozenset[RbacRule], RbacRuleSet] = {}
        self._permissions_by_requester: dict[RbacRequester, RbacPermissions] = {}
        self._permissions_by_digest: dict[str, RbacPermissions] = {}

    def get_permissions(self, requester: RbacRequester) -> RbacPermissions:
        """Return the permissions of a requester; one shared value for all with the same rights."""
        if (cached := self._permissions_by_requester.get(requester)) is None:
            if len(self._permissions_by_requester) >= _MAX_CACHED_SUBJECTS:
                self._permissions_by_requester.clear()
                self._permissions_by_digest.clear()
            new_permissions = RbacPermissions(self, requester)
            cached = self._permissions_by_requester[requester] = self._permissions_by_digest.setdefault(
                new_permissions.digest, new_permissions
            )
        return cached

    @property
    def member_names(self) -> set[str]:
        """All subjects that are members of a role."""
        return {*self._global_table.roles, *(name for table in self._project_tables.values() for name in table.roles)}

    def has_project(self, name: str) -> bool:
        return name in self._project_tables

    @property
    def project_names(self) -> tuple[str, ...]:
        return tuple(sorted(self._project_tables))

    def list_rule_sets(self, requester: RbacRequester, project: str = "") -> frozenset[RbacRuleSet]:
        """Return the rules of each subject of the requester, for objects of a project or, without one, of none."""
        if self._policy.is_broken:
            return frozenset()
        project_table = self._project_tables.get(project, _EMPTY_TABLE)
        subjects = [*self._list_subjects(requester, project, project_table)]
        rule_sets = [
            self._build_rule_set(self._expand_roles(subject, project_table), project_table) for subject in subjects
        ]
        for subject in ("", self._policy.default_role):  # argo: these two also count without the rules of the project
            rule_sets += [self._build_rule_set(self._expand_roles(subject, _EMPTY_TABLE), _EMPTY_TABLE)]
        return frozenset(rule_set for rule_set in rule_sets if rule_set.allows_any)

    def list_projects_with_rules(self, requester: RbacRequester) -> set[str]:
        """Return the projects that give the requester additional rules."""
        own_subjects = (self._policy.default_role, requester.name, *requester.groups)
        all_subjects = (
            subject for own_subject in own_subjects for subject in self._expand_roles(own_subject, _EMPTY_TABLE)
        )
        return set().union(*(self._projects_by_subject.get(subject, ()) for subject in all_subjects))

    def _list_subjects(self, requester: RbacRequester, project: str, project_table: RbacTable) -> Iterator[str]:
        if self._policy.default_role:
            yield self._policy.default_role
        if requester.is_project_role:
            project_role = parse_role_subject(requester.name)
            if project_role is not None and (not project or project_role[0] == project):
                yield requester.name
            return
        if not is_reserved(requester.name):
            yield requester.name
        for group in requester.groups:
            # argo: a group counts only through its roles, not by rules that name it
            if not is_reserved(group) and (group in self._global_table.roles or group in project_table.roles):
                yield group

    def _expand_roles(self, subject: str, project_table: RbacTable) -> set[str]:
        reached = {subject}
        frontier = [subject]
        for _ in range(_MAX_ROLE_DEPTH):
            frontier = [
                role
                for member in frontier
                for role in (*self._global_table.roles.get(member, ()), *project_table.roles.get(member, ()))
                if role not in reached
            ]
            if not frontier:
                break
            reached.update(frontier)
        return reached

    def _build_rule_set(self, subjects: set[str], project_table: RbacTable) -> RbacRuleSet:
        rules = frozenset(
            rule
            for subject in subjects
            for rule in (*self._global_table.rules.get(subject, ()), *project_table.rules.get(subject, ()))
        )
        if (rule_set := self._rule_sets.get(rules)) is None:
            rule_set = self._rule_sets[rules] = RbacRuleSet(rules, self.matcher)
        return rule_set

    def _index_projects(self) -> dict[str, set[str]]:
        index: dict[str, set[str]] = {}
        for name, table in self._project_tables.items():
            for subject in (*table.rules, *table.roles):
                index.setdefault(subject, set()).add(name)
        return index


class RbacPermissions:
    """The permissions of a requester; answers are cached."""

    def __init__(self, enforcer: RbacEnforcer, requester: RbacRequester) -> None:
        self._enforcer = enforcer
        self._requester = requester
        self._projects_with_rules = enforcer.list_projects_with_rules(requester)
        self._rule_sets: dict[str, frozenset[RbacRuleSet]] = {}
        self._answers: dict[tuple[str, str, str], bool] = {}
        self._matchers: dict[tuple[str, str, str], NameMatcher] = {}
        self._digest = ""

    def may(self, resource: str, action: str, name: str) -> bool:
        question = (resource, action, name)
        answer = self._answers.get(question)
        if answer is None:
            if len(self._answers) >= _MAX_CACHED_ANSWERS:
                self._answers.clear()
            answer = self._answers[question] = self._decide(resource, action, name)
        return answer

    def _decide(self, resource: str, action: str, name: str) -> bool:
        project = self._find_project_with_rules(resource, name)
        if resource not in ADDRESS_RESOURCES:
            return bool(self._find_matcher(project, resource, action)(name))
        objects = (rule_set.find_patterns(resource, action) for rule_set in self._list_rule_sets(project))
        return is_address_allowed(objects, self._enforcer.matcher, list_object_spellings(resource, name))

    @property
    def digest(self) -> str:
        """Equal for all requesters with the same rights by the same rules."""
        if not self._digest:
            projects = ["", *sorted(self._projects_with_rules)]
            parts = [
                f"{project}={','.join(sorted(rule_set.digest for rule_set in self._list_rule_sets(project)))}"
                for project in projects
            ]
            if self._requester.is_project_role:
                parts += [self._requester.name, *self._enforcer.project_names]
            self._digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        return self._digest

    def covers(self, other: RbacPermissions) -> bool:
        """True if all rights of the other are included; False also if that cannot be proven."""
        projects = {"", *self._enforcer.project_names}
        return all(
            any(own_rules.covers(other_rules) for own_rules in self._list_rule_sets(project))
            for project in projects
            for other_rules in other._list_rule_sets(project)
        )

    def _find_matcher(self, project: str, resource: str, action: str) -> NameMatcher:
        cache_key = (project, resource, action)
        if (matcher := self._matchers.get(cache_key)) is None:
            if len(self._matchers) >= _MAX_CACHED_ANSWERS:
                self._matchers.clear()
            objects = (rule_set.find_patterns(resource, action) for rule_set in self._list_rule_sets(project))
            matcher = self._matchers[cache_key] = build_access_matcher(objects, self._enforcer.matcher)
        return matcher

    def _list_rule_sets(self, project: str) -> frozenset[RbacRuleSet]:
        if (rule_sets := self._rule_sets.get(project)) is None:
            rule_sets = self._rule_sets[project] = self._enforcer.list_rule_sets(self._requester, project)
        return rule_sets

    def _find_project_with_rules(self, resource: str, name: str) -> str:
        """Return the project whose own rules apply, only if they may differ from the general ones."""
        if resource == "projects":
            project = name
        elif resource in PROJECT_RESOURCES and "/" in name:
            project = name.partition("/")[0]
        else:
            return ""
        if self._requester.is_project_role:
            return project if self._enforcer.has_project(project) else ""
        return project if project in self._projects_with_rules else ""

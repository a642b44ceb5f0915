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

from argosy.gitops.application.project import Project
from argosy.gitops.policy.rbac_addresses import ADDRESS_RESOURCES, spell_object
from argosy.gitops.policy.rbac_config import AccessPolicy
from argosy.gitops.policy.rbac_matching import Fits, Matching, RuleSet, judge, judge_address
from argosy.gitops.policy.roles import (
    OF_PROJECTS,
    Book,
    Rule,
    book,
    built_in_grants,
    built_in_members,
    is_reserved,
    project_grants,
    project_members,
    role_of,
)

_FURTHEST: Final = 10  # argo: maximum depth of role memberships
_MOST_ANSWERS: Final = 20_000  # per requester: some megabytes
_MOST_SUBJECTS: Final = 5_000
_NOBODYS: Final = Book({}, {})


@dataclass(frozen=True, slots=True)
class Subjects:
    """The requester: an account or user with groups, a project role, or, without a name, an anonymous user."""

    name: str = ""
    groups: tuple[str, ...] = ()
    is_project_role: bool = False


class Enforcer:
    """All RBAC rules of an installation at one time."""

    def __init__(self, policy: AccessPolicy, projects: Iterable[Project] = ()) -> None:
        self._policy = policy
        self.matching = Matching(policy.is_regex)
        grants = chain(built_in_grants(policy.is_regex), policy.grants)
        self._common = book(grants, chain(built_in_members(), policy.members))
        self._projects = {each.name: book(project_grants(each), project_members(each)) for each in projects}
        self._concerned = self._by_subject()
        self._sets: dict[frozenset[Rule], RuleSet] = {}
        self._permissions: dict[Subjects, Permissions] = {}
        self._shared: dict[str, Permissions] = {}

    def permissions(self, asking: Subjects) -> Permissions:
        """Return the permissions of a requester; one shared value for all with the same rights."""
        if (known := self._permissions.get(asking)) is None:
            if len(self._permissions) >= _MOST_SUBJECTS:
                self._permissions.clear()
                self._shared.clear()
            made = Permissions(self, asking)
            known = self._permissions[asking] = self._shared.setdefault(made.digest, made)
        return known

    @property
    def names(self) -> set[str]:
        """All subjects that are members of a role."""
        return {*self._common.roles, *(name for each in self._projects.values() for name in each.roles)}

    def has_project(self, name: str) -> bool:
        return name in self._projects

    @property
    def project_names(self) -> tuple[str, ...]:
        return tuple(sorted(self._projects))

    def voices(self, asking: Subjects, project: str = "") -> frozenset[RuleSet]:
        """Return the rules of each subject of the requester, for objects of a project or, without one, of none."""
        if self._policy.is_broken:
            return frozenset()
        here = self._projects.get(project, _NOBODYS)
        speaking = [*self._speaking(asking, project, here)]
        heard = [self._rules(self._closure(voice, here), here) for voice in speaking]
        for voice in ("", self._policy.usual):  # argo: these two also count without the rules of the project
            heard += [self._rules(self._closure(voice, _NOBODYS), _NOBODYS)]
        return frozenset(each for each in heard if each.allows_any)

    def concerned(self, asking: Subjects) -> set[str]:
        """Return the projects that give the requester additional rules."""
        voices = (self._policy.usual, asking.name, *asking.groups)
        reached = (subject for voice in voices for subject in self._closure(voice, _NOBODYS))
        return set().union(*(self._concerned.get(subject, ()) for subject in reached))

    def _speaking(self, asking: Subjects, project: str, here: Book) -> Iterator[str]:
        if self._policy.usual:
            yield self._policy.usual
        if asking.is_project_role:
            own = role_of(asking.name)
            if own is not None and (not project or own[0] == project):
                yield asking.name
            return
        if not is_reserved(asking.name):
            yield asking.name
        for group in asking.groups:
            # argo: a group counts only through its roles, not by rules that name it
            if not is_reserved(group) and (group in self._common.roles or group in here.roles):
                yield group

    def _closure(self, voice: str, here: Book) -> set[str]:
        reached = {voice}
        edge = [voice]
        for _ in range(_FURTHEST):
            edge = [
                role
                for each in edge
                for role in (*self._common.roles.get(each, ()), *here.roles.get(each, ()))
                if role not in reached
            ]
            if not edge:
                break
            reached.update(edge)
        return reached

    def _rules(self, subjects: set[str], here: Book) -> RuleSet:
        rules = frozenset(
            rule
            for subject in subjects
            for rule in (*self._common.rules.get(subject, ()), *here.rules.get(subject, ()))
        )
        if (known := self._sets.get(rules)) is None:
            known = self._sets[rules] = RuleSet(rules, self.matching)
        return known

    def _by_subject(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for name, each in self._projects.items():
            for subject in (*each.rules, *each.roles):
                found.setdefault(subject, set()).add(name)
        return found


class Permissions:
    """The permissions of a requester; answers are cached."""

    def __init__(self, enforcer: Enforcer, asking: Subjects) -> None:
        self._enforcer = enforcer
        self._asking = asking
        self._concerned = enforcer.concerned(asking)
        self._voices: dict[str, frozenset[RuleSet]] = {}
        self._answers: dict[tuple[str, str, str], bool] = {}
        self._judges: dict[tuple[str, str, str], Fits] = {}
        self._digest = ""

    def may(self, resource: str, action: str, name: str) -> bool:
        question = (resource, action, name)
        answer = self._answers.get(question)
        if answer is None:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            answer = self._answers[question] = self._decide(resource, action, name)
        return answer

    def _decide(self, resource: str, action: str, name: str) -> bool:
        project = self._project(resource, name)
        if resource not in ADDRESS_RESOURCES:
            return bool(self._judge(project, resource, action)(name))
        objects = (voice.objects(resource, action) for voice in self._heard(project))
        return judge_address(objects, self._enforcer.matching, spell_object(resource, name))

    @property
    def digest(self) -> str:
        """Equal for all requesters with the same rights by the same rules."""
        if not self._digest:
            places = ["", *sorted(self._concerned)]
            told = [f"{place}={','.join(sorted(each.digest for each in self._heard(place)))}" for place in places]
            if self._asking.is_project_role:
                told += [self._asking.name, *self._enforcer.project_names]
            self._digest = hashlib.sha256("\n".join(told).encode()).hexdigest()
        return self._digest

    def covers(self, other: Permissions) -> bool:
        """True if all rights of the other are included; False also if that cannot be proven."""
        projects = {"", *self._enforcer.project_names}
        return all(
            any(own.covers(voice) for own in self._heard(project))
            for project in projects
            for voice in other._heard(project)
        )

    def _judge(self, project: str, resource: str, action: str) -> Fits:
        place = (project, resource, action)
        if (known := self._judges.get(place)) is None:
            if len(self._judges) >= _MOST_ANSWERS:
                self._judges.clear()
            objects = (voice.objects(resource, action) for voice in self._heard(project))
            known = self._judges[place] = judge(objects, self._enforcer.matching)
        return known

    def _heard(self, project: str) -> frozenset[RuleSet]:
        if (known := self._voices.get(project)) is None:
            known = self._voices[project] = self._enforcer.voices(self._asking, project)
        return known

    def _project(self, resource: str, name: str) -> str:
        """Return the project whose own rules apply, only if they may differ from the general ones."""
        if resource == "projects":
            project = name
        elif resource in OF_PROJECTS and "/" in name:
            project = name.partition("/")[0]
        else:
            return ""
        if self._asking.is_project_role:
            return project if self._enforcer.has_project(project) else ""
        return project if project in self._concerned else ""

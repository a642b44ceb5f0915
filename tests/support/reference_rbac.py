"""A second, independent implementation of RBAC policy evaluation: slow and short.

In: policy lines, project policy lines, and a request. Out: allowed or not. Never: uses the evaluator under test.
"""

from __future__ import annotations

import re
from functools import cache

from argosy.gitops.application.project_spec import Project, ProjectRole
from argosy.gitops.policy.rbac import RbacRequester

ROLES = ["role:a", "role:b", "role:readonly", "role:admin", "proj:p:dev", "proj:q:dev"]
NAMES = ["ann", "bob", "team", "crew", "", *ROLES]
RESOURCES = ["applications", "projects", "clusters", "logs", "accounts", "*", "app*"]
OWN = ["applications", "logs", "clusters"]
ACTIONS = ["get", "sync", "update/*", "delete/*/Pod/*/*", "*", "{get,sync}", "action/apps/*"]
OBJECTS = ["*", "*/*", "p/*", "p/a?", "q/*", "p/[ab]1", "*/a1", "p", "q/ns/a1", "p/[!a]*"]
ASKED = [
    (resource, action, name)
    for resource in ("applications", "projects", "clusters", "logs", "accounts")
    for action in ("get", "sync", "update//ConfigMap/n/c", "delete//Pod/n/p", "action/apps/Deployment/restart")
    for name in ("p/a1", "p/b1", "q/a1", "q/ns/a1", "p", "q", "r/a1", "x")
]  # fmt: skip
SIGNS = {"*": ".*", "?": ".", "{": "(?:", "}": ")", ",": "|"}
Line = tuple[str, ...]

BUILT_IN: list[Line] = [("g", "admin", "role:admin"), ("g", "role:admin", "role:readonly")]
for _role, _line in (
    ("role:readonly", "get: applications applicationsets logs accounts clusters projects"),
    ("role:admin", "create: applications projects clusters exec"),
    ("role:admin", "sync: applications"),
    ("role:admin", "update/*: applications"),
    ("role:admin", "delete/*: applications"),
    ("role:admin", "action/*: applications"),
):
    _action, _, _resources = _line.partition(": ")
    _scoped = ("applications", "applicationsets", "logs", "exec")
    BUILT_IN += [("p", _role, r, _action, "*/*" if r in _scoped else "*", "allow") for r in _resources.split()]


@cache
def fits(pattern: str, text: str) -> bool:
    parts = re.findall(r"\[!?[^\]]*\]|.", pattern)
    expression = "".join(p.replace("!", "^") if p[0] == "[" else SIGNS.get(p, re.escape(p)) for p in parts)
    return re.fullmatch(expression, text) is not None


def one_voice(lines: list[Line], voice: str, question: Line) -> bool:
    subjects: set[str] = set()
    voices = {voice}
    while voices != subjects:
        subjects = voices
        voices = subjects | {line[2] for line in lines if line[0] == "g" and line[1] in subjects}
    effects = {
        line[5] for line in lines
        if line[0] == "p" and line[1] in subjects and all(map(fits, line[2:5], question))
    }  # fmt: skip
    return effects == {"allow"}


def expected(
    policy: list[Line], usual: str, projects: dict[str, list[Line]], who: RbacRequester, request: Line
) -> bool:
    lines = BUILT_IN + policy
    resource, _, name = request
    project = name.partition("/")[0] if "/" in name and resource not in ("accounts", "projects") else ""
    project = name if resource == "projects" else project
    own_lines = projects.get(project, [])
    tries = [(lines, ""), *(((lines, usual), (lines + own_lines, usual)) if usual else ())]
    if who.is_project_role:
        if project not in projects or who.name.split(":")[1] == project:
            tries.append((lines + own_lines, who.name))
    else:
        groups = [group for group in who.groups if not group.startswith("role:")]
        groups = [group for group in groups if any(line[:2] == ("g", group) for line in lines + own_lines)]
        tries += [(lines + own_lines, voice) for voice in (who.name, *groups)]
    return any(one_voice(some, voice, request) for some, voice in tries)


def project_lines(name: str, written: list[Line], groups: list[str]) -> list[Line]:
    subject = f"proj:{name}:dev"
    lines: list[Line] = [("p", subject, "projects", "get", name, "allow")]
    return lines + [("p", subject, *line, "allow") for line in written] + [("g", group, subject) for group in groups]


def as_project(name: str, lines: list[Line], groups: list[str]) -> Project:
    written = (", ".join(f'"{word}"' for word in line) for line in lines[1:] if line[0] == "p")
    return Project(name=name, roles=(ProjectRole("dev", tuple(written), tuple(groups)),))

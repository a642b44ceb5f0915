"""Rules about Jobs that wait for something, start something, or ask a cluster without being allowed to.

In: a repository. Out: sights. Never: a permission held missing that may be given elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.advise.commands import Call, calls, singular
from argosy.advise.finding import Severity, Sight
from argosy.advise.mends import in_texts
from argosy.advise.pods import Container, containers, script_of, spec_path
from argosy.advise.repository import Item, Rendering, Repository
from argosy.advise.rules.ordering import PHASES, turn_of
from argosy.advise.rules.rule import Rule
from argosy.model.application.operations import Phase

_JOB: Final = ("batch", "Job")
_RBAC: Final = "rbac.authorization.k8s.io"
_LOOP: Final = re.compile(r"\b(?:until|while)\b")
_STARTS: Final = re.compile(r"\b(oc\s+start-build|tkn\s+pipeline\s+start)\b([^\n;|&]*)")
_AWAITS: Final = re.compile(r"--follow|--wait|--showlog|(?:^|\s)-[Fw]\b")


def _jobs(repository: Repository) -> Iterator[tuple[Rendering, Item, Container, str]]:
    for rendering, item in repository.objects():
        if item.kind == _JOB:
            for container in containers(item):
                yield rendering, item, container, script_of(container)


def _deadlock(repository: Repository) -> Iterator[Sight]:
    for rendering, item, container, script in _jobs(repository):
        turn = turn_of(item)
        if rendering.written is None or turn is None or PHASES[turn[0]] is not Phase.PRE_SYNC:
            continue
        for call in calls(script):
            if call.is_about_going or not (call.verb == "wait" or (call.verb == "get" and _LOOP.search(script))):
                continue
            found = next((each for each in rendering.items if _is_asked_for(call, rendering, item, each)), None)
            later = turn_of(found) if found else None
            if found and later and later[0] > turn[0]:
                message = f"{item.name} runs in PreSync and waits for {found.name}, which is made only afterwards"
                fix = f"make {item.name} a Sync hook in a wave after {found.name}"
                yield Sight(item.at(*container.path), message, fix, item.name, found.name)


def _is_asked_for(call: Call, rendering: Rendering, job: Item, each: Item) -> bool:
    home = call.namespace or rendering.place_of(job)
    is_there = rendering.place_of(each) == home
    return bool(call.name) and each.key.name == call.name and each.key.kind.lower() == call.kind and is_there


def _race(repository: Repository) -> Iterator[Sight]:
    for rendering, item, container, script in _jobs(repository):
        turn = turn_of(item)
        match = _STARTS.search(script)
        if rendering.written is None or turn is None or match is None or _AWAITS.search(match[2]):
            continue
        if _LOOP.search(script) or any(call.verb == "wait" for call in calls(script)):
            continue
        if later := next((each for each in rendering.items if (turn_of(each) or turn) > turn), None):
            message = f"{item.name} starts a build and ends at once: {later.name} of a later wave does not wait for it"
            fix = "wait in the Job (oc start-build --wait, tkn pipeline start --showlog), or in one of the next wave"
            mend = item.mended(in_texts(container.path, _waiting), *container.path)
            yield Sight(item.at(*container.path), message, fix, item.name, mend=mend)


def _waiting(script: str) -> str:
    """The script with a flag that waits, where the call is a plain one on a line of its own."""

    def waits(match: re.Match[str]) -> str:
        flag = "--wait" if match[1].startswith("oc") else "--showlog"
        is_plain = re.fullmatch(r"[\w\s./=:-]*", match[2]) and match[2].strip()
        return f"{match[1]}{match[2].rstrip()} {flag}" if is_plain else match[0]

    return _STARTS.sub(waits, script)


def _not_allowed(repository: Repository) -> Iterator[Sight]:
    for rendering, item, container, script in _jobs(repository):
        path = spec_path(item) or ()
        account = item.text(*path, "serviceAccountName")
        granted = _granted(rendering, account, rendering.place_of(item)) if account else None
        if granted is None:
            continue
        for call in calls(script):
            if call.namespace not in ("", rendering.place_of(item)):
                continue
            verb = "list" if call.verb == "get" and not call.name else "get" if call.verb == "wait" else call.verb
            if not any(_allows(rule, verb, call.kind) for rule in granted):
                message = f"{item.name} asks for {verb} of {call.what}, which its ServiceAccount {account} may not"
                fix = f"add the verb {verb} on {call.what} to a Role of {account}"
                yield Sight(item.at(*container.path), message, fix, item.name, f"{verb} {call.what}")


def _granted(rendering: Rendering, account: str, namespace: str) -> list[Mapping[str, Any]] | None:
    """Every rule that the account has; None where some may be given elsewhere."""
    if not any(each.key.name == account for each in rendering.of("", "ServiceAccount")):
        return None
    found: list[Mapping[str, Any]] = []
    bindings = [*rendering.of(_RBAC, "RoleBinding"), *rendering.of(_RBAC, "ClusterRoleBinding")]
    mine = [each for each in bindings if any(_is_subject(one, account) for one in each.all("subjects"))]
    for binding in mine:
        kind, name = binding.text("roleRef", "kind"), binding.text("roleRef", "name")
        role = next((each for each in rendering.of(_RBAC, kind) if each.key.name == name), None)
        if role is None or "aggregationRule" in role.manifest:
            return None
        found += [rule for rule in role.all("rules") if isinstance(rule, dict)]
    return found if mine else None


def _is_subject(subject: Any, account: str) -> bool:
    return isinstance(subject, dict) and subject.get("kind") == "ServiceAccount" and subject.get("name") == account


def _allows(rule: Mapping[str, Any], verb: str, kind: str) -> bool:
    verbs, resources = rule.get("verbs") or (), rule.get("resources") or ()
    return ("*" in verbs or verb in verbs) and any(
        each == "*" or singular(str(each).partition("/")[0]) == kind for each in resources
    )


RULES: Final = (
    Rule(
        "AGY131",
        Severity.ERROR,
        "A PreSync hook waits for what the sync makes afterwards",
        "The first sync never gets beyond the hook: what it waits for is created only when it has ended.",
        "The hook's script waits for an object by kind and name, and the same Application makes that very object in the"
        " phase after it.",
        "Make it a Sync hook in a wave after the object.",
        _deadlock,
    ),
    Rule(
        "AGY136",
        Severity.WARNING,
        "A Job starts a build and does not wait for it",
        "The wave ends with the Job, not with the build: the next wave uses an image that is not there yet.",
        "The script starts a build or pipeline without a flag that waits, waits in no other way, and has later waves.",
        "Wait in the Job, or with a Job in the next wave; `argosy generate wait-for-image` prints one.",
        _race,
        "by a flag, where the call is a plain one",
    ),
    Rule(
        "AGY137",
        Severity.ERROR,
        "A Job asks a cluster for what its ServiceAccount may not",
        "Each call is answered with Forbidden; a loop around it never ends.",
        "The ServiceAccount, all its bindings that are here and all roles that they name are rendered with the Job, and"
        " no rule in them gives the verb on the kind.",
        "Add the verb and the resource to the Role.",
        _not_allowed,
    ),
)

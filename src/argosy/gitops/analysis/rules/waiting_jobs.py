"""Rules about Jobs that wait, start builds, or call the API server without permission.

In: a repository. Out: violations. Never: reports a missing permission that may be granted elsewhere.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.gitops.analysis.fixes import in_texts
from argosy.gitops.analysis.pod_specs import Container, containers, script_of, spec_path
from argosy.gitops.analysis.repository import Item, Rendering, Repository
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.rules.sync_order import PHASES, turn_of
from argosy.gitops.analysis.script_commands import Call, calls, singular
from argosy.gitops.analysis.shell_loops import find_unset_counters
from argosy.gitops.analysis.violation import Severity, Sight
from argosy.gitops.application.operations import Phase

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
    for rendering in repository.renderings:
        if rendering.written is None:
            continue
        for item, container, awaited in _pre_sync_waits(rendering):
            message = f"{item.name} runs in PreSync and waits for {awaited.name}, which is created only afterwards"
            yield Sight(item.at(*container.path), message, _sync_hook_after(item, awaited), item.name, awaited.name)


def _folder_deadlock(repository: Repository) -> Iterator[Sight]:
    for rendering in _folders_without_application(repository):
        for item, container, awaited in _pre_sync_waits(rendering):
            message = f"{item.name} runs in PreSync and waits for {awaited.name} in the same folder: an Application" \
                      " that delivers the folder creates it only after the hook"  # fmt: skip
            yield Sight(item.at(*container.path), message, _sync_hook_after(item, awaited), item.name, awaited.name)


def _folders_without_application(repository: Repository) -> Iterator[Rendering]:
    """Yield kustomizations and charts that no Application uses, and the plain files of each folder."""
    files = list(repository.loose)
    for rendering in repository.renderings:
        if rendering.written is None and rendering.is_part:
            yield rendering
        elif rendering.written is None:
            files += rendering.items
    by_folder: dict[str, list[Item]] = {}
    for item in files:
        by_folder.setdefault(posixpath.dirname(item.at().file), []).append(item)
    for folder, items in by_folder.items():
        yield Rendering(None, folder, tuple(items))


def _pre_sync_waits(rendering: Rendering) -> Iterator[tuple[Item, Container, Item]]:
    """Yield each PreSync Job, the container that waits, and the object of a later phase that it waits for."""
    for item in rendering.of(*_JOB):
        turn = turn_of(item)
        if turn is None or PHASES[turn[0]] is not Phase.PRE_SYNC:
            continue
        for container in containers(item):
            script = script_of(container)
            for call in calls(script):
                if call.is_about_going or not (call.verb == "wait" or (call.verb == "get" and _LOOP.search(script))):
                    continue
                awaited = next((each for each in rendering.items if _is_asked_for(call, rendering, item, each)), None)
                later = turn_of(awaited) if awaited else None
                if awaited and later and later[0] > turn[0]:
                    yield item, container, awaited


def _sync_hook_after(item: Item, awaited: Item) -> str:
    return f"make {item.name} a Sync hook in a wave after {awaited.name}"


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
            message = f"{item.name} starts a build and ends at once: {later.name} in a later wave does not wait for it"
            fix = "wait in the Job (oc start-build --wait, tkn pipeline start --showlog), or in a Job of the next wave"
            mend = item.mended(in_texts(container.path, _waiting), *container.path)
            yield Sight(item.at(*container.path), message, fix, item.name, mend=mend)


def _waiting(script: str) -> str:
    """Return the script with a flag that waits, if the call is a plain one on its own line."""

    def waits(match: re.Match[str]) -> str:
        flag = "--wait" if match[1].startswith("oc") else "--showlog"
        is_plain = re.fullmatch(r"[\w\s./=:-]*", match[2]) and match[2].strip()
        return f"{match[1]}{match[2].rstrip()} {flag}" if is_plain else match[0]

    return _STARTS.sub(waits, script)


def _unset_counter(repository: Repository) -> Iterator[Sight]:
    everything = (*repository.loose, *(item for _, item in repository.objects()))
    for item in everything:
        for container in containers(item):
            if container.spec.get("envFrom"):
                continue  # it may be set there
            env = container.spec.get("env")
            variables = [each.get("name") for each in env if isinstance(each, dict)] if isinstance(env, list) else []
            for counter in find_unset_counters(script_of(container)):
                if counter.name in variables:
                    continue
                outcome = "set -u ends the script there" if counter.ends_script else "the loop never runs"
                message = f"{item.name} compares ${counter.name} in a wait loop, but sets it only inside the loop:" \
                          f" the first comparison fails, and {outcome}"  # fmt: skip
                fix = f"write {counter.name}=0 before the loop"
                yield Sight(item.at(*container.path), message, fix, item.name, counter.name)


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
                message = f"{item.name} needs {verb} on {call.what}, which its ServiceAccount {account} may not do"
                fix = f"add the verb {verb} on {call.what} to a Role of {account}"
                yield Sight(item.at(*container.path), message, fix, item.name, f"{verb} {call.what}")


def _granted(rendering: Rendering, account: str, namespace: str) -> list[Mapping[str, Any]] | None:
    """Return every rule granted to the account; None if some may be granted elsewhere."""
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
        "A PreSync hook waits for an object that is created later",
        "The first sync never gets past the hook: the object is created only after the hook has finished.",
        "The hook's script waits for an object by kind and name, and the same Application creates that object in the"
        " phase after it.",
        "Make it a Sync hook in a wave after the object.",
        _deadlock,
    ),
    Rule(
        "AGY136",
        Severity.WARNING,
        "A Job starts a build and does not wait for it",
        "The wave ends with the Job, not with the build: the next wave uses an image that does not exist yet.",
        "The script starts a build or pipeline without a flag that waits, waits in no other way, and has later waves.",
        "Wait in the Job, or with a Job in the next wave; `argosy generate wait-for-image` prints one.",
        _race,
        "by adding a flag, if the call is a plain one",
    ),
    Rule(
        "AGY137",
        Severity.ERROR,
        "A Job calls the API server without permission",
        "Each call fails with Forbidden; a loop around it never ends.",
        "The ServiceAccount, all its bindings here and all roles that they name are rendered with the Job,"
        " and no rule in them grants the verb on the kind.",
        "Add the verb and the resource to the Role.",
        _not_allowed,
    ),
    Rule(
        "AGY138",
        Severity.ERROR,
        "The counter of a wait loop is never set",
        "The shell cannot compare a variable that has no value: the test fails, the loop is skipped, and the script"
        " goes on, or fails, without having waited.",
        "The loop compares the variable as a number in `[ ]` or `test` (or the script uses `set -u`) and changes it in"
        " its body; nothing else in the script sets it, the container has it neither from env nor from envFrom, and the"
        " script sources no other file.",
        "Set it before the loop, such as ELAPSED=0; `argosy generate wait-for-image` prints a Job that waits.",
        _unset_counter,
    ),
    Rule(
        "AGY139",
        Severity.WARNING,
        "A PreSync hook waits for an object of its own folder",
        "As soon as an Application delivers the folder, the first sync never gets past the hook: the object is"
        " created only after the hook has finished.",
        "No Application here names the folder, kustomization or chart; its hook waits for an object by kind and name,"
        " and that object is in the same folder, in a later phase. In a folder that an Application names, this is"
        " AGY131.",
        "Make it a Sync hook in a wave after the object.",
        _folder_deadlock,
    ),
)

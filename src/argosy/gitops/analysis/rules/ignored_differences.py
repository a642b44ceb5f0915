"""Rules about ignoreDifferences of Applications.

In: a repository. Out: violations. Never: reports a rule whose objects could not be rendered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from argosy.gitops.analysis.alignment.field_writers import WHOLE, why_too_broad
from argosy.gitops.analysis.fixes import without_ignored
from argosy.gitops.analysis.repository import Item, Rendering, Repository, Written
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.violation import Severity, Sight
from argosy.gitops.application import IgnoreDifference
from argosy.languages import globs

_WHOLE_JQ: Final = frozenset({".", ".spec", ".data", ".metadata"})
# argo: never compared, or removed from both sides before.
_NEVER: Final = ("/status", "/metadata/managedFields", "/metadata/resourceVersion", "/metadata/generation",
                 "/metadata/creationTimestamp", "/metadata/uid", "/metadata/selfLink")  # fmt: skip
_NEVER_JQ: Final = frozenset(pointer.replace("/", ".") for pointer in _NEVER)
_RESPECT: Final = "RespectIgnoreDifferences=true"


def _rules(repository: Repository) -> Iterator[tuple[Rendering, Written, int, IgnoreDifference]]:
    for rendering in repository.renderings:
        if rendering.written:
            for number, rule in enumerate(rendering.written.app.ignored):
                yield rendering, rendering.written, number, rule


def _needless(repository: Repository) -> Iterator[Sight]:
    for rendering, written, number, rule in _rules(repository):
        path = ("spec", "ignoreDifferences", number)
        for place, pointer in enumerate(rule.pointers):
            at = written.at(*path, "jsonPointers", place)
            yield from _judged(written, at, pointer, _is_too_broad(rule, pointer), _is_never(pointer))
        for place, jq in enumerate(rule.jq_paths):
            at = written.at(*path, "jqPathExpressions", place)
            is_whole = jq.strip() in _WHOLE_JQ and _is_too_broad(rule, jq.strip().replace(".", "/"))
            yield from _judged(written, at, jq, is_whole, jq.strip() in _NEVER_JQ)
        if rendering.items and not rendering.fault and not any(_is_about(rule, rendering, i) for i in rendering.items):
            named = "/".join(filter(None, (rule.group, rule.kind, rule.name)))
            message = f"{written.name} has no {named}: this rule matches nothing"
            fix = "remove the rule, or correct its group, kind and name"
            yield Sight(written.at(*path), message, fix, written.item.name, f"spec.ignoreDifferences[{number}]")


def _judged(written: Written, at: Any, text: str, is_whole: bool, is_never: bool) -> Iterator[Sight]:
    if is_whole:
        message = f"{text or 'the empty pointer'} ignores everything below it: changes in Git are never detected"
        fix = "name each field that others write"
        yield Sight(at, message, fix, written.item.name, text, Severity.WARNING)
    elif is_never:
        message = f"{text} is never compared: the rule has no effect"
        mend = written.item.mended(without_ignored(text), "spec", "ignoreDifferences")
        yield Sight(at, message, "remove it", written.item.name, text, mend=mend)


def _is_too_broad(rule: IgnoreDifference, pointer: str) -> bool:
    """False if an operator owns the whole spec of the kind."""
    return bool(why_too_broad(rule.group, rule.kind, pointer))


def _is_never(pointer: str) -> bool:
    return any(pointer == each or pointer.startswith(f"{each}/") for each in _NEVER)


def _is_about(rule: IgnoreDifference, rendering: Rendering, item: Item) -> bool:
    if rule.name and rule.name != item.key.name:
        return False
    if rule.namespace and rule.namespace != rendering.place_of(item):
        return False
    return globs.matches(rule.group, item.key.group) and globs.matches(rule.kind, item.key.kind)


def _not_respected(repository: Repository) -> Iterator[Sight]:
    for rendering, written, number, rule in _rules(repository):
        if _RESPECT in written.app.policy.options:
            continue
        for place, pointer in enumerate(rule.pointers):
            if pointer in WHOLE or _is_never(pointer):
                continue
            steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
            typed = [int(step) if step.isdecimal() else step for step in steps]
            found = (i for i in rendering.items if _is_about(rule, rendering, i) and i.value(*typed) is not None)
            if item := next(found, None):
                value = item.value(*typed)
                shown = f" ({value})" if isinstance(value, int | str) and len(str(value)) < 20 else ""
                message = f"{item.name} has {pointer} in Git{shown}, so every sync writes it even though it is ignored"
                fix = f"add {_RESPECT} to spec.syncPolicy.syncOptions, or remove the field from Git"
                at = written.at("spec", "ignoreDifferences", number, "jsonPointers", place)
                yield Sight(at, message, fix, written.item.name, pointer)


RULES: Final = (
    Rule(
        "AGY113",
        Severity.INFO,
        "An ignore rule is too broad, has no effect, or matches nothing",
        "A rule for a whole spec hides every change in Git; that is correct only for kinds whose spec an operator owns."
        " A rule for fields that are never compared, or for a kind that the Application does not have, only confuses"
        " the next reader.",
        "Status, managedFields and other fields maintained by the server are excluded from every comparison by default;"
        " and all objects of the Application were rendered, so that a kind that is not among them does not exist.",
        "Name the one field that another controller writes; remove the other rules.",
        _needless,
        "by removing rules for fields that are never compared; you decide about the others",
    ),
    Rule(
        "AGY114",
        Severity.WARNING,
        "An ignored field is still written by each sync",
        "A field that a controller sets, such as the replicas of an autoscaler, is reset to Git's value by every"
        " sync, and changes again afterwards.",
        "The field is in Git, a rule ignores it, and the sync option that respects ignored fields is not set:"
        " ignoreDifferences affects the comparison only.",
        "Add RespectIgnoreDifferences=true to the sync options, or remove the field from Git.",
        _not_respected,
    ),
)

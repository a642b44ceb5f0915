"""Rules about ignoreDifferences of Applications.

In: a repository. Out: violations. Never: reports a rule whose objects could not be rendered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from argosy.gitops.analysis.alignment.field_writer_catalog import WHOLE_OBJECT_POINTERS, find_broadness_reason
from argosy.gitops.analysis.fix_edit_builders import remove_ignored_field
from argosy.gitops.analysis.repository_view import (
    ApplicationDeclaration,
    ManifestWithLocations,
    RenderedSource,
    RepositoryView,
)
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import Severity, Violation
from argosy.gitops.application import IgnoreDifference
from argosy.languages import globs

_WHOLE_OBJECT_JQ: Final = frozenset({".", ".spec", ".data", ".metadata"})
# argo: never compared, or removed from both sides before.
_NEVER_COMPARED_POINTERS: Final = (
    "/status",
    "/metadata/managedFields",
    "/metadata/resourceVersion",
    "/metadata/generation",
    "/metadata/creationTimestamp",
    "/metadata/uid",
    "/metadata/selfLink",
)
_NEVER_COMPARED_JQ: Final = frozenset(pointer.replace("/", ".") for pointer in _NEVER_COMPARED_POINTERS)
_RESPECT_OPTION: Final = "RespectIgnoreDifferences=true"


def _list_ignore_rules(
    repository: RepositoryView,
) -> Iterator[tuple[RenderedSource, ApplicationDeclaration, int, IgnoreDifference]]:
    for rendering in repository.renderings:
        if rendering.declaration:
            for index, rule in enumerate(rendering.declaration.app.ignore_rules):
                yield rendering, rendering.declaration, index, rule


def _find_broad_or_useless_rules(repository: RepositoryView) -> Iterator[Violation]:
    for rendering, declaration, index, rule in _list_ignore_rules(repository):
        path = ("spec", "ignoreDifferences", index)
        for position, pointer in enumerate(rule.pointers):
            location = declaration.find_location(*path, "jsonPointers", position)
            yield from _check_pointer(
                declaration, location, pointer, _is_too_broad(rule, pointer), _is_never_compared(pointer)
            )
        for position, jq in enumerate(rule.jq_paths):
            location = declaration.find_location(*path, "jqPathExpressions", position)
            is_too_broad = jq.strip() in _WHOLE_OBJECT_JQ and _is_too_broad(rule, jq.strip().replace(".", "/"))
            yield from _check_pointer(declaration, location, jq, is_too_broad, jq.strip() in _NEVER_COMPARED_JQ)
        if (
            rendering.items
            and not rendering.failure
            and not any(_matches_item(rule, rendering, item) for item in rendering.items)
        ):
            target_text = "/".join(filter(None, (rule.group, rule.kind, rule.name)))
            message = f"{declaration.name} has no {target_text}: this rule matches nothing"
            fix = "remove the rule, or correct its group, kind and name"
            yield Violation(
                declaration.find_location(*path),
                message,
                fix,
                declaration.item.name,
                f"spec.ignoreDifferences[{index}]",
            )


def _check_pointer(
    declaration: ApplicationDeclaration, location: Any, text: str, is_too_broad: bool, is_never_compared: bool
) -> Iterator[Violation]:
    if is_too_broad:
        message = f"{text or 'the empty pointer'} ignores everything below it: changes in Git are never detected"
        fix = "name each field that others write"
        yield Violation(location, message, fix, declaration.item.name, text, Severity.WARNING)
    elif is_never_compared:
        message = f"{text} is never compared: the rule has no effect"
        file_fix = declaration.item.build_fix(remove_ignored_field(text), "spec", "ignoreDifferences")
        yield Violation(location, message, "remove it", declaration.item.name, text, file_fix=file_fix)


def _is_too_broad(rule: IgnoreDifference, pointer: str) -> bool:
    """False if an operator owns the whole spec of the kind."""
    return bool(find_broadness_reason(rule.group, rule.kind, pointer))


def _is_never_compared(pointer: str) -> bool:
    return any(
        pointer == known_pointer or pointer.startswith(f"{known_pointer}/")
        for known_pointer in _NEVER_COMPARED_POINTERS
    )


def _matches_item(rule: IgnoreDifference, rendering: RenderedSource, item: ManifestWithLocations) -> bool:
    if rule.name and rule.name != item.key.name:
        return False
    if rule.namespace and rule.namespace != rendering.resolve_namespace(item):
        return False
    return globs.matches_glob(rule.group, item.key.group) and globs.matches_glob(rule.kind, item.key.kind)


def _find_ignored_but_synced_fields(repository: RepositoryView) -> Iterator[Violation]:
    for rendering, declaration, index, rule in _list_ignore_rules(repository):
        if _RESPECT_OPTION in declaration.app.policy.options:
            continue
        for position, pointer in enumerate(rule.pointers):
            if pointer in WHOLE_OBJECT_POINTERS or _is_never_compared(pointer):
                continue
            steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
            path = [int(step) if step.isdecimal() else step for step in steps]
            matches = (
                candidate
                for candidate in rendering.items
                if _matches_item(rule, rendering, candidate) and candidate.get_value(*path) is not None
            )
            if item := next(matches, None):
                value = item.get_value(*path)
                value_text = f" ({value})" if isinstance(value, int | str) and len(str(value)) < 20 else ""
                message = (
                    f"{item.name} has {pointer} in Git{value_text}, so every sync writes it even though it is ignored"
                )
                fix = f"add {_RESPECT_OPTION} to spec.syncPolicy.syncOptions, or remove the field from Git"
                location = declaration.find_location("spec", "ignoreDifferences", index, "jsonPointers", position)
                yield Violation(location, message, fix, declaration.item.name, pointer)


RULES: Final = (
    AnalysisRule(
        "AGY113",
        Severity.INFO,
        "An ignore rule is too broad, has no effect, or matches nothing",
        "A rule for a whole spec hides every change in Git; that is correct only for kinds whose spec an operator owns."
        " A rule for fields that are never compared, or for a kind that the Application does not have, only confuses"
        " the next reader.",
        "Status, managedFields and other fields maintained by the server are excluded from every comparison by default;"
        " and all objects of the Application were rendered, so that a kind that is not among them does not exist.",
        "Name the one field that another controller writes; remove the other rules.",
        _find_broad_or_useless_rules,
        "by removing rules for fields that are never compared; you decide about the others",
    ),
    AnalysisRule(
        "AGY114",
        Severity.WARNING,
        "An ignored field is still written by each sync",
        "A field that a controller sets, such as the replicas of an autoscaler, is reset to Git's value by every"
        " sync, and changes again afterwards.",
        "The field is in Git, a rule ignores it, and the sync option that respects ignored fields is not set:"
        " ignoreDifferences affects the comparison only.",
        "Add RespectIgnoreDifferences=true to the sync options, or remove the field from Git.",
        _find_ignored_but_synced_fields,
    ),
)

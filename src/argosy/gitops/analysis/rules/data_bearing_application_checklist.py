"""Rules of profiles: checklists that an Application opts in to.

In: a repository. Out: violations. Never: checks an Application against a profile that was not requested for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy import annotations as names
from argosy.gitops.analysis.fix_edit_builders import BuildEdits, add_sync_option, set_value
from argosy.gitops.analysis.repository_view import ApplicationDeclaration, PathStep, RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import FileFix, Severity, Violation

DATA_BEARING: Final = "data-bearing"
PROFILES: Final = (DATA_BEARING,)
_REQUIRED_OPTIONS: Final = (
    "CreateNamespace=true",
    "PruneLast=true",
    "RespectIgnoreDifferences=true",
    "ApplyOutOfSyncOnly=true",
)
_RELEASE_REF: Final = re.compile(r"main|master|HEAD||v?\d+(?:\.\d+)*(?:[-+].*)?|[0-9a-f]{7,64}|refs/tags/.+")
_SYNC_POLICY_PATH: Final = ("spec", "syncPolicy")
_DEFAULT_RETRY: Final = {"limit": 3, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m"}}


def _find_profile_violations(repository: RepositoryView) -> Iterator[Violation]:
    for declaration in repository.applications:
        profile = declaration.item.get_map("metadata", "annotations").get(names.PROFILE) or repository.profile
        if profile == DATA_BEARING:
            yield from _check_data_bearing(declaration)
        elif profile:
            message = f"{declaration.name} names the profile {profile}, which does not exist"
            location = declaration.find_location("metadata", "annotations", names.PROFILE)
            yield Violation(
                location, message, f"use one of {', '.join(PROFILES)}", declaration.item.name, names.PROFILE
            )


def _check_data_bearing(declaration: ApplicationDeclaration) -> Iterator[Violation]:
    yield from _check_branch(declaration)
    for option in _REQUIRED_OPTIONS:
        if option not in declaration.app.policy.options:
            message = f"{declaration.name} holds data, and has no sync option {option}"
            path = (*_SYNC_POLICY_PATH, "syncOptions")
            yield _build_violation(
                declaration, path, message, f"add {option} to {'.'.join(path)}", add_sync_option(option), option
            )
    yield from _check_automation(declaration)
    if declaration.app.policy.retry is None or declaration.app.policy.retry.limit == 0:
        message = f"{declaration.name} holds data, and does not retry a failed sync"
        path = (*_SYNC_POLICY_PATH, "retry")
        yield _build_violation(
            declaration,
            path,
            message,
            "set spec.syncPolicy.retry: limit 3, backoff 5s, factor 2, maxDuration 3m",
            set_value(path, _DEFAULT_RETRY),
        )
    if not declaration.item.get_list("spec", "info"):
        message = f"{declaration.name} holds data, and does not name an owner"
        yield _build_violation(
            declaration, ("spec", "info"), message, "add an entry to spec.info: the owner, or a documentation link"
        )


def _check_branch(declaration: ApplicationDeclaration) -> Iterator[Violation]:
    for index, source in enumerate(declaration.app.sources):
        if not source.chart and not _RELEASE_REF.fullmatch(source.ref):
            path = ("spec", "sources", index) if declaration.app.has_many_sources else ("spec", "source")
            message = f"{declaration.name} holds data, and follows {source.ref} instead of main or a release"
            yield _build_violation(declaration, (*path, "targetRevision"), message, "follow main, or a tag")


def _check_automation(declaration: ApplicationDeclaration) -> Iterator[Violation]:
    automated = declaration.app.policy.automated
    if automated is None or not automated.is_on:
        return
    for field, is_set, effect in (
        ("prune", automated.prune, "deletes objects automatically when they are removed from Git"),
        ("selfHeal", automated.self_heal, "reverts changes in the cluster automatically, including a restore"),
    ):
        if is_set:
            path = (*_SYNC_POLICY_PATH, "automated", field)
            message = f"{declaration.name} holds data, and {effect}"
            yield _build_violation(declaration, path, message, f"set {field}: false", set_value(path, False))


def _build_violation(
    declaration: ApplicationDeclaration,
    path: tuple[PathStep, ...],
    message: str,
    fix: str,
    edits: BuildEdits | None = None,
    suffix: str = "",
) -> Violation:
    file_fix: FileFix | None = declaration.item.build_fix(edits, "spec") if edits else None
    field = ".".join(map(str, path)) + (f" {suffix}" if suffix else "")
    return Violation(declaration.find_location(*path), message, fix, declaration.item.name, field, file_fix=file_fix)


RULES: Final = (
    AnalysisRule(
        "AGY117",
        Severity.WARNING,
        "An Application that holds data does not follow its checklist",
        "Data is lost by a merge, by a sync that fails halfway, or because the owner is unknown.",
        "The Application opts in (argosy.dev/profile: data-bearing), or --profile does. The checklist: it follows main"
        " or a release; it has the sync options CreateNamespace, PruneLast, RespectIgnoreDifferences and"
        " ApplyOutOfSyncOnly; it neither prunes nor self-heals automatically; it retries; it has info entries. Secrets"
        " in Git are checked in any case. An ignore rule for managedFields, resourceVersion and generation of all kinds"
        " is not required, because these are never compared; and whether it was tested elsewhere first cannot be"
        " checked.",
        "Follow the checklist, or remove the annotation.",
        _find_profile_violations,
        "except for the branch and the info entries",
    ),
)

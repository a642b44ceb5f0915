"""Rules of profiles: checklists that an Application opts in to.

In: a repository. Out: violations. Never: checks an Application against a profile that was not requested for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy import annotations as names
from argosy.gitops.analysis.fixes import Edits, with_sync_option, written
from argosy.gitops.analysis.repository import Repository, Step, Written
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.violation import Mend, Severity, Sight

DATA_BEARING: Final = "data-bearing"
PROFILES: Final = (DATA_BEARING,)
_OPTIONS: Final = ("CreateNamespace=true", "PruneLast=true", "RespectIgnoreDifferences=true", "ApplyOutOfSyncOnly=true")
_RELEASED: Final = re.compile(r"main|master|HEAD||v?\d+(?:\.\d+)*(?:[-+].*)?|[0-9a-f]{7,64}|refs/tags/.+")
_POLICY: Final = ("spec", "syncPolicy")
_RETRY: Final = {"limit": 3, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m"}}


def _unkept(repository: Repository) -> Iterator[Sight]:
    for each in repository.applications:
        asked = each.item.fields("metadata", "annotations").get(names.PROFILE) or repository.profile
        if asked == DATA_BEARING:
            yield from _data_bearing(each)
        elif asked:
            message = f"{each.name} names the profile {asked}, which does not exist"
            place = each.at("metadata", "annotations", names.PROFILE)
            yield Sight(place, message, f"use one of {', '.join(PROFILES)}", each.item.name, names.PROFILE)


def _data_bearing(each: Written) -> Iterator[Sight]:
    yield from _branch(each)
    for option in _OPTIONS:
        if option not in each.app.policy.options:
            message = f"{each.name} holds data, and has no sync option {option}"
            path = (*_POLICY, "syncOptions")
            yield _sight(each, path, message, f"add {option} to {'.'.join(path)}", with_sync_option(option), option)
    yield from _by_itself(each)
    if each.app.policy.retry is None or each.app.policy.retry.limit == 0:
        message = f"{each.name} holds data, and does not retry a failed sync"
        path = (*_POLICY, "retry")
        yield _sight(each, path, message, "set spec.syncPolicy.retry: limit 3, backoff 5s, factor 2, maxDuration 3m",
                     written(path, _RETRY))  # fmt: skip
    if not each.item.all("spec", "info"):
        message = f"{each.name} holds data, and does not name an owner"
        yield _sight(each, ("spec", "info"), message, "add an entry to spec.info: the owner, or a documentation link")


def _branch(each: Written) -> Iterator[Sight]:
    for number, source in enumerate(each.app.sources):
        if not source.chart and not _RELEASED.fullmatch(source.ref):
            path = ("spec", "sources", number) if each.app.has_many_sources else ("spec", "source")
            message = f"{each.name} holds data, and follows {source.ref} instead of main or a release"
            yield _sight(each, (*path, "targetRevision"), message, "follow main, or a tag")


def _by_itself(each: Written) -> Iterator[Sight]:
    automated = each.app.policy.automated
    if automated is None or not automated.is_on:
        return
    for field, is_set, what in (
        ("prune", automated.prune, "deletes objects automatically when they are removed from Git"),
        ("selfHeal", automated.self_heal, "reverts changes in the cluster automatically, including a restore"),
    ):
        if is_set:
            path = (*_POLICY, "automated", field)
            message = f"{each.name} holds data, and {what}"
            yield _sight(each, path, message, f"set {field}: false", written(path, False))


def _sight(
    each: Written, path: tuple[Step, ...], message: str, fix: str, edits: Edits | None = None, more: str = ""
) -> Sight:
    mend: Mend | None = each.item.mended(edits, "spec") if edits else None
    field = ".".join(map(str, path)) + (f" {more}" if more else "")
    return Sight(each.at(*path), message, fix, each.item.name, field, mend=mend)


RULES: Final = (
    Rule(
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
        _unkept,
        "except for the branch and the info entries",
    ),
)

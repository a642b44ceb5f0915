"""Checklists that an Application asks to be held against.

In: a repository. Out: sights. Never: holds an Application against a list that nobody named for it.
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
            message = f"{each.name} names the profile {asked}, which there is not"
            place = each.at("metadata", "annotations", names.PROFILE)
            yield Sight(place, message, f"write one of {', '.join(PROFILES)}", each.item.name, names.PROFILE)


def _data_bearing(each: Written) -> Iterator[Sight]:
    yield from _branch(each)
    for option in _OPTIONS:
        if option not in each.app.policy.options:
            message = f"{each.name} holds data, and has no sync option {option}"
            path = (*_POLICY, "syncOptions")
            yield _sight(each, path, message, f"add {option} to {'.'.join(path)}", with_sync_option(option), option)
    yield from _by_itself(each)
    if each.app.policy.retry is None or each.app.policy.retry.limit == 0:
        message = f"{each.name} holds data, and does not try again when a sync fails"
        path = (*_POLICY, "retry")
        yield _sight(each, path, message, "set a retry: 3 times, after 5s, twice as long each time, at most 3m",
                     written(path, _RETRY))  # fmt: skip
    if not each.item.all("spec", "info"):
        message = f"{each.name} holds data, and does not say whose it is"
        yield _sight(each, ("spec", "info"), message, "add an entry to spec.info: the owner, or where it is described")


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
        ("prune", automated.prune, "deletes by itself what leaves Git"),
        ("selfHeal", automated.self_heal, "undoes by itself what is changed in the cluster, a restore too"),
    ):
        if is_set:
            path = (*_POLICY, "automated", field)
            message = f"{each.name} holds data, and {what}"
            yield _sight(each, path, message, f"write {field}: false", written(path, False))


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
        "An Application that holds data does not keep its checklist",
        "Data is lost by a merge, by a sync that fails half way, or by somebody who did not know whom to ask.",
        "The Application asks for it (argosy.dev/profile: data-bearing), or --profile does. The list: it follows main"
        " or a release; it has the sync options CreateNamespace, PruneLast, RespectIgnoreDifferences and"
        " ApplyOutOfSyncOnly; it neither prunes nor heals by itself; it retries; it has info entries. That no secret is"
        " in Git is looked at in any case. A rule that ignores managedFields, resourceVersion and generation of"
        " everything is not asked for, because these are not compared anyway; and whether it was tried elsewhere first"
        " is for you to know.",
        "Follow the list, or take the annotation away.",
        _unkept,
        "but for the branch and the info entries",
    ),
)

"""The catalogue of rules, and the functions that run them.

In: a repository or an installation. Out: findings by file and line, each once. Never: a rule without a description.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.live_view import LiveView
from argosy.gitops.analysis.repository import Repository
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.rules import (
    applications,
    gating,
    history,
    hygiene,
    ignored_differences,
    notebooks,
    other_linters,
    patches,
    profiles,
    projects,
    quotas,
    schemas,
    serving,
    sync_order,
    values_files,
    waiting_jobs,
)
from argosy.gitops.analysis.rules.live import (
    application_sets,
    destinations,
    drift,
    health_checks,
    settings,
    sign_in,
    sources,
    stalled_syncs,
    windows,
    workloads,
)

_FAMILIES: Final = (
    *(
        applications,
        history,
        ignored_differences,
        profiles,
        sync_order,
        waiting_jobs,
        gating,
        schemas,
        serving,
        quotas,
        patches,
    ),
    *(notebooks, values_files, other_linters, hygiene, projects),
    *(
        drift,
        stalled_syncs,
        sources,
        workloads,
        health_checks,
        destinations,
        application_sets,
        windows,
        sign_in,
        settings,
    ),
)
CATALOGUE: Final[Mapping[str, Rule]] = {
    rule.id: rule for rule in sorted((rule for family in _FAMILIES for rule in family.RULES), key=lambda one: one.id)
}
FAMILIES: Final = {
    "1": "GitOps",
    "2": "Serving",
    "3": "Notebooks",
    "4": "Health checks",
    "5": "Live diagnosis",
    "6": "Security and hygiene",
}


def look_at(repository: Repository, rules: Iterable[Rule] = CATALOGUE.values()) -> list[Finding]:
    """Run the rules of `argosy check`; a violation in a base that several overlays share is reported once."""
    found: dict[tuple[str, str, int, str], Finding] = {}
    for rule in rules:
        for sight in rule.look(repository):
            found.setdefault((rule.id, sight.place.file, sight.place.line, sight.message), Finding(rule, sight))
    return sorted(found.values(), key=lambda one: (one.place.file, one.place.line, one.rule.id, one.sight.message))


def diagnose(view: LiveView) -> list[Finding]:
    """Run the live rules and add violations that callers reported; the worst first."""
    refusals = windows.find_refused_syncs(view)
    found = [
        Finding(rule, windows.name_window(sight, refusals))
        for rule in CATALOGUE.values()
        for sight in rule.diagnose(view)
    ]
    found += [Finding(CATALOGUE[rule], sight) for rule, sights in view.told.items() for sight in sights]
    kept = {(each.rule.id, each.place.file, each.sight.message): each for each in found}
    return sorted(kept.values(), key=lambda one: (-one.severity.weight, one.place.file, one.rule.id))

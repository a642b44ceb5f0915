"""The catalogue of rules, and the functions that run them.

In: a repository or an installation. Out: findings by file and line, each once. Never: a rule without a description.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.live_view import LiveView
from argosy.gitops.analysis.repository_view import RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rules import (
    applications,
    breaking_changes,
    data_bearing_application_checklist,
    ignored_differences,
    ineffective_project_denials,
    job_scripts,
    lint_rules_checked_elsewhere,
    notebooks,
    positional_argument_patches,
    quotas,
    schemas,
    secrets_and_permissions,
    serving,
    sync_order,
    ungated_waves,
    values_file_tier_images,
)
from argosy.gitops.analysis.rules.live import (
    destinations,
    drift_and_failed_syncs,
    health_checks,
    pvc_image_model_failures,
    settings,
    single_sign_on,
    sources,
    stalled_and_repeated_syncs,
    unexpanded_application_sets,
    windows,
)

_FAMILIES: Final = (
    *(
        applications,
        breaking_changes,
        ignored_differences,
        data_bearing_application_checklist,
        sync_order,
        job_scripts,
        ungated_waves,
        schemas,
        serving,
        quotas,
        positional_argument_patches,
    ),
    *(
        notebooks,
        values_file_tier_images,
        lint_rules_checked_elsewhere,
        secrets_and_permissions,
        ineffective_project_denials,
    ),
    *(
        drift_and_failed_syncs,
        stalled_and_repeated_syncs,
        sources,
        pvc_image_model_failures,
        health_checks,
        destinations,
        unexpanded_application_sets,
        windows,
        single_sign_on,
        settings,
    ),
)
CATALOGUE: Final[Mapping[str, AnalysisRule]] = {
    rule.id: rule
    for rule in sorted((rule for family in _FAMILIES for rule in family.RULES), key=lambda candidate: candidate.id)
}
FAMILIES: Final = {
    "1": "GitOps",
    "2": "Serving",
    "3": "Notebooks",
    "4": "Health checks",
    "5": "Live diagnosis",
    "6": "Security and hygiene",
}


def check_repository(repository: RepositoryView, rules: Iterable[AnalysisRule] = CATALOGUE.values()) -> list[Finding]:
    """Run the rules of `argosy check`; a violation in a base that several overlays share is reported once."""
    findings: dict[tuple[str, str, int, str], Finding] = {}
    for rule in rules:
        for violation in rule.check_repository(repository):
            findings.setdefault(
                (rule.id, violation.location.file, violation.location.line, violation.message), Finding(rule, violation)
            )
    return sorted(
        findings.values(),
        key=lambda finding: (finding.location.file, finding.location.line, finding.rule.id, finding.violation.message),
    )


def diagnose_installation(view: LiveView) -> list[Finding]:
    """Run the live rules and add violations that callers reported; the worst first."""
    refusals = windows.find_refused_syncs(view)
    findings = [
        Finding(rule, windows.replace_refused_sync_advice(violation, refusals))
        for rule in CATALOGUE.values()
        for violation in rule.check_installation(view)
    ]
    findings += [
        Finding(CATALOGUE[rule], violation)
        for rule, violations in view.external_violations.items()
        for violation in violations
    ]
    unique_findings = {
        (finding.rule.id, finding.location.file, finding.violation.message): finding for finding in findings
    }
    return sorted(
        unique_findings.values(),
        key=lambda unique_finding: (
            -unique_finding.severity.weight,
            unique_finding.location.file,
            unique_finding.rule.id,
        ),
    )

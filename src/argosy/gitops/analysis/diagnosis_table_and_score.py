"""Builds the diagnosis table: one line per finding with the Application's state and a remedy, and a score.

In: Applications, findings, remedies. Out: lines, counts, a score. Never: a cause that no rule is certain of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from argosy.gitops.analysis.current_wave_gate import WaveWait
from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.live_view import LiveApplication
from argosy.gitops.analysis.rule_violation import Severity
from argosy.gitops.analysis.rules.live.drift_and_failed_syncs import has_failed_sync
from argosy.gitops.analysis.rules.live.sources import JQ_FIELD, RENDER_FIELD

ACCEPTABLE_HEALTH: Final = ("Healthy", "Suspended")
INSTALLATION: Final = "(installation)"
_ERRORS: Final = ("ComparisonError", "InvalidSpecError", "SyncError", "DeletionError", "UnknownError")


class Remedy(NamedTuple):
    """A remedy in a word or two. `is_certain`: True if it was proven, False if a person must decide, None if nothing
    is to be done.
    """

    label: str
    is_certain: bool | None = None

    @property
    def tag(self) -> str:
        return "" if self.is_certain is None else "[auto]" if self.is_certain else "[ask]"


INVALID_SPEC_REMEDY: Final = Remedy("spec or project")
# Remedies by rule, used if nothing better is proposed.
DEFAULT_REMEDIES: Final[Mapping[str, Remedy]] = {
    **dict.fromkeys(("AGY401", "AGY402", "AGY403", "AGY407", "AGY408", "AGY409"), Remedy("fix the script")),
    "AGY118": Remedy("fix the pattern"),
    "AGY405": Remedy("use the CR"),
    "AGY406": Remedy("fix the key"),
    "AGY501": Remedy("ignore rule", False),
    "AGY502": Remedy("investigate"),
    "AGY503": Remedy("storage class"),
    "AGY504": Remedy("image"),
    "AGY505": Remedy("credentials"),
    "AGY506": Remedy("restart", False),
    "AGY507": Remedy("end the loop", False),
    "AGY508": Remedy("touch the CR", True),
    "AGY509": Remedy("branch or path"),
    "AGY510": Remedy("recreate", False),
    "AGY511": Remedy("informational"),
    "AGY512": Remedy("health check", False),
    "AGY513": Remedy("health check", False),
    "AGY514": Remedy("old job"),
    "AGY515": Remedy("sync", False),
    "AGY516": Remedy("one definition"),
    "AGY517": Remedy("investigate"),
    "AGY518": Remedy("investigate"),
    "AGY519": Remedy("cluster"),
    "AGY520": Remedy("controller"),
    "AGY521": Remedy("fix the window"),
    "AGY522": Remedy("wait"),
    "AGY524": Remedy("fix the value"),
    "AGY525": Remedy("make renders cheaper"),
}


@dataclass(frozen=True)
class DiagnosisLine:
    """One row of the table. Without a finding, it describes a state that no rule explains."""

    app: str
    state: str
    cause: str
    fix: str
    remedy: Remedy
    finding: Finding | None = None

    @property
    def severity(self) -> Severity:
        return self.finding.severity if self.finding else Severity.INFO

    def to_wire(self) -> dict[str, Any]:
        rule = {"rule": self.finding.rule.id, "sure": self.finding.rule.certainty} if self.finding else {}
        return {
            "application": self.app if self.app != INSTALLATION else None,
            "state": self.state,
            "severity": self.severity.value,
            **rule,
            "cause": self.cause,
            "fix": self.fix,
            "remedy": self.remedy.label,
            "certain": self.remedy.is_certain,
        }


def summarize_state(app: LiveApplication) -> str:
    """Return the state in one word; the worst one wins."""
    kinds = [kind for kind, _ in app.conditions]
    error = next((kind for kind in _ERRORS if kind in kinds), "")
    if error:
        return error
    if app.has_running_operation:
        return "Syncing"
    if has_failed_sync(app):
        return "SyncFailed"
    if app.health == "Degraded" or (app.sync == "Synced" and app.health not in ACCEPTABLE_HEALTH):
        return app.health
    if app.sync != "Synced":
        return app.sync
    return "Warning" if kinds else "Synced"


def has_no_problem(app: LiveApplication) -> bool:
    return summarize_state(app) in ("Synced", "Warning")


def build_diagnosis_lines(
    apps: Iterable[LiveApplication],
    findings: Sequence[Finding],
    remedies: Mapping[tuple[str, str], Remedy],
    waits: Mapping[str, WaveWait],
) -> list[DiagnosisLine]:
    """Return lines by Application, the worst finding first; lines about the installation come last.

    `remedies` are keyed by Application and rule.
    """
    diagnosis_lines: list[DiagnosisLine] = []
    for app in apps:
        app_findings = [entry for entry in findings if entry.location.file == f"Application/{app.name}"]
        app_lines = [
            _build_line(app.name, summarize_state(app), entry, remedies)
            for entry in sorted(app_findings, key=_sort_key)
        ]
        if wait := waits.get(app.name):
            app_lines.insert(
                0, DiagnosisLine(app.name, "Syncing", wait.text, f"argosy app wait {app.name}", Remedy("wait"))
            )
        has_unreported_error = summarize_state(app) in _ERRORS and not any(
            entry.severity is Severity.ERROR for entry in app_lines
        )
        if has_unreported_error or (not app_lines and summarize_state(app) != "Synced"):
            app_lines.insert(0, _build_unexplained_line(app))
        diagnosis_lines += app_lines
    installation_findings = [entry for entry in findings if not entry.location.file.startswith("Application/")]
    return diagnosis_lines + [
        _build_line(INSTALLATION, "-", entry, remedies) for entry in sorted(installation_findings, key=_sort_key)
    ]


def _sort_key(finding: Finding) -> tuple[int, int, str]:
    """Sort causes before consequences: failures to render first, unhealthy objects last."""
    is_cause = finding.rule.id in ("AGY505", "AGY509", "AGY510", "AGY519")
    is_consequence = finding.rule.id in ("AGY515", "AGY517", "AGY518")
    return -finding.severity.weight, is_consequence - is_cause, finding.rule.id


def _build_line(app: str, state: str, finding: Finding, remedies: Mapping[tuple[str, str], Remedy]) -> DiagnosisLine:
    rule = finding.rule.id
    field = finding.violation.field if rule == "AGY509" else ""
    if field.startswith(JQ_FIELD) or field == RENDER_FIELD:  # another branch does not help
        remedy = Remedy("jq expression" if field.startswith(JQ_FIELD) else "smaller source")
    else:
        default_remedy = (
            INVALID_SPEC_REMEDY if (rule, state) == ("AGY509", "InvalidSpecError") else DEFAULT_REMEDIES.get(rule)
        )
        remedy = remedies.get((app, rule)) or default_remedy or Remedy("see --explain")
    return DiagnosisLine(app, state, finding.violation.message, finding.violation.fix, remedy, finding)


def _build_unexplained_line(app: LiveApplication) -> DiagnosisLine:
    if not app.app.status:
        cause = f"not reconciled yet: does a controller run, and does it watch namespace {app.app.namespace}?"
        return DiagnosisLine(
            app.name, summarize_state(app), cause, "run a controller: argosy controller", Remedy("controller")
        )
    kinds = [f"{kind}: {message}" for kind, message in app.conditions]
    condition_text = next(iter(kinds), "") or app.health_message or f"{app.sync}, {app.health}"
    fix = f"see: argosy explain application/{app.name}; argosy app diff {app.name}"
    is_not_compared = app.differing_fields is None and app.sync == "OutOfSync"
    prefix = "not compared; " if is_not_compared else "no rule identifies a cause; "
    if has_no_problem(app):
        return DiagnosisLine(
            app.name, summarize_state(app), f"reported: {condition_text}", fix, Remedy("informational")
        )
    return DiagnosisLine(
        app.name, summarize_state(app), f"{prefix}reported: {condition_text}", fix, Remedy("investigate")
    )


@dataclass(frozen=True)
class SyncScore:
    """How many Applications are Synced now, and after the proven fixes. `not_fixed`: the others, with the reason."""

    total: int
    synced: int
    healthy: int
    synced_after: int | None = None  # None: no fix was proven
    not_fixed: Mapping[str, str] = field(default_factory=dict)

    @property
    def excluded_apps(self) -> Mapping[str, str]:
        """Applications that the promised result excludes; empty if nothing is promised."""
        return {} if self.synced_after in (None, self.synced) else self.not_fixed

    @property
    def text(self) -> str:
        if not self.total:
            return "no applications"
        now = f"Score {render_percent(self.synced, self.total)} synced"
        if self.synced_after is None or self.synced_after == self.synced:
            return f"{now} ({self.synced} of {self.total}), {self.healthy} of {self.total} healthy"
        method = "simulated against live state, nothing applied"
        return f"{now} → {render_percent(self.synced_after, self.total)} after fixes and a sync ({method})"

    def to_wire(self) -> dict[str, Any]:
        return {
            "applications": self.total,
            "synced": self.synced,
            "healthy": self.healthy,
            "syncedPercent": _compute_percent(self.synced, self.total),
            **(
                {}
                if self.synced_after is None
                else {"after": self.synced_after, "afterPercent": _compute_percent(self.synced_after, self.total)}
            ),
            **({"left": dict(self.not_fixed)} if self.not_fixed else {}),
        }


def _compute_percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def render_percent(part: int, whole: int) -> str:
    """Render a percentage with one decimal, without a trailing zero: 37.5%, 100%."""
    return f"{_compute_percent(part, whole):.1f}%".replace(".0%", "%")


def compute_score(
    apps: Sequence[LiveApplication], synced_after: int | None = None, not_fixed: Mapping[str, str] | None = None
) -> SyncScore:
    synced, healthy = (sum(flags) for flags in ((app.sync == "Synced" for app in apps),
                                              (app.health == "Healthy" for app in apps)))  # fmt: skip
    return SyncScore(len(apps), synced, healthy, synced_after, not_fixed or {})

"""Builds the diagnosis table: one line per finding with the Application's state and a remedy, and a score.

In: Applications, findings, remedies. Out: lines, counts, a score. Never: a cause that no rule is certain of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.live_view import LiveApp
from argosy.gitops.analysis.rules.live.drift import has_failed
from argosy.gitops.analysis.rules.live.sources import JQ_FIELD, RENDER_FIELD
from argosy.gitops.analysis.violation import Severity
from argosy.gitops.analysis.wave_gates import Wait

WELL: Final = ("Healthy", "Suspended")
INSTALLATION: Final = "(installation)"
_ERRORS: Final = ("ComparisonError", "InvalidSpecError", "SyncError", "DeletionError", "UnknownError")


class Remedy(NamedTuple):
    """A remedy in a word or two. `is_certain`: True if it was proven, False if a person must decide, None if nothing
    is to be done.
    """

    word: str
    is_certain: bool | None = None

    @property
    def tag(self) -> str:
        return "" if self.is_certain is None else "[auto]" if self.is_certain else "[ask]"


INVALID: Final = Remedy("spec or project")
# Remedies by rule, used if nothing better is proposed.
USUAL: Final[Mapping[str, Remedy]] = {
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
class Line:
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

    def document(self) -> dict[str, Any]:
        rule = {"rule": self.finding.rule.id, "sure": self.finding.rule.why_sure} if self.finding else {}
        return {
            "application": self.app if self.app != INSTALLATION else None,
            "state": self.state,
            "severity": self.severity.value,
            **rule,
            "cause": self.cause,
            "fix": self.fix,
            "remedy": self.remedy.word,
            "certain": self.remedy.is_certain,
        }


def state_of(app: LiveApp) -> str:
    """Return the state in one word; the worst one wins."""
    kinds = [kind for kind, _ in app.conditions]
    error = next((kind for kind in _ERRORS if kind in kinds), "")
    if error:
        return error
    if app.is_busy:
        return "Syncing"
    if has_failed(app):
        return "SyncFailed"
    if app.health == "Degraded" or (app.sync == "Synced" and app.health not in WELL):
        return app.health
    if app.sync != "Synced":
        return app.sync
    return "Warning" if kinds else "Synced"


def is_well(app: LiveApp) -> bool:
    return state_of(app) in ("Synced", "Warning")


def lines(
    apps: Iterable[LiveApp],
    findings: Sequence[Finding],
    remedies: Mapping[tuple[str, str], Remedy],
    waits: Mapping[str, Wait],
) -> list[Line]:
    """Return lines by Application, the worst finding first; lines about the installation come last.

    `remedies` are keyed by Application and rule.
    """
    found: list[Line] = []
    for app in apps:
        mine = [each for each in findings if each.place.file == f"Application/{app.name}"]
        told = [_line(app.name, state_of(app), each, remedies) for each in sorted(mine, key=_order)]
        if wait := waits.get(app.name):
            told.insert(0, Line(app.name, "Syncing", wait.text, f"argosy app wait {app.name}", Remedy("wait")))
        is_unheard = state_of(app) in _ERRORS and not any(each.severity is Severity.ERROR for each in told)
        if is_unheard or (not told and state_of(app) != "Synced"):
            told.insert(0, _unexplained(app))
        found += told
    rest = [each for each in findings if not each.place.file.startswith("Application/")]
    return found + [_line(INSTALLATION, "-", each, remedies) for each in sorted(rest, key=_order)]


def _order(finding: Finding) -> tuple[int, int, str]:
    """Sort causes before consequences: failures to render first, unhealthy objects last."""
    early = finding.rule.id in ("AGY505", "AGY509", "AGY510", "AGY519")
    late = finding.rule.id in ("AGY515", "AGY517", "AGY518")
    return -finding.severity.weight, late - early, finding.rule.id


def _line(app: str, state: str, finding: Finding, remedies: Mapping[tuple[str, str], Remedy]) -> Line:
    rule = finding.rule.id
    field = finding.sight.field if rule == "AGY509" else ""
    if field.startswith(JQ_FIELD) or field == RENDER_FIELD:  # another branch does not help
        remedy = Remedy("jq expression" if field.startswith(JQ_FIELD) else "smaller source")
    else:
        usual = INVALID if (rule, state) == ("AGY509", "InvalidSpecError") else USUAL.get(rule)
        remedy = remedies.get((app, rule)) or usual or Remedy("see --explain")
    return Line(app, state, finding.sight.message, finding.sight.fix, remedy, finding)


def _unexplained(app: LiveApp) -> Line:
    if not app.app.status:
        told = f"not reconciled yet: does a controller run, and does it watch namespace {app.app.namespace}?"
        return Line(app.name, state_of(app), told, "run a controller: argosy controller", Remedy("controller"))
    kinds = [f"{kind}: {message}" for kind, message in app.conditions]
    said = next(iter(kinds), "") or app.health_message or f"{app.sync}, {app.health}"
    fix = f"see: argosy explain application/{app.name}; argosy app diff {app.name}"
    is_unseen = app.fields is None and app.sync == "OutOfSync"
    lead = "not compared; " if is_unseen else "no rule identifies a cause; "
    if is_well(app):
        return Line(app.name, state_of(app), f"reported: {said}", fix, Remedy("informational"))
    return Line(app.name, state_of(app), f"{lead}reported: {said}", fix, Remedy("investigate"))


@dataclass(frozen=True)
class Score:
    """How many Applications are Synced now, and after the proven fixes. `not_fixed`: the others, with the reason."""

    total: int
    synced: int
    healthy: int
    after: int | None = None  # None: no fix was proven
    left: Mapping[str, str] = field(default_factory=dict)

    @property
    def exceptions(self) -> Mapping[str, str]:
        """Applications that the promised result excludes; empty if nothing is promised."""
        return {} if self.after in (None, self.synced) else self.left

    @property
    def text(self) -> str:
        if not self.total:
            return "no applications"
        now = f"Score {percent(self.synced, self.total)} synced"
        if self.after is None or self.after == self.synced:
            return f"{now} ({self.synced} of {self.total}), {self.healthy} of {self.total} healthy"
        what = "simulated against live state, nothing applied"
        return f"{now} → {percent(self.after, self.total)} after fixes and a sync ({what})"

    def document(self) -> dict[str, Any]:
        return {
            "applications": self.total,
            "synced": self.synced,
            "healthy": self.healthy,
            "syncedPercent": _share(self.synced, self.total),
            **({} if self.after is None else {"after": self.after, "afterPercent": _share(self.after, self.total)}),
            **({"left": dict(self.left)} if self.left else {}),
        }


def _share(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def percent(part: int, whole: int) -> str:
    """Render a percentage with one decimal, without a trailing zero: 37.5%, 100%."""
    return f"{_share(part, whole):.1f}%".replace(".0%", "%")


def score(apps: Sequence[LiveApp], after: int | None = None, left: Mapping[str, str] | None = None) -> Score:
    synced, healthy = (sum(each) for each in ((app.sync == "Synced" for app in apps),
                                              (app.health == "Healthy" for app in apps)))  # fmt: skip
    return Score(len(apps), synced, healthy, after, left or {})

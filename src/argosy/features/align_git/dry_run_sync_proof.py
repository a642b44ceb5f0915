"""Proves an alignment: the Application's state before, with the changes, and after a dry-run sync.

In: a reader, an Application, a trial of it. Out: AlignmentProof. Never: a status without a comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy.errors import ArgosyError
from argosy.features.align_git.dry_run_sync import DryRunSyncResult, run_dry_run_sync
from argosy.features.align_git.in_memory_alignment_trial import ApplicationTrial, compare_trial
from argosy.features.align_git.proposal_search_by_trial import observe_application
from argosy.gitops.analysis.alignment.observed_application import list_contested_fields
from argosy.gitops.analysis.alignment.sync_and_health_counts import ApplicationStatus
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import HealthStatus, SyncStatus
from argosy.gitops.application_client.app_state_reader import ApplicationReader, DestinationUnreadable
from argosy.gitops.application_client.status_summary import read_health_status, read_sync_status
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.status.conditions import ConditionType
from argosy.gitops.status.status_json_conversions import as_mappings

_RECHECKED_CONDITIONS = (
    ConditionType.COMPARISON_ERROR.value,
    ConditionType.SYNC_ERROR.value,
    ConditionType.INVALID_SPEC_ERROR.value,
)


@dataclass(frozen=True)
class AlignmentProof:
    """`after`: changed manifests compared with the live state. `synced`: after a sync, according to dry runs."""

    before: ApplicationStatus
    after: ApplicationStatus
    synced: ApplicationStatus
    dry_run: DryRunSyncResult
    fault: str = ""
    contested: tuple[str, ...] = ()

    @property
    def is_proven(self) -> bool:
        return self.synced.sync == "Synced" and not self.synced.errors

    @property
    def shortfall(self) -> str:
        """Why a sync is not proven to suffice; empty if it is."""
        if self.synced.sync == "Synced":
            return ""
        refused = tuple(f"a sync is refused: {reason}" for reason in self.dry_run.refused)
        unproven = tuple(f"a sync cannot be rehearsed: {reason}" for reason in self.dry_run.unproven)
        reasons = (*((self.fault,) if self.fault else ()), *refused, *unproven, *self.contested)
        return reasons[0] if reasons else "it differs after a sync, too"

    def to_wire(self) -> dict[str, Any]:
        document = {
            "before": self.before.to_wire(),
            "after": self.after.to_wire(),
            "afterSync": self.synced.to_wire(),
            "refused": list(self.dry_run.refused),
            "unproven": list(self.dry_run.unproven),
            "contested": list(self.contested),
            "fault": self.fault,
        }
        return {name: value for name, value in document.items() if value not in ("", [])}


def read_state(app: Application) -> ApplicationStatus:
    """Read the state from the Application's status."""
    types = [str(item.get("type")) for item in as_mappings(app.status.get("conditions"))]
    errors = tuple(dict.fromkeys(item for item in types if item.endswith("Error")))
    warnings = tuple(dict.fromkeys(item for item in types if not item.endswith("Error")))
    return ApplicationStatus(read_sync_status(app), read_health_status(app), errors, warnings)


async def prove_trial(
    reader: ApplicationReader, app: Application, trial: ApplicationTrial, app_state: AppState | None = None
) -> AlignmentProof:
    """Compare the current Application with the trial; `app_state` saves a comparison that was already made."""
    before = read_state(app)
    try:
        app_state = app_state or await compare_trial(reader, trial)
    except DestinationUnreadable as error:
        return AlignmentProof(
            before, before, before, DryRunSyncResult(SyncStatus.UNKNOWN), str(error).partition("; ")[0]
        )
    except ArgosyError as error:
        bad = ApplicationStatus("Unknown", before.health, (ConditionType.COMPARISON_ERROR.value,), before.warnings)
        return AlignmentProof(before, bad, bad, DryRunSyncResult(SyncStatus.UNKNOWN), str(error).partition("; ")[0])
    rehearsal = await run_dry_run_sync(reader, trial.app, app_state)
    is_synced = app_state.comparison.status is SyncStatus.SYNCED
    contested_fields = (
        () if is_synced else list_contested_fields((await observe_application(reader, trial, app_state)).objects)
    )
    after = _predict_state(before, app_state, app_state.comparison.status, rehearsal)
    after_sync = _predict_state(
        before, app_state, SyncStatus.OUT_OF_SYNC if contested_fields else rehearsal.status, rehearsal
    )
    return AlignmentProof(before, after, after_sync, rehearsal, contested=contested_fields)


def _predict_state(
    before: ApplicationStatus, app_state: AppState, status: SyncStatus, dry_run: DryRunSyncResult
) -> ApplicationStatus:
    """Keep conditions that the comparison does not check; a sync fails again if an object is refused."""
    errors = [item for item in before.errors if item not in _RECHECKED_CONDITIONS]
    errors += [item.type.value for item in app_state.conditions if item.type.is_error]
    if dry_run.refused or (dry_run.unproven and ConditionType.SYNC_ERROR.value in before.errors):
        errors.append(ConditionType.SYNC_ERROR.value)
    warnings = [item.type.value for item in app_state.conditions if not item.type.is_error]
    # Objects that a sync would create are missing until then; their later health is unknown.
    health = app_state.health.health
    word = before.health if health is HealthStatus.MISSING or health is None else health.value
    return ApplicationStatus(status.value, word, tuple(dict.fromkeys(errors)), tuple(dict.fromkeys(warnings)))

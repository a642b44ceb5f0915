"""Proves an alignment: the Application's state before, with the changes, and after a dry-run sync.

In: a reader, an Application, a trial of it. Out: AlignmentProof. Never: a status without a comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy.errors import ArgosyError
from argosy.features.align.dry_run_sync import Rehearsal, rehearsed
from argosy.features.align.proposals import sight
from argosy.features.align.trial import Trial, look
from argosy.gitops.analysis.alignment.observation import contested
from argosy.gitops.analysis.alignment.report import Standing
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import Health, SyncStatus
from argosy.gitops.application_client.reader import Reader, Unseen
from argosy.gitops.application_client.summary import health_word, sync_word
from argosy.gitops.reconciler.app_state import Look
from argosy.gitops.status.conditions import ConditionType
from argosy.gitops.status.wire_format import mappings

_ASKED = (ConditionType.COMPARISON_ERROR.value, ConditionType.SYNC_ERROR.value, ConditionType.INVALID_SPEC_ERROR.value)


@dataclass(frozen=True)
class Proof:
    """`after`: changed manifests compared with the live state. `synced`: after a sync, according to dry runs."""

    before: Standing
    after: Standing
    synced: Standing
    rehearsal: Rehearsal
    fault: str = ""
    contested: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        return self.synced.sync == "Synced" and not self.synced.errors

    @property
    def shortfall(self) -> str:
        """Why a sync is not proven to suffice; empty if it is."""
        if self.synced.sync == "Synced":
            return ""
        refused = tuple(f"a sync is refused: {each}" for each in self.rehearsal.refused)
        unproven = tuple(f"a sync cannot be rehearsed: {each}" for each in self.rehearsal.unproven)
        told = (*((self.fault,) if self.fault else ()), *refused, *unproven, *self.contested)
        return told[0] if told else "it differs after a sync, too"

    def document(self) -> dict[str, Any]:
        told = {
            "before": self.before.document(),
            "after": self.after.document(),
            "afterSync": self.synced.document(),
            "refused": list(self.rehearsal.refused),
            "unproven": list(self.rehearsal.unproven),
            "contested": list(self.contested),
            "fault": self.fault,
        }
        return {name: value for name, value in told.items() if value not in ("", [])}


def standing_of(app: Application) -> Standing:
    """Read the state from the Application's status."""
    types = [str(each.get("type")) for each in mappings(app.status.get("conditions"))]
    errors = tuple(dict.fromkeys(each for each in types if each.endswith("Error")))
    warnings = tuple(dict.fromkeys(each for each in types if not each.endswith("Error")))
    return Standing(sync_word(app), health_word(app), errors, warnings)


async def proven(reader: Reader, app: Application, trial: Trial, found: Look | None = None) -> Proof:
    """Compare the current Application with the trial; `app_state` saves a comparison that was already made."""
    before = standing_of(app)
    try:
        found = found or await look(reader, trial)
    except Unseen as error:
        return Proof(before, before, before, Rehearsal(SyncStatus.UNKNOWN), str(error).partition("; ")[0])
    except ArgosyError as error:
        bad = Standing("Unknown", before.health, (ConditionType.COMPARISON_ERROR.value,), before.warnings)
        return Proof(before, bad, bad, Rehearsal(SyncStatus.UNKNOWN), str(error).partition("; ")[0])
    rehearsal = await rehearsed(reader, trial.app, found)
    is_synced = found.comparison.status is SyncStatus.SYNCED
    fights = () if is_synced else contested((await sight(reader, trial, found)).objects)
    after = _after(before, found, found.comparison.status, rehearsal)
    then = _after(before, found, SyncStatus.OUT_OF_SYNC if fights else rehearsal.status, rehearsal)
    return Proof(before, after, then, rehearsal, contested=fights)


def _after(before: Standing, found: Look, status: SyncStatus, rehearsal: Rehearsal) -> Standing:
    """Keep conditions that the comparison does not check; a sync fails again if an object is refused."""
    errors = [each for each in before.errors if each not in _ASKED]
    errors += [each.type.value for each in found.conditions if each.type.is_error]
    if rehearsal.refused or (rehearsal.unproven and ConditionType.SYNC_ERROR.value in before.errors):
        errors.append(ConditionType.SYNC_ERROR.value)
    warnings = [each.type.value for each in found.conditions if not each.type.is_error]
    # Objects that a sync would create are missing until then; their later health is unknown.
    health = found.health.health
    word = before.health if health is Health.MISSING or health is None else health.value
    return Standing(status.value, word, tuple(dict.fromkeys(errors)), tuple(dict.fromkeys(warnings)))

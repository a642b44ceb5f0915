"""Summarizes an examination: lines, counts, score and follow-ups.

In: an Examination. Out: DoctorReport. Never: contacts a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from argosy.features.doctor.service import Examination
from argosy.gitops.analysis.diagnosis_table_and_score import (
    DiagnosisLine,
    SyncScore,
    build_diagnosis_lines,
    compute_score,
)
from argosy.gitops.analysis.post_sync_checklist import ChecklistItem, build_checklist
from argosy.gitops.analysis.rule_violation import Severity
from argosy.gitops.analysis.rules.live.pvc_image_model_failures import is_model_ready
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.well_known_kinds import CLI_API_VERSION, INFERENCE_SERVICE, PERSISTENT_VOLUME_CLAIM, RESOURCE_QUOTA


@dataclass(frozen=True)
class DoctorReport:
    examination: Examination

    @cached_property
    def lines(self) -> list[DiagnosisLine]:
        remedies = {
            key: remedy
            for app, item in self.examination.treatments.items()
            for key, remedy in item.iterate_remedies(app)
        }
        waits = {item.app: item for item in self.examination.waits}
        return build_diagnosis_lines(self.examination.chosen, self.examination.findings, remedies, waits)

    @property
    def score(self) -> SyncScore:
        apps, treatments = self.examination.chosen, self.examination.treatments
        if not treatments:
            return compute_score(apps)
        after = sum(
            treatments[app.name].proof.synced.sync == "Synced" if app.name in treatments else app.sync == "Synced"
            for app in apps
        )
        shortfalls = {name: remedy.proof.shortfall for name, remedy in treatments.items() if remedy.proof.shortfall}
        return compute_score(apps, after, shortfalls)

    @property
    def checklist(self) -> list[ChecklistItem]:
        return build_checklist(self.examination.chosen)

    def count(self, severity: Severity) -> int:
        return sum(line.finding is not None and line.severity is severity for line in self.lines)

    @property
    def finding_count(self) -> int:
        return sum(line.finding is not None for line in self.lines)

    def has_findings_of(self, min_severity: Severity) -> bool:
        return any(line.finding is not None and line.severity.weight >= min_severity.weight for line in self.lines)

    @property
    def is_all_healthy(self) -> bool:
        """True if every Application is Synced and Healthy."""
        return all((app.sync, app.health) == ("Synced", "Healthy") for app in self.examination.chosen)

    def to_wire(self, *, has_checklist: bool) -> dict[str, Any]:
        examination = self.examination
        return {
            "apiVersion": CLI_API_VERSION,
            "kind": "Diagnosis",
            "target": examination.target,
            "checks": [item.to_wire() for item in examination.checks],
            "applications": [
                {"name": app.name, "namespace": app.app.namespace, "sync": app.sync, "health": app.health}
                for app in examination.chosen
            ],
            "findings": [item.to_wire() for item in self.lines if item.finding],
            "unexplained": [item.to_wire() for item in self.lines if not item.finding],
            "gates": [item.to_wire() for item in examination.waits],
            "proposals": [
                item.to_wire() for treatment in examination.treatments.values() for item in treatment.proposals
            ],
            "proofs": {name: item.proof.to_wire() for name, item in examination.treatments.items()},
            "score": self.score.to_wire(),
            **({"checklist": [item.to_wire() for item in self.checklist]} if has_checklist else {}),
            "followUps": list(self.iterate_follow_ups()),
            "notes": list(examination.view.notes),
        }

    def iterate_follow_ups(self) -> Iterator[str]:
        """Yield what to check after a sync: exhausted GPU quotas, pending claims, models that are not ready."""
        view = self.examination.view
        for namespace in sorted({app.app.destination.namespace for app in self.examination.chosen} - {""}):
            for quota in view.list_objects(RESOURCE_QUOTA, namespace):
                yield from _iterate_exhausted_gpus(quota, namespace)
            pending = [
                item for item in view.list_objects(PERSISTENT_VOLUME_CLAIM, namespace) if _read_phase(item) == "Pending"
            ]
            if pending:
                names = ", ".join(item["metadata"]["name"] for item in pending)
                yield f"{namespace}: claims that are not bound: {names}; kubectl get pvc -n {namespace}"
            not_ready = [item for item in view.list_objects(INFERENCE_SERVICE, namespace) if not is_model_ready(item)]
            if not_ready:
                names = ", ".join(item["metadata"]["name"] for item in not_ready)
                yield f"{namespace}: models that are not ready: {names}; kubectl get inferenceservice -n {namespace}"
        for app, item in self.examination.treatments.items():
            for proposal in item.proposals:
                for command in proposal.commands[:1] if not proposal.certain else ():
                    yield f"{app}: {proposal.fix}: {command}"


def _iterate_exhausted_gpus(quota: dict[str, Any], namespace: str) -> Iterator[str]:
    status = as_mapping(quota.get("status"))
    hard, used = as_mapping(status.get("hard")), as_mapping(status.get("used"))
    for name in hard:
        if "gpu" in str(name) and str(used.get(name)) == str(hard[name]) != "0":
            problem = f"ResourceQuota/{quota['metadata']['name']}: all {hard[name]} of {name} are used"
            yield f"{namespace}: {problem}; kubectl get resourcequota -n {namespace}"


def _read_phase(manifest: dict[str, Any]) -> str:
    return str(as_mapping(manifest.get("status")).get("phase") or "")

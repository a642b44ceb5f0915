"""Summarizes an examination: lines, counts, score and follow-ups.

In: an Examination. Out: DoctorReport. Never: contacts a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from argosy.features.doctor.service import Examination
from argosy.gitops.analysis.checklist import Item, checklist
from argosy.gitops.analysis.diagnosis import Line, Score, lines, score
from argosy.gitops.analysis.rules.live.workloads import CLAIM, MODEL, is_ready
from argosy.gitops.analysis.violation import Severity
from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import GroupKind

QUOTA: Final = GroupKind("", "ResourceQuota")


@dataclass(frozen=True)
class Report:
    found: Examination

    @cached_property
    def lines(self) -> list[Line]:
        remedies = {key: remedy for app, each in self.found.treatments.items() for key, remedy in each.remedies(app)}
        waits = {each.app: each for each in self.found.waits}
        return lines(self.found.chosen, self.found.findings, remedies, waits)

    @property
    def score(self) -> Score:
        apps, treatments = self.found.chosen, self.found.treatments
        if not treatments:
            return score(apps)
        after = sum(
            treatments[app.name].proof.synced.sync == "Synced" if app.name in treatments else app.sync == "Synced"
            for app in apps
        )
        left = {name: each.proof.shortfall for name, each in treatments.items() if each.proof.shortfall}
        return score(apps, after, left)

    @property
    def checklist(self) -> list[Item]:
        return checklist(self.found.chosen)

    def count(self, severity: Severity) -> int:
        return sum(each.finding is not None and each.severity is severity for each in self.lines)

    @property
    def total(self) -> int:
        return sum(each.finding is not None for each in self.lines)

    def is_bad(self, least: Severity) -> bool:
        return any(each.finding is not None and each.severity.weight >= least.weight for each in self.lines)

    @property
    def is_calm(self) -> bool:
        """True if every Application is Synced and Healthy."""
        return all((app.sync, app.health) == ("Synced", "Healthy") for app in self.found.chosen)

    def document(self, *, has_checklist: bool) -> dict[str, Any]:
        found = self.found
        return {
            "apiVersion": "cli.argosy.dev/v1",
            "kind": "Diagnosis",
            "target": found.where,
            "checks": [each.document() for each in found.checks],
            "applications": [
                {"name": app.name, "namespace": app.app.namespace, "sync": app.sync, "health": app.health}
                for app in found.chosen
            ],
            "findings": [each.document() for each in self.lines if each.finding],
            "unexplained": [each.document() for each in self.lines if not each.finding],
            "gates": [each.document() for each in found.waits],
            "proposals": [each.document() for treatment in found.treatments.values() for each in treatment.proposals],
            "proofs": {name: each.proof.document() for name, each in found.treatments.items()},
            "score": self.score.document(),
            **({"checklist": [each.document() for each in self.checklist]} if has_checklist else {}),
            "followUps": list(self.follow_ups()),
            "notes": list(found.view.notes),
        }

    def follow_ups(self) -> Iterator[str]:
        """Yield what to check after a sync: exhausted GPU quotas, pending claims, models that are not ready."""
        view = self.found.view
        for namespace in sorted({app.app.destination.namespace for app in self.found.chosen} - {""}):
            for quota in view.of(QUOTA, namespace):
                yield from _gpus(quota, namespace)
            pending = [each for each in view.of(CLAIM, namespace) if _phase(each) == "Pending"]
            if pending:
                names = ", ".join(each["metadata"]["name"] for each in pending)
                yield f"{namespace}: claims that are not bound: {names}; kubectl get pvc -n {namespace}"
            waiting = [each for each in view.of(MODEL, namespace) if not is_ready(each)]
            if waiting:
                names = ", ".join(each["metadata"]["name"] for each in waiting)
                yield f"{namespace}: models that are not ready: {names}; kubectl get inferenceservice -n {namespace}"
        for app, each in self.found.treatments.items():
            for proposal in each.proposals:
                for command in proposal.commands[:1] if not proposal.certain else ():
                    yield f"{app}: {proposal.fix}: {command}"


def _gpus(quota: dict[str, Any], namespace: str) -> Iterator[str]:
    status = mapping(quota.get("status"))
    hard, used = mapping(status.get("hard")), mapping(status.get("used"))
    for name in hard:
        if "gpu" in str(name) and str(used.get(name)) == str(hard[name]) != "0":
            told = f"ResourceQuota/{quota['metadata']['name']}: all {hard[name]} of {name} are used"
            yield f"{namespace}: {told}; kubectl get resourcequota -n {namespace}"


def _phase(manifest: dict[str, Any]) -> str:
    return str(mapping(manifest.get("status")).get("phase") or "")

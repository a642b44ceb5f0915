"""Property test of Application edits: the edited text equals the edited manifest, and edits are idempotent."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from argosy.gitops.analysis.alignment.git_change_proposal_types import DroppedPointer, Proposal, ProposalKind
from argosy.gitops.analysis.alignment.observed_application import RESPECT_OPTION
from argosy.gitops.analysis.alignment.proposed_application_manifest_edits import apply_edits, build_edits
from argosy.gitops.application import IgnoreDifference, read_application
from argosy.kube.objects import dump_yaml, read_yaml
from argosy.kube.objects.yaml_edits import edited

POINTERS = ["/spec/a", "/spec/b/c~1d", "/status", "/metadata/generation", "/spec/host"]
PATHS = ['.spec.list[] | select(.name == "x")', ".spec.y"]
KINDS = [("", "Claim"), ("apps", "Deployment"), ("route.openshift.io", "Route")]


def some(rng: Random, values: list[str]) -> list[str]:
    return rng.sample(values, rng.randrange(len(values) + 1))


def rule(rng: Random) -> dict[str, Any]:
    group, kind = rng.choice(KINDS)
    ignore_rule: dict[str, Any] = {"group": group} if group else {}
    ignore_rule |= {"kind": kind} | ({"name": "one"} if rng.random() < 0.3 else {})
    lists = {"jsonPointers": some(rng, POINTERS), "jqPathExpressions": some(rng, PATHS)}
    return ignore_rule | {name: values for name, values in lists.items() if values}


def manifest(rng: Random) -> dict[str, Any]:
    spec: dict[str, Any] = {"source": {"path": "a", "targetRevision": rng.choice(["old", "main"])}}
    if rng.random() < 0.2:
        spec = {"sources": [spec["source"]]}
    if rng.random() < 0.7:
        spec["ignoreDifferences"] = [rule(rng) for _ in range(rng.randrange(4))]
    if rng.random() < 0.6:
        spec["syncPolicy"] = {"syncOptions": some(rng, [RESPECT_OPTION, "CreateNamespace=true"])}
    return {"kind": "Application", "metadata": {"name": "one"}, "spec": spec}


def proposals(rng: Random, app: Any) -> list[Proposal]:
    rules = [IgnoreDifference(*rng.choice(KINDS), pointers=tuple(some(rng, POINTERS)) or ("/spec/z",))]
    dropped = [
        DroppedPointer(ignore_rule, pointer, "")
        for ignore_rule in app.ignore_rules
        for pointer in ignore_rule.pointers
        if pointer in POINTERS[2:4]
    ]
    candidates = [
        Proposal("one", ProposalKind.BRANCH, "", "", ref="main"),
        Proposal("one", ProposalKind.IGNORE, "", "", ignores=tuple(rules)),
        Proposal("one", ProposalKind.SYNC_OPTION, "", "", options=(RESPECT_OPTION,)),
    ]
    return [*rng.sample(candidates, rng.randrange(4)), Proposal("one", ProposalKind.DROP, "", "", drops=tuple(dropped))]


@pytest.mark.parametrize("seed", range(40))
def test_edited_text_equals_the_edited_manifest_and_edits_are_idempotent(seed: int) -> None:
    rng = Random(seed)
    for _ in range(5):
        written = manifest(rng)
        chosen_proposals = proposals(rng, read_application(written))
        edits = build_edits(written, chosen_proposals)
        edited_manifest = apply_edits(written, edits)
        assert read_yaml(edited(dump_yaml(written), edits)) == edited_manifest, (written, chosen_proposals)
        _check(edited_manifest, chosen_proposals)


def _check(edited_manifest: dict[str, Any], applied_proposals: list[Proposal]) -> None:
    app = read_application(edited_manifest)
    added = [rule for applied_proposal in applied_proposals for rule in applied_proposal.ignores]
    for rule_ in added:
        ignored_pointers = {
            pointer
            for ignore_rule in app.ignore_rules
            if ignore_rule[:4] == rule_[:4]
            for pointer in ignore_rule.pointers
        }
        dropped = {
            removed_pointer.pointer
            for proposal in applied_proposals
            for removed_pointer in proposal.drops
            if removed_pointer.rule[:4] == rule_[:4]
        }
        assert set(rule_.pointers) - dropped <= ignored_pointers
    assert all(
        option in app.policy.options for applied_proposal in applied_proposals for option in applied_proposal.options
    )
    assert all(
        app.sources[0].ref == applied_proposal.ref for applied_proposal in applied_proposals if applied_proposal.ref
    )
    for dropped_pointer in (drop for proposal in applied_proposals for drop in proposal.drops):
        if dropped_pointer.rule[:4] not in [rule_[:4] for rule_ in added]:
            assert not any(
                dropped_pointer.pointer in rule_.pointers
                for rule_ in app.ignore_rules
                if rule_[:4] == dropped_pointer.rule[:4]
            )
    again = [applied_proposal for applied_proposal in applied_proposals if not applied_proposal.drops]
    assert not build_edits(
        edited_manifest, [remaining_proposal for remaining_proposal in again if not remaining_proposal.ignores]
    )

"""Ignore rules built from differences: with them nothing differs, without them only the ignored fields differ."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest

from argosy.features.align_git.proposal_search_by_trial import MAX_TRIAL_ROUNDS
from argosy.gitops.analysis.alignment import ignore_rule_builder
from argosy.gitops.analysis.alignment.field_writer_catalog import DOCUMENTED
from argosy.gitops.analysis.alignment.ignore_rule_builder import ForeignFields
from argosy.gitops.analysis.alignment.observed_application import RESPECT_OPTION
from argosy.gitops.application import IgnoreDifference
from argosy.gitops.application.step_results import Pair, SyncStatus
from argosy.gitops.diff import DiffOptions, compare_manifests, keep_ignored_live_values, list_differences
from argosy.kube.objects import Manifest, key_of

HOST = "console-minio.apps.ocp.example.org"


def route(host: str, policy: str) -> Manifest:
    tls = {"termination": "edge", "insecureEdgeTerminationPolicy": policy}
    spec = {"host": host, "to": {"kind": "Service", "name": "minio"}, "tls": tls}
    metadata: dict[str, Any] = {"name": "console", "namespace": "minio"}
    return {"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": metadata, "spec": spec}


def pair_of(desired: Manifest, live: Manifest, *rules: IgnoreDifference) -> Pair:
    (pair,) = compare_manifests([desired], {key_of(live): live}, DiffOptions(ignore_rules=rules)).pairs
    return pair


def live_route() -> Manifest:
    live = route(HOST, "Redirect")
    live["metadata"] |= {"resourceVersion": "7", "annotations": {"openshift.io/host.generated": "true"}}
    return {**live, "status": {"ingress": [{"host": HOST}]}}


def test_route_with_a_generated_host_differs_only_in_the_documented_paths() -> None:
    desired, live = route("", ""), live_route()
    pointers = [difference.pointer for difference in list_differences(pair_of(desired, live))]
    assert pointers == ["/spec/host", "/spec/tls/insecureEdgeTerminationPolicy"]
    (pattern,) = (documented_pattern for documented_pattern in DOCUMENTED if documented_pattern.kind == "Route")
    rule = IgnoreDifference(pattern.group, pattern.kind, pointers=pattern.pointers)
    assert (
        compare_manifests([desired], {key_of(live): live}, DiffOptions(ignore_rules=(rule,))).status
        is SyncStatus.SYNCED
    )
    assert not pair_of(desired, live, rule._replace(pointers=pattern.effective_pointers)).differs, (
        "the others do nothing"
    )


def test_host_omitted_in_git_is_no_difference() -> None:
    desired = route("", "")
    del desired["spec"]["host"], desired["spec"]["tls"]["insecureEdgeTerminationPolicy"]
    assert not pair_of(desired, live_route()).differs


def test_sync_keeps_the_live_value_of_an_ignored_field_if_it_respects_the_rule() -> None:
    rule = IgnoreDifference("apps", "Deployment", pointers=("/spec/selector", "/spec/template/metadata/labels"))
    desired, live = deployment(app="new"), deployment(app="old")
    assert not pair_of(desired, live, rule).differs
    assert desired["spec"]["selector"] != live["spec"]["selector"], "so it would be sent, and refused"
    sent_manifest = keep_ignored_live_values(desired, live, DiffOptions(ignore_rules=(rule,)))
    assert sent_manifest["spec"]["selector"] == live["spec"]["selector"], RESPECT_OPTION


def deployment(**labels: str) -> Manifest:
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "x:1"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "b"}, "spec": spec}


# -- random differences ---------------------------------------------------------------------------------------------


def value(rng: Random, depth: int) -> Any:
    kind = rng.randrange(7 if depth else 3)
    if kind < 3:
        return rng.choice(["a", "b", 1, 2, True, "x/y~z", ""])
    if kind < 5:
        return {rng.choice(["a", "b", "c.d/e", "name"]): value(rng, depth - 1) for _ in range(rng.randrange(1, 4))}
    if kind == 5:
        names = rng.sample(["one", "two", "three"], rng.randrange(1, 4))
        return [{"name": name, "x": value(rng, depth - 1), "y": rng.choice([1, 2])} for name in names]
    return [{"host": rng.choice("ab"), "z": value(rng, depth - 1)} for _ in range(rng.randrange(1, 3))]


def changed(rng: Random, original: Any) -> Any:
    """Return a copy with some values changed, some fields removed and some lists reordered."""
    if isinstance(original, dict):
        changed_fields = {name: changed(rng, child) for name, child in original.items()}
        if rng.random() < 0.1 and len(changed_fields) > 1:
            changed_fields.pop(rng.choice([name for name in changed_fields if name != "name"] or [*changed_fields]))
        return changed_fields
    if isinstance(original, list):
        made_list = [changed(rng, element) for element in original]
        return rng.sample(made_list, len(made_list)) if rng.random() < 0.2 else made_list
    return (
        rng.choice([original, original, original, "other", 99]) if original not in ("one", "two", "three") else original
    )


def whole(spec: Any) -> Manifest:
    metadata = {"name": "one", "namespace": "ml"}
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("seed", range(60))
def test_nothing_differs_with_ignore_rules_built_from_the_differences(seed: int) -> None:
    rng = Random(seed)
    for _ in range(10):
        spec = {name: value(rng, 3) for name in "abc"}
        desired, live = whole(spec), whole(changed(rng, copy.deepcopy(spec)))
        rules: list[IgnoreDifference] = []
        # If only the order of equal elements is left, a second round reports the list itself as different.
        for _ in range(MAX_TRIAL_ROUNDS):
            pair = pair_of(desired, live, *rules)
            if fields := tuple(list_differences(pair)):
                foreign_fields = ForeignFields(pair.key, pair.compared, fields, ("",) * len(fields))
                rules += ignore_rule_builder.build_ignore_rules([foreign_fields], {})
        assert not pair.differs, (desired, live, rules)
        assert all("/spec" not in rule.pointers for rule in rules)

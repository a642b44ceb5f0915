"""Tests the aggregated health of an Application: which resources count, which are named, and failed health rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.annotations import HELM_HOOK, HOOK, IGNORE_HEALTHCHECK
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.application.sync_annotations import is_hook, is_skipped
from argosy.gitops.health.aggregate import (
    ApplicationHealth,
    FailedHealthRule,
    ResourceWithHealth,
    aggregate_health,
    find_resource_health,
    render_causes,
    render_fault_conditions,
)
from argosy.kube.resource_key import ResourceKey
from support.examples import examples

APP = ResourceKey("argoproj.io", "Application", "argocd", "shop")


def managed(
    name: str,
    health: HealthStatus | None = HealthStatus.HEALTHY,
    *,
    kind: str = "Widget",
    is_live: bool = True,
    **annotations: str,
) -> ResourceWithHealth:
    """Build a resource; annotations are written as HOOK="PreSync"."""
    names = {"HOOK": HOOK, "HELM_HOOK": HELM_HOOK, "IGNORE": IGNORE_HEALTHCHECK}
    written = {names[keyword]: text for keyword, text in annotations.items()}
    manifest: dict[str, Any] = {"metadata": {"name": name, "annotations": written}}
    key = ResourceKey("example.com", kind, "shop", name)
    return ResourceWithHealth(key, manifest, manifest if is_live else None, Assessment(health) if is_live else None)


def aggregate_resources(*resources: ResourceWithHealth) -> tuple[HealthStatus, str]:
    aggregate = aggregate_health(APP, resources)
    return aggregate.health, aggregate.message


def test_application_without_resources_is_healthy() -> None:
    assert aggregate_resources() == (HealthStatus.HEALTHY, "")


@pytest.mark.parametrize("better", list(HealthStatus))
@pytest.mark.parametrize("worse", list(HealthStatus))
def test_application_has_the_worst_health_of_its_resources(better: HealthStatus, worse: HealthStatus) -> None:
    worst = max(better, worse, key=list(HealthStatus).index)
    assert aggregate_resources(managed("a", better), managed("b", worse))[0] is worst


def test_only_resources_with_the_worst_health_are_named_in_order() -> None:
    resources = [
        managed("a", HealthStatus.PROGRESSING),
        managed("b", HealthStatus.DEGRADED),
        managed("c"),
        managed("d", HealthStatus.PROGRESSING),
        managed("e", HealthStatus.DEGRADED),
    ]
    assert aggregate_resources(*resources) == (
        HealthStatus.DEGRADED,
        "Caused by example.com/Widget:shop/b, example.com/Widget:shop/e",
    )


def test_three_causes_are_named_and_the_rest_is_counted() -> None:
    pods = [ResourceKey("", "Pod", "shop", f"p{number}") for number in range(8)]
    assert render_causes(pods) == "Caused by Pod:shop/p0, Pod:shop/p1, Pod:shop/p2 and 5 more"
    assert render_causes(pods[:3]) == "Caused by Pod:shop/p0, Pod:shop/p1, Pod:shop/p2"
    assert render_causes([]) == ""


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (ResourceKey("apps", "Deployment", "shop", "web"), "Caused by apps/Deployment:shop/web"),
        (ResourceKey("", "PersistentVolume", "", "pv-1"), "Caused by PersistentVolume:pv-1"),
        (ResourceKey("example.com", "Zone", "", "z"), "Caused by example.com/Zone:z"),
    ],
)
def test_cause_is_named_without_missing_group_or_namespace(key: ResourceKey, text: str) -> None:
    assert render_causes([key]) == text


@pytest.mark.parametrize(
    "left_out",
    [
        managed("a", HealthStatus.DEGRADED, HOOK="PreSync"),
        managed("a", HealthStatus.DEGRADED, HOOK="Skip"),
        managed("a", HealthStatus.DEGRADED, HOOK="NoSuchHook"),
        managed("a", HealthStatus.DEGRADED, HELM_HOOK="post-install"),
        managed("a", HealthStatus.DEGRADED, HELM_HOOK="test"),
        managed("a", HealthStatus.DEGRADED, IGNORE="true"),
    ],
)
def test_hooks_and_ignored_resources_do_not_count(left_out: ResourceWithHealth) -> None:
    assert aggregate_resources(left_out, managed("b")) == (HealthStatus.HEALTHY, "")
    assert find_resource_health(APP, left_out) is None


@pytest.mark.parametrize(
    "counted",
    [
        managed("a", HealthStatus.DEGRADED, IGNORE="false"),
        managed("a", HealthStatus.DEGRADED, HELM_HOOK="crd-install"),
        managed("a", HealthStatus.DEGRADED, kind="Application"),
    ],
)
def test_resources_similar_to_excluded_ones_do_count(counted: ResourceWithHealth) -> None:
    assert aggregate_resources(counted)[0] is HealthStatus.DEGRADED


def test_live_skip_annotation_does_not_exclude_until_desired_has_it() -> None:
    live = managed("a", HealthStatus.DEGRADED, HOOK="Skip")
    assert (
        aggregate_resources(ResourceWithHealth(live.key, None, live.live, live.assessment))[0] is HealthStatus.DEGRADED
    )


def test_missing_resource_is_missing_but_does_not_affect_the_app() -> None:
    absent = managed("a", is_live=False)
    assert find_resource_health(APP, absent) == Assessment(HealthStatus.MISSING)
    assert aggregate_resources(absent, managed("b")) == (HealthStatus.HEALTHY, "")


def test_application_without_live_resources_is_missing_without_cause() -> None:
    assert aggregate_resources(managed("a", is_live=False), managed("b", is_live=False)) == (HealthStatus.MISSING, "")
    assert aggregate_resources(managed("a", is_live=False), managed("b", HealthStatus.HEALTHY, HOOK="Sync")) == (
        HealthStatus.MISSING,
        "",
    )


def test_hook_that_is_not_live_counts_as_missing_unless_skipped() -> None:
    assert aggregate_resources(managed("a", is_live=False, HOOK="PreSync")) == (HealthStatus.MISSING, "")
    assert aggregate_resources(managed("a", is_live=False, HOOK="Skip")) == (HealthStatus.HEALTHY, "")


def test_ignored_live_resource_prevents_missing_health() -> None:
    assert aggregate_resources(managed("a", is_live=False), managed("b", HealthStatus.DEGRADED, IGNORE="true")) == (
        HealthStatus.HEALTHY,
        "",
    )


def test_kinds_without_health_and_empty_health_do_not_count() -> None:
    nothing = managed("a")
    without = ResourceWithHealth(nothing.key, nothing.desired, nothing.live, None)
    assert aggregate_resources(without, managed("b", None)) == (HealthStatus.HEALTHY, "")
    assert find_resource_health(APP, without) is None
    assert find_resource_health(APP, managed("b", None)) == Assessment(None)


def child(name: str, health: HealthStatus, *, uid: str = "") -> ResourceWithHealth:
    live = {"metadata": {"name": name, "uid": uid}}
    return ResourceWithHealth(ResourceKey("argoproj.io", "Application", "argocd", name), live, live, Assessment(health))


@pytest.mark.parametrize(
    ("health", "parent"),
    [
        (HealthStatus.MISSING, HealthStatus.HEALTHY),
        (HealthStatus.UNKNOWN, HealthStatus.HEALTHY),
        (HealthStatus.DEGRADED, HealthStatus.DEGRADED),
        (HealthStatus.PROGRESSING, HealthStatus.PROGRESSING),
    ],
)
def test_missing_or_unknown_child_application_does_not_affect_parent(
    health: HealthStatus, parent: HealthStatus
) -> None:
    assert aggregate_resources(child("pay", health))[0] is parent


def test_application_does_not_affect_its_own_health() -> None:
    itself = child("shop", HealthStatus.DEGRADED, uid="1")
    assert aggregate_resources(itself) == (HealthStatus.HEALTHY, "")
    assert aggregate_health(APP, [itself], uid="1").health is HealthStatus.HEALTHY
    assert find_resource_health(APP, itself) is None
    assert aggregate_health(APP, [itself], uid="2").health is HealthStatus.DEGRADED


def test_live_resource_assessed_as_missing_affects_the_application() -> None:
    assert aggregate_resources(managed("a", HealthStatus.MISSING)) == (
        HealthStatus.MISSING,
        "Caused by example.com/Widget:shop/a",
    )


RULE = "argocd-cm resource.customizations.health.example.com_Widget"


def broken(name: str, rule: str = RULE, text: str = "line 3: no such field", **annotations: str) -> ResourceWithHealth:
    good = managed(name, **annotations)
    return ResourceWithHealth(good.key, good.desired, good.live, Assessment(HealthStatus.UNKNOWN, text, rule, text))


def test_failed_rule_is_reported_once_with_all_affected_resources() -> None:
    aggregate = aggregate_health(
        APP, [broken("a"), managed("b"), broken("c", text="other"), broken("d", "bundled x/Y", "odd")]
    )
    assert aggregate.health is HealthStatus.UNKNOWN
    assert [(fault.rule, fault.error, [key.name for key in fault.keys]) for fault in aggregate.faults] == [
        (RULE, "line 3: no such field", ["a", "c"]),
        ("bundled x/Y", "odd", ["d"]),
    ]
    assert render_fault_conditions(aggregate.faults) == [
        f"health check {RULE} failed on 2 objects: line 3: no such field",
        "health check bundled x/Y failed on example.com/Widget:shop/d: odd",
    ]


def test_failed_rule_of_uncounted_resources_is_not_reported() -> None:
    aggregate = aggregate_health(APP, [broken("a", IGNORE="true"), broken("b", HOOK="Sync"), managed("c")])
    assert aggregate == ApplicationHealth(HealthStatus.HEALTHY)
    assert render_fault_conditions(aggregate.faults) == []


def test_failed_rule_of_a_child_application_is_reported_only() -> None:
    key = ResourceKey("argoproj.io", "Application", "argocd", "pay")
    live = {"metadata": {"name": "pay"}}
    aggregate = aggregate_health(
        APP, [ResourceWithHealth(key, live, live, Assessment(HealthStatus.UNKNOWN, "no", "r", "no"))]
    )
    assert aggregate == ApplicationHealth(HealthStatus.HEALTHY, "", (FailedHealthRule("r", "no", (key,)),))


@pytest.mark.parametrize(
    ("annotations", "hook", "skipped"),
    [
        ({}, False, False),
        ({HOOK: "PreSync"}, True, False),
        ({HOOK: " Skip "}, False, True),
        ({HOOK: "Skip,Sync"}, True, False),
        ({HOOK: "Skip,Odd"}, False, True),
        ({HOOK: ""}, True, False),
        ({HOOK: "Odd"}, True, False),
        ({HELM_HOOK: "pre-install,pre-upgrade"}, True, False),
        ({HELM_HOOK: "pre-rollback"}, True, False),
        ({HELM_HOOK: "crd-install"}, False, False),
        ({HOOK: 3}, False, False),
        ("odd", False, False),
    ],
)
def test_hook_and_skip_are_detected_by_annotations(annotations: Any, hook: bool, skipped: bool) -> None:
    manifest = {"metadata": {"annotations": annotations}}
    assert (is_hook(manifest), is_skipped(manifest)) == (hook, skipped)


@settings(max_examples=examples())
@given(st.lists(st.tuples(st.sampled_from(HealthStatus), st.booleans()), max_size=8))
def test_application_is_never_healthier_than_a_live_resource(rows: list[tuple[HealthStatus, bool]]) -> None:
    resources = [managed(str(index), health, is_live=live) for index, (health, live) in enumerate(rows)]
    aggregate = aggregate_health(APP, resources)
    assert not any(live and health.is_worse_than(aggregate.health) for health, live in rows)
    assert (aggregate.message == "") == (aggregate.health is HealthStatus.HEALTHY or not any(live for _, live in rows))

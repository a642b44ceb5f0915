"""Tests how manifests are paired, and which sync status follows from pairs, hooks and extra objects."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.application.step_results import SyncStatus
from argosy.gitops.diff import DiffCache, DiffOptions, compare_manifests
from argosy.kube.objects import Manifest, key_of

HOOK = "argocd.argoproj.io/hook"
OPTIONS = "argocd.argoproj.io/compare-options"


def config_map(name: str = "settings", annotations: dict[str, str] | None = None, **data: Any) -> Manifest:
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def compared(desired: list[Manifest], live: list[Manifest], **options: Any) -> Any:
    return compare_manifests(desired, {key_of(manifest): manifest for manifest in live}, DiffOptions(), **options)


def test_equal_manifests_are_synced() -> None:
    comparison = compared([config_map(a="1")], [config_map(a="1", b="2")])
    assert comparison.status is SyncStatus.SYNCED
    assert [pair.differs for pair in comparison.pairs] == [False]


def test_missing_live_object_is_out_of_sync() -> None:
    comparison = compared([config_map(a="1")], [])
    assert comparison.status is SyncStatus.OUT_OF_SYNC
    assert comparison.pairs[0].differs
    assert comparison.pairs[0].live is None


def test_extra_live_object_is_out_of_sync() -> None:
    comparison = compared([], [config_map(a="1")])
    assert comparison.status is SyncStatus.OUT_OF_SYNC
    assert comparison.pairs[0].desired is None


def test_ignored_extraneous_object_stays_a_pair_but_is_synced() -> None:
    comparison = compared([], [config_map(annotations={OPTIONS: "IgnoreExtraneous"})])
    assert comparison.status is SyncStatus.SYNCED
    assert [pair.desired for pair in comparison.pairs] == [None]


def test_live_object_with_copied_tracking_is_not_paired() -> None:
    comparison = compared([], [config_map()], is_own=lambda live: False)
    assert comparison.pairs == []
    assert comparison.status is SyncStatus.SYNCED


@pytest.mark.parametrize("annotations", [{HOOK: "PreSync"}, {"helm.sh/hook": "test"}])
def test_hooks_are_listed_apart_and_never_paired(annotations: dict[str, str]) -> None:
    hook = config_map("hook", annotations)
    assert compared([hook], []).hooks == [hook]
    for desired in ([hook], []):
        comparison = compared(desired, [hook])
        assert comparison.pairs == []
        assert comparison.status is SyncStatus.SYNCED


def test_skipped_manifest_is_neither_applied_nor_pruned() -> None:
    skipped = config_map("skipped", {HOOK: "Skip"})
    for live in ([], [config_map("skipped", a="1")]):
        comparison = compared([skipped], live)
        assert comparison.pairs == []
        assert comparison.hooks == []


def test_value_of_a_wrong_type_is_out_of_sync() -> None:
    wrong = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": "three"}}
    right = wrong | {"spec": {"replicas": 3}}
    comparison = compared([wrong], [right])
    assert (comparison.status, comparison.faults) == (SyncStatus.OUT_OF_SYNC, ())


def test_manifest_that_cannot_be_merged_is_unknown_and_named() -> None:
    def deployment(containers: Any) -> Manifest:
        spec = {"template": {"spec": {"containers": containers}}}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}

    comparison = compared([deployment([{"image": "without a name"}])], [deployment([{"name": "a", "image": "b"}])])
    assert comparison.status is SyncStatus.UNKNOWN
    assert comparison.pairs[0].differs
    (fault,) = comparison.faults
    assert fault.startswith("apps/Deployment/web: comparison failed")


def living(version: str, **data: Any) -> Manifest:
    manifest = config_map(**data)
    return manifest | {"metadata": manifest["metadata"] | {"uid": "u1", "resourceVersion": version}}


def test_diff_cache_is_used_only_for_unchanged_inputs() -> None:
    memory = DiffCache()
    desired, live = config_map(a="1"), living("7", a="2")
    first = compared([desired], [live], cache=memory)
    assert compared([desired], [live], cache=memory).pairs[0].predicted is first.pairs[0].predicted
    assert compared([desired], [living("8", a="1")], cache=memory).status is SyncStatus.SYNCED
    assert compared([config_map(a="3")], [living("8", a="1")], cache=memory).status is SyncStatus.OUT_OF_SYNC
    live = {key_of(desired): living("8", a="3")}
    other = DiffOptions(cache_salt="other")
    assert compare_manifests([desired], live, other, cache=memory).status is SyncStatus.OUT_OF_SYNC


def test_diff_cache_is_bounded() -> None:
    memory = DiffCache(max_entries=10)
    for number in range(30):
        desired = config_map(f"c{number}", a="1")
        live = desired | {"metadata": desired["metadata"] | {"uid": f"u{number}", "resourceVersion": "1"}}
        compared([desired], [live], cache=memory)
    assert len(memory) == 10


def test_true_differs_from_one_but_float_equals_integer() -> None:
    def widget(on: Any) -> Manifest:
        return {"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"on": on}}

    assert compared([widget(True)], [widget(1)]).status is SyncStatus.OUT_OF_SYNC
    assert compared([widget(1.0)], [widget(1)]).status is SyncStatus.SYNCED


def test_custom_resource_in_another_version_is_compared_by_fields() -> None:
    def widget(version: str, size: int) -> Manifest:
        return {"apiVersion": f"x.io/{version}", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": size}}

    assert compared([widget("v1", 1)], [widget("v1beta1", 1)]).status is SyncStatus.SYNCED
    assert compared([widget("v1", 1)], [widget("v1beta1", 2)]).status is SyncStatus.OUT_OF_SYNC


def autoscaler(version: str, **spec: Any) -> Manifest:
    target = {"kind": "Deployment", "name": "web"}
    metadata = {"name": "web", "namespace": "default"}
    autoscaler_spec = {"scaleTargetRef": target, "maxReplicas": 3} | spec
    head = {"apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler"}
    return {**head, "metadata": metadata, "spec": autoscaler_spec}


def test_autoscaler_v1_is_converted_to_compare_with_v2() -> None:
    def second(share: Any) -> Manifest:
        metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": share}}
        return autoscaler("v2", minReplicas=1, metrics=[{"type": "Resource", "resource": metric}])

    first = autoscaler("v1", targetCPUUtilizationPercentage=80)
    assert compared([first], [second(80)]).status is SyncStatus.SYNCED
    assert compared([first], [second(70)]).status is SyncStatus.OUT_OF_SYNC
    assert compared([second(80)], [first]).status is SyncStatus.SYNCED
    assert compared([second(70)], [first]).status is SyncStatus.OUT_OF_SYNC


def test_manifest_with_generate_name_has_no_live_side() -> None:
    named = config_map()
    generated = named | {"metadata": {"generateName": "run-", "namespace": "default"}}
    comparison = compared([generated], [])
    assert [(pair.key.name, pair.live) for pair in comparison.pairs] == [("run-", None)]


def test_manifests_with_the_same_generate_name_are_pairs_of_their_own() -> None:
    first, second = (config_map(a=value) | {"metadata": {"generateName": "run-"}} for value in "12")
    comparison = compared([first, second], [])
    assert [(pair.key.name, pair.desired) for pair in comparison.pairs] == [("run-", first), ("run-*2", second)]


def test_manifest_with_generate_name_is_not_compared_with_an_object_of_that_name() -> None:
    generated = config_map() | {"metadata": {"generateName": "settings", "namespace": "default"}}
    comparison = compared([config_map(), generated], [config_map()])
    assert [(pair.key.name, pair.live is not None, pair.differs) for pair in comparison.pairs] == [
        ("settings", True, False),
        ("settings*", False, True),
    ]
    extra = compared([generated], [config_map()])
    assert [(pair.key.name, pair.desired, pair.differs) for pair in extra.pairs] == [
        ("settings*", generated, True),
        ("settings", None, True),
    ]


def test_hook_with_generate_name_does_not_change_the_key_of_an_object() -> None:
    hook = config_map(annotations={"argocd.argoproj.io/hook": "Sync"})
    hook["metadata"] = {"generateName": "run-", "annotations": hook["metadata"]["annotations"]}
    generated = config_map() | {"metadata": {"generateName": "run-"}}
    assert [pair.key.name for pair in compared([hook, generated], []).pairs] == ["run-"]

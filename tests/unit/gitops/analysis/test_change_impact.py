"""Impact of a change on running workloads, computed from manifests alone."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.analysis.change_impact_summary import ChangeImpact, ChangeVerdict, assess_impact
from argosy.gitops.analysis.cluster_effect_types import EffectKind
from argosy.gitops.analysis.environment_names import detect_environment
from argosy.gitops.analysis.object_changes import ApplicationChange, compare_objects
from argosy.gitops.analysis.repository_view import ManifestWithLocations, RenderFailure, RenderFailureKind
from argosy.gitops.analysis.rule_violation import FileLocation
from argosy.gitops.application import read_application
from argosy.kube.objects import Manifest, key_of


def item(manifest: Manifest) -> ManifestWithLocations:
    return ManifestWithLocations(manifest, key_of(manifest), lambda pointer: FileLocation("base/a.yaml", 1))


def assess_change(before: list[Manifest], after: list[Manifest], **spec: Any) -> ChangeImpact:
    app = read_application({"metadata": {"name": "fraud"}, "spec": {"destination": {"namespace": "ml"}, **spec}})
    changes, unchanged = compare_objects(map(item, before), map(item, after), ("ml", "ml"))
    return assess_impact([ApplicationChange("fraud", app, app, tuple(changes), tuple(unchanged))])


def texts(impact: ChangeImpact, *kinds: EffectKind) -> list[str]:
    return [effect.text for effect in impact.list_effects(*(kinds or tuple(EffectKind)))]


def workload(kind: str = "Deployment", image: str = "v1", **spec: Any) -> Manifest:
    container = {"name": "main", "image": image, "ports": [{"containerPort": 80}]}
    container |= {"resources": spec.pop("resources", {})}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container], **spec.pop("pod", {})}}
    whole = {"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "a"}, "spec": whole}


def model(predictor: dict[str, Any] | None = None, **metadata: Any) -> Manifest:
    form: dict[str, Any] = {"model": {"modelFormat": {"name": "sklearn"}, "runtime": "vllm"}, **(predictor or {})}
    about = {"name": "fraud", **metadata}
    api = "serving.kserve.io/v1beta1"
    return {"apiVersion": api, "kind": "InferenceService", "metadata": about, "spec": {"predictor": form}}


def job(image: str, **annotations: str) -> Manifest:
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": image}]}
    named = {f"argocd.argoproj.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    about = {"name": "train", "annotations": named}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": {"template": {"spec": pod}}}


def claim(size: str = "1Gi", **annotations: str) -> Manifest:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    about = {
        "name": "data",
        "annotations": {f"argocd.argoproj.io/{k.replace('_', '-')}": v for k, v in annotations.items()},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": spec}


def test_new_image_restarts_rolling_or_with_downtime_by_strategy() -> None:
    assert "restarts 1 Deployment (rolling)" in assess_change([workload()], [workload(image="v2")]).summary
    new = workload(image="v2", strategy={"type": "Recreate"})
    assert "restarts 1 Deployment (with downtime)" in assess_change([workload()], [new]).summary


def test_explicit_server_defaults_restart_nothing() -> None:
    new = workload(pod={"restartPolicy": "Always", "dnsPolicy": "ClusterFirst"}, replicas=1)
    assert texts(assess_change([workload()], [new])) == []


def test_workload_without_pods_does_not_restart() -> None:
    assert texts(assess_change([workload(replicas=0)], [workload(image="v2", replicas=0)])) == []


def test_on_delete_strategy_leaves_outdated_pods() -> None:
    strategy = {"updateStrategy": {"type": "OnDelete"}, "serviceName": "a"}
    impact = assess_change([workload("StatefulSet", **strategy)], [workload("StatefulSet", "v2", **strategy)])
    assert texts(impact) == ["its Pods change only when they are deleted (OnDelete)"]


def test_predictor_restarts_on_template_changes_and_not_on_scaling() -> None:
    assert texts(assess_change([model()], [model({"minReplicas": 2})])) == ["predictor replicas 1 → 2"]
    impact = assess_change([model()], [model({"model": {"modelFormat": {"name": "onnx"}}})])
    assert "restarts 1 predictor (rolling)" in impact.summary
    assert "restarts 1 predictor" in assess_change([model()], [model(labels={"team": "blue"})]).summary


def test_canary_traffic_change_is_reported() -> None:
    impact = assess_change([model({"canaryTrafficPercent": 100})], [model({"canaryTrafficPercent": 10})])
    assert texts(impact) == ["the newest revision gets 10% of the requests (was 100%)"]
    assert "changes where traffic goes (InferenceService/fraud)" in impact.summary


def test_gpus_are_counted_for_minimum_and_maximum_replicas() -> None:
    resources = {"limits": {"nvidia.com/gpu": 2, "cpu": "1500m"}}
    form = {"modelFormat": {"name": "vLLM"}, "resources": resources}
    impact = assess_change([], [model({"model": form, "minReplicas": 1, "maxReplicas": 3})])
    assert "CPU +1500m · GPU +2 (up to +6)" in impact.summary
    assert (
        "GPU ±0 (up to +6)" in assess_change([], [model({"model": form, "minReplicas": 0, "maxReplicas": 3})]).summary
    )


def test_model_without_resources_uses_the_requests_of_its_runtime() -> None:
    container = {"name": "kserve-container", "resources": {"requests": {"memory": "4Gi"}}}
    about = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "ServingRuntime", "metadata": {"name": "vllm"}}
    runtime = {**about, "spec": {"containers": [container]}}
    assert "memory +4Gi" in assess_change([], [model(), runtime]).summary


def serving(image: str = "a", **spec: Any) -> Manifest:
    about = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "ServingRuntime", "metadata": {"name": "vllm"}}
    return {**about, "spec": {"containers": [{"name": "kserve-container", "image": image}], **spec}}


def test_changed_runtime_restarts_its_predictors_once() -> None:
    impact = assess_change([model(), serving()], [model(), serving("b")])
    assert "restarts 1 predictor (rolling)" in impact.summary
    assert texts(impact) == [
        "restarts the predictor of InferenceService/fraud (rolling; before KServe 0.16 with its next change)"
    ]
    both = assess_change([model(), serving()], [model({"minReplicas": 2, "nodeSelector": {"a": "b"}}), serving("b")])
    assert "restarts 1 predictor (rolling)" in both.summary
    recreated = model({"deploymentStrategy": {"type": "Recreate"}})
    assert (
        "restarts 1 predictor (with downtime)"
        in assess_change([recreated, serving()], [recreated, serving("b")]).summary
    )


def test_runtime_change_does_not_restart_stopped_or_pinned_predictors() -> None:
    offers = serving(supportedModelFormats=[{"name": "sklearn"}])
    assert texts(assess_change([model(), serving()], [model(), offers])) == []
    stopped = model(annotations={"serving.kserve.io/stop": "true"})
    assert "restarts 1" not in assess_change([stopped, serving()], [stopped, serving("b")]).summary
    keeps = model(annotations={"serving.kserve.io/disable-auto-update": "true"})
    impact = assess_change([keeps, serving()], [keeps, serving("b")])
    assert "no restarts at once" in impact.summary
    assert texts(impact)[0].startswith("reaches InferenceService/fraud with its next change")


def test_unknown_use_of_a_runtime_is_reported() -> None:
    assert (
        "no restarts known (ServingRuntime/vllm: KServe decides)" in assess_change([serving()], [serving("b")]).summary
    )
    free = model({"model": {"modelFormat": {"name": "sklearn"}}})
    sides = [serving(image, supportedModelFormats=[{"name": "sklearn", "autoSelect": True}]) for image in "ab"]
    impact = assess_change([free, sides[0]], [free, sides[1]])
    assert texts(impact) == ["restarts InferenceService/fraud, if KServe chose this runtime"]


def test_invalid_value_is_refused_with_its_field_in_new_and_changed_objects() -> None:
    wrong = model({"maxReplicas": "lots"})
    for before in ([model()], []):
        impact = assess_change(before, [wrong])
        assert impact.verdict is ChangeVerdict.REFUSED and "1 object rejected by the API server" in impact.summary
        rejection = "spec.predictor.maxReplicas: a string found, an integer expected"
        assert texts(impact) == [f"is rejected by the API server: {rejection}"]
    assert assess_change([workload()], [workload(replicas=-1)]).verdict is ChangeVerdict.REFUSED
    assert assess_change([workload()], [workload(replicas="two")]).verdict is ChangeVerdict.REFUSED
    assert assess_change([wrong], [model()]).verdict is ChangeVerdict.FINE


def test_missing_fields_and_placeholders_are_not_refused() -> None:
    assert (
        assess_change([model()], [model({"model": {"modelFormat": {}, "runtime": "vllm"}})]).verdict
        is ChangeVerdict.FINE
    )
    assert assess_change([workload()], [workload(replicas="${REPLICAS}")]).verdict is ChangeVerdict.FINE


def test_pod_request_is_the_maximum_of_init_and_main_containers() -> None:
    first = {"name": "first", "resources": {"requests": {"cpu": "3"}}}
    new = workload(resources={"requests": {"cpu": "1"}}, pod={"initContainers": [first]}, replicas=2)
    assert "CPU +6" in assess_change([], [new]).summary


def test_immutable_change_is_refused_and_with_force_the_object_is_recreated() -> None:
    impact = assess_change([job("v1")], [job("v2")])
    assert impact.verdict is ChangeVerdict.REFUSED and texts(impact)[0].startswith("spec.template cannot change")
    forced = assess_change([job("v1")], [job("v2", sync_options="Force=true,Replace=true")])
    assert forced.verdict is ChangeVerdict.FINE and "recreates 1 object" in forced.summary
    assert (
        assess_change([job("v1")], [job("v2")], syncPolicy={"syncOptions": ["Force=true", "Replace=true"]}).verdict
        == "fine"
    )
    assert texts(assess_change([job("v1", hook="Sync")], [job("v2", hook="Sync")])) == []


def test_immutable_change_of_an_ignored_field_is_refused_only_if_it_is_sent() -> None:
    policy = {"syncPolicy": {"syncOptions": ["RespectIgnoreDifferences=true"]}}
    rules = [{"group": "batch", "kind": "Job", "jsonPointers": ["/spec/template"]}]
    assert assess_change([job("v1")], [job("v2")], ignoreDifferences=rules, **policy).verdict is ChangeVerdict.FINE
    assert assess_change([job("v1")], [job("v2")], ignoreDifferences=rules).verdict is ChangeVerdict.REFUSED


def test_volume_claim_can_grow_but_not_shrink() -> None:
    assert texts(assess_change([claim("1Gi")], [claim("2Gi")])) == []
    assert texts(assess_change([claim("2Gi")], [claim("1Gi")]))[0].startswith(
        "spec.resources.requests.storage cannot change"
    )


def test_immutable_field_of_a_stateful_set_is_named() -> None:
    impact = assess_change([workload("StatefulSet", serviceName="a")], [workload("StatefulSet", "v2", serviceName="b")])
    assert texts(impact) == [
        "spec.serviceName cannot change on an existing object: a sync fails until it is deleted or reverted"
    ]


@pytest.mark.parametrize(
    ("policy", "options", "expected"),
    [
        ({"automated": {"prune": True}}, {}, "is deleted by the next sync, with its data"),
        ({}, {}, "is deleted by a sync with --prune, with its data"),
        ({"automated": {"prune": True}}, {"sync_options": "Prune=false"}, "stays, but is no longer synced"),
        ({"automated": {"prune": True}}, {"sync_options": "Prune=confirm"}, "is deleted by a sync with --prune"),
    ],
)
def test_deletion_effect_follows_prune_settings(policy: Any, options: dict[str, str], expected: str) -> None:
    assert texts(assess_change([claim(**options)], [], syncPolicy=policy))[0].startswith(expected)


def definition(**annotations: str) -> Manifest:
    about = {"name": "models.example.com", "annotations": annotations}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": about}


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (claim(), "is deleted with its Application, with its data"),
        (claim(sync_options="Delete=false"), "stays unmanaged: Delete=false"),
        (definition(), "stays unmanaged: CRDs are not deleted with an Application"),
    ],
)
def test_deleted_application_leaves_the_objects_that_argo_cd_leaves(manifest: Manifest, expected: str) -> None:
    about = {"name": "fraud", "finalizers": ["resources-finalizer.argocd.argoproj.io"]}
    app = read_application({"metadata": about, "spec": {"destination": {"namespace": "ml"}}})
    changes, _ = compare_objects([item(manifest)], [], ("ml", "ml"))
    assert texts(assess_impact([ApplicationChange("fraud", app, None, tuple(changes))])) == [expected]


def test_autoscaler_determines_the_replica_range() -> None:
    def autoscaler(least: int, most: int) -> Manifest:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
        spec = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most}
        api = "autoscaling/v2"
        return {"apiVersion": api, "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}, "spec": spec}

    pods = workload(replicas=1, resources={"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": "2"}})
    impact = assess_change([pods, autoscaler(1, 2)], [pods, autoscaler(3, 6)])
    assert texts(impact) == ["Deployment/a replicas 1–2 → 3–6"]
    assert "CPU +4 · GPU +2 (up to +4)" in impact.summary


def test_restarts_of_an_unknown_kind_are_unknown_if_its_spec_changes() -> None:
    def server(size: int, **labels: str) -> Manifest:
        about = {"name": "docs", "labels": labels}
        return {"apiVersion": "docling.example/v1", "kind": "DoclingServe", "metadata": about, "spec": {"size": size}}

    assert (
        "no restarts known (DoclingServe/docs: its controller decides)"
        in assess_change([server(1)], [server(2)]).summary
    )
    assert "no restarts ·" in assess_change([server(1)], [server(1, team="blue")]).summary


def test_object_moved_to_another_application_is_not_counted_as_deleted() -> None:
    apps = {
        name: read_application({"metadata": {"name": name}, "spec": {"destination": {"namespace": "ml"}}})
        for name in ("one", "two")
    }
    gone, _ = compare_objects([item(claim())], [], ("ml", "ml"))
    come, _ = compare_objects([], [item(claim())], ("ml", "ml"))
    impact = assess_impact(
        [
            ApplicationChange(name, app, app, tuple(object_changes))
            for (name, app), object_changes in zip(apps.items(), (gone, come), strict=True)
        ]
    )
    assert texts(impact) == ["moves to two: it is deleted in between if one is synced first"]
    assert "no deletions · moves 1 object to another app" in impact.summary


def test_recreated_predictor_restarts_with_downtime() -> None:
    form = {"modelFormat": {"name": "onnx"}}
    new = model({"model": form, "deploymentStrategy": {"type": "Recreate"}})
    assert "restarts 1 predictor (with downtime)" in assess_change([model()], [new]).summary


def test_service_change_to_headless_is_refused_and_a_port_change_is_reported() -> None:
    def service(port: int, **spec: Any) -> Manifest:
        whole = {"ports": [{"port": port}], "selector": {"app": "a"}, **spec}
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": whole}

    assert assess_change([service(80)], [service(80, clusterIP="None")]).verdict is ChangeVerdict.REFUSED
    assert texts(assess_change([service(80)], [service(81)])) == ["has a different port"]
    assert texts(assess_change([service(80)], [service(80, type="ClusterIP")])) == []


def test_generated_names_are_paired_only_if_unambiguous() -> None:
    def generated(name: str) -> Manifest:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": name}}

    before, after = "settings-2b8kf9ht5m", "settings-9tg5fk8b2m"
    changes, _ = compare_objects([item(generated(before))], [item(generated(after))])
    assert [str(change.change_type) for change in changes] == ["~"]
    two = [item(generated(after)), item(generated("settings-9tg5fk8b2k"))]
    object_changes, _ = compare_objects([item(generated(before))], two)
    assert sorted(str(change.change_type) for change in object_changes) == ["+", "+", "-"]
    paired_changes, _ = compare_objects([item(generated("settings-a"))], [item(generated("settings-b"))])
    assert sorted(str(change.change_type) for change in paired_changes) == ["+", "-"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (("", "llmops-production"), "production"),
        (("fraud-prod",), "production"),
        (("overlays/staging",), "staging"),
        (("fraud", "product-search"), ""),
        (("dev", "fraud-prod"), "dev"),
    ],
)
def test_environment_is_detected_by_whole_words(said: tuple[str, ...], expected: str) -> None:
    assert detect_environment(*said) == expected


@pytest.mark.parametrize("broken", [None, [], {"a": 1}, "text", 3])
def test_malformed_specs_do_not_raise(broken: Any) -> None:
    for name in (
        "Deployment",
        "StatefulSet",
        "InferenceService",
        "Service",
        "PersistentVolumeClaim",
        "Job",
        "ConfigMap",
    ):
        group = {"InferenceService": "serving.kserve.io/v1beta1", "Job": "batch/v1"}
        group |= dict.fromkeys(("Service", "PersistentVolumeClaim", "ConfigMap"), "v1")
        one = {"apiVersion": group.get(name, "apps/v1"), "kind": name, "metadata": {"name": "a"}, "spec": broken}
        two = {**one, "spec": {"template": broken, "predictor": broken, "replicas": broken, "selector": broken}}
        for before, after in (([one], [two]), ([two], [one]), ([one], []), ([], [two])):
            assert assess_change(before, after).summary


def test_failed_render_makes_restarts_resources_and_deletions_unknown() -> None:
    broken = ApplicationChange(
        "fraud",
        None,
        None,
        render_failure=RenderFailure(RenderFailureKind.RENDER, "is no YAML", "correct it", FileLocation("a.yaml", 1)),
    )
    assert assess_impact([broken]).summary == (
        "1 app changes · fraud cannot be rendered · restarts, resources and deletions unknown"
    )
    changes, unchanged = compare_objects([item(workload())], [item(workload(image="v2"))], ("ml", "ml"))
    both = assess_impact([broken, ApplicationChange("other", None, None, tuple(changes), tuple(unchanged))])
    assert "fraud cannot be rendered, so its effects are unknown · restarts 1 Deployment" in both.summary

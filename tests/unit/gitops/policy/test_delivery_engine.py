"""Which engine delivers an Application: argosy, Argo CD, both or none."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.policy.application_delivery_engine_detection import (
    ArgoCDController,
    Deliverer,
    DeliveryEngines,
    build_engines,
    is_application_controller,
    is_running,
    read_configured_namespaces,
)

ENGINE, SKIP = "argosy.dev/engine", "argocd.argoproj.io/skip-reconcile"
NOTHING: dict[str, str] = {}
PAUSED, OURS, THEIRS = {SKIP: "true"}, {ENGINE: "argosy"}, {ENGINE: "argocd"}
ARGOCD = ArgoCDController("StatefulSet", "argocd", "c", ("team-*", "/^ml-[0-9]+$/"))
ALONE, BESIDE, UNSEEN = DeliveryEngines(), DeliveryEngines((ARGOCD,)), DeliveryEngines(is_known=False)


@pytest.mark.parametrize(
    ("engines", "annotations", "expected"),
    [
        (ALONE, NOTHING, Deliverer.ARGOSY),
        (ALONE, PAUSED, Deliverer.NOBODY),
        (ALONE, {SKIP: "false"}, Deliverer.ARGOSY),
        (ALONE, OURS, Deliverer.ARGOSY),
        (ALONE, {**OURS, **PAUSED}, Deliverer.ARGOSY),
        (ALONE, THEIRS, Deliverer.NOBODY),
        (ALONE, {ENGINE: "flux"}, Deliverer.NOBODY),
        (BESIDE, NOTHING, Deliverer.ARGOCD),
        (BESIDE, PAUSED, Deliverer.NOBODY),
        (BESIDE, OURS, Deliverer.BOTH),
        (BESIDE, {**OURS, **PAUSED}, Deliverer.ARGOSY),
        (BESIDE, THEIRS, Deliverer.ARGOCD),
        (BESIDE, {**THEIRS, **PAUSED}, Deliverer.NOBODY),
        (UNSEEN, NOTHING, Deliverer.UNKNOWN),
        (UNSEEN, OURS, Deliverer.ARGOSY),
        (UNSEEN, PAUSED, Deliverer.NOBODY),
    ],
)
def test_annotations_pick_deliverer(engines: DeliveryEngines, annotations: dict[str, str], expected: Deliverer) -> None:
    assert engines.find_deliverer(annotations, "argocd") is expected
    assert engines.describe_deliverer(annotations, "argocd").startswith(expected.value)


def test_is_argosy_only_if_no_annotation_is_set_and_no_argocd_watches() -> None:
    assert ALONE.is_argosy_only(NOTHING, "argocd") and UNSEEN.is_argosy_only(NOTHING, "argocd")
    assert not any(
        engines.is_argosy_only(app_annotations, "argocd")
        for engines in (ALONE, BESIDE)
        for app_annotations in (OURS, THEIRS, PAUSED)
    )
    assert not BESIDE.is_argosy_only(NOTHING, "argocd")
    assert BESIDE.is_argosy_only(NOTHING, "argosy")


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [
        ("argocd", Deliverer.ARGOCD),
        ("team-a", Deliverer.ARGOCD),
        ("ml-7", Deliverer.ARGOCD),
        ("ml-x", Deliverer.ARGOSY),
        ("argosy", Deliverer.ARGOSY),
    ],
)
def test_argocd_delivers_applications_in_the_namespaces_it_watches(namespace: str, expected: Deliverer) -> None:
    assert BESIDE.find_deliverer(NOTHING, namespace) is expected
    assert BESIDE.find_deliverer(OURS, namespace).is_argosy
    assert (BESIDE.find_deliverer(THEIRS, namespace) is Deliverer.NOBODY) is (expected is Deliverer.ARGOSY)
    assert ("only observes" in BESIDE.describe_for_namespace(namespace)) is (expected is Deliverer.ARGOCD)


def test_unsupported_namespace_expression_matches_everything() -> None:
    ahead = ArgoCDController("StatefulSet", "argocd", "c", ("/^((?!secret).)*$/",))  # argo: .NET syntax with lookahead
    assert ahead.watches_namespace("anything")


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"args": ["/c", "--application-namespaces", "a, b-*"]}, ("a", "b-*")),
        ({"command": ["/c", "--application-namespaces=*"], "env": []}, ("*",)),
        ({"args": ["--application-namespaces"]}, ()),
        ({"env": [{"name": "ARGOCD_APPLICATION_NAMESPACES", "value": "a"}]}, ("a",)),
        ({"env": [{"name": "ARGOCD_APPLICATION_NAMESPACES", "valueFrom": {"configMapKeyRef": {}}}]}, None),
        ({"args": None, "env": None}, None),
    ],
)
def test_configured_namespaces_are_read_from_arguments_and_environment(container: Any, expected: Any) -> None:
    inner = {"containers": [container]}
    assert read_configured_namespaces({"kind": "Pod", "spec": inner}) == expected
    assert read_configured_namespaces({"kind": "StatefulSet", "spec": {"template": {"spec": inner}}}) == expected


def workload(kind: str = "StatefulSet", replicas: Any = 1, **more: Any) -> dict[str, Any]:
    labels = {"app.kubernetes.io/component": "application-controller", "app.kubernetes.io/part-of": "argocd"}
    metadata = {"name": "c", "namespace": "argocd", "labels": labels, **more.pop("metadata", {})}
    spec = {} if replicas is None else {"replicas": replicas}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec, **more}


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (workload(), True),
        (workload(replicas=None), True),  # k8s: the default is 1
        (workload(replicas=0), False),
        (workload(replicas=0, status={"replicas": 1}), True),
        (workload(replicas=0, status={"replicas": 0}), False),
        (workload(metadata={"annotations": {"sandbox.argosy.dev/simulated": "simulated by argosy"}}), False),
        (workload(replicas="many"), False),
        (workload("Pod", None), True),
        (workload("Pod", None, status={"phase": "Running"}), True),
        (workload("Pod", None, status={"phase": "Failed"}), False),  # for example evicted
        (workload("Pod", None, metadata={"annotations": {"sandbox.argosy.dev/simulated": "by argosy"}}), False),
    ],
)
def test_ended_scaled_down_and_simulated_controllers_do_not_run(manifest: dict[str, Any], expected: bool) -> None:
    assert is_running(manifest) is expected


def test_application_controllers_are_recognized_by_their_labels() -> None:
    named = {"labels": {"app.kubernetes.io/name": "argocd-application-controller"}}
    assert all(map(is_application_controller, (workload(), workload(metadata=named), workload("Deployment"))))
    operators = {"labels": {"app.kubernetes.io/name": "openshift-gitops-application-controller"}}
    assert is_application_controller(workload("Pod", None, metadata=operators))  # argo: its Pods have only this label
    assert not is_application_controller(workload("DaemonSet"))
    assert not is_application_controller(
        workload(metadata={"labels": {"app.kubernetes.io/component": "application-controller"}})
    )
    assert not is_application_controller(workload(metadata={"labels": None}))


def test_controller_found_by_two_selectors_is_listed_once() -> None:
    assert build_engines([workload(), workload()]).controller_names == ("StatefulSet argocd/c",)


def test_pod_is_listed_only_if_its_workload_does_not_run() -> None:
    left = workload("Pod", None, metadata={"name": "c-0"})
    assert build_engines([workload(), left]).controller_names == ("StatefulSet argocd/c",)
    assert build_engines([workload(replicas=0), left]).controller_names == ("Pod argocd/c-0",)
    played = workload(metadata={"annotations": {"sandbox.argosy.dev/simulated": "simulated by argosy"}})
    assert not build_engines([played, left]).controller_names  # a real cluster created this Pod for it

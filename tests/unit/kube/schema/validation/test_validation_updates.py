"""Validation of updates, and fields set before validation, as on a Kubernetes 1.32 API server."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.schema import defaults, validation
from argosy.kube.schema.field_error import FieldError
from support.schema_validation import Manifest, build_manifest, created, ready, resource_of


def updated(old: Manifest, change: Manifest) -> list[FieldError]:
    resource, stored = resource_of(old), ready(old)
    desired = defaults.apply_defaults(resource.group_kind, resource.version, merged(stored, change))
    return validation.validate_update(resource, validation.prepare_update(resource, desired, stored), stored)


def merged(base: Any, change: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    return {**base, **{name: merged(base.get(name), value) for name, value in change.items()}}


POD = {"containers": [{"name": "c", "image": "nginx"}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
JOB_POD = {**POD, "restartPolicy": "Never"}
PORTS = {"ports": [{"port": 80}]}


def test_deployment_selector_is_immutable() -> None:
    change = {"spec": {"selector": {"matchLabels": {"x": "y"}}}}
    assert [str(fault) for fault in updated(build_manifest("apps/v1", "Deployment", spec=SELECTED), change)] == [
        'spec.template.metadata.labels: Invalid value: map[string]string{"a":"b"}: '
        "`selector` does not match template `labels`",
        'spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"a":"b", "x":"y"}, '
        "MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable",
    ]


def test_immutable_metadata_error_is_reported_twice_on_update() -> None:
    faults = updated(build_manifest("v1", "ConfigMap"), {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}})
    expected = 'metadata.uid: Invalid value: "00000000-0000-0000-0000-000000000000": field is immutable'
    assert [str(fault) for fault in faults] == [expected, expected]


@pytest.mark.parametrize(
    ("manifest", "times"),
    [
        (build_manifest("policy/v1", "PodDisruptionBudget", spec={}), 2),
        (build_manifest("apps/v1", "Deployment", spec=SELECTED), 3),
        (build_manifest("v1", "ConfigMap"), 4),
        (build_manifest("apps/v1", "ReplicaSet", spec=SELECTED), 4),
        (build_manifest("rbac.authorization.k8s.io/v1", "Role"), 5),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else str(value),
)
def test_invalid_label_is_reported_once_per_check_of_the_kind(manifest: Manifest, times: int) -> None:
    faults = updated(manifest, {"metadata": {"labels": {"a b": "c"}, "resourceVersion": "1"}})
    assert [fault.field for fault in faults] == ["metadata.labels"] * times
    assert len(set(faults)) == 1


def test_finalizer_cannot_be_added_to_a_deleting_object() -> None:
    old = build_manifest(
        "v1", "ConfigMap", {"deletionTimestamp": "2026-11-15T01:07:05Z", "finalizers": ["argosy.dev/x"]}
    )
    faults = updated(old, {"metadata": {"finalizers": ["argosy.dev/x", "argosy.dev/y"]}})
    expected = (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"argosy.dev/y"}'
    )
    assert [str(fault) for fault in faults] == [expected, expected]


FINE = [
    build_manifest("v1", "Pod", spec=POD),
    build_manifest("v1", "Pod", spec={**POD, "volumes": [{"name": "v"}]}),
    build_manifest("apps/v1", "Deployment", spec=SELECTED),
    build_manifest("apps/v1", "ReplicaSet", spec=SELECTED),
    build_manifest("apps/v1", "DaemonSet", spec=SELECTED),
    build_manifest("apps/v1", "StatefulSet", spec=SELECTED),
    build_manifest("v1", "ReplicationController", spec={"template": TEMPLATE}),
    build_manifest("batch/v1", "Job", spec={"template": {"spec": JOB_POD}}),
    build_manifest(
        "batch/v1", "CronJob", spec={"schedule": "@hourly", "jobTemplate": {"spec": {"template": {"spec": JOB_POD}}}}
    ),
    build_manifest("v1", "Service", spec=PORTS),
    build_manifest("v1", "Service", spec={"clusterIP": "None"}),
    build_manifest("v1", "Service", spec={"type": "ExternalName", "externalName": "example.com."}),
    build_manifest("v1", "Secret", stringData={"a": "b"}),
    build_manifest("rbac.authorization.k8s.io/v1", "ClusterRole", {"name": "system:x"}, rules=None),
    build_manifest("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}}),
    build_manifest("policy/v1", "PodDisruptionBudget", spec={"minAvailable": "50%"}),
    build_manifest("v1", "Event", involvedObject={"kind": "Pod", "name": "x", "namespace": "p1"}),
    build_manifest("v1", "ServiceAccount"),
]


@pytest.mark.parametrize("manifest", FINE, ids=[f"{manifest['kind']}-{n}" for n, manifest in enumerate(FINE)])
def test_valid_manifest_is_accepted_on_create_and_update(manifest: Manifest) -> None:
    assert created(manifest) == []
    assert updated(manifest, {"metadata": {"labels": {"a": "b"}, "resourceVersion": "1"}}) == []


UPDATED: list[tuple[Manifest, Manifest, list[str]]] = [
    (build_manifest("v1", "Secret"), {"type": "foo/bar"}, ['type: Invalid value: "foo/bar": field is immutable']),
    (
        build_manifest("v1", "ConfigMap", data={"a": "1"}, immutable=True),
        {"data": {"a": "2"}},
        ["data: Forbidden: field is immutable when `immutable` is set"],
    ),
    (
        build_manifest("v1", "Service", spec={**PORTS, "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}),
        {"spec": {"clusterIP": "10.0.0.2"}},
        ['spec.clusterIPs[0]: Invalid value: []string{"10.0.0.2"}: may not change once set'],
    ),
    (
        build_manifest("apps/v1", "StatefulSet", spec={**SELECTED, "serviceName": "a"}),
        {"spec": {"serviceName": "b"}},
        [
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        ],
    ),
    (
        build_manifest("batch/v1", "Job", spec={"template": {"spec": JOB_POD}}),
        {"spec": {"completions": 2}},
        ["spec.completions: Invalid value: 2: field is immutable"],
    ),
    (
        build_manifest("rbac.authorization.k8s.io/v1", "RoleBinding", roleRef={"kind": "Role", "name": "a"}),
        {"roleRef": {"name": "b"}},
        [
            'roleRef: Invalid value: rbac.RoleRef{APIGroup:"rbac.authorization.k8s.io", Kind:"Role", Name:"b"}: '
            "cannot change roleRef"
        ],
    ),
    (
        build_manifest("storage.k8s.io/v1", "StorageClass", provisioner="a.b/c"),
        {"reclaimPolicy": "Retain", "provisioner": "d.e/f"},
        [
            "provisioner: Forbidden: updates to provisioner are forbidden.",
            "reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.",
        ],
    ),
    (
        build_manifest("scheduling.k8s.io/v1", "PriorityClass", value=1),
        {"value": 2},
        ["value: Forbidden: may not be changed in an update."],
    ),
    (
        build_manifest("v1", "Pod", spec=POD),
        {"spec": {"containers": [*POD["containers"], {"name": "d", "image": "x"}]}},
        ["spec.containers: Forbidden: pod updates may not add or remove containers"],
    ),
]


@pytest.mark.parametrize(("old", "change", "expected"), UPDATED, ids=[case[0]["kind"] for case in UPDATED])
def test_forbidden_update_is_rejected(old: Manifest, change: Manifest, expected: list[str]) -> None:
    assert [str(fault) for fault in updated(old, change)] == expected


def test_pod_update_may_change_images_but_not_node_selector() -> None:
    old = build_manifest("v1", "Pod", spec=POD)
    assert (
        updated(old, {"spec": {"containers": [{"name": "c", "image": "nginx:2", "imagePullPolicy": "Always"}]}}) == []
    )
    (fault,) = updated(old, {"spec": {"nodeSelector": {"a": "b"}}})
    assert str(fault).startswith(
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
        "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
    )


def test_persistent_volume_claim_can_only_grow() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = build_manifest("v1", "PersistentVolumeClaim", spec=spec)
    resource, stored = resource_of(claim), ready(claim)
    bound = {**stored, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    larger = merged(bound, {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    assert validation.validate_update(resource, larger, bound) == []
    smaller = merged(bound, {"spec": {"resources": {"requests": {"storage": "1Mi"}}}})
    expected = "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    assert [str(fault) for fault in validation.validate_update(resource, smaller, bound)] == [expected]
    (fault,) = validation.validate_update(
        resource, merged(stored, {"spec": {"accessModes": ["ReadWriteMany"]}}), stored
    )
    assert str(fault).startswith("spec: Forbidden: spec is immutable after creation except resources.requests")


def test_lease_update_requires_a_resource_version() -> None:
    assert not validation.allows_unconditional_update(
        resource_of(build_manifest("coordination.k8s.io/v1", "Lease")).group_kind
    )
    faults = updated(build_manifest("coordination.k8s.io/v1", "Lease"), {"spec": {"holderIdentity": "a"}})
    expected = 'metadata.resourceVersion: Invalid value: "": must be specified for an update'
    assert [str(fault) for fault in faults] == [expected, expected]


def test_new_job_gets_its_selector_and_controller_labels() -> None:
    job = ready(build_manifest("batch/v1", "Job", spec={"template": {"spec": JOB_POD}}))
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert job["spec"]["template"]["metadata"]["labels"] == {
        "batch.kubernetes.io/controller-uid": "u",
        "batch.kubernetes.io/job-name": "x",
        "controller-uid": "u",
        "job-name": "x",
    }
    assert job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"]
    own = ready(build_manifest("batch/v1", "Job", {"labels": {"mine": "1"}}, spec={"template": {"spec": JOB_POD}}))
    assert own["metadata"]["labels"] == {"mine": "1"}
    (message,) = created(
        build_manifest("batch/v1", "Job", spec={"template": {"metadata": {"labels": {"a": "b"}}, "spec": JOB_POD},
                                      "selector": {"matchLabels": {"a": "b"}}})
    )  # fmt: skip
    assert message.endswith("`selector` not auto-generated")


@pytest.mark.parametrize(
    ("limits", "requests", "expected"),
    [
        ({}, {}, "BestEffort"),
        ({}, {"cpu": "1"}, "Burstable"),
        ({"cpu": "1", "memory": "1Gi"}, {}, "Guaranteed"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "500m"}, "Burstable"),
    ],
)
def test_new_pod_is_pending_and_has_a_qos_class(limits: Manifest, requests: Manifest, expected: str) -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": limits, "requests": requests}}
    pod = ready(build_manifest("v1", "Pod", spec={"containers": [container]}, status={"phase": "Running"}))
    assert pod["status"] == {"phase": "Pending", "qosClass": expected}


def test_new_pod_gets_priority_and_default_tolerations() -> None:
    spec = ready(build_manifest("v1", "Pod", spec=POD))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert [(toleration["key"], toleration["tolerationSeconds"]) for toleration in spec["tolerations"]] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]
    patient = [{"operator": "Exists"}]
    assert ready(build_manifest("v1", "Pod", spec={**POD, "tolerations": patient}))["spec"]["tolerations"] == patient


def test_status_is_dropped_on_create_and_kept_on_main_update() -> None:
    deployment = build_manifest("apps/v1", "Deployment", spec=SELECTED, status={"replicas": 9})
    assert ready(deployment)["status"] == {}
    resource, old = resource_of(deployment), {**ready(deployment), "status": {"replicas": 3}}
    assert validation.prepare_update(resource, deployment, old)["status"] == {"replicas": 3}
    after = validation.prepare_status_update(resource, {**deployment, "spec": {}}, old)
    assert (after["spec"], after["status"]) == (old["spec"], {"replicas": 9})


def test_status_replica_counts_must_be_consistent() -> None:
    deployment = build_manifest("apps/v1", "Deployment", spec=SELECTED)
    resource, old = resource_of(deployment), ready(deployment)
    wrong = validation.prepare_status_update(resource, {**old, "status": {"replicas": -1, "readyReplicas": 3}}, old)
    assert [str(fault) for fault in validation.validate_status_update(resource, wrong, old)] == [
        "status.replicas: Invalid value: -1: must be greater than or equal to 0",
        "status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas",
        "status.readyReplicas: Invalid value: 3: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
    ]
    fine = validation.prepare_status_update(resource, {**old, "status": {"replicas": 3, "readyReplicas": 3}}, old)
    assert validation.validate_status_update(resource, fine, old) == []


def test_namespace_phase_must_be_active_until_deletion() -> None:
    namespace = build_manifest("v1", "Namespace")
    resource, old = resource_of(namespace), ready(namespace)
    (*_, fault) = validation.validate_status_update(resource, {**old, "status": {"phase": "X"}}, old)
    assert str(fault) == "status.Phase: Invalid value: \"X\": may only be 'Active' if `deletionTimestamp` is empty"


def test_new_namespace_has_the_kubernetes_finalizer() -> None:
    namespace = ready(build_manifest("v1", "Namespace"))
    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    assert namespace["status"] == {"phase": "Active"}


def test_daemon_set_counts_template_generations() -> None:
    daemon_set = build_manifest("apps/v1", "DaemonSet", spec=SELECTED)
    resource, old = resource_of(daemon_set), ready(daemon_set)
    name = "deprecated.daemonset.template.generation"
    assert old["metadata"]["annotations"] == {name: "1"}
    changed = merged(old, {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}})
    assert validation.prepare_update(resource, changed, old)["metadata"]["annotations"][name] == "2"
    assert validation.prepare_update(resource, old, old)["metadata"]["annotations"][name] == "1"


def test_deployments_have_a_generation_and_config_maps_do_not() -> None:
    assert validation.has_generation(resource_of(build_manifest("apps/v1", "Deployment")).group_kind)
    assert not validation.has_generation(resource_of(build_manifest("v1", "ConfigMap")).group_kind)

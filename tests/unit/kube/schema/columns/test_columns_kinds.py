"""Rows that `kubectl get` prints for each kind on a Kubernetes 1.32 server."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.resource_key import GroupKind
from argosy.kube.schema import columns
from support.printed_rows import Manifest, ago, build_manifest, row

READY = [{"type": "Ready", "status": "True"}]
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "nginx"}, {"name": "d", "image": "redis:7"}]}}
SELECTOR = {"matchLabels": {"b": "2", "a": "1"}}
ROWS: list[tuple[Manifest, dict[str, Any]]] = [
    (
        build_manifest(
            "apps/v1",
            "Deployment",
            spec={"replicas": 3, "selector": SELECTOR, "template": TEMPLATE},
            status={"readyReplicas": 1, "updatedReplicas": 3, "availableReplicas": 1},
        ),
        {
            "Ready": "1/3",
            "Up-to-date": 3,
            "Available": 1,
            "Containers": "c,d",
            "Images": "nginx,redis:7",
            "Selector": "a=1,b=2",
        },
    ),
    (
        build_manifest(
            "apps/v1",
            "ReplicaSet",
            spec={"replicas": 2, "template": TEMPLATE, "selector": SELECTOR},
            status={"replicas": 2},
        ),
        {"Desired": 2, "Current": 2, "Ready": 0},
    ),
    (
        build_manifest(
            "apps/v1",
            "DaemonSet",
            spec={"template": {"spec": {}}},
            status={"desiredNumberScheduled": 2, "numberReady": 1},
        ),
        {"Desired": 2, "Current": 0, "Ready": 1, "Node Selector": "<none>"},
    ),
    (build_manifest("apps/v1", "StatefulSet", spec={"replicas": 2}, status={"readyReplicas": 2}), {"Ready": "2/2"}),
    (
        build_manifest(
            "batch/v1", "Job", spec={"completions": 2}, status={"succeeded": 1, "startTime": ago(minutes=3)}
        ),
        {"Status": "Running", "Completions": "1/2", "Duration": "3m"},
    ),
    (
        build_manifest(
            "batch/v1",
            "Job",
            spec={"parallelism": 4},
            status={
                "succeeded": 1,
                "startTime": ago(minutes=3),
                "completionTime": ago(minutes=2, seconds=50),
                "conditions": [{"type": "Complete", "status": "True"}],
            },
        ),
        {"Status": "Complete", "Completions": "1/1 of 4", "Duration": "10s"},
    ),
    (
        build_manifest(
            "batch/v1",
            "CronJob",
            spec={"schedule": "@daily", "suspend": False},
            status={"active": [{}], "lastScheduleTime": ago(hours=3)},
        ),
        {"Schedule": "@daily", "Timezone": "<none>", "Suspend": "False", "Active": 1, "Last Schedule": "3h"},
    ),
    (
        build_manifest(
            "v1",
            "Service",
            spec={
                "type": "ClusterIP",
                "clusterIPs": ["10.0.0.1"],
                "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
                "selector": {"a": "b"},
            },
        ),
        {
            "Type": "ClusterIP",
            "Cluster-IP": "10.0.0.1",
            "External-IP": "<none>",
            "Port(s)": "80/TCP,53/UDP",
            "Selector": "a=b",
        },
    ),
    (
        build_manifest(
            "v1",
            "Service",
            spec={
                "type": "NodePort",
                "clusterIP": "10.0.0.1",
                "ports": [{"port": 80, "nodePort": 30001, "protocol": "TCP"}],
            },
        ),
        {"Cluster-IP": "10.0.0.1", "Port(s)": "80:30001/TCP"},
    ),
    (build_manifest("v1", "Service", spec={"type": "LoadBalancer"}), {"External-IP": "<pending>", "Port(s)": "<none>"}),
    (
        build_manifest(
            "v1",
            "Service",
            spec={"type": "LoadBalancer", "externalIPs": ["1.2.3.4"]},
            status={"loadBalancer": {"ingress": [{"hostname": "lb"}, {"ip": "5.6.7.8"}]}},
        ),
        {"External-IP": "5.6.7.8,lb,1.2.3.4"},
    ),
    (
        build_manifest("v1", "Service", spec={"type": "ExternalName", "externalName": "a.b"}),
        {"Cluster-IP": "<none>", "External-IP": "a.b"},
    ),
    (
        build_manifest(
            "v1",
            "Node",
            {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}},
            spec={"unschedulable": True},
            status={
                "conditions": READY,
                "nodeInfo": {"kubeletVersion": "v1.32.0"},
                "addresses": [{"type": "InternalIP", "address": "10.1.1.1"}],
            },
        ),
        {
            "Status": "Ready,SchedulingDisabled",
            "Roles": "edge,worker",
            "Version": "v1.32.0",
            "Internal-IP": "10.1.1.1",
            "External-IP": "<none>",
            "OS-Image": "<unknown>",
        },
    ),
    (build_manifest("v1", "Node"), {"Status": "Unknown", "Roles": "<none>"}),
    (
        build_manifest(
            "v1",
            "PersistentVolumeClaim",
            spec={"volumeName": "pv", "storageClassName": "fast", "volumeMode": "Filesystem"},
            status={
                "phase": "Bound",
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
            },
        ),
        {
            "Status": "Bound",
            "Volume": "pv",
            "Capacity": "1Gi",
            "Access Modes": "RWO,RWX",
            "StorageClass": "fast",
            "VolumeAttributesClass": "<unset>",
            "VolumeMode": "Filesystem",
        },
    ),
    (
        build_manifest(
            "v1",
            "PersistentVolume",
            spec={"capacity": {"storage": "1024Mi"}, "claimRef": {"namespace": "n", "name": "c"}},
            status={"phase": "Bound"},
        ),
        {"Capacity": "1Gi", "Claim": "n/c", "Status": "Bound"},
    ),
    (
        build_manifest(
            "v1",
            "Event",
            type="Warning",
            reason="Failed",
            message=" oh\n",
            count=4,
            involvedObject={"kind": "Pod", "name": "p"},
            source={"component": "kubelet", "host": "n1"},
            firstTimestamp=ago(hours=1),
            lastTimestamp=ago(minutes=1),
        ),
        {
            "Last Seen": "60s",
            "Type": "Warning",
            "Reason": "Failed",
            "Object": "pod/p",
            "Message": "oh",
            "First Seen": "60m",
            "Count": 4,
            "Source": "kubelet, n1",
            "Name": "x",
        },
    ),
    (
        build_manifest(
            "events.k8s.io/v1", "Event", note="n", regarding={"kind": "Node"}, eventTime="2026-11-15T11:59:00.000000Z"
        ),
        {"Last Seen": "60s", "Object": "node", "Message": "n", "Count": 1},
    ),
    (build_manifest("v1", "Event"), {"Last Seen": "<unknown>"}),
    (build_manifest("v1", "Secret", type="Opaque", data={"a": "", "b": ""}), {"Type": "Opaque", "Data": 2}),
    (build_manifest("v1", "ConfigMap", data={"a": ""}, binaryData={"b": ""}), {"Data": 2, "Age": "22s"}),
    (build_manifest("v1", "Namespace", status={"phase": "Terminating"}), {"Status": "Terminating"}),
    (
        build_manifest(
            "v1",
            "Endpoints",
            subsets=[{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(5)], "ports": [{"port": 80}]}],
        ),
        {"Endpoints": "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more..."},
    ),
    (build_manifest("v1", "Endpoints"), {"Endpoints": "<none>"}),
    (
        build_manifest(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            spec={
                "scaleTargetRef": {"kind": "Deployment", "name": "d"},
                "minReplicas": 1,
                "maxReplicas": 5,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
                    {"type": "Pods", "pods": {"target": {"averageValue": "1k"}}},
                    {"type": "External", "external": {"target": {"value": "1"}}},
                ],
            },
            status={
                "currentReplicas": 2,
                "currentMetrics": [{"type": "Resource", "resource": {"current": {"averageUtilization": 40}}}],
            },
        ),
        {
            "Reference": "Deployment/d",
            "Targets": "cpu: 40%/80%, <unknown>/1k + 1 more...",
            "MinPods": "1",
            "MaxPods": 5,
            "Replicas": 2,
        },
    ),
    (
        build_manifest(
            "autoscaling/v1", "HorizontalPodAutoscaler", spec={"maxReplicas": 5, "targetCPUUtilizationPercentage": 80}
        ),
        {"Targets": "cpu: <unknown>/80%", "MinPods": "<unset>"},
    ),
    (
        build_manifest(
            "networking.k8s.io/v1", "Ingress", spec={"rules": [{"host": f"h{n}"} for n in range(5)], "tls": [{}]}
        ),
        {"Class": "<none>", "Hosts": "h0,h1,h2 + 2 more...", "Address": "", "Ports": "80, 443"},
    ),
    (build_manifest("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}}), {"Pod-Selector": "<none>"}),
    (
        build_manifest("policy/v1", "PodDisruptionBudget", spec={"minAvailable": "50%"}),
        {"Min Available": "50%", "Max Unavailable": "N/A", "Allowed Disruptions": 0},
    ),
    (
        build_manifest(
            "storage.k8s.io/v1",
            "StorageClass",
            {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            provisioner="p",
        ),
        {"Name": "x (default)", "ReclaimPolicy": "Delete", "AllowVolumeExpansion": False},
    ),
    (
        build_manifest(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            roleRef={"kind": "Role", "name": "r"},
            subjects=[{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}],
        ),
        {"Role": "Role/r", "Users": "u", "Groups": "", "ServiceAccounts": "n/s"},
    ),
    (
        build_manifest("v1", "ResourceQuota", status={"hard": {"pods": "4", "limits.cpu": "2"}, "used": {"pods": "1"}}),
        {"Request": "pods: 1/4", "Limit": "limits.cpu: 0/2"},
    ),
    (
        build_manifest(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            addressType="IPv4",
            ports=[{"port": 80}, {"name": "a"}, {}],
            endpoints=[],
        ),
        {"Ports": "80,a,*", "Endpoints": "<unset>"},
    ),
    (
        build_manifest(
            "apiregistration.k8s.io/v1",
            "APIService",
            spec={"service": {"namespace": "n", "name": "s"}},
            status={"conditions": [{"type": "Available", "status": "False", "reason": "Down"}]},
        ),
        {"Service": "n/s", "Available": "False (Down)"},
    ),
    (
        build_manifest(
            "apps/v1",
            "ControllerRevision",
            {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "controller": True}]},
            revision=3,
        ),
        {"Controller": "statefulset.apps/s", "Revision": 3},
    ),
    (build_manifest("scheduling.k8s.io/v1", "PriorityClass", value=5), {"Value": 5, "Global-Default": False}),
    (build_manifest("coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "h"}), {"Holder": "h"}),
    (build_manifest("rbac.authorization.k8s.io/v1", "Role"), {"Name": "x", "Created At": "2026-11-15T11:59:38Z"}),
    (build_manifest("v1", "LimitRange"), {"Created At": "2026-11-15T11:59:38Z"}),
]


@pytest.mark.parametrize(("manifest", "expected"), ROWS, ids=[f"{case[0]['kind']}-{n}" for n, case in enumerate(ROWS)])
def test_row_shows_the_cells_of_kubectl_get(manifest: Manifest, expected: dict[str, Any]) -> None:
    cells = row(manifest)
    assert {name: cells[name] for name in expected} == expected


def test_every_kind_prints_an_empty_manifest() -> None:
    for group, kind in columns._COLUMNS_BY_KIND:
        row(build_manifest(f"{group}/v1" if group else "v1", kind))


def test_config_map_columns_match_real_server_except_descriptions() -> None:
    header = columns.get_columns(GroupKind("", "ConfigMap"), "v1").definitions
    assert [(column["name"], column["type"], column["format"], column["priority"]) for column in header] == [
        ("Name", "string", "name", 0),
        ("Data", "string", "", 0),
        ("Age", "string", "", 0),
    ]
    assert all(column["description"] for column in header)

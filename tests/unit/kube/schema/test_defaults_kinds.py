"""Defaults that a Kubernetes 1.32 API server sets for each kind."""

from __future__ import annotations

from typing import Any

import pytest

from support.schema_defaults import TEMPLATE, TEMPLATE_DEFAULTED, defaulted, manifest

SMALL: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("v1", "Secret", {}, {"type": "Opaque"}),
    ("v1", "ConfigMap", {"data": {"a": "b"}}, {"data": {"a": "b"}}),
    ("v1", "PersistentVolumeClaim", {"spec": {}}, {"status": {"phase": "Pending"}}),
    ("v1", "PersistentVolume", {"spec": {}}, {"status": {"phase": "Pending"}}),
    (
        "v1",
        "Endpoints",
        {"subsets": [{"ports": [{"port": 1}]}]},
        {"subsets": [{"ports": [{"port": 1, "protocol": "TCP"}]}]},
    ),
    ("v1", "ResourceQuota", {"spec": {"hard": {"cpu": "1000m"}}}, {"spec": {"hard": {"cpu": "1"}}, "status": {}}),
    (
        "v1",
        "LimitRange",
        {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}]}},
        {
            "spec": {
                "limits": [
                    {
                        "type": "Container",
                        "max": {"cpu": "2"},
                        "min": {"memory": "1Mi"},
                        "default": {"cpu": "2"},
                        "defaultRequest": {"memory": "1Mi", "cpu": "2"},
                    }
                ]
            }
        },
    ),
    (
        "v1",
        "Event",
        {"reason": "R"},
        {
            "reason": "R",
            "involvedObject": {},
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": None,
            "reportingComponent": "",
            "reportingInstance": "",
        },
    ),
    ("v1", "Namespace", {}, {"spec": {}, "status": {"phase": "Active"}}),
    (
        "batch/v1",
        "CronJob",
        {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}}},
        {
            "spec": {
                "schedule": "* * * * *",
                "concurrencyPolicy": "Allow",
                "suspend": False,
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1,
                "jobTemplate": {"metadata": {"creationTimestamp": None}, "spec": {"template": TEMPLATE_DEFAULTED}},
            }
        },
    ),
    (
        "autoscaling/v1",
        "HorizontalPodAutoscaler",
        {"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "D", "name": "d"}}},
        {
            "spec": {
                "maxReplicas": 3,
                "minReplicas": 1,
                "targetCPUUtilizationPercentage": 80,
                "scaleTargetRef": {"kind": "D", "name": "d"},
            },
            "status": {"currentReplicas": 0, "desiredReplicas": 0},
        },
    ),
    (
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        {
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"kind": "D", "name": "d"},
                "behavior": {"scaleDown": {"selectPolicy": "Min"}},
            }
        },
        {
            "spec": {
                "maxReplicas": 3,
                "minReplicas": 1,
                "scaleTargetRef": {"kind": "D", "name": "d"},
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
                    }
                ],
                "behavior": {
                    "scaleUp": {
                        "stabilizationWindowSeconds": 0,
                        "selectPolicy": "Max",
                        "policies": [
                            {"type": "Pods", "value": 4, "periodSeconds": 15},
                            {"type": "Percent", "value": 100, "periodSeconds": 15},
                        ],
                    },
                    "scaleDown": {
                        "selectPolicy": "Min",
                        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
                    },
                },
            }
        },
    ),
    ("networking.k8s.io/v1", "NetworkPolicy", {"spec": {}}, {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
    (
        "networking.k8s.io/v1",
        "NetworkPolicy",
        {"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]}},
        {
            "spec": {
                "podSelector": {},
                "policyTypes": ["Ingress", "Egress"],
                "egress": [{"ports": [{"port": 53, "protocol": "TCP"}]}],
            }
        },
    ),
    ("networking.k8s.io/v1", "Ingress", {"spec": {}}, {"status": {"loadBalancer": {}}}),
    (
        "policy/v1",
        "PodDisruptionBudget",
        {"spec": {"minAvailable": 1}},
        {"status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}},
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}],
        },
        {
            "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
            "subjects": [
                {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ],
        },
    ),
    (
        "storage.k8s.io/v1",
        "StorageClass",
        {"provisioner": "p"},
        {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    ),
    ("scheduling.k8s.io/v1", "PriorityClass", {"value": 5}, {"value": 5, "preemptionPolicy": "PreemptLowerPriority"}),
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        {"webhooks": [{"name": "w", "clientConfig": {"service": {"name": "s", "namespace": "n"}}, "rules": [{}]}]},
        {
            "webhooks": [
                {
                    "name": "w",
                    "clientConfig": {"service": {"name": "s", "namespace": "n", "port": 443}},
                    "rules": [{"scope": "*"}],
                    "failurePolicy": "Fail",
                    "matchPolicy": "Equivalent",
                    "namespaceSelector": {},
                    "objectSelector": {},
                    "timeoutSeconds": 10,
                    "reinvocationPolicy": "Never",
                }
            ]
        },
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        {"spec": {"policyName": "p", "matchResources": {"resourceRules": [{}], "excludeResourceRules": [{}]}}},
        {
            "spec": {
                "policyName": "p",
                "matchResources": {
                    "matchPolicy": "Equivalent",
                    "namespaceSelector": {},
                    "objectSelector": {},
                    "resourceRules": [{"scope": "*"}],
                    "excludeResourceRules": [{"scope": "*"}],
                },
            }
        },
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        {"spec": {"policyName": "p", "validationActions": ["Deny"]}},
        {"spec": {"policyName": "p", "validationActions": ["Deny"]}},
    ),
    (
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        {"spec": {"names": {"kind": "Gizmo", "plural": "gizmos"}, "versions": [{"name": "v1", "storage": True}]}},
        {
            "spec": {
                "names": {"kind": "Gizmo", "plural": "gizmos", "singular": "gizmo", "listKind": "GizmoList"},
                "versions": [{"name": "v1", "storage": True}],
                "conversion": {"strategy": "None"},
            },
            "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]},
        },
    ),
    ("coordination.k8s.io/v1", "Lease", {}, {"spec": {}}),
]


@pytest.mark.parametrize(
    ("api_version", "kind", "fields", "expected"), SMALL, ids=[f"{case[1]}-{n}" for n, case in enumerate(SMALL)]
)
def test_each_kind_gets_its_defaults(
    api_version: str, kind: str, fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    result = defaulted(manifest(api_version, kind, **fields))
    assert {name: result[name] for name in expected} == expected

"""Invalid manifests of built-in kinds are rejected as by a Kubernetes 1.32 API server."""

from __future__ import annotations

import pytest

from support.schema_validation import Manifest, build_manifest, created


def test_empty_deployment_is_rejected_as_by_a_real_server() -> None:
    assert created(build_manifest("apps/v1", "Deployment", spec={})) == [
        "spec.selector: Required value",
        "spec.template.metadata.labels: Invalid value: map[string]string(nil): "
        "`selector` does not match template `labels`",
        "spec.template.spec.containers: Required value",
    ]


POD = {"containers": [{"name": "c", "image": "nginx"}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
JOB_POD = {**POD, "restartPolicy": "Never"}
PORTS = {"ports": [{"port": 80}]}


SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
CREATED: list[tuple[Manifest, list[str]]] = [
    (
        build_manifest("v1", "ConfigMap", {"name": ""}),
        ["metadata.name: Required value: name or generateName is required"],
    ),
    (
        build_manifest("v1", "ConfigMap", {"name": "Bad_Name"}),
        [f'metadata.name: Invalid value: "Bad_Name": {SUBDOMAIN}'],
    ),
    (
        build_manifest("v1", "ConfigMap", {"finalizers": ["noslash"]}),
        [
            'metadata.finalizers[0]: Invalid value: "noslash": '
            "name is neither a standard finalizer name nor is it fully qualified"
        ],
    ),
    (
        build_manifest("v1", "ConfigMap", data={"a": "x" * (1024 * 1024 + 1)}),
        ["[]: Too long: may not be more than 1048576 bytes"],
    ),
    (
        build_manifest("v1", "ConfigMap", {"annotations": {"a": "x" * (256 * 1024)}}),
        ["metadata.annotations: Too long: may not be more than 262144 bytes"],
    ),
    (
        build_manifest("v1", "ConfigMap", data={"a": "b"}, binaryData={"a": "Yg=="}),
        ['data[a]: Invalid value: "a": duplicate of key present in binaryData'],
    ),
    (
        build_manifest("v1", "Namespace", {"name": "a.b"}),
        ['metadata.name: Invalid value: "a.b": must not contain dots'],
    ),
    (build_manifest("v1", "Namespace", {"namespace": "lost"}), []),
    (build_manifest("v1", "Pod", spec={}), ["spec.containers: Required value"]),
    (build_manifest("v1", "Pod", spec={"containers": [{"name": "c"}]}), ["spec.containers[0].image: Required value"]),
    (
        build_manifest("v1", "Pod", spec={"containers": [*POD["containers"], *POD["containers"]]}),
        ['spec.containers[1].name: Duplicate value: "c"'],
    ),
    (
        build_manifest(
            "v1",
            "Pod",
            spec={"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/"}]}]},
        ),
        ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
    ),
    (
        build_manifest(
            "v1", "Pod", spec={"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 70000}]}]}
        ),
        ["spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
    ),
    (
        build_manifest(
            "v1",
            "Pod",
            spec={
                "containers": [
                    {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}
                ]
            },
        ),
        ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
    ),
    (
        build_manifest("v1", "Pod", spec={**POD, "restartPolicy": "Sometimes"}),
        ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'],
    ),
    (
        build_manifest(
            "v1", "Pod", spec={**POD, "volumes": [{"name": "v", "emptyDir": {}, "configMap": {"name": "x"}}]}
        ),
        ["spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type"],
    ),
    (
        build_manifest("v1", "Pod", spec={"containers": [{"name": "c", "image": "i", "livenessProbe": {}}]}),
        ["spec.containers[0].livenessProbe: Required value: must specify a handler type"],
    ),
    (
        build_manifest("apps/v1", "Deployment", spec={**SELECTED, "replicas": -1}),
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        build_manifest(
            "apps/v1",
            "Deployment",
            spec={**SELECTED, "strategy": {"rollingUpdate": {"maxSurge": "x", "maxUnavailable": 1}}},
        ),
        [
            'spec.strategy.rollingUpdate.maxSurge: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"x"}: '
            "a valid percent string must be a numeric string followed by an ending '%' "
            "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        ],
    ),
    (
        build_manifest("apps/v1", "StatefulSet", spec={**SELECTED, "selector": {}}),
        [
            "spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string(nil), "
            "MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: empty selector is invalid for statefulset"
        ],
    ),
    (
        build_manifest("batch/v1", "Job", spec={"template": {"spec": POD}}),
        ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    ),
    (
        build_manifest(
            "batch/v1", "CronJob", spec={"schedule": "* * *", "jobTemplate": {"spec": {"template": {"spec": JOB_POD}}}}
        ),
        ['spec.schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]'],
    ),
    (
        build_manifest(
            "batch/v1",
            "CronJob",
            spec={
                "schedule": "61 * * * *",
                "concurrencyPolicy": "X",
                "jobTemplate": {"spec": {"template": {"spec": JOB_POD}}},
            },
        ),
        [
            'spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61',
            'spec.concurrencyPolicy: Unsupported value: "X": supported values: "Allow", "Forbid", "Replace"',
        ],
    ),
    (build_manifest("v1", "Service", spec={}), ["spec.ports: Required value"]),
    (
        build_manifest("v1", "Service", spec={"type": "X", **PORTS}),
        [
            'spec.type: Unsupported value: "X": '
            'supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'
        ],
    ),
    (
        build_manifest("v1", "Service", spec={"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80}]}),
        [
            'spec.ports[1]: Duplicate value: core.ServicePort{Name:"", Protocol:"TCP", AppProtocol:(*string)(nil), '
            'Port:80, TargetPort:intstr.IntOrString{Type:0, IntVal:0, StrVal:""}, NodePort:0}'
        ],
    ),
    (
        build_manifest("v1", "Service", spec={"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}),
        [
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. "
            "The range of valid ports is 30000-32767"
        ],
    ),
    (
        build_manifest("v1", "Secret", type="kubernetes.io/tls"),
        ["data[tls.crt]: Required value", "data[tls.key]: Required value"],
    ),
    (
        build_manifest("v1", "Secret", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "nope"}),
        [
            'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": '
            "invalid character 'o' in literal null (expecting 'u')"
        ],
    ),
    (
        build_manifest("v1", "PersistentVolumeClaim", spec={}),
        [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ],
    ),
    (
        build_manifest(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            spec={"maxReplicas": 0, "scaleTargetRef": {"kind": "D", "name": "d"}},
        ),
        [
            "spec.maxReplicas: Invalid value: 0: must be greater than 0",
            "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
        ],
    ),
    (
        build_manifest("networking.k8s.io/v1", "Ingress", spec={}),
        ["spec: Invalid value: []networking.IngressRule(nil): either `defaultBackend` or `rules` must be specified"],
    ),
    (
        build_manifest("networking.k8s.io/v1", "Ingress", spec={"rules": [{"http": {"paths": [{"path": "/"}]}}]}),
        ["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"],
    ),
    (
        build_manifest("networking.k8s.io/v1", "NetworkPolicy", spec={"ingress": [{"from": [{}]}]}),
        ["spec.ingress[0].from[0]: Required value: must specify a peer"],
    ),
    (
        build_manifest("rbac.authorization.k8s.io/v1", "Role", rules=[{}]),
        [
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
        ],
    ),
    (
        build_manifest("scheduling.k8s.io/v1", "PriorityClass", value=2000000000),
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
    ),
    (
        build_manifest("coordination.k8s.io/v1", "Lease", spec={"leaseDurationSeconds": 0}),
        ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
    ),
    (
        build_manifest(
            "v1",
            "LimitRange",
            spec={"limits": [{"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]},
        ),
        [
            "spec.limits[0].min[cpu]: Invalid value: resource.Quantity{i:resource.int64Amount{value:2, scale:0}, "
            'd:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"2", Format:"DecimalSI"}: '
            "min value 2 is greater than max value 1"
        ],
    ),
    (
        build_manifest("v1", "Event", involvedObject={"kind": "Pod", "name": "x", "namespace": "other"}),
        ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
    ),
    (
        build_manifest(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            webhooks=[
                {
                    "name": "short",
                    "clientConfig": {"url": "https://x"},
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
            ],
        ),
        ['webhooks[0].name: Invalid value: "short": should be a domain with at least three segments separated by dots'],
    ),
]


@pytest.mark.parametrize(("manifest", "expected"), CREATED, ids=[f"{c[0]['kind']}-{n}" for n, c in enumerate(CREATED)])
def test_create_returns_the_expected_errors(manifest: Manifest, expected: list[str]) -> None:
    assert created(manifest) == expected


def test_second_controller_owner_reference_is_rejected() -> None:
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name, "controller": True} for name in "ab"]
    (message,) = created(build_manifest("v1", "ConfigMap", {"ownerReferences": owners}))
    assert message.startswith(
        'metadata.ownerReferences: Invalid value: []v1.OwnerReference{v1.OwnerReference{APIVersion:"v1"'
    )
    assert message.endswith(
        'Only one reference can have Controller set to true. Found "true" in references for ConfigMap/a and ConfigMap/b'
    )

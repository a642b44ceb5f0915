"""Catalogue of fields that controllers, operators and the API server write, by kind.

In: a group, a kind, a pointer. Out: a pattern, or why a pointer has no effect or hides too much. Never: I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from argosy.languages import globs

LAST_APPLIED: Final = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"
_SERVER_MAINTAINED: Final = "the server maintains it, and Git does not have it: it is removed before every comparison"
# argo: fields that are never compared, with the reason
NEVER_COMPARED: Final = {
    "/status": "status is excluded from every comparison (ignoreResourceStatusField defaults to all in argocd-cm)",
    "/metadata/managedFields": _SERVER_MAINTAINED,
    "/metadata/resourceVersion": _SERVER_MAINTAINED,
    "/metadata/generation": _SERVER_MAINTAINED,
    "/metadata/creationTimestamp": _SERVER_MAINTAINED,
    "/metadata/uid": _SERVER_MAINTAINED,
    "/metadata/selfLink": _SERVER_MAINTAINED,
    LAST_APPLIED: "fields that only the cluster has are not differences",
}
WHOLE_OBJECT_POINTERS: Final = frozenset({"", "/", "/spec", "/data", "/metadata"})
VERSION_FIELDS: Final = frozenset({"image", "storageUri"})  # fields that deliver new versions
TOO_BROAD_REASON: Final = "ignores everything below it, so that changes in Git are never detected"


class FieldWriterPattern(NamedTuple):
    """Fields of a kind that another writer sets. `topic` is the heading in the catalogue.

    `is_owned`: an operator writes the whole spec, so that ignoring it as a whole is correct.
    """

    topic: str
    group: str
    kind: str
    pointers: tuple[str, ...]
    reason: str
    is_owned: bool = False

    @property
    def effective_pointers(self) -> tuple[str, ...]:
        """Pointers that have an effect."""
        return tuple(pointer for pointer in self.pointers if not find_redundancy_reason(pointer))

    @property
    def redundant_pointers(self) -> tuple[str, ...]:
        return tuple(pointer for pointer in self.pointers if find_redundancy_reason(pointer))


_STATUS_POINTER: Final = "/status"
_RESOURCE_VERSION_POINTER: Final = "/metadata/resourceVersion"
_ANNOTATIONS_POINTER: Final = "/metadata/annotations"
_LABELS_POINTER: Final = "/metadata/labels"
_POD_LABELS_POINTER: Final = "/spec/template/metadata/labels"

_ROUTE_POINTERS: Final = ("/spec/host", "/spec/tls/insecureEdgeTerminationPolicy", _STATUS_POINTER, LAST_APPLIED)
_JOB_POINTERS: Final = tuple(
    f"{_POD_LABELS_POINTER}/batch.kubernetes.io~1{name}" for name in ("controller-uid", "job-name")
)  # fmt: skip

PATTERNS: Final = (
    FieldWriterPattern(
        "All kinds",
        "*",
        "*",
        ("/metadata/managedFields", _RESOURCE_VERSION_POINTER, "/metadata/generation"),
        "Kubernetes maintains these fields",
    ),
    FieldWriterPattern("Routes", "route.openshift.io", "Route", _ROUTE_POINTERS, "the router sets host and policy"),
    FieldWriterPattern(
        "Deployments",
        "apps",
        "Deployment",
        ("/spec/selector", _POD_LABELS_POINTER),
        "a selector cannot be changed on an existing object",
    ),
    FieldWriterPattern(
        "Autoscaled Deployments", "apps", "Deployment", ("/spec/replicas",), "an autoscaler sets the replicas"
    ),
    FieldWriterPattern(
        "Claims",
        "",
        "PersistentVolumeClaim",
        ("/spec/volumeName", "/spec/volumeMode", _STATUS_POINTER),
        "a provisioner binds a volume",
    ),
    FieldWriterPattern(
        "Gateways of Istio",
        "networking.istio.io",
        "Gateway",
        ("/spec", _STATUS_POINTER, _ANNOTATIONS_POINTER, _LABELS_POINTER),
        "a service mesh operator writes the whole spec",
        is_owned=True,
    ),
    FieldWriterPattern(
        "Operators' own kinds",
        "docling.io",
        "DoclingServe",
        (_STATUS_POINTER, "/spec/replicas", _RESOURCE_VERSION_POINTER),
        "its operator sets the replicas",
    ),
    FieldWriterPattern(
        "Operators' own kinds",
        "datasciencecluster.opendatahub.io",
        "DataScienceCluster",
        (_STATUS_POINTER, _ANNOTATIONS_POINTER),
        "its operator writes status and annotations",
    ),
    FieldWriterPattern(
        "Operators' own kinds",
        "maistra.io",
        "ServiceMeshControlPlane",
        (_STATUS_POINTER,),
        "its operator writes status",
    ),
    FieldWriterPattern(
        "Operators' own kinds",
        "llamastack.io",
        "LlamaStackDistribution",
        (_STATUS_POINTER, _RESOURCE_VERSION_POINTER),
        "its operator writes status",
    ),
    FieldWriterPattern(
        "Operators' own kinds", "nvidia.com", "ClusterPolicy", (_STATUS_POINTER,), "its operator writes status"
    ),
    FieldWriterPattern(
        "Operators' own kinds",
        "nfd.openshift.io",
        "NodeFeatureDiscovery",
        (_STATUS_POINTER,),
        "its operator writes status",
    ),
    FieldWriterPattern(
        "Operators' own kinds", "trustyai.opendatahub.io", "LMEvalJob", (_STATUS_POINTER,), "its operator writes status"
    ),
    FieldWriterPattern(
        "Operators' own kinds",
        "grafana.integreatly.org",
        "GrafanaDashboard",
        (_STATUS_POINTER, _RESOURCE_VERSION_POINTER),
        "its operator writes status",
    ),
    FieldWriterPattern(
        "Operator Lifecycle Manager", "operators.coreos.com", "Subscription", (_STATUS_POINTER,), "OLM writes status"
    ),
    FieldWriterPattern(
        "Operator Lifecycle Manager",
        "operators.coreos.com",
        "OperatorGroup",
        (_STATUS_POINTER, _ANNOTATIONS_POINTER),
        "OLM records the provided APIs",
    ),
    FieldWriterPattern(
        "Machines",
        "machine.openshift.io",
        "MachineSet",
        (_STATUS_POINTER, "/spec/replicas", _ANNOTATIONS_POINTER),
        "a machine autoscaler sets the replicas",
    ),
    FieldWriterPattern("Pipelines", "tekton.dev", "PipelineRun", (_STATUS_POINTER,), "Tekton writes status"),
    FieldWriterPattern("Pipelines", "tekton.dev", "TaskRun", (_STATUS_POINTER,), "Tekton writes status"),
    FieldWriterPattern(
        "Jobs", "batch", "Job", (_STATUS_POINTER, *_JOB_POINTERS), "the server adds labels unique to each Job"
    ),
    FieldWriterPattern(
        "Services of a mesh",
        "",
        "Service",
        ("/spec/clusterIP", "/spec/clusterIPs", _STATUS_POINTER),
        "the server assigns addresses",
    ),
    FieldWriterPattern("Service accounts", "", "ServiceAccount", ("/imagePullSecrets",), "OpenShift adds pull secrets"),
    FieldWriterPattern(
        "Monitoring",
        "monitoring.coreos.com",
        "ServiceMonitor",
        (_RESOURCE_VERSION_POINTER,),
        "Kubernetes maintains this field",
    ),
    FieldWriterPattern(
        "Monitoring",
        "monitoring.coreos.com",
        "PodMonitor",
        (_RESOURCE_VERSION_POINTER,),
        "Kubernetes maintains this field",
    ),
    FieldWriterPattern(
        "Namespaces", "", "Namespace", (_ANNOTATIONS_POINTER,), "OpenShift records user ID ranges and labels"
    ),
    FieldWriterPattern(
        "Applications in an Application", "argoproj.io", "Application", (_STATUS_POINTER,), "the engine writes status"
    ),
)

# The rules of a widely copied repair guide, literally; --as-documented writes them.
DOCUMENTED: Final = tuple(
    pattern
    for pattern in PATTERNS
    if (pattern.topic, pattern.kind)
    in {
        ("Routes", "Route"),
        ("Deployments", "Deployment"),
        ("Operators' own kinds", "DoclingServe"),
        ("Gateways of Istio", "Gateway"),
    }
)


def list_patterns(group: str, kind: str) -> Iterator[FieldWriterPattern]:
    """Return the patterns for exactly this kind."""
    return (pattern for pattern in PATTERNS if (pattern.group, pattern.kind) == (group, kind))


def find_writer_reason(group: str, kind: str, pointer: str) -> str:
    """Return why another writer sets this field; empty if the catalogue does not have it."""
    for pattern in list_patterns(group, kind):
        if any(
            pointer == known_pointer or pointer.startswith(f"{known_pointer}/")
            for known_pointer in pattern.effective_pointers
        ):
            return pattern.reason
    return ""


def find_redundancy_reason(pointer: str) -> str:
    """Return why ignoring the pointer has no effect in any Application; empty if it may have one."""
    for known_pointer, reason in NEVER_COMPARED.items():
        if pointer == known_pointer or pointer.startswith(f"{known_pointer}/"):
            return reason
    return ""


def find_broadness_reason(group: str, kind: str, pointer: str) -> str:
    """Return why the pointer should not be ignored; empty if it is narrow, or an operator owns the kind's spec."""
    if pointer not in WHOLE_OBJECT_POINTERS:
        return ""
    is_owned = any(
        pattern.is_owned and globs.matches_glob(pattern.group, group) and globs.matches_glob(pattern.kind, kind)
        for pattern in PATTERNS
    )
    return "" if is_owned and pointer == "/spec" else f"{pointer or 'the empty pointer'} {TOO_BROAD_REASON}"


def is_version_field(pointer: str) -> bool:
    """True if the field delivers new versions: ignored and respected, it would block every later version."""
    return pointer.rpartition("/")[2] in VERSION_FIELDS


def is_owned_by_operator(group: str, kind: str) -> bool:
    """True if an operator writes the whole spec of this kind."""
    return any(pattern.is_owned for pattern in list_patterns(group, kind))

"""Catalogue of fields that controllers, operators and the API server write, by kind.

In: a group, a kind, a pointer. Out: a pattern, or why a pointer has no effect or hides too much. Never: I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from argosy.languages import globs

LAST_APPLIED: Final = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"
_COUNTED: Final = "the server maintains it, and Git does not have it: it is removed before every comparison"
# argo: fields that are never compared, with the reason
NEVER_COMPARED: Final = {
    "/status": "status is excluded from every comparison (ignoreResourceStatusField defaults to all in argocd-cm)",
    "/metadata/managedFields": _COUNTED,
    "/metadata/resourceVersion": _COUNTED,
    "/metadata/generation": _COUNTED,
    "/metadata/creationTimestamp": _COUNTED,
    "/metadata/uid": _COUNTED,
    "/metadata/selfLink": _COUNTED,
    LAST_APPLIED: "fields that only the cluster has are not differences",
}
WHOLE: Final = frozenset({"", "/", "/spec", "/data", "/metadata"})
DELIVERED: Final = frozenset({"image", "storageUri"})  # fields that deliver new versions
HIDES_ALL: Final = "ignores everything below it, so that changes in Git are never detected"


class Pattern(NamedTuple):
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
    def needed(self) -> tuple[str, ...]:
        """Pointers that have an effect."""
        return tuple(each for each in self.pointers if not why_redundant(each))

    @property
    def redundant(self) -> tuple[str, ...]:
        return tuple(each for each in self.pointers if why_redundant(each))


_STATUS: Final = "/status"
_VERSION: Final = "/metadata/resourceVersion"
_NOTES: Final = "/metadata/annotations"
_LABELS: Final = "/metadata/labels"
_POD_LABELS: Final = "/spec/template/metadata/labels"

_ROUTE: Final = ("/spec/host", "/spec/tls/insecureEdgeTerminationPolicy", _STATUS, LAST_APPLIED)
_JOB: Final = tuple(
    f"{_POD_LABELS}/batch.kubernetes.io~1{name}" for name in ("controller-uid", "job-name")
)  # fmt: skip

PATTERNS: Final = (
    Pattern("All kinds", "*", "*", ("/metadata/managedFields", _VERSION, "/metadata/generation"),
            "Kubernetes maintains these fields"),
    Pattern("Routes", "route.openshift.io", "Route", _ROUTE, "the router sets host and policy"),
    Pattern("Deployments", "apps", "Deployment", ("/spec/selector", _POD_LABELS),
            "a selector cannot be changed on an existing object"),
    Pattern("Autoscaled Deployments", "apps", "Deployment", ("/spec/replicas",), "an autoscaler sets the replicas"),
    Pattern("Claims", "", "PersistentVolumeClaim", ("/spec/volumeName", "/spec/volumeMode", _STATUS),
            "a provisioner binds a volume"),
    Pattern("Gateways of Istio", "networking.istio.io", "Gateway", ("/spec", _STATUS, _NOTES, _LABELS),
            "a service mesh operator writes the whole spec", is_owned=True),
    Pattern("Operators' own kinds", "docling.io", "DoclingServe", (_STATUS, "/spec/replicas", _VERSION),
            "its operator sets the replicas"),
    Pattern("Operators' own kinds", "datasciencecluster.opendatahub.io", "DataScienceCluster", (_STATUS, _NOTES),
            "its operator writes status and annotations"),
    Pattern("Operators' own kinds", "maistra.io", "ServiceMeshControlPlane", (_STATUS,), "its operator writes status"),
    Pattern("Operators' own kinds", "llamastack.io", "LlamaStackDistribution", (_STATUS, _VERSION),
            "its operator writes status"),
    Pattern("Operators' own kinds", "nvidia.com", "ClusterPolicy", (_STATUS,), "its operator writes status"),
    Pattern("Operators' own kinds", "nfd.openshift.io", "NodeFeatureDiscovery", (_STATUS,),
            "its operator writes status"),
    Pattern("Operators' own kinds", "trustyai.opendatahub.io", "LMEvalJob", (_STATUS,), "its operator writes status"),
    Pattern("Operators' own kinds", "grafana.integreatly.org", "GrafanaDashboard", (_STATUS, _VERSION),
            "its operator writes status"),
    Pattern("Operator Lifecycle Manager", "operators.coreos.com", "Subscription", (_STATUS,), "OLM writes status"),
    Pattern("Operator Lifecycle Manager", "operators.coreos.com", "OperatorGroup", (_STATUS, _NOTES),
            "OLM records the provided APIs"),
    Pattern("Machines", "machine.openshift.io", "MachineSet", (_STATUS, "/spec/replicas", _NOTES),
            "a machine autoscaler sets the replicas"),
    Pattern("Pipelines", "tekton.dev", "PipelineRun", (_STATUS,), "Tekton writes status"),
    Pattern("Pipelines", "tekton.dev", "TaskRun", (_STATUS,), "Tekton writes status"),
    Pattern("Jobs", "batch", "Job", (_STATUS, *_JOB), "the server adds labels unique to each Job"),
    Pattern("Services of a mesh", "", "Service", ("/spec/clusterIP", "/spec/clusterIPs", _STATUS),
            "the server assigns addresses"),
    Pattern("Service accounts", "", "ServiceAccount", ("/imagePullSecrets",), "OpenShift adds pull secrets"),
    Pattern("Monitoring", "monitoring.coreos.com", "ServiceMonitor", (_VERSION,), "Kubernetes maintains this field"),
    Pattern("Monitoring", "monitoring.coreos.com", "PodMonitor", (_VERSION,), "Kubernetes maintains this field"),
    Pattern("Namespaces", "", "Namespace", (_NOTES,), "OpenShift records user ID ranges and labels"),
    Pattern("Applications in an Application", "argoproj.io", "Application", (_STATUS,), "the engine writes status"),
)  # fmt: skip

# The rules of a widely copied repair guide, literally; --as-documented writes them.
DOCUMENTED: Final = tuple(
    each
    for each in PATTERNS
    if (each.topic, each.kind)
    in {
        ("Routes", "Route"),
        ("Deployments", "Deployment"),
        ("Operators' own kinds", "DoclingServe"),
        ("Gateways of Istio", "Gateway"),
    }
)


def patterns_for(group: str, kind: str) -> Iterator[Pattern]:
    """Return the patterns for exactly this kind."""
    return (each for each in PATTERNS if (each.group, each.kind) == (group, kind))


def reason_for(group: str, kind: str, pointer: str) -> str:
    """Return why another writer sets this field; empty if the catalogue does not have it."""
    for each in patterns_for(group, kind):
        if any(pointer == known or pointer.startswith(f"{known}/") for known in each.needed):
            return each.reason
    return ""


def why_redundant(pointer: str) -> str:
    """Return why ignoring the pointer has no effect in any Application; empty if it may have one."""
    for known, why in NEVER_COMPARED.items():
        if pointer == known or pointer.startswith(f"{known}/"):
            return why
    return ""


def why_too_broad(group: str, kind: str, pointer: str) -> str:
    """Return why the pointer should not be ignored; empty if it is narrow, or an operator owns the kind's spec."""
    if pointer not in WHOLE:
        return ""
    is_owned = any(
        each.is_owned and globs.matches(each.group, group) and globs.matches(each.kind, kind) for each in PATTERNS
    )
    return "" if is_owned and pointer == "/spec" else f"{pointer or 'the empty pointer'} {HIDES_ALL}"


def is_delivered(pointer: str) -> bool:
    """True if the field delivers new versions: ignored and respected, it would block every later version."""
    return pointer.rpartition("/")[2] in DELIVERED


def is_operators(group: str, kind: str) -> bool:
    """True if an operator writes the whole spec of this kind."""
    return any(each.is_owned for each in patterns_for(group, kind))

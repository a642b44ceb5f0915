"""Which fields of which kinds others write: the catalogue that proposals are made from, and that the guide shows.

In: a group, a kind, a pointer. Out: a Pattern, or why a pointer does nothing or too much. Never: I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from argosy.languages import globs

LAST_APPLIED: Final = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"
_COUNTED: Final = "the server counts it, and nothing in Git has it: it is taken out of every comparison"
# argo: what is never compared, with the reason for people
NEVER_COMPARED: Final = {
    "/status": "status is left out of every comparison (ignoreResourceStatusField is all, unless argocd-cm says else)",
    "/metadata/managedFields": _COUNTED,
    "/metadata/resourceVersion": _COUNTED,
    "/metadata/generation": _COUNTED,
    "/metadata/creationTimestamp": _COUNTED,
    "/metadata/uid": _COUNTED,
    "/metadata/selfLink": _COUNTED,
    LAST_APPLIED: "only the cluster has it, and what only the cluster has is no difference",
}
WHOLE: Final = frozenset({"", "/", "/spec", "/data", "/metadata"})
DELIVERED: Final = frozenset({"image", "storageUri"})  # what new versions come as
HIDES_ALL: Final = "ignores everything below it, so that no change from Git is ever seen"


class Pattern(NamedTuple):
    """Fields of a kind that somebody else writes. `topic` is how the catalogue calls the kind of case.

    `is_owned`: an operator writes the whole spec, so that ignoring it whole is no mistake.
    """

    topic: str
    group: str
    kind: str
    pointers: tuple[str, ...]
    reason: str
    is_owned: bool = False

    @property
    def needed(self) -> tuple[str, ...]:
        """Those that do something."""
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
            "Kubernetes counts and notes by itself"),
    Pattern("Routes", "route.openshift.io", "Route", _ROUTE, "the router gives a host and a policy"),
    Pattern("Deployments", "apps", "Deployment", ("/spec/selector", _POD_LABELS),
            "a selector cannot be changed while the object lives"),
    Pattern("Autoscaled Deployments", "apps", "Deployment", ("/spec/replicas",), "an autoscaler sets the number"),
    Pattern("Claims", "", "PersistentVolumeClaim", ("/spec/volumeName", "/spec/volumeMode", _STATUS),
            "a provisioner binds a volume"),
    Pattern("Gateways of Istio", "networking.istio.io", "Gateway", ("/spec", _STATUS, _NOTES, _LABELS),
            "a service mesh operator writes them whole", is_owned=True),
    Pattern("Operators' own kinds", "docling.io", "DoclingServe", (_STATUS, "/spec/replicas", _VERSION),
            "its operator sets the number of replicas"),
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
            "OLM notes which APIs are provided"),
    Pattern("Machines", "machine.openshift.io", "MachineSet", (_STATUS, "/spec/replicas", _NOTES),
            "a machine autoscaler sets the number"),
    Pattern("Pipelines", "tekton.dev", "PipelineRun", (_STATUS,), "Tekton writes status"),
    Pattern("Pipelines", "tekton.dev", "TaskRun", (_STATUS,), "Tekton writes status"),
    Pattern("Jobs", "batch", "Job", (_STATUS, *_JOB), "the server adds labels that no other Job has"),
    Pattern("Services of a mesh", "", "Service", ("/spec/clusterIP", "/spec/clusterIPs", _STATUS),
            "the server gives addresses"),
    Pattern("Service accounts", "", "ServiceAccount", ("/imagePullSecrets",), "OpenShift adds pull secrets"),
    Pattern("Monitoring", "monitoring.coreos.com", "ServiceMonitor", (_VERSION,), "Kubernetes counts by itself"),
    Pattern("Monitoring", "monitoring.coreos.com", "PodMonitor", (_VERSION,), "Kubernetes counts by itself"),
    Pattern("Namespaces", "", "Namespace", (_NOTES,), "OpenShift notes user ranges and labels"),
    Pattern("Applications in an Application", "argoproj.io", "Application", (_STATUS,), "the engine writes status"),
)  # fmt: skip

# The rules that a widely copied repair of such installations adds, to the letter; --as-documented writes them so.
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
    """All that speak of a kind by its name."""
    return (each for each in PATTERNS if (each.group, each.kind) == (group, kind))


def reason_for(group: str, kind: str, pointer: str) -> str:
    """Why this field is somebody else's; empty where the catalogue does not know."""
    for each in patterns_for(group, kind):
        if any(pointer == known or pointer.startswith(f"{known}/") for known in each.needed):
            return each.reason
    return ""


def why_redundant(pointer: str) -> str:
    """Why a pointer does nothing, in any Application; empty where it may do something."""
    for known, why in NEVER_COMPARED.items():
        if pointer == known or pointer.startswith(f"{known}/"):
            return why
    return ""


def why_too_broad(group: str, kind: str, pointer: str) -> str:
    """Why nobody should ignore this; empty where it is narrow, or the kind belongs to its operator as a whole."""
    if pointer not in WHOLE:
        return ""
    is_owned = any(
        each.is_owned and globs.matches(each.group, group) and globs.matches(each.kind, kind) for each in PATTERNS
    )
    return "" if is_owned and pointer == "/spec" else f"{pointer or 'the empty pointer'} {HIDES_ALL}"


def is_delivered(pointer: str) -> bool:
    """Whether the field is what a delivery is about: ignored, and respected, it keeps every later version away."""
    return pointer.rpartition("/")[2] in DELIVERED


def is_operators(group: str, kind: str) -> bool:
    """Whether an operator writes objects of this kind as it likes."""
    return any(each.is_owned for each in patterns_for(group, kind))

"""Prepares manifests for create and update, between defaulting and validation (the server's strategies).

In: a defaulted manifest with its system metadata (name, uid, creationTimestamp). Out: the manifest to validate.
Never: allocates IPs or ports; checks whether another object exists.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.kube.schema import quantity
from argosy.kube.schema.defaults import carry_allocated
from argosy.kube.schema.resources import Resource

_DAEMON_GENERATION = "deprecated.daemonset.template.generation"
_BUDGET = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
_DAEMONS = {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}
# The initial status of a new object; a status in the request is discarded.
_FRESH: dict[tuple[str, str], Manifest] = {
    ("", "Namespace"): {"phase": "Active"},
    ("", "PersistentVolume"): {"phase": "Pending"},
    ("", "PersistentVolumeClaim"): {"phase": "Pending"},
    ("", "Pod"): {"phase": "Pending"},
    ("", "ReplicationController"): {"replicas": 0},
    ("", "ResourceQuota"): {},
    ("", "Service"): {"loadBalancer": {}},
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): {},
    ("apiregistration.k8s.io", "APIService"): {},
    ("apps", "DaemonSet"): _DAEMONS,
    ("apps", "Deployment"): {},
    ("apps", "ReplicaSet"): {"replicas": 0},
    ("apps", "StatefulSet"): {"replicas": 0, "availableReplicas": 0},
    ("autoscaling", "HorizontalPodAutoscaler"): {"desiredReplicas": 0, "currentMetrics": None},
    ("batch", "CronJob"): {},
    ("batch", "Job"): {},
    ("certificates.k8s.io", "CertificateSigningRequest"): {},
    ("networking.k8s.io", "Ingress"): {"loadBalancer": {}},
    ("policy", "PodDisruptionBudget"): _BUDGET,
    ("storage.k8s.io", "VolumeAttachment"): {"attached": False},
}
# A Node is created with the status that its kubelet reports; the status of a CRD belongs to its controller.
_KEEPS_STATUS = {*_FRESH, ("", "Node"), ("apiextensions.k8s.io", "CustomResourceDefinition")}
_COUNTS_GENERATIONS = {
    ("", "PodTemplate"), ("", "ReplicationController"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apps", "DaemonSet"), ("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"),
    ("batch", "CronJob"), ("batch", "Job"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"), ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("networking.k8s.io", "Ingress"), ("networking.k8s.io", "IngressClass"), ("networking.k8s.io", "NetworkPolicy"),
    ("policy", "PodDisruptionBudget"),
    ("scheduling.k8s.io", "PriorityClass"),
}  # fmt: skip
_SYSTEM_PRIORITIES = {"": 0, "system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
_KEEPS_LABELS_ON_STATUS = {("apps", "Deployment"), ("apps", "ReplicaSet"), ("batch", "Job")}


def has_generation(kind: GroupKind) -> bool:
    """True if objects of this kind have a generation that starts at 1 and counts spec changes."""
    return kind in _COUNTS_GENERATIONS


def prepare_create(resource: Resource, manifest: Manifest) -> Manifest:
    kind = resource.group_kind
    manifest = _placed(resource, manifest)
    if kind in _FRESH:
        fresh = _FRESH[kind]
        if resource.version == "v1" and kind.kind == "HorizontalPodAutoscaler":
            fresh = {"currentReplicas": 0, "desiredReplicas": 0}
        manifest = {**manifest, "status": dict(fresh)}
    step = _ON_CREATE.get(kind)
    return step(manifest) if step else manifest


def prepare_update(resource: Resource, manifest: Manifest, old: Manifest) -> Manifest:
    """Prepare a write to the main resource: the status is kept."""
    kind = resource.group_kind
    manifest = _placed(resource, manifest)
    if kind in _KEEPS_STATUS:
        manifest = {name: value for name, value in manifest.items() if name != "status"}
        if "status" in old:
            manifest["status"] = old["status"]
    step = _ON_UPDATE.get(kind)
    return step(manifest, old) if step else manifest


def prepare_status_update(resource: Resource, manifest: Manifest, old: Manifest) -> Manifest:
    """Prepare a write to the status subresource: everything except metadata and status is kept."""
    made = {name: value for name, value in old.items() if name not in ("metadata", "status")}
    made["metadata"] = dict(manifest.get("metadata") or {})
    if "status" in manifest:
        made["status"] = manifest["status"]
    if resource.group_kind in _KEEPS_LABELS_ON_STATUS:
        made["metadata"].pop("labels", None)
        if (old.get("metadata") or {}).get("labels"):
            made["metadata"]["labels"] = old["metadata"]["labels"]
    return made


def _placed(resource: Resource, manifest: Manifest) -> Manifest:
    """k8s: a namespace in a cluster-scoped object is dropped."""
    metadata = manifest.get("metadata") or {}
    if resource.namespaced or not metadata.get("namespace"):
        return manifest
    return {**manifest, "metadata": {name: value for name, value in metadata.items() if name != "namespace"}}


def _pod(manifest: Manifest) -> Manifest:
    spec = _admitted(manifest.get("spec") or {})
    status = {**manifest["status"], "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        gated = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": (manifest.get("metadata") or {}).get("creationTimestamp"),
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        status["conditions"] = [gated]
    return {**manifest, "spec": spec, "status": status}


def _admitted(spec: Manifest) -> Manifest:
    """Apply the default admission plug-ins: priority, and tolerations of failing nodes."""
    made = dict(spec)
    rank = _SYSTEM_PRIORITIES.get(made.get("priorityClassName") or "")
    if rank is not None:
        if made.get("priority") is None:
            made["priority"] = rank
        if made.get("preemptionPolicy") is None:
            made["preemptionPolicy"] = "PreemptLowerPriority"
    return patient(made)


def patient(spec: Manifest) -> Manifest:
    """k8s: every write of a Pod adds the two node tolerations if they are missing."""
    tolerations = list(spec.get("tolerations") or ())
    for trouble in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates(each, trouble) for each in tolerations):
            added = {"key": trouble, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            tolerations.append(added)
    return {**spec, "tolerations": tolerations}


def _pod_updated(manifest: Manifest, _: Manifest) -> Manifest:
    return {**manifest, "spec": patient(manifest.get("spec") or {})}


def _tolerates(toleration: Manifest, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def qos_class(spec: Manifest) -> str:
    """`Guaranteed` if every container's limits equal its requests, `BestEffort` if no container has either."""
    guaranteed, anything = True, False
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        given = container.get("resources") or {}
        limits, requests = (_compute(given.get(name) or {}) for name in ("limits", "requests"))
        anything = anything or bool(limits or requests)
        guaranteed = guaranteed and len(limits) == 2 and limits == requests
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _compute(amounts: Manifest) -> Manifest:
    values = {name: quantity.parse(amounts[name]) for name in ("cpu", "memory") if amounts.get(name) is not None}
    return {name: value for name, value in values.items() if value > 0}


def _persistent_volume(manifest: Manifest) -> Manifest:
    since = (manifest.get("metadata") or {}).get("creationTimestamp")
    status = {**manifest["status"], **({"lastPhaseTransitionTime": since} if since else {})}
    return {**manifest, "status": status}


def _namespace(manifest: Manifest) -> Manifest:
    spec = manifest.get("spec") or {}
    finalizers = spec.get("finalizers") or []
    if "kubernetes" in finalizers:
        return manifest
    return {**manifest, "spec": {**spec, "finalizers": [*finalizers, "kubernetes"]}}


def _claim(manifest: Manifest) -> Manifest:
    spec = manifest.get("spec") or {}
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and not ref:
        spec = {**spec, "dataSourceRef": source}
    elif ref and not source and not ref.get("namespace"):
        spec = {**spec, "dataSource": ref}
    return {**manifest, "spec": spec}


def _job(manifest: Manifest) -> Manifest:
    spec, metadata = manifest.get("spec") or {}, manifest.get("metadata") or {}
    if spec.get("manualSelector"):
        return manifest
    made = {"controller-uid": metadata.get("uid") or "", "job-name": metadata.get("name") or ""}
    marks = {**{f"batch.kubernetes.io/{key}": value for key, value in made.items()}, **made}
    template = spec.get("template") or {}
    about = template.get("metadata") or {}
    labels = {**marks, **(about.get("labels") or {})}
    if (metadata.get("labels") or {}) == (about.get("labels") or {}):
        # k8s: a Job without labels of its own gets those of its Pods, including the generated ones
        manifest = {**manifest, "metadata": {**metadata, "labels": labels}}
    key = "batch.kubernetes.io/controller-uid"
    selector = spec.get("selector") or {}
    selector = {**selector, "matchLabels": {key: marks[key], **(selector.get("matchLabels") or {})}}
    template = {**template, "metadata": {**about, "labels": labels}}
    return {**manifest, "spec": {**spec, "selector": selector, "template": template}}


def _annotated(manifest: Manifest, name: str, value: str) -> Manifest:
    metadata = manifest.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), name: value}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def _daemon_set(manifest: Manifest) -> Manifest:
    return _annotated(manifest, _DAEMON_GENERATION, "1")


def _daemon_set_updated(manifest: Manifest, old: Manifest) -> Manifest:
    known = ((old.get("metadata") or {}).get("annotations") or {}).get(_DAEMON_GENERATION) or "0"
    count = int(known) if known.isdecimal() else 0
    changed = (manifest.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template")
    return _annotated(manifest, _DAEMON_GENERATION, str(count + changed))


def _namespace_updated(manifest: Manifest, old: Manifest) -> Manifest:
    """Keep the finalizers of a Namespace; only its finalize subresource changes them."""
    spec = {name: value for name, value in (manifest.get("spec") or {}).items() if name != "finalizers"}
    finalizers = (old.get("spec") or {}).get("finalizers")
    return {**manifest, "spec": {**spec, "finalizers": finalizers} if finalizers else spec}


_ON_CREATE: dict[tuple[str, str], Callable[[Manifest], Manifest]] = {
    ("", "Namespace"): _namespace,
    ("", "PersistentVolume"): _persistent_volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): _job,
}
_ON_UPDATE: dict[tuple[str, str], Callable[[Manifest, Manifest], Manifest]] = {
    ("", "Pod"): _pod_updated,
    ("", "Namespace"): _namespace_updated,
    ("", "Service"): carry_allocated,
    ("apps", "DaemonSet"): _daemon_set_updated,
}

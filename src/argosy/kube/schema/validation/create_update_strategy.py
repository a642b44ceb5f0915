"""Prepares manifests for create and update, between defaulting and validation (the server's strategies).

In: a defaulted manifest with its system metadata (name, uid, creationTimestamp). Out: the manifest to validate.
Never: allocates IPs or ports; checks whether another object exists.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema import quantity
from argosy.kube.schema.api_resource import ApiResource
from argosy.kube.schema.defaults import keep_allocated_fields

_TEMPLATE_GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
_INITIAL_BUDGET_STATUS = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
_INITIAL_DAEMON_SET_STATUS = {
    "currentNumberScheduled": 0,
    "numberMisscheduled": 0,
    "desiredNumberScheduled": 0,
    "numberReady": 0,
}
# The initial status of a new object; a status in the request is discarded.
_INITIAL_STATUS: dict[tuple[str, str], Manifest] = {
    ("", "Namespace"): {"phase": "Active"},
    ("", "PersistentVolume"): {"phase": "Pending"},
    ("", "PersistentVolumeClaim"): {"phase": "Pending"},
    ("", "Pod"): {"phase": "Pending"},
    ("", "ReplicationController"): {"replicas": 0},
    ("", "ResourceQuota"): {},
    ("", "Service"): {"loadBalancer": {}},
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): {},
    ("apiregistration.k8s.io", "APIService"): {},
    ("apps", "DaemonSet"): _INITIAL_DAEMON_SET_STATUS,
    ("apps", "Deployment"): {},
    ("apps", "ReplicaSet"): {"replicas": 0},
    ("apps", "StatefulSet"): {"replicas": 0, "availableReplicas": 0},
    ("autoscaling", "HorizontalPodAutoscaler"): {"desiredReplicas": 0, "currentMetrics": None},
    ("batch", "CronJob"): {},
    ("batch", "Job"): {},
    ("certificates.k8s.io", "CertificateSigningRequest"): {},
    ("networking.k8s.io", "Ingress"): {"loadBalancer": {}},
    ("policy", "PodDisruptionBudget"): _INITIAL_BUDGET_STATUS,
    ("storage.k8s.io", "VolumeAttachment"): {"attached": False},
}
# A Node is created with the status that its kubelet reports; the status of a CRD belongs to its controller.
_KEEPS_STATUS_ON_UPDATE = {*_INITIAL_STATUS, ("", "Node"), ("apiextensions.k8s.io", "CustomResourceDefinition")}
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


def prepare_create(resource: ApiResource, manifest: Manifest) -> Manifest:
    kind = resource.group_kind
    manifest = _drop_namespace_if_cluster_scoped(resource, manifest)
    if kind in _INITIAL_STATUS:
        status = _INITIAL_STATUS[kind]
        if resource.version == "v1" and kind.kind == "HorizontalPodAutoscaler":
            status = {"currentReplicas": 0, "desiredReplicas": 0}
        manifest = {**manifest, "status": dict(status)}
    prepare_kind = _PREPARE_CREATE.get(kind)
    return prepare_kind(manifest) if prepare_kind else manifest


def prepare_update(resource: ApiResource, manifest: Manifest, old: Manifest) -> Manifest:
    """Prepare a write to the main resource: the status is kept."""
    kind = resource.group_kind
    manifest = _drop_namespace_if_cluster_scoped(resource, manifest)
    if kind in _KEEPS_STATUS_ON_UPDATE:
        manifest = {name: value for name, value in manifest.items() if name != "status"}
        if "status" in old:
            manifest["status"] = old["status"]
    prepare_kind = _PREPARE_UPDATE.get(kind)
    return prepare_kind(manifest, old) if prepare_kind else manifest


def prepare_status_update(resource: ApiResource, manifest: Manifest, old: Manifest) -> Manifest:
    """Prepare a write to the status subresource: everything except metadata and status is kept."""
    prepared = {name: value for name, value in old.items() if name not in ("metadata", "status")}
    prepared["metadata"] = dict(manifest.get("metadata") or {})
    if "status" in manifest:
        prepared["status"] = manifest["status"]
    if resource.group_kind in _KEEPS_LABELS_ON_STATUS:
        prepared["metadata"].pop("labels", None)
        if (old.get("metadata") or {}).get("labels"):
            prepared["metadata"]["labels"] = old["metadata"]["labels"]
    return prepared


def _drop_namespace_if_cluster_scoped(resource: ApiResource, manifest: Manifest) -> Manifest:
    """k8s: a namespace in a cluster-scoped object is dropped."""
    metadata = manifest.get("metadata") or {}
    if resource.namespaced or not metadata.get("namespace"):
        return manifest
    return {**manifest, "metadata": {name: value for name, value in metadata.items() if name != "namespace"}}


def _prepare_pod(manifest: Manifest) -> Manifest:
    spec = _set_priority_and_tolerations(manifest.get("spec") or {})
    status = {**manifest["status"], "qosClass": find_qos_class(spec)}
    if spec.get("schedulingGates"):
        gated_condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": (manifest.get("metadata") or {}).get("creationTimestamp"),
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        status["conditions"] = [gated_condition]
    return {**manifest, "spec": spec, "status": status}


def _set_priority_and_tolerations(spec: Manifest) -> Manifest:
    """Apply the default admission plug-ins: priority, and tolerations of failing nodes."""
    admitted = dict(spec)
    priority = _SYSTEM_PRIORITIES.get(admitted.get("priorityClassName") or "")
    if priority is not None:
        if admitted.get("priority") is None:
            admitted["priority"] = priority
        if admitted.get("preemptionPolicy") is None:
            admitted["preemptionPolicy"] = "PreemptLowerPriority"
    return add_default_tolerations(admitted)


def add_default_tolerations(spec: Manifest) -> Manifest:
    """k8s: every write of a Pod adds the two node tolerations if they are missing."""
    tolerations = list(spec.get("tolerations") or ())
    for taint_key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates(toleration, taint_key) for toleration in tolerations):
            default_toleration = {
                "key": taint_key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            tolerations.append(default_toleration)
    return {**spec, "tolerations": tolerations}


def _add_tolerations_on_update(manifest: Manifest, _: Manifest) -> Manifest:
    return {**manifest, "spec": add_default_tolerations(manifest.get("spec") or {})}


def _tolerates(toleration: Manifest, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def find_qos_class(spec: Manifest) -> str:
    """`Guaranteed` if every container's limits equal its requests, `BestEffort` if no container has either."""
    is_guaranteed, has_resources = True, False
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        resources = container.get("resources") or {}
        limits, requests = (_read_compute_resources(resources.get(name) or {}) for name in ("limits", "requests"))
        has_resources = has_resources or bool(limits or requests)
        is_guaranteed = is_guaranteed and len(limits) == 2 and limits == requests
    if not has_resources:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _read_compute_resources(amounts: Manifest) -> Manifest:
    values = {name: quantity.parse(amounts[name]) for name in ("cpu", "memory") if amounts.get(name) is not None}
    return {name: value for name, value in values.items() if value > 0}


def _set_phase_transition_time(manifest: Manifest) -> Manifest:
    created_at = (manifest.get("metadata") or {}).get("creationTimestamp")
    status = {**manifest["status"], **({"lastPhaseTransitionTime": created_at} if created_at else {})}
    return {**manifest, "status": status}


def _add_namespace_finalizer(manifest: Manifest) -> Manifest:
    spec = manifest.get("spec") or {}
    finalizers = spec.get("finalizers") or []
    if "kubernetes" in finalizers:
        return manifest
    return {**manifest, "spec": {**spec, "finalizers": [*finalizers, "kubernetes"]}}


def _copy_claim_data_source(manifest: Manifest) -> Manifest:
    spec = manifest.get("spec") or {}
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and not ref:
        spec = {**spec, "dataSourceRef": source}
    elif ref and not source and not ref.get("namespace"):
        spec = {**spec, "dataSource": ref}
    return {**manifest, "spec": spec}


def _generate_job_selector(manifest: Manifest) -> Manifest:
    spec, metadata = manifest.get("spec") or {}, manifest.get("metadata") or {}
    if spec.get("manualSelector"):
        return manifest
    identity = {"controller-uid": metadata.get("uid") or "", "job-name": metadata.get("name") or ""}
    identity_labels = {**{f"batch.kubernetes.io/{key}": value for key, value in identity.items()}, **identity}
    template = spec.get("template") or {}
    template_metadata = template.get("metadata") or {}
    labels = {**identity_labels, **(template_metadata.get("labels") or {})}
    if (metadata.get("labels") or {}) == (template_metadata.get("labels") or {}):
        # k8s: a Job without labels of its own gets those of its Pods, including the generated ones
        manifest = {**manifest, "metadata": {**metadata, "labels": labels}}
    key = "batch.kubernetes.io/controller-uid"
    selector = spec.get("selector") or {}
    selector = {**selector, "matchLabels": {key: identity_labels[key], **(selector.get("matchLabels") or {})}}
    template = {**template, "metadata": {**template_metadata, "labels": labels}}
    return {**manifest, "spec": {**spec, "selector": selector, "template": template}}


def _set_annotation(manifest: Manifest, name: str, value: str) -> Manifest:
    metadata = manifest.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), name: value}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def _set_template_generation(manifest: Manifest) -> Manifest:
    return _set_annotation(manifest, _TEMPLATE_GENERATION_ANNOTATION, "1")


def _update_template_generation(manifest: Manifest, old: Manifest) -> Manifest:
    old_generation = ((old.get("metadata") or {}).get("annotations") or {}).get(_TEMPLATE_GENERATION_ANNOTATION) or "0"
    count = int(old_generation) if old_generation.isdecimal() else 0
    changed = (manifest.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template")
    return _set_annotation(manifest, _TEMPLATE_GENERATION_ANNOTATION, str(count + changed))


def _keep_namespace_finalizers(manifest: Manifest, old: Manifest) -> Manifest:
    """Keep the finalizers of a Namespace; only its finalize subresource changes them."""
    spec = {name: value for name, value in (manifest.get("spec") or {}).items() if name != "finalizers"}
    finalizers = (old.get("spec") or {}).get("finalizers")
    return {**manifest, "spec": {**spec, "finalizers": finalizers} if finalizers else spec}


_PREPARE_CREATE: dict[tuple[str, str], Callable[[Manifest], Manifest]] = {
    ("", "Namespace"): _add_namespace_finalizer,
    ("", "PersistentVolume"): _set_phase_transition_time,
    ("", "PersistentVolumeClaim"): _copy_claim_data_source,
    ("", "Pod"): _prepare_pod,
    ("apps", "DaemonSet"): _set_template_generation,
    ("batch", "Job"): _generate_job_selector,
}
_PREPARE_UPDATE: dict[tuple[str, str], Callable[[Manifest, Manifest], Manifest]] = {
    ("", "Pod"): _add_tolerations_on_update,
    ("", "Namespace"): _keep_namespace_finalizers,
    ("", "Service"): keep_allocated_fields,
    ("apps", "DaemonSet"): _update_template_generation,
}

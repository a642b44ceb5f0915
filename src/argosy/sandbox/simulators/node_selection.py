"""Chooses the Node for a Pod and explains why other Nodes do not fit, in the scheduler's words.

In: a Pod, Nodes, the resources allocated on each. Out: a Node, or one sentence. Never: calls a cluster; preempts Pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from argosy.kube.objects import Manifest
from argosy.kube.schema import pod_resources, selectors
from argosy.kube.schema.pod_resources import Amounts
from argosy.sandbox.simulators import node_and_storage_class_manifests

UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
NO_NODES: Final = "no nodes available to schedule pods"
AFFINITY_MISMATCH: Final = "node(s) didn't match Pod's node affinity/selector"
BLOCKING_EFFECTS: Final = ("NoSchedule", "NoExecute")
AllocatedResources = Callable[[str], Mapping[str, Decimal]]  # node name -> allocated resources


class NodeRejection(NamedTuple):
    reasons: Sequence[str]
    is_final: bool = True  # False: the Pod would fit if others were removed


def compute_pod_requests(pod: Manifest) -> Amounts:
    return {**pod_resources.sum_requests(pod["spec"]), "pods": Decimal(1)}


def choose_node(
    pod: Manifest, all_nodes: Sequence[Manifest], allocated: AllocatedResources
) -> tuple[Manifest | None, str]:
    """Return the fitting Node with the fewest Pods, or None and the reason."""
    simulated = sorted(
        (node for node in all_nodes if node_and_storage_class_manifests.is_simulated_node(node)), key=_read_name
    )
    requests = compute_pod_requests(pod)
    rejections, candidates = [], []
    for node in simulated:
        rejection = _check_node(pod, node, requests, allocated)
        if rejection is None:
            candidates.append(node)
        else:
            rejections.append(rejection)
    if candidates:
        return min(
            candidates,
            key=lambda node: (
                _count_untolerated_preferred_taints(pod, node),
                allocated(_read_name(node)).get("pods", 0),
            ),
        ), ""
    return None, _describe_rejections(rejections)


def describe_common_rejection(all_nodes: Sequence[Manifest], reason: str) -> str:
    """Build the message for a reason that applies to every Node."""
    return _describe_rejections(
        [
            NodeRejection([reason], is_final=False)
            for node in all_nodes
            if node_and_storage_class_manifests.is_simulated_node(node)
        ]
    )


def describe_precheck_failure(all_nodes: Sequence[Manifest], reason: str) -> str:
    """Build the message for a reason that does not depend on the Node, such as an unbound claim."""
    count = sum(1 for node in all_nodes if node_and_storage_class_manifests.is_simulated_node(node))
    if not count:
        return NO_NODES
    preemption = f"preemption: 0/{count} nodes are available: {count} Preemption is not helpful for scheduling."
    return f"0/{count} nodes are available: {reason}. {preemption}"


def can_run_on(pod: Manifest, node: Manifest) -> bool:
    """True if taints, selector and affinity allow the Pod on the Node, whether or not it has resources left."""
    return _matches_node_affinity(pod, node) and _find_untolerated_taint(pod, node) is None


def _describe_rejections(rejections: Sequence[NodeRejection]) -> str:
    if not rejections:
        return NO_NODES
    reasons = Counter(reason for rejection in rejections for reason in rejection.reasons)
    preemption_reasons = Counter(
        "Preemption is not helpful for scheduling"
        if rejection.is_final
        else "No preemption victims found for incoming pod"
        for rejection in rejections
    )
    prefix = f"0/{len(rejections)} nodes are available: "
    return f"{prefix}{_render_counts(reasons)}. preemption: {prefix}{_render_counts(preemption_reasons)}."


def _render_counts(reasons: Mapping[str, int]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))


def _check_node(
    pod: Manifest, node: Manifest, requests: Amounts, allocated: AllocatedResources
) -> NodeRejection | None:
    """k8s: checks in this order; only missing resources are all listed."""
    if (node.get("spec") or {}).get("unschedulable") and not _tolerates(
        pod, {"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule"}
    ):
        return NodeRejection(["node(s) were unschedulable"])
    if (taint := _find_untolerated_taint(pod, node)) is not None:
        return NodeRejection([f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value') or ''}}}"])
    if not _matches_node_affinity(pod, node):
        return NodeRejection([AFFINITY_MISMATCH])
    allocatable = pod_resources.read_amounts((node.get("status") or {}).get("allocatable"))
    in_use = allocated(_read_name(node))
    insufficient = [
        resource
        for resource, amount in requests.items()
        if amount and in_use.get(resource, 0) + amount > allocatable.get(resource, 0)
    ]
    if not insufficient:
        return None
    is_final = any(requests[resource] > allocatable.get(resource, 0) for resource in insufficient)
    return NodeRejection(
        ["Too many pods" if resource == "pods" else f"Insufficient {resource}" for resource in insufficient], is_final
    )


# -- taints ----------------------------------------------------------------------------------------------------------


def _find_untolerated_taint(pod: Manifest, node: Manifest) -> Manifest | None:
    taints = (node.get("spec") or {}).get("taints") or ()
    blocking = (
        taint for taint in taints if taint.get("effect") in BLOCKING_EFFECTS and taint["key"] != UNSCHEDULABLE_TAINT
    )
    return next((taint for taint in blocking if not _tolerates(pod, taint)), None)


def _count_untolerated_preferred_taints(pod: Manifest, node: Manifest) -> int:
    """Count PreferNoSchedule taints that the Pod does not tolerate."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return sum(1 for taint in taints if taint.get("effect") == "PreferNoSchedule" and not _tolerates(pod, taint))


def _tolerates(pod: Manifest, taint: Manifest) -> bool:
    return any(_toleration_matches(toleration, taint) for toleration in pod["spec"].get("tolerations") or ())


def _toleration_matches(toleration: Manifest, taint: Manifest) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if key and key != taint["key"]:
        return False
    if operator == "Exists":
        return True
    return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")


# -- selectors and affinity ------------------------------------------------------------------------------------------


def _matches_node_affinity(pod: Manifest, node: Manifest) -> bool:
    labels = node["metadata"].get("labels") or {}
    node_selector = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(name) != value for name, value in node_selector.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_matches_term(term, labels, _read_name(node)) for term in required.get("nodeSelectorTerms") or ())


def _matches_term(term: Manifest, labels: Mapping[str, str], node_name: str) -> bool:
    """k8s: an empty term matches nothing."""
    by_label, by_field = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not by_label and not by_field:
        return False
    return all(_matches_expression(expression, labels) for expression in by_label) and all(
        _matches_expression(expression, {"metadata.name": node_name}) for expression in by_field
    )


def _matches_expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    operator, key = expression["operator"], expression["key"]
    values = list(expression.get("values") or ())
    if operator in ("Gt", "Lt"):
        label_value, bound = labels.get(key, ""), str(values[0]) if values else ""
        if not (label_value.lstrip("-").isdigit() and bound.lstrip("-").isdigit()):
            return False
        return int(label_value) > int(bound) if operator == "Gt" else int(label_value) < int(bound)
    if key == "metadata.name":
        return bool((labels[key] in values) == (operator == "In"))
    return bool(selectors.label_selector_from_wire({"matchExpressions": [dict(expression)]}).matches(labels))


def _read_name(node: Manifest) -> str:
    return str(node["metadata"]["name"])

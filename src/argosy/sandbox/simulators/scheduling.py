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
from argosy.sandbox.simulators import nodes

CORDON: Final = "node.kubernetes.io/unschedulable"
NO_NODES: Final = "no nodes available to schedule pods"
MISMATCH: Final = "node(s) didn't match Pod's node affinity/selector"
KEEPING_OUT: Final = ("NoSchedule", "NoExecute")
Taken = Callable[[str], Mapping[str, Decimal]]  # node name -> allocated resources


class Refusal(NamedTuple):
    reasons: Sequence[str]
    is_final: bool = True  # False: the Pod would fit if others were removed


def needs_of(pod: Manifest) -> Amounts:
    return {**pod_resources.requests_of(pod["spec"]), "pods": Decimal(1)}


def choose(pod: Manifest, found: Sequence[Manifest], taken: Taken) -> tuple[Manifest | None, str]:
    """Return the fitting Node with the fewest Pods, or None and the reason."""
    played = sorted((each for each in found if nodes.is_played(each)), key=_name)
    needs = needs_of(pod)
    refusals, fitting = [], []
    for each in played:
        refusal = _refusal(pod, each, needs, taken)
        if refusal is None:
            fitting.append(each)
        else:
            refusals.append(refusal)
    if fitting:
        return min(fitting, key=lambda each: (_dislikes(pod, each), taken(_name(each)).get("pods", 0))), ""
    return None, _sentence(refusals)


def refused_by_all(found: Sequence[Manifest], reason: str) -> str:
    """Build the message for a reason that applies to every Node."""
    return _sentence([Refusal([reason], is_final=False) for each in found if nodes.is_played(each)])


def refused_before(found: Sequence[Manifest], reason: str) -> str:
    """Build the message for a reason that does not depend on the Node, such as an unbound claim."""
    count = sum(1 for each in found if nodes.is_played(each))
    if not count:
        return NO_NODES
    helps = f"preemption: 0/{count} nodes are available: {count} Preemption is not helpful for scheduling."
    return f"0/{count} nodes are available: {reason}. {helps}"


def may_run(pod: Manifest, node: Manifest) -> bool:
    """True if taints, selector and affinity allow the Pod on the Node, whether or not it has resources left."""
    return _matches(pod, node) and _untolerated(pod, node) is None


def _sentence(refusals: Sequence[Refusal]) -> str:
    if not refusals:
        return NO_NODES
    reasons = Counter(reason for each in refusals for reason in each.reasons)
    helps = Counter(
        "Preemption is not helpful for scheduling" if each.is_final else "No preemption victims found for incoming pod"
        for each in refusals
    )
    head = f"0/{len(refusals)} nodes are available: "
    return f"{head}{_counted(reasons)}. preemption: {head}{_counted(helps)}."


def _counted(reasons: Mapping[str, int]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))


def _refusal(pod: Manifest, node: Manifest, needs: Amounts, taken: Taken) -> Refusal | None:
    """k8s: checks in this order; only missing resources are all listed."""
    if (node.get("spec") or {}).get("unschedulable") and not _tolerates(pod, {"key": CORDON, "effect": "NoSchedule"}):
        return Refusal(["node(s) were unschedulable"])
    if (taint := _untolerated(pod, node)) is not None:
        return Refusal([f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value') or ''}}}"])
    if not _matches(pod, node):
        return Refusal([MISMATCH])
    whole = pod_resources.read_amounts((node.get("status") or {}).get("allocatable"))
    used = taken(_name(node))
    short = [each for each, much in needs.items() if much and used.get(each, 0) + much > whole.get(each, 0)]
    if not short:
        return None
    is_final = any(needs[each] > whole.get(each, 0) for each in short)
    return Refusal(["Too many pods" if each == "pods" else f"Insufficient {each}" for each in short], is_final)


# -- taints ----------------------------------------------------------------------------------------------------------


def _untolerated(pod: Manifest, node: Manifest) -> Manifest | None:
    taints = (node.get("spec") or {}).get("taints") or ()
    keeping = (each for each in taints if each.get("effect") in KEEPING_OUT and each["key"] != CORDON)
    return next((each for each in keeping if not _tolerates(pod, each)), None)


def _dislikes(pod: Manifest, node: Manifest) -> int:
    """Count PreferNoSchedule taints that the Pod does not tolerate."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return sum(1 for each in taints if each.get("effect") == "PreferNoSchedule" and not _tolerates(pod, each))


def _tolerates(pod: Manifest, taint: Manifest) -> bool:
    return any(_covers(each, taint) for each in pod["spec"].get("tolerations") or ())


def _covers(toleration: Manifest, taint: Manifest) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if key and key != taint["key"]:
        return False
    if operator == "Exists":
        return True
    return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")


# -- selectors and affinity ------------------------------------------------------------------------------------------


def _matches(pod: Manifest, node: Manifest) -> bool:
    labels = node["metadata"].get("labels") or {}
    wanted = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(name) != value for name, value in wanted.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_is_term(each, labels, _name(node)) for each in required.get("nodeSelectorTerms") or ())


def _is_term(term: Manifest, labels: Mapping[str, str], name: str) -> bool:
    """k8s: an empty term matches nothing."""
    by_label, by_field = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not by_label and not by_field:
        return False
    return all(_holds(each, labels) for each in by_label) and all(
        _holds(each, {"metadata.name": name}) for each in by_field
    )


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    operator, key = expression["operator"], expression["key"]
    values = list(expression.get("values") or ())
    if operator in ("Gt", "Lt"):
        has, bound = labels.get(key, ""), str(values[0]) if values else ""
        if not (has.lstrip("-").isdigit() and bound.lstrip("-").isdigit()):
            return False
        return int(has) > int(bound) if operator == "Gt" else int(has) < int(bound)
    if key == "metadata.name":
        return bool((labels[key] in values) == (operator == "In"))
    return bool(selectors.from_label_selector({"matchExpressions": [dict(expression)]}).matches(labels))


def _name(node: Manifest) -> str:
    return str(node["metadata"]["name"])

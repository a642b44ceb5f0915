"""Rules about resource quotas of a namespace.

In: a repository. Out: violations. Never: considers a quota of the cluster, or a quota for some Pods only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from argosy.gitops.analysis.pod_specs import POD_SPEC_PATHS, list_containers
from argosy.gitops.analysis.repository_view import ManifestWithLocations, PathStep, RenderedSource, RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import Severity, Violation
from argosy.kube.schema.pod_resources import add_amounts, read_amounts
from argosy.kube.schema.quantity import Quantity
from argosy.kube.well_known_kinds import INFERENCE_SERVICE, NOTEBOOK_JOB

_CUSTOM_RESOURCE_PATHS: Final[Mapping[tuple[str, str], tuple[PathStep, ...]]] = {
    INFERENCE_SERVICE: ("spec", "predictor", "model", "resources"),
    NOTEBOOK_JOB: ("spec", "podConfig", "resources"),
}
_SCALABLE_KINDS: Final = (("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "ReplicaSet"))
_SINGLE_POD_KINDS: Final = (("", "Pod"), ("batch", "Job"))
_AUTOSCALER_KINDS: Final = ("HorizontalPodAutoscaler", "ScaledObject")


class _ContainerResources(NamedTuple):
    """The resources of one container, and where they are written."""

    path: tuple[PathStep, ...]
    resources: Mapping[str, Any]

    def get_map(self, part: str) -> Mapping[str, Any]:
        value = self.resources.get(part)
        return value if isinstance(value, dict) else {}

    def read_amounts_of(self, part: str) -> dict[str, Decimal]:
        # k8s: a container with a limit and no request requests its limit.
        limits = read_amounts(self.get_map("limits"))
        return limits if part == "limits" else {**limits, **read_amounts(self.get_map("requests"))}

    def find_path(self, part: str, name: str) -> tuple[PathStep, ...]:
        return (*self.path, part if name in self.get_map(part) else "limits", name)


def _find_exceeded_quotas(repository: RepositoryView) -> Iterator[Violation]:
    for rendering in repository.renderings:
        quotas = [
            quota_item for quota_item in rendering.list_of_kind("", "ResourceQuota") if not _is_scoped(quota_item)
        ]
        for item in rendering.items if quotas else ():
            parts, count = _list_container_resources(item), _count_minimum_pods(rendering, item)
            for quota in quotas if parts and count else ():
                if rendering.resolve_namespace(quota) == rendering.resolve_namespace(item):
                    yield from _check_quota(item, parts, count, quota)


def _is_scoped(quota: ManifestWithLocations) -> bool:
    return bool(quota.get_value("spec", "scopes") or quota.get_value("spec", "scopeSelector"))


def _list_container_resources(item: ManifestWithLocations) -> list[_ContainerResources]:
    """Return containers that run at the same time. Webhooks may add more, so this is the minimum."""
    if path := _CUSTOM_RESOURCE_PATHS.get(item.group_kind):
        return [_ContainerResources(path, item.get_map(*path))]
    if item.group_kind not in POD_SPEC_PATHS:
        return []
    running = [container for container in list_containers(item) if container.path[-2] == "containers"]
    return [
        _ContainerResources((*container.path, "resources"), item.get_map(*container.path, "resources"))
        for container in running
    ]


def _count_minimum_pods(rendering: RenderedSource, item: ManifestWithLocations) -> int:
    """Return the minimum number of Pods; 0 if it is unknown."""
    if item.group_kind == INFERENCE_SERVICE:
        return _read_replicas_or_one(item.get_value("spec", "predictor", "minReplicas"))
    if item.group_kind in _SCALABLE_KINDS:
        is_autoscaled = any(
            other.key.kind in _AUTOSCALER_KINDS and _scales_item(other, item) for other in rendering.items
        )
        return 1 if is_autoscaled else _read_replicas_or_one(item.get_value("spec", "replicas"))
    return 1 if item.group_kind == NOTEBOOK_JOB or item.group_kind in _SINGLE_POD_KINDS else 0


def _read_replicas_or_one(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 1


def _scales_item(scaler: ManifestWithLocations, item: ManifestWithLocations) -> bool:
    return scaler.get_string("spec", "scaleTargetRef", "name") == item.key.name


def _check_quota(
    item: ManifestWithLocations, parts: list[_ContainerResources], count: int, quota: ManifestWithLocations
) -> Iterator[Violation]:
    hard = quota.get_map("spec", "hard")
    allowed = read_amounts(hard)
    for part in ("requests", "limits"):
        total: Mapping[str, Decimal] = {}
        for container in parts:
            total = add_amounts(total, container.read_amounts_of(part))
        for name, amount in total.items():
            key = _find_strictest_key(allowed, part, name)
            if key and amount * count > allowed[key]:
                amount_text = f"{f'{count} × ' if count > 1 else ''}{_render_amount(amount, name)}"
                effect = "it never starts" if amount > allowed[key] else "only some replicas start"
                message = f"{item.name} {part} {amount_text} {name}, but {quota.name} allows {hard[key]}: {effect}"
                fix = "request less, run fewer replicas, or raise the quota"
                first_container = next(container for container in parts if name in container.read_amounts_of(part))
                yield Violation(
                    item.find_location(*first_container.find_path(part, name)),
                    message,
                    fix,
                    item.name,
                    f"{part}.{name}",
                )


def _render_amount(amount: Decimal, name: str) -> str:
    return str(Quantity(amount, "binary" if name in ("memory", "ephemeral-storage") else "decimal"))


def _find_strictest_key(hard: Mapping[str, Decimal], part: str, name: str) -> str | None:
    # k8s: a plain cpu or memory in a quota limits requests.
    keys = [f"{part}.{name}", *([name] if part == "requests" and name in ("cpu", "memory") else [])]
    return min((key for key in keys if key in hard), key=lambda key: hard[key], default=None)


RULES: Final = (
    AnalysisRule(
        "AGY204",
        Severity.ERROR,
        "A model or workload requests more than the quota of its namespace",
        "The Pods are rejected, and the model never becomes ready.",
        "The ResourceQuota is rendered for the same namespace and covers all its Pods, and the minimum number of"
        " replicas alone exceeds it. A limit without a request counts as the request, GPUs too.",
        "Request less, or raise the quota.",
        _find_exceeded_quotas,
    ),
)

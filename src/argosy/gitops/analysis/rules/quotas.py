"""Rules about resource quotas of a namespace.

In: a repository. Out: violations. Never: considers a quota of the cluster, or a quota for some Pods only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from argosy.gitops.analysis.pod_specs import SPECS, containers
from argosy.gitops.analysis.repository import Item, Rendering, Repository, Step
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.violation import Severity, Sight
from argosy.kube.schema.pod_resources import added, read_amounts
from argosy.kube.schema.quantity import Quantity

_MODEL: Final = ("serving.kserve.io", "InferenceService")
_NOTEBOOK: Final = ("mlops.mlops.dev", "NotebookValidationJob")
_CUSTOM: Final[Mapping[tuple[str, str], tuple[Step, ...]]] = {
    _MODEL: ("spec", "predictor", "model", "resources"),
    _NOTEBOOK: ("spec", "podConfig", "resources"),
}
_SCALED: Final = (("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "ReplicaSet"))
_ONCE: Final = (("", "Pod"), ("batch", "Job"))
_SCALERS: Final = ("HorizontalPodAutoscaler", "ScaledObject")


class _Part(NamedTuple):
    """The resources of one container, and where they are written."""

    path: tuple[Step, ...]
    given: Mapping[str, Any]

    def of(self, part: str) -> Mapping[str, Any]:
        found = self.given.get(part)
        return found if isinstance(found, dict) else {}

    def amounts(self, part: str) -> dict[str, Decimal]:
        # k8s: a container with a limit and no request requests its limit.
        limits = read_amounts(self.of("limits"))
        return limits if part == "limits" else {**limits, **read_amounts(self.of("requests"))}

    def where(self, part: str, name: str) -> tuple[Step, ...]:
        return (*self.path, part if name in self.of(part) else "limits", name)


def _quota(repository: Repository) -> Iterator[Sight]:
    for rendering in repository.renderings:
        quotas = [each for each in rendering.of("", "ResourceQuota") if not _is_narrow(each)]
        for item in rendering.items if quotas else ():
            parts, count = _parts(item), _least(rendering, item)
            for quota in quotas if parts and count else ():
                if rendering.place_of(quota) == rendering.place_of(item):
                    yield from _beyond(item, parts, count, quota)


def _is_narrow(quota: Item) -> bool:
    return bool(quota.value("spec", "scopes") or quota.value("spec", "scopeSelector"))


def _parts(item: Item) -> list[_Part]:
    """Return containers that run at the same time. Webhooks may add more, so this is the minimum."""
    if path := _CUSTOM.get(item.kind):
        return [_Part(path, item.fields(*path))]
    if item.kind not in SPECS:
        return []
    running = [each for each in containers(item) if each.path[-2] == "containers"]
    return [_Part((*each.path, "resources"), item.fields(*each.path, "resources")) for each in running]


def _least(rendering: Rendering, item: Item) -> int:
    """Return the minimum number of Pods; 0 if it is unknown."""
    if item.kind == _MODEL:
        return _number(item.value("spec", "predictor", "minReplicas"))
    if item.kind in _SCALED:
        scaled = any(each.key.kind in _SCALERS and _is_of(each, item) for each in rendering.items)
        return 1 if scaled else _number(item.value("spec", "replicas"))
    return 1 if item.kind == _NOTEBOOK or item.kind in _ONCE else 0


def _number(given: Any) -> int:
    return given if type(given) is int and given >= 0 else 1


def _is_of(scaler: Item, item: Item) -> bool:
    return scaler.text("spec", "scaleTargetRef", "name") == item.key.name


def _beyond(item: Item, parts: list[_Part], count: int, quota: Item) -> Iterator[Sight]:
    hard = quota.fields("spec", "hard")
    allowed = read_amounts(hard)
    for part in ("requests", "limits"):
        total: Mapping[str, Decimal] = {}
        for each in parts:
            total = added(total, each.amounts(part))
        for name, one in total.items():
            key = _smallest(allowed, part, name)
            if key and one * count > allowed[key]:
                much = f"{f'{count} × ' if count > 1 else ''}{_said(one, name)}"
                what = "it never starts" if one > allowed[key] else "only some replicas start"
                message = f"{item.name} {part} {much} {name}, but {quota.name} allows {hard[key]}: {what}"
                fix = "request less, run fewer replicas, or raise the quota"
                first = next(each for each in parts if name in each.amounts(part))
                yield Sight(item.at(*first.where(part, name)), message, fix, item.name, f"{part}.{name}")


def _said(amount: Decimal, name: str) -> str:
    return str(Quantity(amount, "binary" if name in ("memory", "ephemeral-storage") else "decimal"))


def _smallest(hard: Mapping[str, Decimal], part: str, name: str) -> str | None:
    # k8s: a plain cpu or memory in a quota limits requests.
    keys = [f"{part}.{name}", *([name] if part == "requests" and name in ("cpu", "memory") else [])]
    return min((key for key in keys if key in hard), key=lambda key: hard[key], default=None)


RULES: Final = (
    Rule(
        "AGY204",
        Severity.ERROR,
        "A model or workload requests more than the quota of its namespace",
        "The Pods are rejected, and the model never becomes ready.",
        "The ResourceQuota is rendered for the same namespace and covers all its Pods, and the minimum number of"
        " replicas alone exceeds it. A limit without a request counts as the request, GPUs too.",
        "Request less, or raise the quota.",
        _quota,
    ),
)

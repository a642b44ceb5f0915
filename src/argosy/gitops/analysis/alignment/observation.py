"""The observed state of an Application that proposals are based on.

In, out: values. Never: decides what to change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.gitops.analysis.alignment.field_writers import why_too_broad
from argosy.gitops.analysis.cause import Cause, CauseKind, is_by_hand
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import Difference, Pair
from argosy.kube.names import ResourceKey

RESPECT: Final = "RespectIgnoreDifferences=true"
RECREATE: Final = "Force=true,Replace=true"
# Tools and client libraries that people run: their changes may be intended.
TOOLS: Final = ("helm", "Helm", "terraform", "Terraform", "HashiCorp", "pulumi", "curl", "python-requests", "Python",
                 "OpenAPI-Generator", "node-fetch", "ansible")  # fmt: skip
_IGNORABLE: Final = frozenset({CauseKind.WEBHOOK, CauseKind.OTHER_CONTROLLER, CauseKind.DEFAULTING})


@dataclass(frozen=True)
class SeenObject:
    """One differing object: each field with its cause."""

    pair: Pair
    fields: tuple[tuple[Difference, Cause], ...]

    @property
    def key(self) -> ResourceKey:
        return self.pair.key

    @property
    def form(self) -> Any:
        return self.pair.compared or self.pair.live or {}

    @property
    def name(self) -> str:
        return f"{self.key.kind}/{self.key.name}"


@dataclass(frozen=True)
class AppSight:
    """An Application with its differing objects."""

    app: Application
    objects: tuple[SeenObject, ...] = ()
    desired: Mapping[ResourceKey, Mapping[str, Any]] = field(default_factory=dict)
    conditions: tuple[tuple[str, str], ...] = ()  # type and message
    is_healthy: bool = True
    compares_status: bool = False  # argo: ignoreResourceStatusField is not `all`
    kustomizations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by path in the source's tree
    homes: Mapping[ResourceKey, str] = field(default_factory=dict)  # file in the tree that declares the object


def is_foreign(cause: Cause) -> bool:
    """True if a controller, webhook or default sets the field regardless of Git, and not a person."""
    return cause.kind in _IGNORABLE and not is_by_hand(cause.manager)


def is_narrow(each: SeenObject, found: Difference) -> bool:
    """True if an ignore rule for the field hides nothing else."""
    return not why_too_broad(each.key.group, each.key.kind, found.pointer)


def unanswered(objects: Iterable[SeenObject]) -> int:
    """Count the fields that would still differ with every rule that may be proposed."""
    return sum(not is_foreign(cause) or not is_narrow(each, found) for each in objects for found, cause in each.fields)


def contested(objects: Iterable[SeenObject]) -> tuple[str, ...]:
    """Describe fields that a sync would write and another controller would overwrite; a dry run does not show that."""
    told = {
        f"{each.name} {found.pointer}: {cause.manager} would write it again": None
        for each in objects
        for found, cause in each.fields
        if cause.kind is CauseKind.OTHER_CONTROLLER and is_foreign(cause) and not cause.manager.startswith(TOOLS)
    }
    return tuple(told)

"""What was seen of an Application: the ground that proposals stand on.

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
# Tools that people start, and libraries that scripts are written with: what they changed may have been meant.
TOOLS: Final = ("helm", "Helm", "terraform", "Terraform", "HashiCorp", "pulumi", "curl", "python-requests", "Python",
                 "OpenAPI-Generator", "node-fetch", "ansible")  # fmt: skip
_IGNORABLE: Final = frozenset({CauseKind.WEBHOOK, CauseKind.OTHER_CONTROLLER, CauseKind.DEFAULTING})


@dataclass(frozen=True)
class SeenObject:
    """One that differs: each field with its cause."""

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
    """What was seen of an Application."""

    app: Application
    objects: tuple[SeenObject, ...] = ()
    desired: Mapping[ResourceKey, Mapping[str, Any]] = field(default_factory=dict)
    conditions: tuple[tuple[str, str], ...] = ()  # type and message
    is_healthy: bool = True
    compares_status: bool = False  # argo: ignoreResourceStatusField is not `all`
    kustomizations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by path in the source's tree
    homes: Mapping[ResourceKey, str] = field(default_factory=dict)  # the file there that an object is written in


def is_foreign(cause: Cause) -> bool:
    """Whether somebody writes the field whatever Git says, and is no person at a keyboard."""
    return cause.kind in _IGNORABLE and not is_by_hand(cause.manager)


def is_narrow(each: SeenObject, found: Difference) -> bool:
    """Whether a rule for the field would hide no more than it must."""
    return not why_too_broad(each.key.group, each.key.kind, found.pointer)


def unanswered(objects: Iterable[SeenObject]) -> int:
    """How many fields would still differ with every rule that may be proposed."""
    return sum(not is_foreign(cause) or not is_narrow(each, found) for each in objects for found, cause in each.fields)


def contested(objects: Iterable[SeenObject]) -> tuple[str, ...]:
    """What a sync would write, and somebody else write again: no dry run tells of that."""
    told = {
        f"{each.name} {found.pointer}: {cause.manager} would write it again": None
        for each in objects
        for found, cause in each.fields
        if cause.kind is CauseKind.OTHER_CONTROLLER and is_foreign(cause) and not cause.manager.startswith(TOOLS)
    }
    return tuple(told)

"""The observed state of an Application that proposals are based on.

In, out: values. Never: decides what to change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.gitops.analysis.alignment.field_writer_catalog import find_broadness_reason
from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind, is_interactive_client
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import FieldDifference, Pair
from argosy.kube.resource_key import ResourceKey

RESPECT_OPTION: Final = "RespectIgnoreDifferences=true"
RECREATE_OPTIONS: Final = "Force=true,Replace=true"
# Tools and client libraries that people run: their changes may be intended.
USER_TOOL_PREFIXES: Final = (
    "helm",
    "Helm",
    "terraform",
    "Terraform",
    "HashiCorp",
    "pulumi",
    "curl",
    "python-requests",
    "Python",
    "OpenAPI-Generator",
    "node-fetch",
    "ansible",
)
_IGNORABLE_CAUSES: Final = frozenset({CauseKind.WEBHOOK, CauseKind.OTHER_CONTROLLER, CauseKind.DEFAULTING})


@dataclass(frozen=True)
class ObservedObject:
    """One differing object: each field with its cause."""

    pair: Pair
    fields: tuple[tuple[FieldDifference, Cause], ...]

    @property
    def key(self) -> ResourceKey:
        return self.pair.key

    @property
    def live_manifest(self) -> Any:
        return self.pair.compared or self.pair.live or {}

    @property
    def name(self) -> str:
        return f"{self.key.kind}/{self.key.name}"


@dataclass(frozen=True)
class ObservedApplication:
    """An Application with its differing objects."""

    app: Application
    objects: tuple[ObservedObject, ...] = ()
    desired: Mapping[ResourceKey, Mapping[str, Any]] = field(default_factory=dict)
    conditions: tuple[tuple[str, str], ...] = ()  # type and message
    is_healthy: bool = True
    compares_status: bool = False  # argo: ignoreResourceStatusField is not `all`
    kustomizations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by path in the source's tree
    source_files: Mapping[ResourceKey, str] = field(default_factory=dict)  # file in the tree that declares the object


def is_set_by_controller(cause: Cause) -> bool:
    """True if a controller, webhook or default sets the field regardless of Git, and not a person."""
    return cause.kind in _IGNORABLE_CAUSES and not is_interactive_client(cause.manager)


def can_be_ignored_narrowly(observed_object: ObservedObject, difference: FieldDifference) -> bool:
    """True if an ignore rule for the field hides nothing else."""
    return not find_broadness_reason(observed_object.key.group, observed_object.key.kind, difference.pointer)


def count_unresolved_fields(objects: Iterable[ObservedObject]) -> int:
    """Count the fields that would still differ with every rule that may be proposed."""
    return sum(
        not is_set_by_controller(cause) or not can_be_ignored_narrowly(observed_object, difference)
        for observed_object in objects
        for difference, cause in observed_object.fields
    )


def list_contested_fields(objects: Iterable[ObservedObject]) -> tuple[str, ...]:
    """Describe fields that a sync would write and another controller would overwrite; a dry run does not show that."""
    texts = {
        f"{observed_object.name} {difference.pointer}: {cause.manager} would write it again": None
        for observed_object in objects
        for difference, cause in observed_object.fields
        if cause.kind is CauseKind.OTHER_CONTROLLER
        and is_set_by_controller(cause)
        and not cause.manager.startswith(USER_TOOL_PREFIXES)
    }
    return tuple(texts)

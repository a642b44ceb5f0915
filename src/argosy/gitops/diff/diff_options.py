"""The options of a comparison.

In: an Application and the settings of the installation. Out: one DiffOptions value per Application. Never: looks at a
manifest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from argosy import annotations as names
from argosy.annotations import FIELD_MANAGER
from argosy.gitops.application import Application, IgnoreDifference
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CRD
from argosy.languages import globs

IgnoreStatus = Literal["all", "crd", "none"]
_STATUS_POINTER: Final = "/status"


class KnownField(NamedTuple):
    """A field of a custom kind with the type of a core one: `spec.template.spec` is a `core/v1/PodSpec`."""

    group: str
    kind: str
    path: tuple[str, ...]
    type: str


DEFAULT_KNOWN_FIELDS: Final = (KnownField("argoproj.io", "Rollout", ("spec", "template", "spec"), "core/v1/PodSpec"),)


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """All inputs of a comparison besides the pair itself."""

    ignore_rules: tuple[IgnoreDifference, ...] = ()  # of the installation and of the Application
    ignore_status: IgnoreStatus = "all"
    ignore_aggregated_roles: bool = False
    server_side: bool = False  # argo: ServerSideDiff=true
    include_mutations: bool = False  # argo: IncludeMutationWebhook=true
    server_side_apply: bool = False  # argo: the Application syncs with ServerSideApply=true
    known_fields: tuple[KnownField, ...] = DEFAULT_KNOWN_FIELDS
    field_manager: str = FIELD_MANAGER
    masked_annotations: frozenset[str] = frozenset()
    cache_salt: str = ""  # identifies other inputs of the manifests, such as the tracking method

    @property
    def all_ignore_rules(self) -> tuple[IgnoreDifference, ...]:
        """argo: also status, and a CRD field that servers drop."""
        added = [IgnoreDifference(*CRD, pointers=("/spec/preserveUnknownFields",))]
        if self.ignore_status == "all":
            added.append(IgnoreDifference("*", "*", pointers=(_STATUS_POINTER,)))
        elif self.ignore_status == "crd":
            added.append(IgnoreDifference(*CRD, pointers=(_STATUS_POINTER,)))
        return (*added, *self.ignore_rules)


def matches_key(rule: IgnoreDifference, key: ResourceKey) -> bool:
    """argo: group and kind are globs, name and namespace are not; empty ones match any."""
    return (
        rule.name in ("", key.name)
        and rule.namespace in ("", key.namespace)
        and globs.matches_glob(rule.kind, key.kind)
        and globs.matches_glob(rule.group, key.group)
    )


@dataclass(frozen=True, slots=True)
class DiffSettings:
    """Diff settings of an installation. Faults are sentences for a condition; the rest applies."""

    ignore_rules: tuple[IgnoreDifference, ...] = ()
    ignore_status: IgnoreStatus = "all"
    ignore_aggregated_roles: bool = False
    ignore_update_rules: tuple[IgnoreDifference, ...] = ()  # argo: ignoreResourceUpdates
    filters_updates: bool = True  # argo: resource.ignoreResourceUpdatesEnabled
    ignore_rules_apply_to_updates: bool = True  # argo: ignoreDifferencesOnResourceUpdates
    known_fields: tuple[KnownField, ...] = DEFAULT_KNOWN_FIELDS
    masked_annotations: frozenset[str] = frozenset()
    server_side: bool = False  # argo: controller.diff.server.side
    faults: tuple[str, ...] = ()


def build_diff_options(app: Application, settings: DiffSettings, cache_salt: str = "") -> DiffOptions:
    options = _split_options(app.annotations.get(names.COMPARE_OPTIONS, ""))
    server_side = settings.server_side
    if "ServerSideDiff=true" in options or "ServerSideDiff=false" in options:
        server_side = "ServerSideDiff=true" in options
    return DiffOptions(
        ignore_rules=(*settings.ignore_rules, *app.ignore_rules),
        ignore_status=settings.ignore_status,
        ignore_aggregated_roles=settings.ignore_aggregated_roles,
        server_side=server_side,
        include_mutations="IncludeMutationWebhook=true" in options,
        server_side_apply="ServerSideApply=true" in app.policy.options,
        known_fields=settings.known_fields,
        masked_annotations=settings.masked_annotations,
        cache_salt=cache_salt,
    )


def _split_options(text: str) -> set[str]:
    return {option.strip() for option in text.split(",")}

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
from argosy.kube.names import ResourceKey
from argosy.languages import globs

IgnoreStatus = Literal["all", "crd", "none"]
_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
_STATUS: Final = "/status"


class KnownField(NamedTuple):
    """A field of a custom kind with the type of a core one: `spec.template.spec` is a `core/v1/PodSpec`."""

    group: str
    kind: str
    path: tuple[str, ...]
    type: str


PRESETS: Final = (KnownField("argoproj.io", "Rollout", ("spec", "template", "spec"), "core/v1/PodSpec"),)


@dataclass(frozen=True, slots=True)
class CompareRules:
    """All inputs of a comparison besides the pair itself."""

    ignored: tuple[IgnoreDifference, ...] = ()  # of the installation and of the Application
    ignore_status: IgnoreStatus = "all"
    ignore_aggregated_roles: bool = False
    server_side: bool = False  # argo: ServerSideDiff=true
    keeps_mutations: bool = False  # argo: IncludeMutationWebhook=true
    structured: bool = False  # argo: the Application syncs with ServerSideApply=true
    known_fields: tuple[KnownField, ...] = PRESETS
    controller: str = FIELD_MANAGER
    masked_annotations: frozenset[str] = frozenset()
    mark: str = ""  # identifies other inputs of the manifests, such as the tracking method

    @property
    def all_ignored(self) -> tuple[IgnoreDifference, ...]:
        """argo: also status, and a CRD field that servers drop."""
        added = [IgnoreDifference(*_DEFINITION, pointers=("/spec/preserveUnknownFields",))]
        if self.ignore_status == "all":
            added.append(IgnoreDifference("*", "*", pointers=(_STATUS,)))
        elif self.ignore_status == "crd":
            added.append(IgnoreDifference(*_DEFINITION, pointers=(_STATUS,)))
        return (*added, *self.ignored)


def concerns(rule: IgnoreDifference, key: ResourceKey) -> bool:
    """argo: group and kind are globs, name and namespace are not; empty ones match any."""
    return (
        rule.name in ("", key.name)
        and rule.namespace in ("", key.namespace)
        and globs.matches(rule.kind, key.kind)
        and globs.matches(rule.group, key.group)
    )


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """Diff settings of an installation. Faults are sentences for a condition; the rest applies."""

    ignored: tuple[IgnoreDifference, ...] = ()
    ignore_status: IgnoreStatus = "all"
    ignore_aggregated_roles: bool = False
    ignored_updates: tuple[IgnoreDifference, ...] = ()  # argo: ignoreResourceUpdates
    filters_updates: bool = True  # argo: resource.ignoreResourceUpdatesEnabled
    ignores_on_updates: bool = True  # argo: ignoreDifferencesOnResourceUpdates
    known_fields: tuple[KnownField, ...] = PRESETS
    masked_annotations: frozenset[str] = frozenset()
    server_side: bool = False  # argo: controller.diff.server.side
    faults: tuple[str, ...] = ()


def rules_for(app: Application, settings: CompareSettings, mark: str = "") -> CompareRules:
    options = _words(app.annotations.get(names.COMPARE_OPTIONS, ""))
    asked = settings.server_side
    if "ServerSideDiff=true" in options or "ServerSideDiff=false" in options:
        asked = "ServerSideDiff=true" in options
    return CompareRules(
        ignored=(*settings.ignored, *app.ignored),
        ignore_status=settings.ignore_status,
        ignore_aggregated_roles=settings.ignore_aggregated_roles,
        server_side=asked,
        keeps_mutations="IncludeMutationWebhook=true" in options,
        structured="ServerSideApply=true" in app.policy.options,
        known_fields=settings.known_fields,
        masked_annotations=settings.masked_annotations,
        mark=mark,
    )


def _words(text: str) -> set[str]:
    return {word.strip() for word in text.split(",")}

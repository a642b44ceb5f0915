"""Sync options of Applications, requests and manifests.

In: options as written. Out: values. Never: raises.

argo: a manifest's own option overrides the Application's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from argosy.annotations import HELM_RESOURCE_POLICY
from argosy.gitops.application.hooks import annotation_text, sync_options
from argosy.kube.objects import Manifest, key_of

CONFIRM: Final = "confirm"
_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """`Name=value` pairs; the last pair of a name wins."""

    given: tuple[str, ...] = ()

    @classmethod
    def of(cls, *groups: Iterable[str]) -> SyncOptions:
        return cls(tuple(option.strip() for group in groups for option in group))

    def value(self, name: str) -> str:
        return next((option.partition("=")[2] for option in reversed(self.given) if _name(option) == name), "")

    def is_on(self, name: str) -> bool:
        return self.value(name) == "true"

    def is_off(self, name: str) -> bool:
        return self.value(name) == "false"

    def with_own(self, *manifests: Manifest | None) -> SyncOptions:
        """Add the options of the manifests' own annotations."""
        own = tuple(option for manifest in manifests if manifest for option in sync_options(manifest))
        return SyncOptions(self.given + own) if own else self


def outlives(manifest: Manifest, options: SyncOptions) -> str:
    """argo: return why the object stays when its Application is deleted; empty if it is deleted too."""
    if key_of(manifest).group_kind == _DEFINITION:
        return "CRDs are not deleted with an Application"
    if options.with_own(manifest).is_off("Delete"):
        return "Delete=false"
    return f"{HELM_RESOURCE_POLICY}: keep" if annotation_text(manifest, HELM_RESOURCE_POLICY) == "keep" else ""


def _name(option: str) -> str:
    return option.partition("=")[0]

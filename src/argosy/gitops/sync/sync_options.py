"""Sync options of Applications, requests and manifests.

In: options as written. Out: values. Never: raises.

argo: a manifest's own option overrides the Application's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from argosy.annotations import HELM_RESOURCE_POLICY
from argosy.gitops.application.sync_annotations import get_annotation, list_sync_options
from argosy.kube.objects import Manifest, key_of
from argosy.kube.well_known_kinds import CRD

CONFIRM_VALUE: Final = "confirm"


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """`Name=value` pairs; the last pair of a name wins."""

    options: tuple[str, ...] = ()

    @classmethod
    def from_lists(cls, *groups: Iterable[str]) -> SyncOptions:
        return cls(tuple(option.strip() for group in groups for option in group))

    def get(self, name: str) -> str:
        return next((option.partition("=")[2] for option in reversed(self.options) if _option_name(option) == name), "")

    def is_on(self, name: str) -> bool:
        return self.get(name) == "true"

    def is_off(self, name: str) -> bool:
        return self.get(name) == "false"

    def with_manifest_options(self, *manifests: Manifest | None) -> SyncOptions:
        """Add the options of the manifests' own annotations."""
        manifest_options = tuple(option for manifest in manifests if manifest for option in list_sync_options(manifest))
        return SyncOptions(self.options + manifest_options) if manifest_options else self


def find_keep_reason(manifest: Manifest, options: SyncOptions) -> str:
    """argo: return why the object stays when its Application is deleted; empty if it is deleted too."""
    if key_of(manifest).group_kind == CRD:
        return "CRDs are not deleted with an Application"
    if options.with_manifest_options(manifest).is_off("Delete"):
        return "Delete=false"
    return f"{HELM_RESOURCE_POLICY}: keep" if get_annotation(manifest, HELM_RESOURCE_POLICY) == "keep" else ""


def _option_name(option: str) -> str:
    return option.partition("=")[0]

"""An Application as values: who it is, where its manifests come from, how it wants to be synced, and how that stands.

In: a manifest in Argo CD's words. Out: frozen values in ours, or a ManifestError that names the field.
Never: decides anything; fields that it does not know are left alone, as the API server leaves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from argosy.model.application.operations import (
    OperationRequest,
    OperationState,
    Outcome,
    Phase,
    Progress,
    Result,
    SyncRequest,
    request_of,
    state_of,
)
from argosy.model.application.policies import (
    Automated,
    IgnoreDifference,
    NamespaceMetadata,
    Retry,
    SyncPolicy,
    ignore_difference_of,
    policy_of,
)
from argosy.model.application.sources import (
    DirectoryOptions,
    FileParameter,
    HelmOptions,
    JsonnetOptions,
    KustomizeOptions,
    Parameter,
    PluginOptions,
    Source,
    Variable,
    read_source,
    source_of,
)
from argosy.model.fields import Fields
from argosy.model.names import ResourceKey

__all__ = [
    "APPLICATION",
    "Application",
    "Automated",
    "Destination",
    "DirectoryOptions",
    "FileParameter",
    "HelmOptions",
    "IgnoreDifference",
    "JsonnetOptions",
    "KustomizeOptions",
    "NamespaceMetadata",
    "OperationRequest",
    "OperationState",
    "Outcome",
    "Parameter",
    "Phase",
    "PluginOptions",
    "Progress",
    "Result",
    "Retry",
    "Source",
    "SyncPolicy",
    "SyncRequest",
    "Variable",
    "read_application",
    "read_source",
]

APPLICATION = ("argoproj.io", "Application")
HISTORY_LIMIT = 10  # argo: where revisionHistoryLimit is not given


class Destination(NamedTuple):
    server: str = ""
    name: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Application:
    """What is to be where, and how far that is."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    project: str = "default"
    destination: Destination = field(default_factory=Destination)
    sources: tuple[Source, ...] = ()
    has_many_sources: bool = False  # argo: written as `sources`, though there may be only one
    annotations: Mapping[str, str] = field(default_factory=dict)
    policy: SyncPolicy = field(default_factory=SyncPolicy)
    ignored: tuple[IgnoreDifference, ...] = ()
    history_limit: int = HISTORY_LIMIT
    operation: OperationRequest | None = None
    state: OperationState | None = None  # argo: status.operationState
    status: Mapping[str, Any] = field(default_factory=dict)  # as it was last written
    finalizers: tuple[str, ...] = ()
    deleted: str = ""  # argo: deletionTimestamp
    wire: Mapping[str, Any] = field(default_factory=dict)  # the manifest itself

    @property
    def key(self) -> ResourceKey:
        return ResourceKey(*APPLICATION, self.namespace, self.name)


def read_application(manifest: Mapping[str, Any], where: str = "") -> Application:
    fields = Fields(manifest, where)
    metadata, spec, status = fields.fields("metadata"), fields.fields("spec"), fields.fields("status")
    destination = spec.fields("destination")
    single, many = spec.optional("source"), spec.all_fields("sources")
    operation, state = fields.optional("operation"), status.optional("operationState")
    limit = spec.values.get("revisionHistoryLimit")
    return Application(
        name=metadata.text("name"),
        namespace=metadata.text("namespace"),
        uid=metadata.text("uid"),
        project=spec.text("project") or "default",
        destination=Destination(*(destination.text(each) for each in Destination._fields)),
        sources=tuple(map(source_of, many or ([single] if single else []))),  # argo: sources win
        has_many_sources=bool(many),
        annotations=metadata.texts("annotations"),
        policy=policy_of(spec.fields("syncPolicy")),
        ignored=tuple(map(ignore_difference_of, spec.all_fields("ignoreDifferences"))),
        history_limit=HISTORY_LIMIT if limit is None else spec.count("revisionHistoryLimit"),
        operation=request_of(operation) if operation else None,
        state=state_of(state) if state else None,
        status=status.values,
        finalizers=metadata.all_texts("finalizers"),
        deleted=metadata.text("deletionTimestamp"),
        wire=manifest,
    )

"""An Application as values: metadata, sources, destination, sync policy, and operation state.

In: a manifest in Argo CD's format. Out: frozen values, or a ManifestError that names the field. Never: decides
anything; unknown fields are ignored, as the API server does.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from argosy.annotations import TRACKING_ID
from argosy.gitops.application.canonical_cluster_address import NO_CLUSTER, ClusterAddress, parse_cluster_address
from argosy.gitops.application.sources import Source, read_source, read_source_fields
from argosy.kube.objects.json_equality import is_equal_json
from argosy.kube.objects.strict_typed_field_reader import FieldReader
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

if TYPE_CHECKING:
    from argosy.gitops.application.operations import (
        OperationPhase,
        OperationRequest,
        OperationState,
        ResourceResult,
        ResultCode,
        SyncPhase,
        SyncRequest,
    )
    from argosy.gitops.application.source_options import (
        DirectoryOptions,
        HelmFileParameter,
        HelmOptions,
        HelmParameter,
        JsonnetOptions,
        KustomizeOptions,
        PluginOptions,
        ToolVariable,
    )
    from argosy.gitops.application.sync_policy import (
        AutomatedSync,
        IgnoreDifference,
        NamespaceMetadata,
        RetryStrategy,
        SyncPolicy,
    )

__all__ = [
    "Application",
    "AutomatedSync",
    "Destination",
    "DirectoryOptions",
    "HelmFileParameter",
    "HelmOptions",
    "HelmParameter",
    "IgnoreDifference",
    "JsonnetOptions",
    "KustomizeOptions",
    "NamespaceMetadata",
    "OperationPhase",
    "OperationRequest",
    "OperationState",
    "PluginOptions",
    "ResourceResult",
    "ResultCode",
    "RetryStrategy",
    "Source",
    "SyncPhase",
    "SyncPolicy",
    "SyncRequest",
    "ToolVariable",
    "read_application",
    "read_destination",
    "read_source",
]

# Imported on first use: a command that renders one source needs none of them, and each import takes time.
_LAZY_MODULES: Final = {
    **dict.fromkeys(
        (
            "OperationRequest",
            "OperationState",
            "ResultCode",
            "SyncPhase",
            "OperationPhase",
            "ResourceResult",
            "SyncRequest",
        ),
        "operations",
    ),
    **dict.fromkeys(
        ("AutomatedSync", "IgnoreDifference", "NamespaceMetadata", "RetryStrategy", "SyncPolicy"), "sync_policy"
    ),
    **dict.fromkeys(
        (
            "DirectoryOptions",
            "HelmFileParameter",
            "HelmOptions",
            "JsonnetOptions",
            "KustomizeOptions",
            "HelmParameter",
            "PluginOptions",
            "ToolVariable",
        ),
        "source_options",
    ),
}
DEFAULT_HISTORY_LIMIT = 10  # argo: default of revisionHistoryLimit


# argo: the cluster of the controller, by address and by name
IN_CLUSTER: Final = (parse_cluster_address("https://kubernetes.default.svc"), "in-cluster")


class Destination(NamedTuple):
    server: ClusterAddress = NO_CLUSTER
    name: str = ""
    namespace: str = ""

    @property
    def with_in_cluster_alias(self) -> Destination:
        """Return address and name of the in-cluster destination, because a rule may use either."""
        if (self.server or self.name) in IN_CLUSTER and not (self.server and self.name):
            return Destination(*IN_CLUSTER, self.namespace)
        return self

    @property
    def is_in_cluster(self) -> bool:
        """True if it is the cluster that holds the Application."""
        return (self.with_in_cluster_alias.server or self.with_in_cluster_alias.name) in (*IN_CLUSTER, "")


def read_destination(server: str = "", name: str = "", namespace: str = "") -> Destination:
    return Destination(parse_cluster_address(server), name, namespace)


def _default_policy() -> SyncPolicy:
    from argosy.gitops.application.sync_policy import SyncPolicy

    return SyncPolicy()


@dataclass(frozen=True, slots=True)
class Application:
    """An Application: its spec, status and operation."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    project: str = "default"
    destination: Destination = field(default_factory=Destination)
    sources: tuple[Source, ...] = ()
    has_many_sources: bool = False  # argo: written as `sources`, even if there is only one
    annotations: Mapping[str, str] = field(default_factory=dict)
    policy: SyncPolicy = field(default_factory=_default_policy)
    ignore_rules: tuple[IgnoreDifference, ...] = ()
    history_limit: int = DEFAULT_HISTORY_LIMIT
    operation: OperationRequest | None = None
    state: OperationState | None = None  # argo: status.operationState
    status: Mapping[str, Any] = field(default_factory=dict)  # as it was last written
    finalizers: tuple[str, ...] = ()
    deletion_timestamp: str = ""  # argo: deletionTimestamp
    wire: Mapping[str, Any] = field(default_factory=dict)  # the manifest itself

    @property
    def key(self) -> ResourceKey:
        return ResourceKey(*APPLICATION, self.namespace, self.name)

    @property
    def qualified_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def parent(self) -> str:
        """The Application that manages this one, by its tracking ID; empty if there is none.

        argo: `NAME:GROUP/KIND:NAMESPACE/NAME`, with `NAMESPACE_` before it outside the control namespace.
        """
        name, _, remainder = self.annotations.get(TRACKING_ID, "").partition(":")
        parent_name = name.rpartition("_")[2]
        return parent_name if remainder and parent_name != self.name else ""


def read_application(manifest: Mapping[str, Any], where: str = "", last: Application | None = None) -> Application:
    """Parse an Application. Parts that are unchanged since `last` are reused, and stay identical objects."""
    from argosy.gitops.application.operations import read_request, read_state

    fields = FieldReader(manifest, where)
    metadata, spec, status = fields.read_map("metadata"), fields.read_map("spec"), fields.read_map("status")
    operation, state = fields.find_map("operation"), status.find_map("operationState")
    spec_values = last if last is not None and is_equal_json(last.wire.get("spec"), spec.values) else _read_spec(spec)
    known_state = (
        last.state
        if last is not None and state and is_equal_json(last.status.get("operationState"), state.values)
        else None
    )
    return Application(
        name=metadata.read_text("name"),
        namespace=metadata.read_text("namespace"),
        uid=metadata.read_text("uid"),
        project=spec_values.project,
        destination=spec_values.destination,
        sources=spec_values.sources,
        has_many_sources=spec_values.has_many_sources,
        annotations=metadata.read_text_map("annotations"),
        policy=spec_values.policy,
        ignore_rules=spec_values.ignore_rules,
        history_limit=spec_values.history_limit,
        operation=read_request(operation) if operation else None,
        state=known_state or (read_state(state) if state else None),
        status=status.values,
        finalizers=metadata.read_text_list("finalizers"),
        deletion_timestamp=metadata.read_text("deletionTimestamp"),
        wire=manifest,
    )


def _read_spec(spec: FieldReader) -> Application:
    """Return an Application with only the fields of its spec."""
    from argosy.gitops.application.sync_policy import read_ignore_difference, read_policy

    destination = spec.read_map("destination")
    single, many = spec.find_map("source"), spec.read_map_list("sources")
    limit = spec.values.get("revisionHistoryLimit")
    return Application(
        project=spec.read_text("project") or "default",
        destination=read_destination(*(destination.read_text(field_name) for field_name in Destination._fields)),
        sources=tuple(map(read_source_fields, many or ([single] if single else []))),  # argo: sources win
        has_many_sources=bool(many),
        policy=read_policy(spec.read_map("syncPolicy")),
        ignore_rules=tuple(map(read_ignore_difference, spec.read_map_list("ignoreDifferences"))),
        history_limit=DEFAULT_HISTORY_LIMIT if limit is None else spec.read_int("revisionHistoryLimit"),
    )


def __getattr__(name: str) -> Any:
    if home := _LAZY_MODULES.get(name):
        value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

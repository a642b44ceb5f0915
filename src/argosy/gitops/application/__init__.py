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
from argosy.gitops.application.cluster_address import NO_CLUSTER, ClusterAddress, parse_cluster_address
from argosy.gitops.application.sources import Source, read_source, source_of
from argosy.kube.names import ResourceKey
from argosy.kube.objects.field_reader import Fields

if TYPE_CHECKING:
    from argosy.gitops.application.operations import (
        OperationRequest,
        OperationState,
        Outcome,
        Phase,
        Progress,
        Result,
        SyncRequest,
    )
    from argosy.gitops.application.source_options import (
        DirectoryOptions,
        FileParameter,
        HelmOptions,
        JsonnetOptions,
        KustomizeOptions,
        Parameter,
        PluginOptions,
        Variable,
    )
    from argosy.gitops.application.sync_policy import (
        Automated,
        IgnoreDifference,
        NamespaceMetadata,
        Retry,
        SyncPolicy,
    )

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
    "read_destination",
    "read_source",
]

# Imported on first use: a command that renders one source needs none of them, and each import takes time.
_HOMES: Final = {
    **dict.fromkeys(
        ("OperationRequest", "OperationState", "Outcome", "Phase", "Progress", "Result", "SyncRequest"), "operations"
    ),
    **dict.fromkeys(("Automated", "IgnoreDifference", "NamespaceMetadata", "Retry", "SyncPolicy"), "sync_policy"),
    **dict.fromkeys(
        ("DirectoryOptions", "FileParameter", "HelmOptions", "JsonnetOptions", "KustomizeOptions", "Parameter",
         "PluginOptions", "Variable"),
        "source_options",
    ),
}  # fmt: skip
APPLICATION = ("argoproj.io", "Application")
HISTORY_LIMIT = 10  # argo: default of revisionHistoryLimit


# argo: the cluster of the controller, by address and by name
IN_CLUSTER: Final = (parse_cluster_address("https://kubernetes.default.svc"), "in-cluster")


class Destination(NamedTuple):
    server: ClusterAddress = NO_CLUSTER
    name: str = ""
    namespace: str = ""

    @property
    def known(self) -> Destination:
        """Return address and name of the in-cluster destination, because a rule may use either."""
        if (self.server or self.name) in IN_CLUSTER and not (self.server and self.name):
            return Destination(*IN_CLUSTER, self.namespace)
        return self

    @property
    def is_here(self) -> bool:
        """True if it is the cluster that holds the Application."""
        return (self.known.server or self.known.name) in (*IN_CLUSTER, "")


def read_destination(server: str = "", name: str = "", namespace: str = "") -> Destination:
    return Destination(parse_cluster_address(server), name, namespace)


def _no_policy() -> SyncPolicy:
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
    policy: SyncPolicy = field(default_factory=_no_policy)
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

    @property
    def parent(self) -> str:
        """The Application that manages this one, by its tracking ID; empty if there is none.

        argo: `NAME:GROUP/KIND:NAMESPACE/NAME`, with `NAMESPACE_` before it outside the control namespace.
        """
        name, _, rest = self.annotations.get(TRACKING_ID, "").partition(":")
        own = name.rpartition("_")[2]
        return own if rest and own != self.name else ""


def read_application(manifest: Mapping[str, Any], where: str = "", last: Application | None = None) -> Application:
    """Parse an Application. Parts that are unchanged since `last` are reused, and stay identical objects."""
    from argosy.gitops.application.operations import request_of, state_of

    fields = Fields(manifest, where)
    metadata, spec, status = fields.fields("metadata"), fields.fields("spec"), fields.fields("status")
    operation, state = fields.optional("operation"), status.optional("operationState")
    asked = last if last is not None and last.wire.get("spec") == spec.values else _asked_for(spec)
    known = last.state if last is not None and state and last.status.get("operationState") == state.values else None
    return Application(
        name=metadata.text("name"),
        namespace=metadata.text("namespace"),
        uid=metadata.text("uid"),
        project=asked.project,
        destination=asked.destination,
        sources=asked.sources,
        has_many_sources=asked.has_many_sources,
        annotations=metadata.texts("annotations"),
        policy=asked.policy,
        ignored=asked.ignored,
        history_limit=asked.history_limit,
        operation=request_of(operation) if operation else None,
        state=known or (state_of(state) if state else None),
        status=status.values,
        finalizers=metadata.all_texts("finalizers"),
        deleted=metadata.text("deletionTimestamp"),
        wire=manifest,
    )


def _asked_for(spec: Fields) -> Application:
    """Return an Application with only the fields of its spec."""
    from argosy.gitops.application.sync_policy import ignore_difference_of, policy_of

    destination = spec.fields("destination")
    single, many = spec.optional("source"), spec.all_fields("sources")
    limit = spec.values.get("revisionHistoryLimit")
    return Application(
        project=spec.text("project") or "default",
        destination=read_destination(*(destination.text(each) for each in Destination._fields)),
        sources=tuple(map(source_of, many or ([single] if single else []))),  # argo: sources win
        has_many_sources=bool(many),
        policy=policy_of(spec.fields("syncPolicy")),
        ignored=tuple(map(ignore_difference_of, spec.all_fields("ignoreDifferences"))),
        history_limit=HISTORY_LIMIT if limit is None else spec.count("revisionHistoryLimit"),
    )


def __getattr__(name: str) -> Any:
    if home := _HOMES.get(name):
        value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

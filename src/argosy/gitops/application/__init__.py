"""An Application as values: who it is, where its manifests come from, how it wants to be synced, and how that stands.

In: a manifest in Argo CD's words. Out: frozen values in ours, or a ManifestError that names the field.
Never: decides anything; fields that it does not know are left alone, as the API server leaves them.
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

# Imported on first use: a command that renders one source needs none of them, and each takes time to make.
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
HISTORY_LIMIT = 10  # argo: where revisionHistoryLimit is not given


# argo: where the engine itself lives, by address and by name
IN_CLUSTER: Final = (parse_cluster_address("https://kubernetes.default.svc"), "in-cluster")


class Destination(NamedTuple):
    server: ClusterAddress = NO_CLUSTER
    name: str = ""
    namespace: str = ""

    @property
    def known(self) -> Destination:
        """By address and by name, where one tells the other: a rule may be about either."""
        if (self.server or self.name) in IN_CLUSTER and not (self.server and self.name):
            return Destination(*IN_CLUSTER, self.namespace)
        return self

    @property
    def is_here(self) -> bool:
        """Whether it is the cluster that the Application itself lives in."""
        return (self.known.server or self.known.name) in (*IN_CLUSTER, "")


def read_destination(server: str = "", name: str = "", namespace: str = "") -> Destination:
    return Destination(parse_cluster_address(server), name, namespace)


def _no_policy() -> SyncPolicy:
    from argosy.gitops.application.sync_policy import SyncPolicy

    return SyncPolicy()


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
        """The Application that made it, by the mark that it left; empty where there is none.

        argo: `NAME:GROUP/KIND:NAMESPACE/NAME`, with the namespace and `_` before it where that is not the usual one.
        """
        name, _, rest = self.annotations.get(TRACKING_ID, "").partition(":")
        own = name.rpartition("_")[2]
        return own if rest and own != self.name else ""


def read_application(
    manifest: Mapping[str, Any], where: str = "", last: Application | None = None
) -> Application:
    """What is written as it was in the `last` version is not read again, and is the very same value."""
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
    """Of which only what a spec says is known."""
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

"""Sync operations as requested and as recorded in the Application.

In: `operation` and `status.operationState` in Argo CD's format. Out: frozen values. Never: advances an operation.
"""

from __future__ import annotations

import enum
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.gitops.application.sources import Source, read_source_fields
from argosy.gitops.application.sync_policy import RetryStrategy, read_retry
from argosy.kube.objects.strict_typed_field_reader import FieldReader
from argosy.kube.resource_key import ResourceKey


class OperationPhase(enum.StrEnum):
    """The phase of an operation, or of one of its tasks. argo: OperationPhase."""

    RUNNING = "Running"
    TERMINATING = "Terminating"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ERROR = "Error"

    @property
    def is_over(self) -> bool:
        return self in (OperationPhase.SUCCEEDED, OperationPhase.FAILED, OperationPhase.ERROR)


class SyncPhase(enum.StrEnum):
    """The phase of a sync that a task runs in. argo: SyncPhase."""

    PRE_SYNC = "PreSync"
    SYNC = "Sync"
    POST_SYNC = "PostSync"
    SYNC_FAIL = "SyncFail"
    PRE_DELETE = "PreDelete"
    POST_DELETE = "PostDelete"


class ResultCode(enum.StrEnum):
    """argo: ResultCode, the status of a resource in syncResult."""

    SYNCED = "Synced"
    SYNC_FAILED = "SyncFailed"
    PRUNED = "Pruned"
    PRUNE_SKIPPED = "PruneSkipped"


@dataclass(frozen=True, slots=True)
class ResourceResult:
    """The result of one task so far."""

    key: ResourceKey
    version: str = ""
    phase: SyncPhase = SyncPhase.SYNC
    result_code: ResultCode | None = None  # None for a hook that was not applied
    hook_phase: OperationPhase | None = None  # argo: hookPhase, which is also written for resources that are not hooks
    message: str = ""
    hook: str = ""  # argo: hookType; empty if it is not a hook
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """argo: operation.sync"""

    revision: str = ""
    revisions: tuple[str, ...] = ()
    prune: bool = False
    dry_run: bool = False
    runs_hooks: bool = True  # strategy `hook`; `apply` runs none
    force: bool = False
    resources: tuple[ResourceKey, ...] = ()  # only these; an empty namespace matches any
    options: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()  # instead of the Application's own, for a rollback
    heal_attempts: int = 0  # argo: autoHealAttemptsCount


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """argo: operation"""

    sync: SyncRequest = field(default_factory=SyncRequest)
    username: str = ""  # argo: initiatedBy.username
    is_automated: bool = False
    retry: RetryStrategy = field(default_factory=RetryStrategy)
    wire: Mapping[str, Any] = field(default_factory=dict)  # as it was written


@dataclass(frozen=True, slots=True)
class OperationState:
    """argo: status.operationState"""

    request: OperationRequest
    phase: OperationPhase = OperationPhase.RUNNING
    message: str = ""
    started: str = ""  # RFC 3339
    finished: str = ""
    retries: int = 0
    has_result: bool = False  # argo: True if there is a syncResult
    revision: str = ""
    revisions: tuple[str, ...] = ()
    sources: tuple[Mapping[str, Any], ...] = ()  # as they were synced, in Argo CD's format
    namespace_metadata: Mapping[str, Any] | None = None
    results: tuple[ResourceResult, ...] = ()

    def list_results(self, resources: Container[ResourceKey]) -> Iterator[tuple[ResourceKey, ResourceResult]]:
        """Return each result with the key that its object has in these resources.

        argo: the result of a cluster-scoped object has the namespace of the destination; the resource has none.
        """
        for result in self.results:
            cluster_scoped_key = result.key._replace(namespace="")
            is_cluster_scoped = result.key not in resources and cluster_scoped_key in resources
            yield (cluster_scoped_key if is_cluster_scoped else result.key), result


def read_request(fields: FieldReader) -> OperationRequest:
    initiated_by, retry = fields.read_map("initiatedBy"), fields.find_map("retry")
    return OperationRequest(
        sync=_read_sync(fields.read_map("sync")),
        username=initiated_by.read_text("username"),
        is_automated=initiated_by.read_bool("automated"),
        retry=read_retry(retry) if retry else RetryStrategy(),
        wire=fields.values,
    )


def _read_sync(fields: FieldReader) -> SyncRequest:
    strategy = fields.read_map("syncStrategy")
    by_apply, by_hook = strategy.find_map("apply"), strategy.find_map("hook")
    single = fields.find_map("source")
    return SyncRequest(
        revision=fields.read_text("revision"),
        revisions=fields.read_text_list("revisions"),
        prune=fields.read_bool("prune"),
        dry_run=fields.read_bool("dryRun"),
        runs_hooks=by_apply is None or by_hook is not None,
        force=any(entry.read_bool("force") for entry in (by_apply, by_hook) if entry),
        resources=tuple(
            ResourceKey(*(entry.read_text(part) for part in ("group", "kind", "namespace", "name")))
            for entry in fields.read_map_list("resources")
        ),
        options=fields.read_text_list("syncOptions"),
        manifests=fields.read_text_list("manifests"),
        sources=tuple(map(read_source_fields, fields.read_map_list("sources") or ([single] if single else []))),
        heal_attempts=fields.read_int("autoHealAttemptsCount"),
    )


def read_state(fields: FieldReader) -> OperationState:
    result = fields.find_map("syncResult")
    sync_result = result or fields.read_map("syncResult")
    single = sync_result.find_map("source")
    return OperationState(
        request=read_request(fields.read_map("operation")),
        phase=fields.read_enum("phase", OperationPhase) or OperationPhase.RUNNING,
        message=fields.read_text("message"),
        started=fields.read_text("startedAt"),
        finished=fields.read_text("finishedAt"),
        retries=fields.read_int("retryCount"),
        has_result=result is not None,
        revision=sync_result.read_text("revision"),
        revisions=sync_result.read_text_list("revisions"),
        sources=tuple(entry.values for entry in sync_result.read_map_list("sources") or ([single] if single else [])),
        namespace_metadata=entry.values if (entry := sync_result.find_map("managedNamespaceMetadata")) else None,
        results=tuple(map(_read_result, sync_result.read_map_list("resources"))),
    )


def _read_result(fields: FieldReader) -> ResourceResult:
    return ResourceResult(
        key=ResourceKey(*(fields.read_text(part) for part in ("group", "kind", "namespace", "name"))),
        version=fields.read_text("version"),
        phase=fields.read_enum("syncPhase", SyncPhase) or SyncPhase.SYNC,
        result_code=fields.read_enum("status", ResultCode),
        hook_phase=fields.read_enum("hookPhase", OperationPhase),
        message=fields.read_text("message"),
        hook=fields.read_text("hookType"),
        images=fields.read_text_list("images"),
    )

"""Sync operations as requested and as recorded in the Application.

In: `operation` and `status.operationState` in Argo CD's format. Out: frozen values. Never: advances an operation.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.gitops.application.sources import Source, source_of
from argosy.gitops.application.sync_policy import Retry, retry_of
from argosy.kube.names import ResourceKey
from argosy.kube.objects.field_reader import Fields


class Progress(enum.StrEnum):
    """The phase of an operation, or of one of its tasks. argo: OperationPhase."""

    RUNNING = "Running"
    TERMINATING = "Terminating"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ERROR = "Error"

    @property
    def is_over(self) -> bool:
        return self in (Progress.SUCCEEDED, Progress.FAILED, Progress.ERROR)


class Phase(enum.StrEnum):
    """The phase of a sync that a task runs in. argo: SyncPhase."""

    PRE_SYNC = "PreSync"
    SYNC = "Sync"
    POST_SYNC = "PostSync"
    SYNC_FAIL = "SyncFail"
    PRE_DELETE = "PreDelete"
    POST_DELETE = "PostDelete"


class Outcome(enum.StrEnum):
    """argo: ResultCode, the status of a resource in syncResult."""

    SYNCED = "Synced"
    SYNC_FAILED = "SyncFailed"
    PRUNED = "Pruned"
    PRUNE_SKIPPED = "PruneSkipped"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one task so far."""

    key: ResourceKey
    version: str = ""
    phase: Phase = Phase.SYNC
    outcome: Outcome | None = None  # None for a hook that was not applied
    progress: Progress | None = None  # argo: hookPhase, which is also written for resources that are not hooks
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
    heals: int = 0  # argo: autoHealAttemptsCount


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """argo: operation"""

    sync: SyncRequest = field(default_factory=SyncRequest)
    by: str = ""  # argo: initiatedBy.username
    is_automated: bool = False
    retry: Retry = field(default_factory=Retry)
    wire: Mapping[str, Any] = field(default_factory=dict)  # as it was written


@dataclass(frozen=True, slots=True)
class OperationState:
    """argo: status.operationState"""

    request: OperationRequest
    progress: Progress = Progress.RUNNING
    message: str = ""
    started: str = ""  # RFC 3339
    finished: str = ""
    retries: int = 0
    has_result: bool = False  # argo: True if there is a syncResult
    revision: str = ""
    revisions: tuple[str, ...] = ()
    sources: tuple[Mapping[str, Any], ...] = ()  # as they were synced, in Argo CD's format
    namespace_metadata: Mapping[str, Any] | None = None
    results: tuple[Result, ...] = ()


def request_of(given: Fields) -> OperationRequest:
    by, retry = given.fields("initiatedBy"), given.optional("retry")
    return OperationRequest(
        sync=_sync_of(given.fields("sync")),
        by=by.text("username"),
        is_automated=by.flag("automated"),
        retry=retry_of(retry) if retry else Retry(),
        wire=given.values,
    )


def _sync_of(given: Fields) -> SyncRequest:
    strategy = given.fields("syncStrategy")
    by_apply, by_hook = strategy.optional("apply"), strategy.optional("hook")
    single = given.optional("source")
    return SyncRequest(
        revision=given.text("revision"),
        revisions=given.all_texts("revisions"),
        prune=given.flag("prune"),
        dry_run=given.flag("dryRun"),
        runs_hooks=by_apply is None or by_hook is not None,
        force=any(each.flag("force") for each in (by_apply, by_hook) if each),
        resources=tuple(
            ResourceKey(*(each.text(part) for part in ("group", "kind", "namespace", "name")))
            for each in given.all_fields("resources")
        ),
        options=given.all_texts("syncOptions"),
        manifests=given.all_texts("manifests"),
        sources=tuple(map(source_of, given.all_fields("sources") or ([single] if single else []))),
        heals=given.count("autoHealAttemptsCount"),
    )


def state_of(given: Fields) -> OperationState:
    result = given.optional("syncResult")
    found = result or given.fields("syncResult")
    single = found.optional("source")
    return OperationState(
        request=request_of(given.fields("operation")),
        progress=given.word("phase", Progress) or Progress.RUNNING,
        message=given.text("message"),
        started=given.text("startedAt"),
        finished=given.text("finishedAt"),
        retries=given.count("retryCount"),
        has_result=result is not None,
        revision=found.text("revision"),
        revisions=found.all_texts("revisions"),
        sources=tuple(each.values for each in found.all_fields("sources") or ([single] if single else [])),
        namespace_metadata=each.values if (each := found.optional("managedNamespaceMetadata")) else None,
        results=tuple(map(_result_of, found.all_fields("resources"))),
    )


def _result_of(given: Fields) -> Result:
    return Result(
        key=ResourceKey(*(given.text(part) for part in ("group", "kind", "namespace", "name"))),
        version=given.text("version"),
        phase=given.word("syncPhase", Phase) or Phase.SYNC,
        outcome=given.word("status", Outcome),
        progress=given.word("hookPhase", Progress),
        message=given.text("message"),
        hook=given.text("hookType"),
        images=given.all_texts("images"),
    )

"""Writes operations and their state into an Application; the inverse of `gitops.application.operations`.

In: OperationRequest, OperationState. Out: JSON data. Never: rewrites unchanged parts in another spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from argosy.errors import ManifestError
from argosy.gitops.application import OperationRequest, OperationState, Result, Retry, SyncRequest
from argosy.gitops.application.operations import request_of
from argosy.gitops.status.wire_format import given, key_wire, sources_wire, synced_wire
from argosy.kube.names import ResourceKey
from argosy.kube.objects.field_reader import Fields

_OURS: Final = ("sync", "initiatedBy", "retry")


def request_wire(request: OperationRequest) -> dict[str, Any]:
    """Unchanged parts keep their spelling: `90s` does not become `1m30s`, and `info` stays."""
    wire, known = request.wire, _read(request.wire)
    keeps_sync = known is not None and known.sync == request.sync and wire.get("sync") is not None
    keeps_retry = known is not None and known.retry == request.retry and wire.get("retry") is not None
    return {
        **{name: value for name, value in wire.items() if name not in _OURS},
        "sync": wire["sync"] if keeps_sync else _sync_wire(request.sync),
        # argo: these two are written even if empty
        "initiatedBy": given(username=request.by, automated=request.is_automated),
        "retry": wire["retry"] if keeps_retry else _retry_wire(request.retry),
    }


def _read(wire: Mapping[str, Any]) -> OperationRequest | None:
    try:
        return request_of(Fields(wire, ""))
    except ManifestError:
        return None


def _sync_wire(sync: SyncRequest) -> dict[str, Any]:
    strategy = {"force": True} if sync.force else {}
    has_strategy = sync.force or not sync.runs_hooks
    many = bool(sync.revisions) or len(sync.sources) > 1
    return {
        **given(
            revision=sync.revision,
            revisions=list(sync.revisions),
            prune=sync.prune,
            dryRun=sync.dry_run,
            syncStrategy={"hook" if sync.runs_hooks else "apply": strategy} if has_strategy else None,
            resources=[_chosen(key) for key in sync.resources],
            syncOptions=list(sync.options),
            manifests=list(sync.manifests),
            autoHealAttemptsCount=sync.heals,
        ),
        **(sources_wire([source.wire for source in sync.sources], are_many=many) if sync.sources else {}),
    }


def _chosen(key: ResourceKey) -> dict[str, str]:
    return {**given(group=key.group), "kind": key.kind, "name": key.name, **given(namespace=key.namespace)}


def _retry_wire(retry: Retry) -> dict[str, Any]:
    usual = Retry()
    backoff: dict[str, Any] = {}
    if retry.duration != usual.duration:
        backoff["duration"] = duration_text(retry.duration)
    if retry.factor != usual.factor:
        backoff["factor"] = retry.factor
    if retry.longest != usual.longest:
        backoff["maxDuration"] = duration_text(retry.longest)
    return given(limit=retry.limit, refresh=retry.refresh, backoff=backoff)


def duration_text(seconds: float) -> str:
    """Format a duration for Go: `1h30m`, `5s`, `0.25s`."""
    if seconds != int(seconds):
        return f"{Decimal(repr(seconds)):f}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{count}{unit}" for count, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if count]
    return "".join(parts) or "0s"


def state_wire(state: OperationState) -> dict[str, Any]:
    return {
        "operation": request_wire(state.request),
        "phase": state.progress.value,
        **given(message=state.message, startedAt=state.started, finishedAt=state.finished, retryCount=state.retries),
        **({"syncResult": _sync_result(state)} if state.has_result else {}),
    }


def _sync_result(state: OperationState) -> dict[str, Any]:
    metadata = state.namespace_metadata
    return {
        "revision": state.revision,  # argo: written even if empty
        **given(revisions=list(state.revisions)),
        **synced_wire(state.sources, are_many=bool(state.revisions) or len(state.sources) > 1),
        **({} if metadata is None else {"managedNamespaceMetadata": dict(metadata)}),
        **given(resources=[_result_wire(each) for each in state.results]),
    }


def _result_wire(result: Result) -> dict[str, Any]:
    return {
        **key_wire(result.key),
        "version": result.version,
        **given(
            status=result.outcome and result.outcome.value,
            message=result.message,
            hookType=result.hook,
            hookPhase=result.progress and result.progress.value,
            syncPhase=result.phase.value,
            images=list(result.images),
        ),
    }

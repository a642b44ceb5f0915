"""Writes operations and their state into an Application; the inverse of `gitops.application.operations`.

In: OperationRequest, OperationState. Out: JSON data. Never: rewrites unchanged parts in another spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from argosy.errors import ManifestError
from argosy.gitops.application import OperationRequest, OperationState, ResourceResult, RetryStrategy, SyncRequest
from argosy.gitops.application.operations import read_request
from argosy.gitops.status.status_json_conversions import key_to_wire, omit_empty, sources_to_wire
from argosy.kube.objects.strict_typed_field_reader import FieldReader
from argosy.kube.resource_key import ResourceKey

_OWNED_FIELDS: Final = ("sync", "initiatedBy", "retry")


def request_to_wire(request: OperationRequest) -> dict[str, Any]:
    """Unchanged parts keep their spelling: `90s` does not become `1m30s`, and `info` stays."""
    wire, written_request = request.wire, _read_written_request(request.wire)
    keeps_sync = written_request is not None and written_request.sync == request.sync and wire.get("sync") is not None
    keeps_retry = (
        written_request is not None and written_request.retry == request.retry and wire.get("retry") is not None
    )
    return {
        **{name: value for name, value in wire.items() if name not in _OWNED_FIELDS},
        "sync": wire["sync"] if keeps_sync else _sync_to_wire(request.sync),
        # argo: these two are written even if empty
        "initiatedBy": omit_empty(username=request.username, automated=request.is_automated),
        "retry": wire["retry"] if keeps_retry else _retry_to_wire(request.retry),
    }


def _read_written_request(wire: Mapping[str, Any]) -> OperationRequest | None:
    try:
        return read_request(FieldReader(wire, ""))
    except ManifestError:
        return None


def _sync_to_wire(sync: SyncRequest) -> dict[str, Any]:
    strategy = {"force": True} if sync.force else {}
    has_strategy = sync.force or not sync.runs_hooks
    has_many = bool(sync.revisions) or len(sync.sources) > 1
    return {
        **omit_empty(
            revision=sync.revision,
            revisions=list(sync.revisions),
            prune=sync.prune,
            dryRun=sync.dry_run,
            syncStrategy={"hook" if sync.runs_hooks else "apply": strategy} if has_strategy else None,
            resources=[_resource_to_wire(key) for key in sync.resources],
            syncOptions=list(sync.options),
            manifests=list(sync.manifests),
            autoHealAttemptsCount=sync.heal_attempts,
        ),
        **(sources_to_wire([source.wire for source in sync.sources], are_many=has_many) if sync.sources else {}),
    }


def _resource_to_wire(key: ResourceKey) -> dict[str, str]:
    return {**omit_empty(group=key.group), "kind": key.kind, "name": key.name, **omit_empty(namespace=key.namespace)}


def _retry_to_wire(retry: RetryStrategy) -> dict[str, Any]:
    defaults = RetryStrategy()
    backoff: dict[str, Any] = dict(retry.written_backoff)
    if backoff:
        return omit_empty(limit=retry.limit, refresh=retry.refresh, backoff=backoff)
    if retry.duration != defaults.duration:
        backoff["duration"] = format_duration(retry.duration)
    if retry.factor != defaults.factor:
        backoff["factor"] = retry.factor
    if retry.longest != defaults.longest:
        backoff["maxDuration"] = format_duration(retry.longest)
    return omit_empty(limit=retry.limit, refresh=retry.refresh, backoff=backoff)


def format_duration(seconds: float) -> str:
    """Format a duration for Go: `1h30m`, `5s`, `0.25s`."""
    if seconds != int(seconds):
        return f"{Decimal(repr(seconds)):f}s"
    minutes, remaining_seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{count}{unit}" for count, unit in ((hours, "h"), (minutes, "m"), (remaining_seconds, "s")) if count]
    return "".join(parts) or "0s"


def state_to_wire(state: OperationState) -> dict[str, Any]:
    return {
        "operation": request_to_wire(state.request),
        "phase": state.phase.value,
        **omit_empty(
            message=state.message, startedAt=state.started, finishedAt=state.finished, retryCount=state.retries
        ),
        **({"syncResult": _sync_result_to_wire(state)} if state.has_result else {}),
    }


def _sync_result_to_wire(state: OperationState) -> dict[str, Any]:
    metadata = state.namespace_metadata
    has_many = len(state.sources) > 1 or bool(state.revisions and state.sources)
    # argo: next to `sources` there is the first one of the Application, or an empty one if the operation names its own
    first_source = dict(state.sources[0]) if state.sources and not state.request.sync.sources else {"repoURL": ""}
    return {
        "revision": state.revision,  # argo: written even if empty
        **omit_empty(revisions=list(state.revisions)),
        **({"source": first_source} if has_many else {}),
        **sources_to_wire(state.sources, are_many=has_many),
        **({} if metadata is None else {"managedNamespaceMetadata": dict(metadata)}),
        **omit_empty(resources=[_result_to_wire(result) for result in state.results]),
    }


def _result_to_wire(result: ResourceResult) -> dict[str, Any]:
    return {
        **key_to_wire(result.key),
        "version": result.version,
        **omit_empty(
            status=result.result_code and result.result_code.value,
            message=result.message,
            hookType=result.hook,
            hookPhase=result.hook_phase and result.hook_phase.value,
            syncPhase=result.phase.value,
            images=list(result.images),
        ),
    }

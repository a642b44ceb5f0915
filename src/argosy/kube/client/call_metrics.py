"""A `Cluster` wrapper that reports every call to a metrics callback and records when kinds were last read.

In: calls of a Cluster. Out: the same results; for each call its verb, kind and status code. Never: reports the name of
an object; changes a call.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Final, NamedTuple, Self, TypeVar

from argosy.errors import ClusterError
from argosy.kube.client import Cluster
from argosy.kube.client.forwarding_cluster import Call, ForwardingCluster, Send
from argosy.kube.resource_key import GroupKind

T = TypeVar("T")
AUDIT_VERBS: Final = {"apply": "patch", "replace": "update"}  # k8s: where a verb differs from the method


class RecordedCall(NamedTuple):
    verb: str  # k8s: the verb of audit logs
    kind: str
    code: int  # HTTP status; 0: no answer
    is_dry_run: bool = False
    namespace: str = ""  # of a single object


RecordCall = Callable[[RecordedCall], None]


class RecordingCluster(ForwardingCluster):
    """Records every call. All times are those of `clock`, in seconds."""

    def __init__(self, cluster: Cluster, record: RecordCall, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(cluster)
        self._record, self._clock = record, clock
        self.created_at = clock()
        self.discovered_at = self.created_at  # last discovery
        self.last_read_at: dict[GroupKind, float] = {}  # last list, watch event or end of a watch, by kind

    @property
    def last_update_at(self) -> float:
        """Time of the last answer that fills a cache: discovery, a list or a watch event."""
        return max(self.discovered_at, *self.last_read_at.values(), self.created_at)

    async def _send(self, call: Call, send: Send[T]) -> T:
        if call.method == "kinds":
            catalog = await send()
            self.discovered_at = self._clock()
            return catalog
        code = 0
        try:
            result = await send()
            code = 200
        except ClusterError as error:
            code = error.code
            raise
        finally:
            verb = AUDIT_VERBS.get(call.method, call.method)
            namespace = call.key.namespace if call.key else ""
            self._record(RecordedCall(verb, call.kind.kind, code, call.is_dry_run, namespace))
        if call.method == "list":
            self.last_read_at[call.kind] = self._clock()
        return result

    def _stream(self, call: Call, open_stream: Callable[[], AsyncIterator[T]]) -> AsyncIterator[T]:
        return self._record_watch(call.kind, open_stream()) if call.method == "watch" else open_stream()

    async def _record_watch(self, kind: GroupKind, events: AsyncIterator[T]) -> AsyncIterator[T]:
        code = 200
        try:
            async for event in events:
                self.last_read_at[kind] = self._clock()
                yield event
            self.last_read_at[kind] = self._clock()
        except ClusterError as error:
            code = error.code
            raise
        finally:
            self._record(RecordedCall("watch", kind.kind, code))
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    def _wrap(self, cluster: Cluster) -> Self:
        """Record the calls of another client in the same place, but its times apart: nobody fills a cache from it."""
        return type(self)(cluster, self._record, self._clock)

"""Session revocation: stores revoked sessions in the cluster until they would have expired.

In: a session id. Out: –, or whether it was revoked. Never: stores the id itself; forgets on a restart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from argosy.errors import ClusterError, Conflict
from argosy.kube.client import Cluster
from argosy.kube.controller.clock import Clock
from argosy.kube.names import ResourceKey
from argosy.web.auth.account_state import SESSIONS

MOST: Final = 5_000
MANY: Final = 1_000  # expired sessions are deleted only from this number on
BEFORE: Final = "before"  # key; sessions that started earlier are revoked


class Revoking:
    def __init__(self, cluster: Cluster, namespace: str, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._key = ResourceKey("", "ConfigMap", namespace, SESSIONS)
        self._here: dict[str, str] = {}  # revoked by this process; the cluster view follows later

    def is_over(self, session: str, began: int, revoked: Mapping[str, str]) -> bool:
        name = _name(session)
        before = revoked.get(BEFORE, "")
        return name in self._here or name in revoked or (before.isdigit() and began <= int(before))

    async def end(self, session: str, expires: int, revoked: Mapping[str, str]) -> None:
        now = int(self._clock.now().timestamp())
        if len(self._here) >= MANY:
            self._here = {name: until for name, until in self._here.items() if int(until) > now}
        self._here[_name(session)] = str(expires)
        over = [name for name, until in revoked.items() if not until.isdigit() or int(until) <= now]
        # Expired entries stay until there are many: a clock that is briefly ahead must not restore sessions.
        stale = [name for name in over if name != BEFORE and len(revoked) >= MANY]
        data: dict[str, Any] = dict.fromkeys(stale) | {_name(session): str(expires)}
        if len(revoked) - len(stale) >= MOST:
            data[BEFORE] = str(now)  # too many to store: everyone signs in again
            data |= {name: None for name in revoked if name != BEFORE}
        await self._write(data)

    async def _write(self, data: Mapping[str, Any]) -> None:
        """Write one field per session, so that concurrent writes do not conflict."""
        try:
            await self._cluster.patch(self._key, {"data": data})
        except ClusterError as error:
            if error.code != 404:
                raise
            kept = {name: value for name, value in data.items() if value is not None}
            metadata = {"name": SESSIONS, "namespace": self._key.namespace}
            try:
                await self._cluster.create(
                    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": kept}
                )
            except Conflict:
                await self._cluster.patch(self._key, {"data": data})


def _name(session: str) -> str:
    return hashlib.sha256(session.encode()).hexdigest()[:40]

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
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from argosy.web.auth.cached_accounts_and_policy import SESSIONS_CONFIG_MAP

MAX_REVOKED_SESSIONS: Final = 5_000
CLEANUP_THRESHOLD: Final = 1_000  # expired sessions are deleted only from this number on
REVOKED_BEFORE_KEY: Final = "before"  # key; sessions that started earlier are revoked


class SessionRevocations:
    def __init__(self, cluster: Cluster, namespace: str, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._key = ResourceKey(*CONFIG_MAP, namespace, SESSIONS_CONFIG_MAP)
        self._revoked_here: dict[str, str] = {}  # revoked by this process; the cluster view follows later

    def is_revoked(self, session: str, started_at: int, revoked: Mapping[str, str]) -> bool:
        name = _hash_session_id(session)
        revoked_before = revoked.get(REVOKED_BEFORE_KEY, "")
        return (
            name in self._revoked_here
            or name in revoked
            or (revoked_before.isdigit() and started_at <= int(revoked_before))
        )

    async def revoke(self, session: str, expires: int, revoked: Mapping[str, str]) -> None:
        now = int(self._clock.now().timestamp())
        if len(self._revoked_here) >= CLEANUP_THRESHOLD:
            self._revoked_here = {
                name: expires_at for name, expires_at in self._revoked_here.items() if int(expires_at) > now
            }
        self._revoked_here[_hash_session_id(session)] = str(expires)
        expired = [name for name, expires_at in revoked.items() if not expires_at.isdigit() or int(expires_at) <= now]
        # Expired entries stay until there are many: a clock that is briefly ahead must not restore sessions.
        stale = [name for name in expired if name != REVOKED_BEFORE_KEY and len(revoked) >= CLEANUP_THRESHOLD]
        data: dict[str, Any] = dict.fromkeys(stale) | {_hash_session_id(session): str(expires)}
        if len(revoked) - len(stale) >= MAX_REVOKED_SESSIONS:
            data[REVOKED_BEFORE_KEY] = str(now)  # too many to store: everyone signs in again
            data |= {name: None for name in revoked if name != REVOKED_BEFORE_KEY}
        await self._write(data)

    async def _write(self, data: Mapping[str, Any]) -> None:
        """Write one field per session, so that concurrent writes do not conflict."""
        try:
            await self._cluster.patch(self._key, {"data": data})
        except ClusterError as error:
            if error.code != 404:
                raise
            entries = {name: value for name, value in data.items() if value is not None}
            metadata = {"name": SESSIONS_CONFIG_MAP, "namespace": self._key.namespace}
            try:
                await self._cluster.create(
                    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": entries}
                )
            except Conflict:
                await self._cluster.patch(self._key, {"data": data})


def _hash_session_id(session: str) -> str:
    return hashlib.sha256(session.encode()).hexdigest()[:40]

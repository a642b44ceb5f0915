"""Scopes of Applications, built once for each version of an Application and of its project.

In: Applications and projects as the cache of informers holds them. Out: SecretScope values. Never: a scope of another
version of either; more scopes than MAX_SCOPES.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, NamedTuple

from argosy.model.manifest import Manifest, key_of
from argosy.model.names import ResourceKey
from argosy.server.doors import provenance
from argosy.server.doors.provenance import SecretScope

MAX_SCOPES: Final = 20_000


class _Entry(NamedTuple):
    application: Manifest
    project: Manifest | None
    scope: SecretScope


class ScopeCache:
    """A scope depends on the Application and its project alone. The cache of informers never changes an object in
    place, so the same two objects have the same scope. May be used by several threads: each line of a log needs a
    scope."""

    def __init__(self, *, has_remote_secrets: bool = False) -> None:
        self._has_remote_secrets = has_remote_secrets
        self._entries: OrderedDict[ResourceKey, _Entry] = OrderedDict()  # the least recently used one first
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, application: Manifest, project: Manifest | None) -> SecretScope:
        key = key_of(application)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.application is application and entry.project is project:
                self._entries.move_to_end(key)
                return entry.scope
        scope = provenance.build_scope(application, project, has_remote_secrets=self._has_remote_secrets)
        with self._lock:
            self._entries[key] = _Entry(application, project, scope)
            self._entries.move_to_end(key)
            while len(self._entries) > MAX_SCOPES:
                self._entries.popitem(last=False)
        return scope

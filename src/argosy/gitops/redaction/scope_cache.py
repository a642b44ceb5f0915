"""Cache of secret scopes, by version of the Application, of its project and of its words in Git.

In: Applications and projects from the informer cache, words in Git. Out: SecretScope values. Never: a scope of another
version of any of them; more scopes than MAX_SCOPES.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Container
from typing import Final, NamedTuple

from argosy.gitops.redaction import secret_provenance
from argosy.gitops.redaction.secret_provenance import SecretScope
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

MAX_SCOPES: Final = 20_000
OBJECTS_SECONDS: Final = 10.0  # how long a check of live objects is valid


class _Entry(NamedTuple):
    application: Manifest
    project: Manifest | None
    scope: SecretScope
    until: float  # by the monotonic clock
    git: Container[str] | None

    def is_of(self, application: Manifest, project: Manifest | None, git: Container[str] | None) -> bool:
        return self.application is application and self.project is project and self.git is git


class ScopeCache:
    """A scope depends on the Application, its project and its words in Git. The informer cache never changes an object
    in place, so the same objects have the same scope. A scope that also depends on live objects is valid for
    OBJECTS_SECONDS. Thread-safe: each log line needs a scope.
    """

    def __init__(
        self, *, has_remote_secrets: bool = False, clock: Callable[[], float] = time.monotonic, control: str = ""
    ) -> None:
        self._has_remote_secrets, self._clock, self._control = has_remote_secrets, clock, control
        self._entries: OrderedDict[ResourceKey, _Entry] = OrderedDict()  # least recently used first
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def forget(self, key: ResourceKey) -> None:
        """Drop the scope of a deleted Application."""
        with self._lock:
            self._entries.pop(key, None)

    def get(
        self,
        application: Manifest,
        project: Manifest | None,
        is_delivered: Callable[[str], bool] = lambda _: False,
        git: Container[str] | None = None,
    ) -> SecretScope:
        """Return the scope. `is_delivered`: True if a namespace that the project forbids has objects of the
        Application; `git_words`: words in its manifests in Git.
        """
        key, now = key_of(application), self._clock()
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.is_of(application, project, git) and now < entry.until:
                self._entries.move_to_end(key)
                return entry.scope
        until = math.inf

        def look(namespace: str) -> bool:
            nonlocal until
            until = now + OBJECTS_SECONDS
            return is_delivered(namespace)

        scope = secret_provenance.build_scope(
            application,
            project,
            has_remote_secrets=self._has_remote_secrets,
            is_delivered=look,
            git=git,
            control=self._control,
        )
        with self._lock:
            self._entries[key] = _Entry(application, project, scope, until, git)
            self._entries.move_to_end(key)
            while len(self._entries) > MAX_SCOPES:
                self._entries.popitem(last=False)
        return scope

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

from argosy.gitops.redaction import application_secret_scope
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.observability.redaction.secret_origin_and_scope import SecretScope

MAX_SCOPES: Final = 20_000
OBJECTS_TTL_SECONDS: Final = 10.0  # how long a check of live objects is valid


class _CachedScope(NamedTuple):
    application: Manifest
    project: Manifest | None
    scope: SecretScope
    valid_until: float  # by the monotonic clock
    git_words: Container[str] | None

    def is_built_from(self, application: Manifest, project: Manifest | None, git_words: Container[str] | None) -> bool:
        return self.application is application and self.project is project and self.git_words is git_words


class ScopeCache:
    """A scope depends on the Application, its project and its words in Git. The informer cache never changes an object
    in place, so the same objects have the same scope. A scope that also depends on live objects is valid for
    OBJECTS_TTL_SECONDS. Thread-safe: each log line needs a scope.
    """

    def __init__(
        self,
        *,
        has_remote_secrets: bool = False,
        clock: Callable[[], float] = time.monotonic,
        control_namespace: str = "",
    ) -> None:
        self._has_remote_secrets, self._clock, self._control_namespace = has_remote_secrets, clock, control_namespace
        self._entries: OrderedDict[ResourceKey, _CachedScope] = OrderedDict()  # least recently used first
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def drop(self, key: ResourceKey) -> None:
        """Drop the scope of a changed or deleted Application: it holds the previous version."""
        with self._lock:
            self._entries.pop(key, None)

    def get_or_build(
        self,
        application: Manifest,
        project: Manifest | None,
        is_delivered: Callable[[str], bool] = lambda _: False,
        git_words: Container[str] | None = None,
    ) -> SecretScope:
        """Return the scope. `is_delivered`: True if a namespace that the project forbids has objects of the
        Application; `git_words`: words in its manifests in Git.
        """
        key, now = key_of(application), self._clock()
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.is_built_from(application, project, git_words) and now < entry.valid_until:
                self._entries.move_to_end(key)
                return entry.scope
        valid_until = math.inf

        def check_objects(namespace: str) -> bool:
            nonlocal valid_until
            valid_until = now + OBJECTS_TTL_SECONDS
            return is_delivered(namespace)

        scope = application_secret_scope.build_scope(
            application,
            project,
            has_remote_secrets=self._has_remote_secrets,
            is_delivered=check_objects,
            git_words=git_words,
            control_namespace=self._control_namespace,
        )
        with self._lock:
            self._entries[key] = _CachedScope(application, project, scope, valid_until, git_words)
            self._entries.move_to_end(key)
            while len(self._entries) > MAX_SCOPES:
                self._entries.popitem(last=False)
        return scope

"""Log fields of the current task, which are added to every log line that it writes.

In: names and values. Out: the fields of the current task. Never: logs; holds more than names and revisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from argosy.kube.resource_key import ResourceKey

_current_fields: Final[ContextVar[dict[str, str] | None]] = ContextVar("about", default=None)


def get_log_fields() -> Mapping[str, str]:
    """Return the fields of this task, including those inherited from the task that started it."""
    return _current_fields.get() or {}


@contextmanager
def with_log_fields(**new_fields: str) -> Iterator[None]:
    """Add fields to the log lines of this task, and of tasks that it starts."""
    token = _current_fields.set({**get_log_fields(), **new_fields})
    try:
        yield
    finally:
        _current_fields.reset(token)


def build_object_field(key: ResourceKey) -> dict[str, str]:
    """Return the log field of an object, named by its kind: `application=argocd/web`."""
    return {key.kind.lower(): f"{key.namespace}/{key.name}" if key.namespace else key.name}


def add_log_fields(**new_fields: str) -> None:
    """Add fields to the innermost `with_log_fields` block; without such a block, do nothing."""
    current = _current_fields.get()
    if current is not None:
        current.update((name, value) for name, value in new_fields.items() if value)

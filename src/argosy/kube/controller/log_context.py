"""Log fields of the current task, which are added to every log line that it writes.

In: names and values. Out: the fields of the current task. Never: logs; holds more than names and revisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from argosy.kube.names import ResourceKey

_current: Final[ContextVar[dict[str, str] | None]] = ContextVar("about", default=None)


def fields() -> Mapping[str, str]:
    """Return the fields of this task, including those inherited from the task that started it."""
    return _current.get() or {}


@contextmanager
def about(**more: str) -> Iterator[None]:
    """Add fields to the log lines of this task, and of tasks that it starts."""
    before = _current.set({**fields(), **more})
    try:
        yield
    finally:
        _current.reset(before)


def about_object(key: ResourceKey) -> dict[str, str]:
    """Return the log field of an object, named by its kind: `application=argocd/web`."""
    return {key.kind.lower(): f"{key.namespace}/{key.name}" if key.namespace else key.name}


def note(**more: str) -> None:
    """Add fields to the innermost `with_log_fields` block; without such a block, do nothing."""
    known = _current.get()
    if known is not None:
        known.update((name, value) for name, value in more.items() if value)

"""What lines of a log are about: fields that go along with whatever is logged while somebody is at something.

In: names and values. Out: those in force where a line is written. Never: logs; more than names and revisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from argosy.kube.names import ResourceKey

_current: Final[ContextVar[dict[str, str] | None]] = ContextVar("about", default=None)


def fields() -> Mapping[str, str]:
    """Those of this task, and of whoever began it."""
    return _current.get() or {}


@contextmanager
def about(**more: str) -> Iterator[None]:
    """Whatever this task logs, and those that it begins, is about these, too."""
    before = _current.set({**fields(), **more})
    try:
        yield
    finally:
        _current.reset(before)


def about_object(key: ResourceKey) -> dict[str, str]:
    """By its kind: `application=argocd/web`."""
    return {key.kind.lower(): f"{key.namespace}/{key.name}" if key.namespace else key.name}


def note(**more: str) -> None:
    """What became known meanwhile; forgotten with what it is noted of. Without such, nobody asks for it."""
    known = _current.get()
    if known is not None:
        known.update((name, value) for name, value in more.items() if value)

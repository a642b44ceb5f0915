"""The finalizers of Applications that a controller removes.

In: a finalizer. Out: its meaning. Never: I/O.
"""

from __future__ import annotations

from typing import Final

from argosy.annotations import POST_DELETE_FINALIZER, PRE_DELETE_FINALIZER, RESOURCES_FINALIZER

BACKGROUND_FINALIZER: Final = f"{RESOURCES_FINALIZER}/background"
FOREGROUND_FINALIZER: Final = f"{RESOURCES_FINALIZER}/foreground"
CLEANUP_SUFFIX: Final = "/cleanup"  # suffix of hook finalizers
RESOURCE_FINALIZERS: Final = frozenset({RESOURCES_FINALIZER, BACKGROUND_FINALIZER, FOREGROUND_FINALIZER})
HOOK_FINALIZERS: Final = frozenset(
    f"{name}{step}" for name in (PRE_DELETE_FINALIZER, POST_DELETE_FINALIZER) for step in ("", CLEANUP_SUFFIX)
)


def is_controller_finalizer(finalizer: str) -> bool:
    """True if a controller removes it; without one, the object cannot be deleted."""
    return finalizer in RESOURCE_FINALIZERS or finalizer in HOOK_FINALIZERS

"""The finalizers of Applications that a controller removes.

In: a finalizer. Out: its meaning. Never: I/O.
"""

from __future__ import annotations

from typing import Final

from argosy.annotations import POST_DELETE_FINALIZER, PRE_DELETE_FINALIZER, RESOURCES_FINALIZER

BACKGROUND: Final = f"{RESOURCES_FINALIZER}/background"
FOREGROUND: Final = f"{RESOURCES_FINALIZER}/foreground"
CLEAN: Final = "/cleanup"  # suffix of hook finalizers
OF_RESOURCES: Final = frozenset({RESOURCES_FINALIZER, BACKGROUND, FOREGROUND})
OF_HOOKS: Final = frozenset(
    f"{name}{step}" for name in (PRE_DELETE_FINALIZER, POST_DELETE_FINALIZER) for step in ("", CLEAN)
)


def is_served(finalizer: str) -> bool:
    """True if a controller removes it; without one, the object cannot be deleted."""
    return finalizer in OF_RESOURCES or finalizer in OF_HOOKS

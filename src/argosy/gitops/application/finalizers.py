"""The finalizers of Applications that an engine takes away.

In: a finalizer. Out: what it asks for. Never: I/O.
"""

from __future__ import annotations

from typing import Final

from argosy.annotations import POST_DELETE_FINALIZER, PRE_DELETE_FINALIZER, RESOURCES_FINALIZER

BACKGROUND: Final = f"{RESOURCES_FINALIZER}/background"
FOREGROUND: Final = f"{RESOURCES_FINALIZER}/foreground"
CLEAN: Final = "/cleanup"  # after the name of one that is for hooks
OF_RESOURCES: Final = frozenset({RESOURCES_FINALIZER, BACKGROUND, FOREGROUND})
OF_HOOKS: Final = frozenset(
    f"{name}{step}" for name in (PRE_DELETE_FINALIZER, POST_DELETE_FINALIZER) for step in ("", CLEAN)
)


def is_served(finalizer: str) -> bool:
    """Whether an engine takes it away; without one, whatever has it can not be deleted."""
    return finalizer in OF_RESOURCES or finalizer in OF_HOOKS

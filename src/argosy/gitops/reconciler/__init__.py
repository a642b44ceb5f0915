"""The corridor: one application, from its source to its status.

In: an application, the rules in force. Out: what is to be written, and when to look again. Never: knows how a room does
its work; writes the Application itself.
"""

from __future__ import annotations

TYPE_CHECKING = False  # checkers of types know this name
if TYPE_CHECKING:
    from typing import Any

    from argosy.gitops.reconciler.reconcile import Pipeline
    from argosy.gitops.reconciler.status_update import Passed, Rest

__all__ = ["Passed", "Pipeline", "Rest"]


def __getattr__(name: str) -> Any:
    # Lazy, because who only renders or compares imports parts of this package, and needs no rooms beyond them.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from argosy.gitops.reconciler import reconcile, status_update

    return getattr(reconcile if name == "Pipeline" else status_update, name)

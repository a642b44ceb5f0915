"""The reconciler: one Application from its source to its status.

In: an Application and the settings in force. Out: the patch for the Application, and when to reconcile again. Never:
knows how a step works; writes the Application itself.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    from typing import Any

    from argosy.gitops.reconciler.reconcile import Reconciler
    from argosy.gitops.reconciler.reconcile_result_patch import ReconcileResult

__all__ = ["ReconcileResult", "Reconciler"]


def __getattr__(name: str) -> Any:
    # Lazy, because callers that only render or compare need no other steps.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from argosy.gitops.reconciler import reconcile, reconcile_result_patch

    return getattr(reconcile if name == "Reconciler" else reconcile_result_patch, name)

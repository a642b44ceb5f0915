"""Maps errors to the outcome of a run: failure category, and whether a retry may help.

In: an ArgosyError. Out: a RunOutcome, or None if the same call may soon succeed. Never: raises.
"""

from __future__ import annotations

from argosy.errors import (
    AddressRefused,
    ArgosyError,
    ClusterError,
    Forbidden,
    Invalid,
    SourceError,
    SourceRefused,
    SourceUnreachable,
    UserError,
)  # fmt: skip
from argosy.features.notebooks.jupyter_package_check import PackagesNotInstalled
from argosy.features.notebooks.run_backend import RunOutcome
from argosy.features.notebooks.runner import failure_category_names


def find_outcome(error: ArgosyError) -> RunOutcome | None:
    """k8s: Invalid and Forbidden are final; conflicts and timeouts are retried and not counted."""
    if isinstance(error, UserError):
        return build_refused_outcome(error)
    if isinstance(error, Forbidden | Invalid) or (isinstance(error, ClusterError) and error.code == 400):
        return RunOutcome(False, str(error), failure_category_names.CREATION)
    return None


def build_refused_outcome(error: UserError) -> RunOutcome:
    if isinstance(error, PackagesNotInstalled):
        return RunOutcome(False, str(error), failure_category_names.ENVIRONMENT)
    if isinstance(error, SourceUnreachable):
        return RunOutcome(False, str(error), failure_category_names.CLONE, retriable=True)
    if isinstance(error, AddressRefused):
        return RunOutcome(False, str(error), failure_category_names.CONFIGURATION)
    if isinstance(error, SourceRefused):
        return RunOutcome(False, str(error), failure_category_names.CREDENTIALS)
    if isinstance(error, SourceError):
        return RunOutcome(False, str(error), failure_category_names.CLONE)
    return RunOutcome(False, str(error), failure_category_names.CONFIGURATION)

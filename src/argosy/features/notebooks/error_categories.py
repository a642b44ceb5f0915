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
    Unreachable,
    UserError,
)  # fmt: skip
from argosy.features.notebooks.requirements import NotInstalled
from argosy.features.notebooks.run_backend import Outcome
from argosy.features.notebooks.runner import categories


def outcome_of(error: ArgosyError) -> Outcome | None:
    """k8s: Invalid and Forbidden are final; conflicts and timeouts are retried and not counted."""
    if isinstance(error, UserError):
        return refused(error)
    if isinstance(error, Forbidden | Invalid) or (isinstance(error, ClusterError) and error.code == 400):
        return Outcome(False, str(error), categories.CREATION)
    return None


def refused(error: UserError) -> Outcome:
    if isinstance(error, NotInstalled):
        return Outcome(False, str(error), categories.ENVIRONMENT)
    if isinstance(error, Unreachable):
        return Outcome(False, str(error), categories.CLONE, retriable=True)
    if isinstance(error, AddressRefused):
        return Outcome(False, str(error), categories.CONFIGURATION)
    if isinstance(error, SourceRefused):
        return Outcome(False, str(error), categories.CREDENTIALS)
    if isinstance(error, SourceError):
        return Outcome(False, str(error), categories.CLONE)
    return Outcome(False, str(error), categories.CONFIGURATION)

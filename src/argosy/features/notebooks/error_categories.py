"""What an error means for a run: whose fault it is, and whether another try may help.

In: an error of ours. Out: an Outcome, or None where the same call may be answered well in a moment. Never: raises.
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
    """k8s: invalid and forbidden are final; conflicts, time-outs and the like are not even counted."""
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

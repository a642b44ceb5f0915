"""One step of the deletion of an Application: its result, and the checks that it must pass.

In: nothing. Out: values. Never: I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from argosy.errors import ClusterError
from argosy.gitops.sync.prune import FindDeletionRefusal
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


@dataclass(frozen=True, slots=True)
class DeletionStep:
    """Write the finalizers, and the condition DeletionError if `error` is set.

    Nothing is left to do if the finalizers are unchanged and `wait` and `message` are empty. `failure` is the response
    to which `error` belongs; the step is repeated with backoff.
    """

    finalizers: tuple[str, ...]
    message: str = ""
    wait: float | None = None
    error: str = ""
    failure: ClusterError | None = None


@dataclass(frozen=True, slots=True)
class DeletionChecks:
    """The rules of a deletion. Each check returns a reason, which is empty if nothing is against it."""

    find_refusal: FindDeletionRefusal  # against the deletion of a live object
    find_hook_refusal: Callable[[ResourceKey], str]  # of the project, against a hook
    find_foreign_owner: Callable[[Manifest], str]  # why a live object does not belong to the Application

"""The desired state of an Application, and the request for it.

In, out: values. Never: does I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from argosy.gitops.application import Source
from argosy.gitops.application.step_results import Checkout, RenderResult
from argosy.gitops.status.conditions import AppCondition
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


@dataclass(frozen=True, slots=True)
class DesiredStateRequest:
    """The sources to load, each at a ref. `max_age` limits how many seconds ago a ref was resolved.

    With `local_manifests`, no source is loaded, and `refs` only say which revisions to report. With `sent_files`, no
    repository is contacted at all, not even for remote bases.
    """

    sources: tuple[Source, ...]
    refs: tuple[str, ...]
    max_age: float = 0.0
    ignores_cache: bool = False  # argo: a hard refresh; ignores cached renders
    reports_unverified: bool = False  # to compare only: a revision that fails verification becomes a condition
    local_manifests: tuple[str, ...] = ()  # argo: JSON texts, which replace the manifests of Git
    sent_files: Checkout | None = None  # argo: files that a client sent, instead of those of the only source


@dataclass(frozen=True, slots=True)
class DesiredState:
    sources: tuple[Source, ...]
    revisions: tuple[str, ...]
    manifests: Sequence[Manifest]
    tools: tuple[str, ...] = ()
    conditions: tuple[AppCondition, ...] = ()
    rendered: Sequence[RenderResult] = field(default_factory=tuple)
    keys: Sequence[ResourceKey] = ()  # of the desired manifests that have a name
    is_known: bool = True  # False if the sources could not be loaded
    is_verified: bool = True  # False if a revision is not signed as required: it must not be applied

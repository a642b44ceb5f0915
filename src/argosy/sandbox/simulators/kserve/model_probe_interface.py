"""Protocol for checking whether a model responds; the implementation is passed in.

In: an InferenceService whose Pods are ready. Out: a ProbeResult. Never: opens a connection itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


class ModelState(StrEnum):
    PENDING = "Pending"
    LOADING = "Loading"
    LOADED = "Loaded"
    FAILED = "FailedToLoad"


@dataclass(frozen=True)
class ProbeResult:
    state: ModelState
    message: str = ""  # why it is not loaded
    url: str = ""  # external URL; empty: as its Route says


class ModelProbe(Protocol):
    async def probe(self, service: Manifest, pods: Sequence[Manifest]) -> ProbeResult:
        """Query the model. `pods` are the predictor's Pods, newest first, after its rollout."""

    def find_url(self, key: ResourceKey) -> str:
        """Return the URL that is currently known, or an empty string."""

    async def release(self, key: ResourceKey) -> None:
        """Stop serving the model."""

"""Whether a model answers: asked of somebody who is passed in.

In: an InferenceService whose Pods are ready. Out: an Answer. Never: opens a connection itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest


class ModelState(StrEnum):
    PENDING = "Pending"
    LOADING = "Loading"
    LOADED = "Loaded"
    FAILED = "FailedToLoad"


@dataclass(frozen=True)
class Answer:
    state: ModelState
    message: str = ""  # why it is not loaded
    url: str = ""  # where it answers from outside; empty: as its Route says


class Probe(Protocol):
    async def ask(self, service: Manifest, pods: Sequence[Manifest]) -> Answer:
        """`pods`: of its predictor, the newest first; its rollout is over."""

    def where(self, key: ResourceKey) -> str:
        """Where it answers meanwhile; empty: nowhere that is known."""

    async def let_go(self, key: ResourceKey) -> None:
        """Nobody asks for it any more."""

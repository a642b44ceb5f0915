"""Whether a model answers: asked of somebody who is passed in, since nothing here serves one.

In: an InferenceService whose Pods are ready. Out: an Answer. Never: opens a connection itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from argosy.model.manifest import Manifest


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


Probe = Callable[[Manifest], Awaitable[Answer]]

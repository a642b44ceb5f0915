"""Requests a refresh by annotations, which the controller removes after the next comparison.

In: the Application's annotations, a time. Out: the annotations to write. Never: downgrades a pending hard refresh.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from argosy.annotations import REFRESH, REFRESH_TIMESTAMP
from argosy.kube.objects.timestamps import written

NORMAL: Final = "normal"
HARD: Final = "hard"  # ignores cached renders


def refresh_asked(annotations: Mapping[str, str], at: datetime, *, is_hard: bool = False) -> dict[str, str]:
    """argo: includes the time, so that a second request is noticed while the first is pending."""
    word = HARD if is_hard or annotations.get(REFRESH) == HARD else NORMAL
    return {REFRESH: word, REFRESH_TIMESTAMP: written(at, "microseconds")}

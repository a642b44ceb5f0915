"""Requests a refresh by annotations, which the controller removes after the next comparison.

In: the Application's annotations, a time. Out: the annotations to write. Never: downgrades a pending hard refresh.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from argosy.annotations import REFRESH, REFRESH_TIMESTAMP
from argosy.kube.objects.timestamps_and_delays import format_timestamp

NORMAL_REFRESH: Final = "normal"
HARD_REFRESH: Final = "hard"  # ignores cached renders


def build_refresh_annotations(
    annotations: Mapping[str, str], requested_at: datetime, *, is_hard: bool = False
) -> dict[str, str]:
    """argo: includes the time, so that a second request is noticed while the first is pending."""
    refresh_type = HARD_REFRESH if is_hard or annotations.get(REFRESH) == HARD_REFRESH else NORMAL_REFRESH
    return {REFRESH: refresh_type, REFRESH_TIMESTAMP: format_timestamp(requested_at, "microseconds")}

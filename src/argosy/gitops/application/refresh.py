"""How a refresh is asked for: by annotations of an Application, which whoever has compared it anew takes away.

In: the annotations that it has, a time. Out: those to write. Never: makes less of what somebody else waits for.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from argosy.annotations import REFRESH, REFRESH_TIMESTAMP
from argosy.kube.objects.timestamps import written

NORMAL: Final = "normal"
HARD: Final = "hard"  # what was rendered is not trusted


def refresh_asked(annotations: Mapping[str, str], at: datetime, *, is_hard: bool = False) -> dict[str, str]:
    """argo: with the time, so that one more is told of even while another waits."""
    word = HARD if is_hard or annotations.get(REFRESH) == HARD else NORMAL
    return {REFRESH: word, REFRESH_TIMESTAMP: written(at, "microseconds")}

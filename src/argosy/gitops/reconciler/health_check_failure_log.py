"""Logs health checks that fail, as the application controller of Argo CD does, so that its log can be searched.

In: objects and how they were assessed. Out: a warning for each check and error. Never: the same line again while the
settings stay the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from argosy.gitops.application.step_results import Assessment
from argosy.kube.objects import Manifest, key_of

log = logging.getLogger("argosy.gitops.health")  # part of the application controller's log
MAX_LOGGED_FAILURES: Final = 1000  # pairs of check and error


class CheckFailureLog:
    def __init__(self) -> None:
        self._logged: dict[tuple[str, str], None] = {}

    def forget(self) -> None:
        """Log all failures again, because the checks changed."""
        self._logged.clear()

    def log_failures(self, manifests: Iterable[Manifest], assessments: Iterable[Assessment | None]) -> None:
        for manifest, assessment in zip(manifests, assessments, strict=True):
            if assessment is None or not assessment.fault:
                continue
            failure = (assessment.rule, assessment.fault)
            if failure in self._logged:
                continue
            if len(self._logged) >= MAX_LOGGED_FAILURES:
                del self._logged[next(iter(self._logged))]
            self._logged[failure] = None
            log.warning("health check failed: %s: Lua error for %s: %s", assessment.rule, key_of(manifest), failure[1])

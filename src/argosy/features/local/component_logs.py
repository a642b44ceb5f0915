"""Serves argosy's own log records as the logs of simulated Pods: operators, controller, server.

In: log records; a simulated Pod. Out: the last lines of its component, and new ones. Never: invents lines; serves the
logs of other Pods, which the simulators do.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Final

from argosy.annotations import SIMULATED
from argosy.gitops.engine.logging_setup import LEVELS, Lines, line, told
from argosy.kube.client import EarlierLogs, PodLogs, WayIn
from argosy.kube.objects import Manifest

NAME_LABEL: Final = "app.kubernetes.io/name"
MOST_LINES: Final = 2000
PAUSE: Final = 0.2  # seconds between checks for new lines
WORKERS: Final = (
    "argosy.kube.controller.workers"  # logs for all controllers; the first argument is the controller's name
)
OPERATOR, NOTEBOOKS = "operator", "jupyter-notebook-validator-operator"
CONTROLLER: Final = "application-controller"
CONSOLE_BACKEND: Final = "cluster"  # guides expect the application controller's log there
NO_WAY_IN: Final = "simulated Pods have no ports and no shell"
PARTS: Final = {
    CONTROLLER: ("argosy.gitops.reconciler", "argosy.gitops.sync", "argosy.gitops.health", "application"),
    "repo-server": ("argosy.gitops.source", "argosy.gitops.render", "argosy.isolation"),
    "server": ("argosy.sandbox.apiserver", "argosy.sandbox.store", "argosy.web", "argosy.audit"),
    OPERATOR: ("argosy.sandbox.simulators.openshift_gitops", "argocd-operator", "argocd-player"),
    NOTEBOOKS: ("argosy.features.notebooks", "notebooks"),
}


class PartLogs(logging.Handler):
    def __init__(self, others: PodLogs) -> None:
        super().__init__(logging.INFO)
        self._others = others
        self._kept: dict[str, deque[tuple[int, str]]] = {part: deque(maxlen=MOST_LINES) for part in PARTS}
        self._numbers = itertools.count()

    @contextlib.contextmanager
    def listening(self, form: str = "", level: str = "warn") -> Iterator[None]:
        """Collect log records while the block runs; records of `level` and above are also written to stderr."""
        logger, aloud = logging.getLogger("argosy"), logging.StreamHandler(sys.stderr)
        aloud.setLevel(LEVELS[level])
        if form:
            aloud.setFormatter(Lines(form))
        before = logger.level
        logger.setLevel(min(logging.INFO, LEVELS[level]))
        for each in (self, aloud):
            logger.addHandler(each)
        try:
            yield
        finally:
            for each in (self, aloud):
                logger.removeHandler(each)
            logger.setLevel(before)

    def emit(self, record: logging.LogRecord) -> None:
        part = _part_of_record(record)
        if part:
            self._kept[part].append((next(self._numbers), line(told(record))))

    def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        """Log lines of the Pod; for Pods of other components, those of the fallback reader."""
        part = _part_of_pod(pod)
        if not part:
            return self._others.lines(pod, container=container, follow=follow, tail=tail)
        return self._lines_of_part(part, follow=follow, tail=tail)

    async def _lines_of_part(self, part: str, *, follow: bool, tail: int | None) -> AsyncIterator[str]:
        found, last = list(self._kept[part]), -1
        while True:
            for last, text in found if tail is None else found[max(len(found) - tail, 0) :]:  # noqa: B007 - used below
                yield text
            if not follow:
                return
            await asyncio.sleep(PAUSE)
            found, tail = [each for each in self._kept[part] if each[0] > last], None

    def way_in(self, manifest: Manifest) -> str:
        return self._others.way_in(manifest) if isinstance(self._others, WayIn) else NO_WAY_IN

    def earlier(self, pod: Manifest, *, container: str, tail: int | None) -> AsyncIterator[str] | None:
        if isinstance(self._others, EarlierLogs) and not _part_of_pod(pod):
            return self._others.earlier(pod, container=container, tail=tail)
        return None


def _part_of_record(record: logging.LogRecord) -> str:
    name = record.name
    if name == WORKERS and isinstance(record.args, tuple) and record.args:
        name = str(record.args[0])
    found = (part for part, owners in PARTS.items() if any(_is_below(name, owner) for owner in owners))
    return next(found, "")


def _is_below(name: str, owner: str) -> bool:
    return name == owner or name.startswith(f"{owner}.")


def _part_of_pod(pod: Manifest) -> str:
    """Component of a simulated Pod, by the name label of its workload; empty for other Pods."""
    metadata = pod["metadata"]
    name = (metadata.get("labels") or {}).get(NAME_LABEL, "")
    if SIMULATED not in (metadata.get("annotations") or {}):
        return ""
    if name.startswith(NOTEBOOKS):
        return NOTEBOOKS
    if f"-{OPERATOR}-" in name:
        return OPERATOR
    if name == CONSOLE_BACKEND:
        return CONTROLLER
    return next((part for part in PARTS if name.endswith(f"-{part}")), "")

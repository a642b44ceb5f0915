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
from argosy.gitops.engine.logging_setup import LEVELS, LogLineFormatter, build_log_fields, format_logfmt
from argosy.kube.client import AccessDescriber, PodLogReader, PreviousPodLogReader
from argosy.kube.objects import Manifest

NAME_LABEL: Final = "app.kubernetes.io/name"
MAX_LINES: Final = 2000
POLL_INTERVAL_SECONDS: Final = 0.2  # seconds between checks for new lines
# Logs for all controllers; the first argument is the controller's name.
WORKERS_LOGGER: Final = "argosy.kube.controller.controller_informers_and_workers"
OPERATOR_COMPONENT, NOTEBOOKS_COMPONENT = "operator", "jupyter-notebook-validator-operator"
CONTROLLER_COMPONENT: Final = "application-controller"
CONSOLE_BACKEND_NAME: Final = "cluster"  # guides expect the application controller's log there
NO_ACCESS_MESSAGE: Final = "simulated Pods have no ports and no shell"
COMPONENT_LOGGERS: Final = {
    CONTROLLER_COMPONENT: ("argosy.gitops.reconciler", "argosy.gitops.sync", "argosy.gitops.health", "application"),
    "repo-server": ("argosy.gitops.source", "argosy.gitops.render", "argosy.isolation"),
    "server": ("argosy.sandbox.apiserver", "argosy.sandbox.store", "argosy.web", "argosy.audit"),
    OPERATOR_COMPONENT: ("argosy.sandbox.simulators.openshift_gitops", "argocd-operator", "argocd-player"),
    NOTEBOOKS_COMPONENT: ("argosy.features.notebooks", "notebooks"),
}


class ComponentLogs(logging.Handler):
    def __init__(self, fallback: PodLogReader) -> None:
        super().__init__(logging.INFO)
        self._fallback = fallback
        self._lines_by_component: dict[str, deque[tuple[int, str]]] = {
            component: deque(maxlen=MAX_LINES) for component in COMPONENT_LOGGERS
        }
        self._line_numbers = itertools.count()

    @contextlib.contextmanager
    def collect_records(self, log_format: str = "", level: str = "warn") -> Iterator[None]:
        """Collect log records while the block runs; records of `level` and above are also written to stderr."""
        logger, stderr_handler = logging.getLogger("argosy"), logging.StreamHandler(sys.stderr)
        stderr_handler.setLevel(LEVELS[level])
        if log_format:
            stderr_handler.setFormatter(LogLineFormatter(log_format))
        old_level = logger.level
        logger.setLevel(min(logging.INFO, LEVELS[level]))
        for handler in (self, stderr_handler):
            logger.addHandler(handler)
        try:
            yield
        finally:
            for handler in (self, stderr_handler):
                logger.removeHandler(handler)
            logger.setLevel(old_level)

    def emit(self, record: logging.LogRecord) -> None:
        component = _find_component_of_record(record)
        if component:
            self._lines_by_component[component].append(
                (next(self._line_numbers), format_logfmt(build_log_fields(record)))
            )

    def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        """Log lines of the Pod; for Pods of other components, those of the fallback reader."""
        component = _find_component_of_pod(pod)
        if not component:
            return self._fallback.lines(pod, container=container, follow=follow, tail=tail)
        return self._iterate_component_lines(component, follow=follow, tail=tail)

    async def _iterate_component_lines(self, component: str, *, follow: bool, tail: int | None) -> AsyncIterator[str]:
        lines, last_number = list(self._lines_by_component[component]), -1
        while True:
            for last_number, text in lines if tail is None else lines[max(len(lines) - tail, 0) :]:  # noqa: B007 - used below
                yield text
            if not follow:
                return
            await asyncio.sleep(POLL_INTERVAL_SECONDS)
            lines, tail = [line for line in self._lines_by_component[component] if line[0] > last_number], None

    def describe_access(self, manifest: Manifest) -> str:
        return (
            self._fallback.describe_access(manifest)
            if isinstance(self._fallback, AccessDescriber)
            else NO_ACCESS_MESSAGE
        )

    def previous_lines(self, pod: Manifest, *, container: str, tail: int | None) -> AsyncIterator[str] | None:
        if isinstance(self._fallback, PreviousPodLogReader) and not _find_component_of_pod(pod):
            return self._fallback.previous_lines(pod, container=container, tail=tail)
        return None


def _find_component_of_record(record: logging.LogRecord) -> str:
    name = record.name
    if name == WORKERS_LOGGER and isinstance(record.args, tuple) and record.args:
        name = str(record.args[0])
    components = (
        component
        for component, owners in COMPONENT_LOGGERS.items()
        if any(_is_below_logger(name, owner) for owner in owners)
    )
    return next(components, "")


def _is_below_logger(name: str, owner: str) -> bool:
    return name == owner or name.startswith(f"{owner}.")


def _find_component_of_pod(pod: Manifest) -> str:
    """Component of a simulated Pod, by the name label of its workload; empty for other Pods."""
    metadata = pod["metadata"]
    name = (metadata.get("labels") or {}).get(NAME_LABEL, "")
    if SIMULATED not in (metadata.get("annotations") or {}):
        return ""
    if name.startswith(NOTEBOOKS_COMPONENT):
        return NOTEBOOKS_COMPONENT
    if f"-{OPERATOR_COMPONENT}-" in name:
        return OPERATOR_COMPONENT
    if name == CONSOLE_BACKEND_NAME:
        return CONTROLLER_COMPONENT
    return next((component for component in COMPONENT_LOGGERS if name.endswith(f"-{component}")), "")

"""Detects an Argo CD in the cluster, once or continuously by watches.

In: a cluster, the control namespace. Out: DeliveryEngines. Never: changes anything; takes a forbidden read as absence,
or a short outage as removal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from argosy.errors import ArgosyError, ClusterError
from argosy.gitops.coexistence.argocd_application_namespaces import AccessReviewReader, resolve_engines
from argosy.gitops.policy.application_delivery_engine_detection import (
    CONTROLLER_SELECTORS,
    ArgoCDController,
    DeliveryEngines,
)
from argosy.kube.client.reachability_log import choose_log_level
from argosy.kube.controller import SYSTEM_CLOCK, Clock, InformerCache
from argosy.kube.controller.clock import Backoff, Timer, sleep
from argosy.kube.controller.informer import REFUSED_CODES, Informer
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import DEPLOYMENT, POD, STATEFUL_SET

log = logging.getLogger(__name__)
# Pods, too: one whose StatefulSet was deleted without it keeps running.
WORKLOAD_KINDS: Final = (STATEFUL_SET, DEPLOYMENT, POD)
RETRY_BACKOFF: Final = Backoff(first_seconds=0.2, max_seconds=30.0, jitter=0.5)
FORBIDDEN_RETRY_SECONDS: Final = 60.0  # seconds until a forbidden read is tried again
REMOVAL_GRACE_SECONDS: Final = (
    60.0  # seconds until a missing Argo CD counts as removed: a recreated one is away for a while
)
# argo: its namespaces are read at its start, which its Pods show; RBAC can also change without that.
RECHECK_SECONDS: Final = 60.0
UNKNOWN_ENGINES: Final = DeliveryEngines(is_known=False)


async def detect_engines(cluster: AccessReviewReader, control_namespace: str) -> DeliveryEngines:
    """Detect once: in all namespaces, or in the control namespace if only that may be read."""
    for namespace in ("", control_namespace):
        requests = [
            _list_workloads(cluster, kind, labels, namespace)
            for kind in WORKLOAD_KINDS
            for labels in CONTROLLER_SELECTORS
        ]
        try:
            lists = await asyncio.gather(*requests)
        except ClusterError as error:
            if error.code not in REFUSED_CODES:
                raise
        else:
            return await resolve_engines(cluster, [workload for workloads in lists for workload in workloads])
    return UNKNOWN_ENGINES


async def detect_engines_or_unknown(cluster: AccessReviewReader, control_namespace: str) -> DeliveryEngines:
    """Detect once for read-only callers: errors mean unknown."""
    try:
        return await detect_engines(cluster, control_namespace)
    except ArgosyError:
        return UNKNOWN_ENGINES


async def _list_workloads(cluster: AccessReviewReader, kind: GroupKind, labels: str, namespace: str) -> list[Manifest]:
    try:
        listing = await cluster.list(kind, namespace=namespace, labels=labels)
    except ClusterError as error:
        if error.code == 404:  # the kind is not served
            return []
        raise
    return [{**workload, "kind": kind.kind} for workload in listing.items]


async def _find_readable_namespace(cluster: AccessReviewReader, control_namespace: str) -> str | None:
    """Return where workloads may be listed: "" for all namespaces, the control namespace, or None."""
    for namespace in ("", control_namespace):
        try:
            await asyncio.gather(
                *(_list_workloads(cluster, kind, CONTROLLER_SELECTORS[0], namespace) for kind in WORKLOAD_KINDS)
            )
        except ClusterError as error:
            if error.code not in REFUSED_CODES:
                raise
        else:
            return namespace
    return None


class ArgoCDDetector:
    def __init__(
        self,
        cluster: AccessReviewReader,
        control_namespace: str,
        on_change: Callable[[DeliveryEngines], None],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`on_change` is called with the previous value whenever `engines` changes."""
        self._cluster, self._control_namespace, self._on_change, self._clock = (
            cluster,
            control_namespace,
            on_change,
            clock,
        )
        self._workloads: dict[tuple[ResourceKey, str], Manifest] = {}
        self._workloads_changed = asyncio.Event()  # a detected object changed
        self._is_detected = asyncio.Event()
        self._current = UNKNOWN_ENGINES  # as detected now
        self._removal_timers: dict[str, Timer] = {}  # by namespace: controllers that still count, but are gone
        self.engines = UNKNOWN_ENGINES

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            await self._detect_forever()
        finally:
            self._cancel_timers()

    async def _detect_forever(self) -> None:
        failures = 0
        while True:
            try:
                namespace = await _find_readable_namespace(self._cluster, self._control_namespace)
            except ArgosyError as error:
                failures += 1
                level = choose_log_level(error, logging.WARNING)
                log.log(level, "cannot detect Argo CD: error=%s", error)
                await sleep(self._clock, RETRY_BACKOFF.delay(failures))
                continue
            if namespace is not None:
                await self._watch_workloads(namespace)
            self._set_detected_engines(UNKNOWN_ENGINES)
            await sleep(self._clock, FORBIDDEN_RETRY_SECONDS)

    async def wait_until_detected(self) -> None:
        """Wait until the result is known, or known to be forbidden."""
        await self._is_detected.wait()

    @property
    def is_removal_pending(self) -> bool:
        """True if a controller that still counts is gone."""
        return bool(self._removal_timers)

    async def _watch_workloads(self, namespace: str) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            informers = [
                self._build_informer(kind, labels, namespace)
                for kind in WORKLOAD_KINDS
                for labels in CONTROLLER_SELECTORS
            ]
            for informer in informers:
                tasks.create_task(informer.run(), name="informer of controllers")
            for informer in informers:
                await informer.synced.wait()
            await self._update_forever()

    async def _update_forever(self) -> None:
        """Update the engines after every change."""
        failures = 0
        while True:
            self._workloads_changed.clear()
            try:
                self._set_detected_engines(await resolve_engines(self._cluster, tuple(self._workloads.values())))
            except ArgosyError as error:
                failures += 1
                log.warning("cannot read the namespaces of Argo CD: error=%s", error)
                await sleep(self._clock, RETRY_BACKOFF.delay(failures))
                continue
            failures = 0
            timer = self._clock.call_later(RECHECK_SECONDS, self._workloads_changed.set)
            try:
                await self._workloads_changed.wait()
            finally:
                timer.cancel()

    def _build_informer(self, kind: GroupKind, labels: str, namespace: str) -> Informer:
        informer = Informer(self._cluster, kind, InformerCache(), namespace=namespace, labels=labels, clock=self._clock)

        def on_event(before: Manifest | None, after: Manifest | None) -> None:
            # An object that matches both selectors is stored twice, and counts until it is gone from both.
            if after is not None:
                self._workloads[key_of(after), labels] = after
            elif before is not None:
                self._workloads.pop((key_of(before), labels), None)
            self._workloads_changed.set()

        informer.listeners.append(on_event)
        return informer

    def _set_detected_engines(self, engines: DeliveryEngines) -> None:
        """Keep a controller that is gone, or watches fewer namespaces, for a grace period."""
        self._current, lost_namespaces = (
            engines,
            _find_lost_namespaces(self.engines, engines) if engines.is_known else set(),
        )
        for namespace in self._removal_timers.keys() - lost_namespaces:
            self._removal_timers.pop(namespace).cancel()
        for namespace in lost_namespaces - self._removal_timers.keys():
            message = "Argo CD is gone or watches less: namespace=%s grace_seconds=%d"
            log.info(message, namespace, REMOVAL_GRACE_SECONDS)
            self._removal_timers[namespace] = self._clock.call_later(
                REMOVAL_GRACE_SECONDS, partial(self._on_grace_over, namespace)
            )
        self._publish_engines()

    def _on_grace_over(self, namespace: str) -> None:
        del self._removal_timers[namespace]
        self._publish_engines()

    def _cancel_timers(self) -> None:
        while self._removal_timers:
            self._removal_timers.popitem()[1].cancel()

    def _publish_engines(self) -> None:
        retained = (
            controller for controller in self.engines.controllers if controller.namespace in self._removal_timers
        )
        engines = replace(self._current, controllers=tuple(sorted({*self._current.controllers, *retained})))
        is_first = not self._is_detected.is_set()
        self._is_detected.set()
        if engines != self.engines or is_first:
            before, self.engines = self.engines, engines
            self._on_change(before)


def _find_lost_namespaces(before: DeliveryEngines, after: DeliveryEngines) -> set[str]:
    """Return the namespaces whose Argo CD is gone, or no longer watches all that it watched."""
    current_scopes = _group_watched_namespaces(after.controllers)
    return {
        namespace
        for namespace, scope in _group_watched_namespaces(before.controllers).items()
        if not scope <= current_scopes.get(namespace, set())
    }


def _group_watched_namespaces(controllers: tuple[ArgoCDController, ...]) -> dict[str, set[str]]:
    scopes: dict[str, set[str]] = {}
    for controller in controllers:
        scopes.setdefault(controller.namespace, set()).update((controller.namespace, *controller.extra_namespaces))
    return scopes

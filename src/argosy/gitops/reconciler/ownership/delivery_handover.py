"""Decides which Applications argosy delivers next to Argo CD, and from when on.

In: the engines that deliver in the cluster, an Application. Out: the seconds until argosy may reconcile it. Never:
continues an operation that another engine started and may still be running.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from argosy.gitops.application import OperationPhase
from argosy.gitops.policy.application_delivery_engine_detection import Deliverer, DeliveryEngines
from argosy.gitops.reconciler.app_memo import OwnershipMemos
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey

log = logging.getLogger(__name__)
HANDOVER_SECONDS: Final = 1.0  # seconds that the previous engine needs to notice that it no longer delivers it

ARGOCD_MANAGER_PREFIX: Final = "argocd"  # argo: prefix of its field managers


class DeliveryHandover:
    def __init__(
        self, memos: OwnershipMemos, engines: Callable[[], DeliveryEngines], monotonic: Callable[[], float]
    ) -> None:
        self.memos, self._engines, self._monotonic = memos, engines, monotonic

    def seconds_until_delivery(self, manifest: Manifest) -> float | None:
        """Return the seconds until argosy delivers it, 0 for now.

        None: not ours, until the Application or engines change.
        """
        key, engines = key_of(manifest), self._engines()
        annotations = _annotations(manifest)
        deliverer = engines.find_deliverer(annotations, key.namespace)
        if deliverer is Deliverer.BOTH:
            self._warn_once(key, engines.describe_deliverer(annotations, key.namespace))
        if not deliverer.is_argosy:
            memo = replace(self.memos[key], warning="")
            if deliverer is not Deliverer.NOBODY:
                memo = replace(memo, was_delivered_by_another_engine=True, handed_over_at=None)
            self.memos[key] = memo
            return None
        if not engines.list_watching_controllers(
            key.namespace
        ):  # argo: a controller that starts continues the operations that it finds
            self._finish(key)
            return 0.0
        return self._seconds_until_taken_over(key, manifest)

    def _seconds_until_taken_over(self, key: ResourceKey, manifest: Manifest) -> float | None:
        now, memo = self._monotonic(), self.memos[key]
        was_theirs, since = memo.was_delivered_by_another_engine, memo.handed_over_at
        if was_theirs and since is None:
            since = now
            self.memos[key] = replace(memo, handed_over_at=now)
        if since is not None and (remaining := since + HANDOVER_SECONDS - now) > 0:
            return remaining
        if _is_operation_running(manifest) and (was_theirs or _was_started_by_argocd(manifest)):
            command = f"argosy app terminate-op {key.name}"
            self._warn_once(key, f"waiting for a running operation of Argo CD; terminate it with: {command}")
            return None
        self._finish(key)
        return 0.0

    def _finish(self, key: ResourceKey) -> None:
        self.memos[key] = replace(self.memos[key], was_delivered_by_another_engine=False, handed_over_at=None)

    def _warn_once(self, key: ResourceKey, text: str) -> None:
        if self.memos[key].warning != text:
            log.warning("%s/%s: %s", key.namespace, key.name, text)
            self.memos[key] = replace(self.memos[key], warning=text)


def describe_lost_applications(apps: Iterable[Manifest], before: DeliveryEngines, after: DeliveryEngines) -> str:
    """Describe the Applications that argosy no longer delivers; empty if there are none."""
    lost_apps = []
    for app in apps:
        annotations, namespace = _annotations(app), key_of(app).namespace
        if (
            before.find_deliverer(annotations, namespace).is_argosy
            and not after.find_deliverer(annotations, namespace).is_argosy
        ):
            lost_apps.append((key_of(app), after.describe_deliverer(annotations, namespace)))
    if not lost_apps:
        return ""
    key, why = lost_apps[0]
    name = f"{key.namespace}/{key.name}"
    subject = f"{len(lost_apps)} Applications, such as {name}, are" if len(lost_apps) > 1 else f"{name} is"
    return f"{subject} no longer delivered by argosy, but by {why}"


def _annotations(manifest: Manifest) -> Mapping[str, str]:
    return as_mapping(as_mapping(manifest.get("metadata")).get("annotations"))


def _is_operation_running(manifest: Manifest) -> bool:
    """True if an operation runs. One that is being terminated is ended by the engine that delivers now."""
    return as_mapping(as_mapping(manifest.get("status")).get("operationState")).get("phase") == OperationPhase.RUNNING


def _was_started_by_argocd(manifest: Manifest) -> bool:
    """True if Argo CD owns startedAt, which is written once: so this is known after a restart, too."""
    for entry in manifest["metadata"].get("managedFields") or ():
        fields = as_mapping(as_mapping(as_mapping(entry.get("fieldsV1")).get("f:status")).get("f:operationState"))
        if "f:startedAt" in fields:
            return str(entry.get("manager") or "").startswith(ARGOCD_MANAGER_PREFIX)
    return False

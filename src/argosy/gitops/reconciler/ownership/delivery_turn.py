"""Decides which Applications argosy delivers next to Argo CD, and from when on.

In: the engines that deliver in the cluster, an Application. Out: the seconds until argosy may reconcile it. Never:
continues an operation that another engine started and may still be running.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from argosy.gitops.application import Progress
from argosy.gitops.policy.delivery_engine import Deliverer, Engines
from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

log = logging.getLogger(__name__)
MOMENT: Final = 1.0  # seconds that the previous engine needs to notice that it no longer delivers it

ARGOCD: Final = "argocd"  # argo: prefix of its field managers


class Turns:
    def __init__(self, engines: Callable[[], Engines], monotonic: Callable[[], float]) -> None:
        self._engines, self._monotonic = engines, monotonic
        # delivered by another engine; the monotonic time since which it is ours
        self._theirs: dict[ResourceKey, float | None] = {}
        self._said: dict[ResourceKey, str] = {}  # last warning, which is logged once

    def forget(self, key: ResourceKey) -> None:
        self._theirs.pop(key, None)
        self._said.pop(key, None)

    def wait(self, manifest: Manifest) -> float | None:
        """Return the seconds until argosy delivers it, 0 for now.

        None: not ours, until the Application or engines change.
        """
        key, engines = key_of(manifest), self._engines()
        annotations = _annotations(manifest)
        who = engines.deliverer(annotations, key.namespace)
        if who is Deliverer.BOTH:
            self._say(key, engines.told(annotations, key.namespace))
        if not who.is_argosy:
            if who is not Deliverer.NOBODY:
                self._theirs[key] = None
            self._said.pop(key, None)
            return None
        if not engines.over(key.namespace):  # argo: a controller that starts continues the operations that it finds
            self._theirs.pop(key, None)
            return 0.0
        return self._taken_over(key, manifest)

    def _taken_over(self, key: ResourceKey, manifest: Manifest) -> float | None:
        now, was_theirs = self._monotonic(), key in self._theirs
        since = self._theirs.get(key)
        if was_theirs and since is None:
            self._theirs[key] = since = now
        if since is not None and (left := since + MOMENT - now) > 0:
            return left
        if _is_under_way(manifest) and (was_theirs or _is_begun_by_argocd(manifest)):
            end = f"argosy app terminate-op {key.name}"
            self._say(key, f"waiting for a running operation of Argo CD; terminate it with: {end}")
            return None
        self._theirs.pop(key, None)
        return 0.0

    def _say(self, key: ResourceKey, text: str) -> None:
        if self._said.get(key) != text:
            log.warning("%s/%s: %s", key.namespace, key.name, text)
            self._said[key] = text


def lost(apps: Iterable[Manifest], before: Engines, now: Engines) -> str:
    """Describe the Applications that argosy no longer delivers; empty if there are none."""
    found = []
    for each in apps:
        annotations, namespace = _annotations(each), key_of(each).namespace
        if before.deliverer(annotations, namespace).is_argosy and not now.deliverer(annotations, namespace).is_argosy:
            found.append((key_of(each), now.told(annotations, namespace)))
    if not found:
        return ""
    key, why = found[0]
    name = f"{key.namespace}/{key.name}"
    told = f"{len(found)} Applications, such as {name}, are" if len(found) > 1 else f"{name} is"
    return f"{told} no longer delivered by argosy, but by {why}"


def _annotations(manifest: Manifest) -> Mapping[str, str]:
    return mapping(mapping(manifest.get("metadata")).get("annotations"))


def _is_under_way(manifest: Manifest) -> bool:
    """True if an operation runs. One that is being terminated is ended by the engine that delivers now."""
    return mapping(mapping(manifest.get("status")).get("operationState")).get("phase") == Progress.RUNNING


def _is_begun_by_argocd(manifest: Manifest) -> bool:
    """True if Argo CD owns startedAt, which is written once: so this is known after a restart, too."""
    for each in manifest["metadata"].get("managedFields") or ():
        fields = mapping(mapping(mapping(each.get("fieldsV1")).get("f:status")).get("f:operationState"))
        if "f:startedAt" in fields:
            return str(each.get("manager") or "").startswith(ARGOCD)
    return False

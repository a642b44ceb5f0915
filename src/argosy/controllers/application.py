"""The kind Application: woken by a key, one pass of the corridor, one patch.

In: an Application. Out: its status. Never: holds logic that a room could hold.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Sequence
from typing import Any, Final

from argosy.cluster import Cluster, PatchKind
from argosy.controllers.settings import Settings
from argosy.live import concerned
from argosy.model import annotations as names
from argosy.model.application import Application, read_application
from argosy.model.errors import ClusterError, ManifestError
from argosy.model.manifest import Manifest, key_of
from argosy.model.names import GroupKind, ResourceKey
from argosy.pipeline import Passed, Pipeline
from argosy.runtime import Cache, Context, Requeue, Watch

log = logging.getLogger(__name__)
APPLICATION: Final = GroupKind("argoproj.io", "Application")


class ApplicationController:
    """`name`, `watches` and `reconcile`, as the runtime wants them; the engine tells it of every other change."""

    name = "application"
    watches: Sequence[Watch] = ()

    def __init__(self, pipeline: Pipeline, settings: Settings, cache: Cache) -> None:
        self.pipeline, self.settings, self.cache = pipeline, settings, cache
        self._written: dict[ResourceKey, Manifest] = {}

    def woken_by(self, manifest: Manifest) -> Iterable[ResourceKey]:
        """Whom a change of this manifest concerns."""
        key = key_of(manifest)
        if key.group_kind == APPLICATION:
            yield key
        if self.settings.concerns(manifest):
            self.settings.outdate()
            yield from self.cache.keys(APPLICATION)
            return
        rules = self.settings.rules()
        for concern in concerned(self.cache, manifest, rules.tracking):
            namespace, _, name = concern.instance.rpartition("_")
            yield ResourceKey(*APPLICATION, namespace or rules.control_namespace, name)

    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        manifest = self._newest(key)
        if manifest is None:
            self.pipeline.assembler.forget(key)
            self._written.pop(key, None)
            return None
        try:
            app = read_application(manifest, f"Application {key.namespace}/{key.name}")
        except ManifestError as error:
            log.warning("%s", error)
            return None
        if app.annotations.get(names.SKIP_RECONCILE) == "true":
            return None
        rules = self.settings.rules()
        passed = await self.pipeline.reconcile(app, rules)
        await self._write(app, passed, context.cluster)
        if passed.wait is not None:
            return Requeue(passed.wait)
        return Requeue(rules.reconciliation + random.random() * rules.jitter)  # noqa: S311 - only to spread the load

    def _newest(self, key: ResourceKey) -> Manifest | None:
        """What we wrote last may be newer than what the cache has heard of."""
        cached, wrote = self.cache.get(key), self._written.get(key)
        if cached is None or wrote is None or cached["metadata"].get("uid") != wrote["metadata"].get("uid"):
            self._written.pop(key, None)
            return cached
        if _version(wrote) > _version(cached):
            return wrote
        self._written.pop(key, None)
        return cached

    async def _write(self, app: Application, passed: Passed, cluster: Cluster) -> None:
        """Events first: one that is told twice is the same Event, one that is lost is lost."""
        for event in passed.events:
            await _tell(event, cluster)
        if passed.patch is None:
            return
        patch: dict[str, Any] = dict(passed.patch)
        version = app.wire["metadata"].get("resourceVersion")
        # Only on what was read: whoever changed it meanwhile asked for something else.
        patch["metadata"] = {**patch.get("metadata", {}), "resourceVersion": version}
        try:
            self._written[app.key] = await cluster.patch(app.key, patch, kind_of_patch=PatchKind.MERGE)
        except ClusterError as error:
            if error.code != 404:  # it may have gone meanwhile
                raise


async def _tell(event: Manifest, cluster: Cluster) -> None:
    try:
        await cluster.create(event)
    except ClusterError as error:
        if error.code != 409:
            log.warning("an Event cannot be told: %s", error)


def _version(manifest: Manifest) -> int:
    """k8s: versions may be compared where they are numbers; elsewhere the cache is believed."""
    text = str(manifest["metadata"].get("resourceVersion") or "")
    return int(text) if text.isdecimal() else 0



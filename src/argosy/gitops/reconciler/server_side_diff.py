"""Predicts manifests by server-side dry runs, for Applications with server-side diff.

In: desired manifests, live ones, the diff options. Out: responses of dry runs by key. Never: changes anything; repeats
a dry run for the same version of an object, unless the cache was cleared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from argosy.annotations import FIELD_MANAGER
from argosy.errors import ClusterError
from argosy.gitops.application.sync_annotations import is_hook
from argosy.gitops.diff import DiffOptions
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey


class _CachedPrediction(NamedTuple):
    """The dry-run response for a manifest while the live object had this version."""

    manifest: Manifest
    version: object
    predicted: Manifest


class DryRunPredictor:
    def __init__(self) -> None:
        self._cached: dict[ResourceKey, dict[ResourceKey, _CachedPrediction]] = {}  # by Application

    def forget(self, app: ResourceKey) -> None:
        self._cached.pop(app, None)

    async def predict(
        self,
        app: ResourceKey,
        desired: Sequence[Manifest],
        live: Mapping[ResourceKey, Manifest],
        diff_options: DiffOptions,
        open_client: Callable[[], Cluster],
    ) -> dict[ResourceKey, Manifest]:
        """argo: only with server-side diff; objects that do not exist yet need no prediction."""
        if not diff_options.server_side:
            return {}
        cluster = open_client()  # argo: a dry run uses the rights of the sync
        cached, predictions = self._cached.get(app, {}), dict[ResourceKey, _CachedPrediction]()
        for manifest in desired:
            if not manifest["metadata"].get("name") or (key := key_of(manifest)) not in live or is_hook(manifest):
                continue
            entry, version = cached.get(key), _object_version(live[key])
            if entry is not None and entry.manifest is manifest and entry.version == version:
                predictions[key] = entry
                continue
            try:
                predicted = await cluster.apply(manifest, manager=FIELD_MANAGER, force=True, dry_run=True)
            except ClusterError:
                continue  # compared without a prediction; the sync will report the refusal
            predictions[key] = _CachedPrediction(manifest, version, predicted)
        self._cached[app] = predictions
        return {key: prediction.predicted for key, prediction in predictions.items()}


def _object_version(live: Manifest) -> object:
    return live["metadata"].get("uid"), live["metadata"].get("resourceVersion")

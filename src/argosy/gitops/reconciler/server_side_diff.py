"""Predicts manifests by server-side dry runs, for Applications with server-side diff.

In: desired and live manifests. Out: responses of dry runs by key. Never: changes anything; repeats
a dry run for the same version of an object, unless the cache was cleared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from argosy.annotations import FIELD_MANAGER
from argosy.errors import ClusterError
from argosy.gitops.application.sync_annotations import is_hook
from argosy.gitops.reconciler.app_memo import ComparisonMemo, DryRunPrediction
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey


async def predict_by_dry_run(
    memo: ComparisonMemo,
    desired: Sequence[Manifest],
    live: Mapping[ResourceKey, Manifest],
    open_client: Callable[[], Cluster],
) -> dict[ResourceKey, Manifest]:
    """argo: objects that do not exist yet need no prediction."""
    cluster = open_client()  # argo: a dry run uses the rights of the sync
    cached, predictions = memo.predictions, dict[ResourceKey, DryRunPrediction]()
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
        predictions[key] = DryRunPrediction(manifest, version, predicted)
    memo.predictions = predictions
    return {key: prediction.predicted for key, prediction in predictions.items()}


def _object_version(live: Manifest) -> object:
    return live["metadata"].get("uid"), live["metadata"].get("resourceVersion")

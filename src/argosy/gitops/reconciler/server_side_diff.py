"""Predicts manifests by server-side dry runs, for Applications with server-side diff.

In: desired manifests, live ones, the diff options. Out: responses of dry runs by key. Never: changes anything; repeats
a dry run for the same version of an object, unless the cache was cleared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from argosy.annotations import FIELD_MANAGER
from argosy.errors import ClusterError
from argosy.gitops.application.hooks import is_hook
from argosy.gitops.diff import CompareRules
from argosy.kube.client import Cluster
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of


class _Said(NamedTuple):
    """The dry-run response for a manifest while the live object had this version."""

    manifest: Manifest
    version: object
    answer: Manifest


class Predictions:
    def __init__(self) -> None:
        self._said: dict[ResourceKey, dict[ResourceKey, _Said]] = {}  # by Application

    def forget(self, app: ResourceKey) -> None:
        self._said.pop(app, None)

    async def of(
        self,
        app: ResourceKey,
        desired: Sequence[Manifest],
        live: Mapping[ResourceKey, Manifest],
        rules: CompareRules,
        acting: Callable[[], Cluster],
    ) -> dict[ResourceKey, Manifest]:
        """argo: only with server-side diff; objects that do not exist yet need no prediction."""
        if not rules.server_side:
            return {}
        cluster = acting()  # argo: a dry run uses the rights of the sync
        known, said = self._said.get(app, {}), dict[ResourceKey, _Said]()
        for manifest in desired:
            if not manifest["metadata"].get("name") or (key := key_of(manifest)) not in live or is_hook(manifest):
                continue
            before, version = known.get(key), _version(live[key])
            if before is not None and before.manifest is manifest and before.version == version:
                said[key] = before
                continue
            try:
                answer = await cluster.apply(manifest, manager=FIELD_MANAGER, force=True, dry_run=True)
            except ClusterError:
                continue  # compared without a prediction; the sync will report the refusal
            said[key] = _Said(manifest, version, answer)
        self._said[app] = said
        return {key: each.answer for key, each in said.items()}


def _version(live: Manifest) -> object:
    return live["metadata"].get("uid"), live["metadata"].get("resourceVersion")

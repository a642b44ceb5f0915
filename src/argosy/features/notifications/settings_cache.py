"""Cache of the notification settings in force for a namespace, reloaded when they change.

In: a namespace. Out: settings. Never: applies the settings of one user namespace to objects of another.
"""

from __future__ import annotations

import logging

from argosy.errors import ClusterError
from argosy.features.notifications import names
from argosy.features.notifications.settings import Settings, read_settings
from argosy.kube.client import ClusterReader
from argosy.kube.controller import Cache
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.objects.boolean_text import parse_switch

log = logging.getLogger(__name__)
Versions = tuple[str, ...]


class Loader:
    """Loads settings. `control` is the namespace of the installation; its argosy-cm may allow self-service settings."""

    def __init__(self, control: str = "") -> None:
        self._control: tuple[str, ...] = (control,) if control else names.CONTROL
        self._known: dict[str, tuple[Versions, Settings]] = {}
        self._rules: tuple[Versions, Manifest | None] = (), None

    async def settings(self, namespace: str, cluster: ClusterReader, cache: Cache) -> tuple[Versions, Settings]:
        rules, own = await self._allowed(cluster, cache)
        places = self._control
        if parse_switch(str((own or {}).get("data", {}).get(names.SELF_SERVICE) or "")) is True:
            places = (namespace, *(each for each in places if each != namespace))
        home = next((each for each in places if cache.get(_key(names.CONFIG_MAP, each, names.SETTINGS))), "")
        versions = (home, *rules, *(_version(cache.get(key)) for key in _keys(home)))
        known = self._known.get(home)
        if known is not None and known[0] == versions:
            return known
        config_map, secret = _keys(home)
        read = (await _get(config_map, cluster), await _get(secret, cluster)) if home else (None, None)
        found = read_settings(*read, own)
        for each in found.problems:
            log.warning("invalid notification settings: error=%s", found.masked(each))
        self._known[home] = versions, found
        return versions, found

    async def _allowed(self, cluster: ClusterReader, cache: Cache) -> tuple[Versions, Manifest | None]:
        """Load argosy-cm of the installation; no other namespace may extend it."""
        keys = [_key(names.CONFIG_MAP, each, names.OWN_SETTINGS) for each in self._control]
        key = next((each for each in keys if cache.get(each)), keys[0])
        versions = (key.namespace, _version(cache.get(key)))
        if self._rules[0] != versions:
            self._rules = versions, await _get(key, cluster) if cache.get(key) else None
        return self._rules


async def load_settings(home: str, cluster: ClusterReader) -> Settings:
    """Load the settings of an installation from its namespace."""
    read = [await _get(key, cluster) for key in (*_keys(home), _key(names.CONFIG_MAP, home, names.OWN_SETTINGS))]
    return read_settings(*read)


def _keys(home: str) -> tuple[ResourceKey, ResourceKey]:
    return _key(names.CONFIG_MAP, home, names.SETTINGS), _key(names.SECRET, home, names.SECRETS)


async def _get(key: ResourceKey, cluster: ClusterReader) -> Manifest | None:
    try:
        return await cluster.get(key)
    except ClusterError as error:
        if error.code in (403, 404):
            return None
        raise


def _key(kind: GroupKind, namespace: str, name: str) -> ResourceKey:
    return ResourceKey(*kind, namespace, name)


def _version(manifest: Manifest | None) -> str:
    return str(manifest["metadata"].get("resourceVersion") or "") if manifest else ""

"""Which settings are in force for an object, read again when they change.

In: a namespace. Out: Settings. Never: those of a stranger's namespace for somebody else's object.
"""

from __future__ import annotations

import logging

from argosy.addons.notifications import names
from argosy.addons.notifications.settings import Settings, read_settings
from argosy.cluster import ClusterReader
from argosy.model.errors import ClusterError
from argosy.model.manifest import Manifest
from argosy.model.names import GroupKind, ResourceKey
from argosy.runtime import Cache

log = logging.getLogger(__name__)
Versions = tuple[str, ...]


class Loader:
    """`control` is where an installation's settings are; an object's own namespace may have its own."""

    def __init__(self, control: str = "") -> None:
        self._control = (control,) if control else names.CONTROL
        self._known: dict[str, tuple[Versions, Settings]] = {}

    async def settings(self, namespace: str, cluster: ClusterReader, cache: Cache) -> tuple[Versions, Settings]:
        places = (namespace, *(each for each in self._control if each != namespace))
        home = next((each for each in places if cache.get(_key(names.CONFIG_MAP, each, names.SETTINGS))), "")
        keys = _keys(home)
        versions = (home, *(_version(cache.get(key)) for key in keys))
        known = self._known.get(home)
        if known is not None and known[0] == versions:
            return known
        found = await load_settings(home, cluster) if home else read_settings(None, None)
        for each in found.problems:
            log.warning("%s", found.masked(each))
        self._known[home] = versions, found
        return versions, found


async def load_settings(home: str, cluster: ClusterReader) -> Settings:
    read = [await _get(key, cluster) for key in _keys(home)]
    return read_settings(*read)


def _keys(home: str) -> tuple[ResourceKey, ResourceKey, ResourceKey]:
    return (
        _key(names.CONFIG_MAP, home, names.SETTINGS),
        _key(names.SECRET, home, names.SECRETS),
        _key(names.CONFIG_MAP, home, names.OWN_SETTINGS),
    )


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

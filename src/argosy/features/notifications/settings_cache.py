"""Cache of the notification settings in force for a namespace, reloaded when they change.

In: a namespace. Out: settings. Never: applies the settings of one user namespace to objects of another.
"""

from __future__ import annotations

import logging

from argosy.errors import ClusterError
from argosy.features.notifications import constants
from argosy.features.notifications.settings import NotificationSettings, read_settings
from argosy.kube.client import ClusterReader
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest
from argosy.kube.objects.config_map_booleans import parse_boolean
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP, SECRET

log = logging.getLogger(__name__)
SettingsVersions = tuple[str, ...]


class NotificationSettingsCache:
    """Loads settings. `control` is the namespace of the installation; its argosy-cm may allow self-service settings."""

    def __init__(self, namespace: str = "") -> None:
        self._namespaces: tuple[str, ...] = (namespace,) if namespace else constants.DEFAULT_NAMESPACES
        self._settings_by_namespace: dict[str, tuple[SettingsVersions, NotificationSettings]] = {}
        self._argosy_cm: tuple[SettingsVersions, Manifest | None] = (), None

    async def load_settings(
        self, namespace: str, cluster: ClusterReader, cache: InformerCache
    ) -> tuple[SettingsVersions, NotificationSettings]:
        argosy_versions, argosy_cm = await self._load_argosy_cm(cluster, cache)
        namespaces = self._namespaces
        if parse_boolean(str((argosy_cm or {}).get("data", {}).get(constants.SELF_SERVICE_SETTING) or "")) is True:
            namespaces = (namespace, *(item for item in namespaces if item != namespace))
        settings_namespace = next(
            (item for item in namespaces if cache.get(_build_key(CONFIG_MAP, item, constants.SETTINGS_CONFIG_MAP))),
            "",
        )
        versions = (
            settings_namespace,
            *argosy_versions,
            *(_read_version(cache.get(key)) for key in _build_settings_keys(settings_namespace)),
        )
        cached = self._settings_by_namespace.get(settings_namespace)
        if cached is not None and cached[0] == versions:
            return cached
        config_map, secret = _build_settings_keys(settings_namespace)
        manifests = (
            (await _load_visible(config_map, cluster), await _load_visible(secret, cluster))
            if settings_namespace
            else (None, None)
        )
        parsed_settings = read_settings(*manifests, argosy_cm)
        for item in parsed_settings.problems:
            log.warning("invalid notification settings: error=%s", parsed_settings.mask_secrets(item))
        self._settings_by_namespace[settings_namespace] = versions, parsed_settings
        return versions, parsed_settings

    async def _load_argosy_cm(
        self, cluster: ClusterReader, cache: InformerCache
    ) -> tuple[SettingsVersions, Manifest | None]:
        """Load argosy-cm of the installation; no other namespace may extend it."""
        keys = [_build_key(CONFIG_MAP, item, constants.ARGOSY_CONFIG_MAP) for item in self._namespaces]
        key = next((item for item in keys if cache.get(item)), keys[0])
        versions = (key.namespace, _read_version(cache.get(key)))
        if self._argosy_cm[0] != versions:
            self._argosy_cm = versions, await _load_visible(key, cluster) if cache.get(key) else None
        return self._argosy_cm


async def load_settings(namespace: str, cluster: ClusterReader) -> NotificationSettings:
    """Load the settings of an installation from its namespace."""
    manifests = [
        await _load_visible(key, cluster)
        for key in (
            *_build_settings_keys(namespace),
            _build_key(CONFIG_MAP, namespace, constants.ARGOSY_CONFIG_MAP),
        )
    ]
    return read_settings(*manifests)


def _build_settings_keys(namespace: str) -> tuple[ResourceKey, ResourceKey]:
    return _build_key(CONFIG_MAP, namespace, constants.SETTINGS_CONFIG_MAP), _build_key(
        SECRET, namespace, constants.SETTINGS_SECRET
    )


async def _load_visible(key: ResourceKey, cluster: ClusterReader) -> Manifest | None:
    try:
        return await cluster.get(key)
    except ClusterError as error:
        if error.code in (403, 404):
            return None
        raise


def _build_key(kind: GroupKind, namespace: str, name: str) -> ResourceKey:
    return ResourceKey(*kind, namespace, name)


def _read_version(manifest: Manifest | None) -> str:
    return str(manifest["metadata"].get("resourceVersion") or "") if manifest else ""

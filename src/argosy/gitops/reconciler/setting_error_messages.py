"""Describes settings that cannot be read: ConfigMap, key, value, and what is expected.

In: the data of ConfigMaps, faults of their readers. Out: sentences that begin with ConfigMap and key. Never: a
multi-line value; decides which value is used meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from argosy.errors import UserError
from argosy.gitops.clusters.cluster_secret import MAX_MEMORY_SETTING
from argosy.gitops.diff.argocd_cm_diff_settings_reader import COMPARE_OPTIONS_KEY, CUSTOMIZATIONS_KEY
from argosy.gitops.live.exclusions import EXCLUSIONS_SETTING, INCLUSIONS_SETTING
from argosy.gitops.policy.destination_cluster_lookup import IN_CLUSTER_ENABLED_KEY
from argosy.gitops.policy.global_projects import GLOBAL_PROJECTS_KEY
from argosy.gitops.policy.impersonation import ENABLED_KEY, find_impersonation_fault
from argosy.gitops.reconciler.settings_of_other_parts_check import (
    CHECKS_BY_CONFIG_MAP,
    HOSTS_KEY,
    OVERRIDE_KEY,
    PROXIES_KEY,
    check_boolean,
    check_quantity,
    find_wrong_values,
    is_account_enabled_key,
)
from argosy.gitops.source.repository_access_settings import PROTOCOLS_SETTING
from argosy.gitops.source.submodules import SUBMODULES_SETTING

log = logging.getLogger(__name__)
ConfigMaps = Mapping[str, Mapping[str, str]]  # data by name of the ConfigMap
MAX_VALUE_LENGTH: Final = 60
# Keys whose value is a boolean, by the ConfigMap that they are in.
BOOLEAN_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "argocd-cm": (
        "helm.enable",
        "kustomize.enable",
        "jsonnet.enable",
        IN_CLUSTER_ENABLED_KEY,
        "resource.ignoreResourceUpdatesEnabled",
        "application.sync.impersonation.enforced",
    ),
    "argocd-cmd-params-cm": (
        "controller.resource.health.persist",
        "controller.diff.server.side",
        SUBMODULES_SETTING,
    ),
}
# Keys that restrict what is delivered. Without a good value of one of them, no Application is synced; without one of
# IN_CLUSTER_ENABLED_KEY, no Application with this cluster as destination.
RESTRICTING_KEYS: Final = (
    GLOBAL_PROJECTS_KEY,
    EXCLUSIONS_SETTING,
    INCLUSIONS_SETTING,
    PROTOCOLS_SETTING,
    IN_CLUSTER_ENABLED_KEY,
)
# What is used while a key cannot be read, if that is neither the last good value nor the default.
_FALLBACKS: Final[Mapping[str, str]] = {
    ENABLED_KEY: "impersonation is enabled",
    IN_CLUSTER_ENABLED_KEY: "the last good value is used, and after a restart no Application is synced to this cluster",
    OVERRIDE_KEY: "a sync to another revision needs the right to override",
    PROXIES_KEY: "entries that cannot be read are not trusted",
    HOSTS_KEY: "entries that cannot be read allow no host",
}
# Keys whose default is used while they cannot be read. All others keep the last good value.
_DEFAULTED_KEYS: Final = frozenset(
    {
        MAX_MEMORY_SETTING,
        COMPARE_OPTIONS_KEY,
        *(key for table in (BOOLEAN_KEYS, CHECKS_BY_CONFIG_MAP) for keys in table.values() for key in keys),
    }
)


def describe_invalid_values(config_maps: ConfigMaps) -> Iterator[str]:
    """Describe invalid booleans and quantities, which their readers ignore silently."""
    for name, keys in BOOLEAN_KEYS.items():
        for key in keys:
            value = config_maps.get(name, {}).get(key, "").strip()
            if value and (problem := check_boolean(value)):
                yield f"{name}: {key}: {_shorten(value)} {problem}"
    if fault := find_impersonation_fault(config_maps.get("argocd-cm", {})):
        yield f"argocd-cm: {fault}"
    value = config_maps.get("argosy-cm", {}).get(MAX_MEMORY_SETTING, "").strip()
    if value and (problem := check_quantity(value)):
        yield f"argosy-cm: {MAX_MEMORY_SETTING}: {_shorten(value)} {problem}"
    for name, data in config_maps.items():
        for key, value, problem in find_wrong_values(name, data):
            yield f"{name}: {key}: {_shorten(value)} {problem}"


def describe_fault(error: Exception) -> str:
    """Return the message of a reader's error; it begins with the key, also if a line is known."""
    if isinstance(error, UserError) and error.line:
        return f"{error.where}: line {error.line} of its text: {error.message}"
    return str(error)


def add_location(fault: str, config_maps: ConfigMaps) -> str:
    """Put the ConfigMap before the key that the fault begins with, and the key's value after it."""
    for name, data in config_maps.items():
        text = fault.removeprefix(f"{name}: ")
        key = max((key for key in data if text.startswith(f"{key}: ")), key=len, default=None)
        if key is None:
            continue
        problem, value = text.removeprefix(f"{key}: "), data[key].strip()
        is_shown = repr(value) in problem or repr(data[key]) in problem
        if not is_shown and "\n" not in value and len(value) <= MAX_VALUE_LENGTH:
            problem = f"{value!r} {problem}" if problem.startswith("is ") else f"{value!r}: {problem}"
        return f"{name}: {key}: {problem}"
    return fault


def _shorten(value: str) -> str:
    return repr(value if len(value) <= MAX_VALUE_LENGTH else f"{value[: MAX_VALUE_LENGTH - 1]}…")


def find_key(fault: str) -> str:
    """Return the key that a fault of `add_location` is about."""
    return fault.partition(": ")[2].partition(": ")[0]


def describe_fallback(fault: str) -> str:
    """Describe which value is used until the setting can be read."""
    key = find_key(fault)
    if fault.startswith("AppProject "):
        return "the project allows nothing"
    if key in _FALLBACKS:
        return _FALLBACKS[key]
    if is_account_enabled_key(key):
        return "the account is enabled"
    if key in RESTRICTING_KEYS:
        return "the last good value is used, and after a restart no Application is synced"
    if key in _DEFAULTED_KEYS or key.startswith(CUSTOMIZATIONS_KEY):
        return "the default is used"
    return "the last good value is used, and after a restart the default"


class SettingFaultLog:
    """Logs each fault once, when it appears."""

    def __init__(self) -> None:
        self._logged: frozenset[str] = frozenset()

    def log_new(self, faults: Iterable[str]) -> None:
        current = dict.fromkeys(faults)
        for fault in current:
            if fault not in self._logged:
                log.warning("cannot read a setting: %s; until then %s", fault, describe_fallback(fault))
        self._logged = frozenset(current)

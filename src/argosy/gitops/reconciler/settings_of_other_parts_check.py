"""Checks settings that other parts than the controller read: the server, notifications, notebooks.

In: the data of a ConfigMap. Out: what is wrong with a value, as the end of a sentence. Never: says which value is used
meanwhile; the parts that read a value ignore an invalid one.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from argosy.errors import ArgosyError
from argosy.gitops.application.sync_policy import parse_duration
from argosy.kube.objects.allowed_ports_setting_parser import parse_ports
from argosy.kube.objects.config_map_booleans import parse_boolean
from argosy.kube.schema import quantity

Check = Callable[[str], str]  # a non-empty value → what is wrong with it, or ""
PROXIES_KEY, HOSTS_KEY = "server.proxies", "notifications.hosts"
OVERRIDE_KEY: Final = "application.sync.requireOverridePrivilegeForRevisionSync"
ADMIN_ENABLED_KEY: Final = "admin.enabled"
_ACCOUNT_ENABLED: Final = re.compile(r"accounts\.[^.]+\.enabled")
_GO_BOOLEANS: Final = frozenset({"1", "t", "true", "0", "f", "false"})  # argo: strconv.ParseBool
_NOT_BOOLEAN: Final = "is not a boolean; write true or false"


def check_boolean(value: str) -> str:
    return "" if parse_boolean(value) is not None else _NOT_BOOLEAN


def check_quantity(value: str) -> str:
    try:
        quantity.parse(value)
    except (ArgosyError, ValueError):
        return "is not a quantity; write one such as 4Gi"
    return ""


def _check_go_boolean(value: str) -> str:
    return "" if value.lower() in _GO_BOOLEANS else _NOT_BOOLEAN


def _check_duration(value: str) -> str:
    try:
        parse_duration(value)
    except ValueError:
        return "is not a duration; write it as 30s, 5m or 1h30m"
    return ""


def _check_number(value: str) -> str:
    return "" if re.fullmatch(r"[0-9]{1,4}", value) and int(value) else "is not a number from 1 to 9999"


def _check_ports(value: str) -> str:
    return "" if parse_ports(value) is not None else "is neither true, false nor ports such as 443, 5432"


def _check_networks(value: str) -> str:
    for entry in filter(None, map(str.strip, value.split(","))):
        try:
            ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return f"has {entry!r}, which is not an address or network; write one such as 10.0.0.0/8"
    return ""


def _check_hosts(value: str) -> str:
    hosts = [entry.strip() for entry in value.split(",") if entry.strip()]
    if not hosts:
        return "names no host; write one such as *.slack.com, or remove the key to allow every host"
    invalid_host = next((host for host in hosts if re.search(r"\s|/", host)), "")
    return f"has {invalid_host!r}, which is not a host; separate hosts with commas" if invalid_host else ""


CHECKS_BY_CONFIG_MAP: Final[Mapping[str, Mapping[str, Check]]] = {
    "argosy-cm": {
        PROXIES_KEY: _check_networks,
        HOSTS_KEY: _check_hosts,
        "notifications.selfService": check_boolean,
        "notebooks.parallel": _check_number,
        "notebooks.memory": check_quantity,
        "notebooks.storage": check_quantity,
        "notebooks.network": _check_ports,
    },
    "argocd-cm": {
        OVERRIDE_KEY: check_boolean,
        ADMIN_ENABLED_KEY: _check_go_boolean,
        "users.anonymous.enabled": check_boolean,
        "users.session.duration": _check_duration,
        "statusbadge.enabled": check_boolean,
    },
}


def is_account_enabled_key(key: str) -> bool:
    """True if the key of argocd-cm enables or disables an account."""
    return key == ADMIN_ENABLED_KEY or _ACCOUNT_ENABLED.fullmatch(key) is not None


def find_wrong_values(config_map: str, data: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield key, value and fault of each invalid value in a ConfigMap."""
    checks = CHECKS_BY_CONFIG_MAP.get(config_map, {})
    for key in data:
        check = checks.get(key)
        if check is None and config_map == "argocd-cm" and is_account_enabled_key(key):
            check = _check_go_boolean
        value = data[key].strip()
        if check is not None and value and (problem := check(value)):
            yield key, value, problem

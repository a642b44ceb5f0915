"""URL paths and HTML element ids of Applications and their objects.

In: names and keys. Out: paths, ids. Never: leaves a name unquoted in a path.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, urlencode

from argosy.kube.names import ResourceKey

TABS = (
    ("tree", "Tree"),
    ("resources", "Resources"),
    ("operation", "Operation"),
    ("diff", "Diff"),
    ("events", "Events"),
    ("logs", "Logs"),
    ("history", "History"),
    ("parameters", "Parameters"),
    ("manifest", "Manifest"),
    ("settings", "Settings"),
)


def of_app(namespace: str, name: str, tab: str = "") -> str:
    return f"/apps/{_part(namespace)}/{_part(name)}{f'/{tab}' if tab else ''}"


def of_resource(namespace: str, name: str, key: ResourceKey, tab: str = "") -> str:
    """argo: A dash replaces an empty group or namespace."""
    parts = "/".join(_part(each or "-") for each in key)
    return f"{of_app(namespace, name)}/r/{parts}{f'?tab={tab}' if tab else ''}"


def key_from(group: str, kind: str, namespace: str, name: str) -> ResourceKey:
    return ResourceKey("" if group == "-" else group, kind, "" if namespace == "-" else namespace, name)


def with_query(path: str, pairs: Iterable[tuple[str, str]]) -> str:
    found = [(name, value) for name, value in pairs if value]
    return f"{path}?{urlencode(found)}" if found else path


def element_of_app(namespace: str, name: str) -> str:
    return f"a-{namespace}-{name}"


def element_of(key: ResourceKey) -> str:
    return f"r-{key.group}-{key.kind}-{key.namespace}-{key.name}"


def _part(text: str) -> str:
    return quote(text, safe=":")

"""URL paths and HTML element ids of Applications and their objects.

In: names and keys. Out: paths, ids. Never: leaves a name unquoted in a path.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, urlencode

from argosy.kube.resource_key import ResourceKey

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


def application_path(namespace: str, name: str, tab: str = "") -> str:
    return f"/apps/{_quote_part(namespace)}/{_quote_part(name)}{f'/{tab}' if tab else ''}"


def resource_path(namespace: str, name: str, key: ResourceKey, tab: str = "") -> str:
    """argo: A dash replaces an empty group or namespace."""
    parts = "/".join(_quote_part(part or "-") for part in key)
    return f"{application_path(namespace, name)}/r/{parts}{f'?tab={tab}' if tab else ''}"


def read_path_key(group: str, kind: str, namespace: str, name: str) -> ResourceKey:
    return ResourceKey("" if group == "-" else group, kind, "" if namespace == "-" else namespace, name)


def add_query(path: str, pairs: Iterable[tuple[str, str]]) -> str:
    set_pairs = [(name, value) for name, value in pairs if value]
    return f"{path}?{urlencode(set_pairs)}" if set_pairs else path


def application_element_id(namespace: str, name: str) -> str:
    return f"a-{namespace}-{name}"


def resource_element_id(key: ResourceKey) -> str:
    return f"r-{key.group}-{key.kind}-{key.namespace}-{key.name}"


def _quote_part(text: str) -> str:
    return quote(text, safe=":")

"""Recovers details of YAML that parsed values lose: explicit nulls and the text of scalars. In: text and its values.

Out: YamlDetails. Never: composes the YAML unless the text may need it; that is slower than parsing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import yaml

from argosy.gitops.render.kustomize.resource import ExplicitNulls

BLANK_KEY_PREFIX: Final = "\0"  # prefix for a key without a value in a flow map, which is read as an empty string
_EXPLICIT_NULL: Final = re.compile(rb"[:\-\[,][ \t]+(?:null|Null|NULL|~)[ \t]*(?:$|[,}\]#])", re.MULTILINE)
_BLANK_VALUE: Final = re.compile(rb":[ \t]*[,}]")
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT.*")


def may_lose_details(text: bytes) -> bool:
    """True if the text may have explicit nulls, or flow maps with keys that have no value."""
    return bool(_EXPLICIT_NULL.search(text) or _BLANK_VALUE.search(text))


def has_unusual_values(entries: Any) -> bool:
    """True if labels or annotations may have source text that differs from their values."""
    return isinstance(entries, dict) and any(
        type(value) is not str or (value[:1].isdigit() and _TIMESTAMP.fullmatch(value)) for value in entries.values()
    )


class YamlDetails:
    """Explicit nulls, keys of flow maps without a value, and the source text of plain scalars."""

    def __init__(self, documents: Sequence[Any], text: bytes) -> None:
        self.nulls: ExplicitNulls = {}
        self._texts: dict[int, dict[str, str]] = {}
        nodes = yaml.compose_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        try:
            for value, node in zip(documents, nodes):
                self._collect(value, node)
        except yaml.YAMLError:  # JSON with escapes that YAML does not have
            pass

    def get_source_texts(self, entries: Any) -> dict[str, str]:
        """Return the source text of a map's entries, where it differs from the value."""
        return self._texts.get(id(entries), {})

    def _collect(self, value: Any, node: Any) -> None:
        if type(value) is list and isinstance(node, yaml.SequenceNode):
            for item, child_node in zip(value, node.value):
                self._collect(item, child_node)
        if type(value) is not dict or not isinstance(node, yaml.MappingNode):
            return
        fields = {key.value: child_node for key, child_node in node.value if isinstance(key, yaml.ScalarNode)}
        null_keys = set()
        for key, item in value.items():
            child_node = fields.get(key)
            if type(item) is dict or type(item) is list:
                self._collect(item, child_node)
            elif isinstance(child_node, yaml.ScalarNode) and not child_node.style:
                if item is None and child_node.value:
                    null_keys.add(key)
                if item == "":
                    null_keys.add(BLANK_KEY_PREFIX + key)
                if item != child_node.value:
                    self._texts.setdefault(id(value), {})[key] = child_node.value
        if null_keys:
            self.nulls[id(value)] = value, frozenset(null_keys)


def restore_patch_values(documents: Sequence[Any], text: bytes, *, as_texts: bool) -> None:
    """Give patches the values that kustomize's merge uses.

    k8s: annotations keep their source text. In `patchesStrategicMerge`, but not in `patches`, labels do too, and a null
    is
    the string `null`: it deletes nothing. A key without a value in a flow map is a null.
    """
    fields = ("labels", "annotations") if as_texts else ("annotations",)
    metadata_fields = [
        (metadata, field)
        for document in documents
        if isinstance(document, dict) and isinstance(metadata := document.get("metadata"), dict)
        for field in fields
        if field in metadata
    ]
    if not _BLANK_VALUE.search(text) and not any(
        has_unusual_values(metadata[field]) for metadata, field in metadata_fields
    ):
        details = None
    else:
        details = YamlDetails(documents, text)
        for holder, keys in details.nulls.values():
            holder.update({key[1:]: None for key in keys if key[0] == BLANK_KEY_PREFIX})
    for metadata, field in metadata_fields:
        _restore_entries(metadata, field, details, as_texts)


def _restore_entries(metadata: dict[str, Any], field: str, details: YamlDetails | None, as_texts: bool) -> None:
    entries = metadata[field]
    if as_texts and not entries:
        del metadata[field]
    if not isinstance(entries, dict):
        return
    texts = details.get_source_texts(entries) if details else {}
    for key, value in entries.items():
        if as_texts and (value is None or type(value) in (dict, list)):
            entries[key] = texts.get(key, "")
        elif value is not None:
            entries[key] = texts.get(key, value)
